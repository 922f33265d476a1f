"""Which queue a job waits in, and who hears it (`queue.md` §3)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from farm.ledger import Slot
from farm.report import words
from farm.schema import Job


def job_class(job: Job) -> str:
    """Return the queue class of a job's selector."""
    selector = job.selector
    if selector.kind == "any":
        return "any"
    if selector.kind == "class":
        return f"hw.{selector.value}"
    if selector.kind == "node":
        return f"node.{selector.value}"
    node, _, index = selector.value.rpartition("/")
    return f"dev.{node}.{index}"


def takers(job: Job, slots: Sequence[Slot]) -> set[str]:
    """Return the systems of the slots that take the job."""
    wanted = job_class(job)
    return {slot.system_id for slot in slots if wanted in slot.classes}


def takeable(jobs: Sequence[Job], slots: Sequence[Slot]) -> list[Job]:
    """Return those of the jobs that a slot takes; any other would wait in the queue for ever."""
    return [job for job in jobs if takers(job, slots)]


def unserved(jobs: Sequence[Job], slots: Sequence[Slot]) -> dict[str, int]:
    """Return how many of the jobs wait in which queue that no slot hears."""
    return dict(sorted(Counter(job_class(job) for job in jobs if not takers(job, slots)).items()))


def unserved_lines(found: Mapping[str, int]) -> list[str]:
    """Return what waits for a device that no live node has."""
    return [
        f"no live device for {queue}: {words.count(many, 'job')} "
        f"{'waits' if many == 1 else 'wait'} until a node offers one"
        for queue, many in found.items()
    ]
