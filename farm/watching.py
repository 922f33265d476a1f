"""A run as the ledger tells it: one snapshot, then every transition.

What it costs depends on what happens, not on how long the run is: counters are kept, only the jobs
under way are asked how far they are, and only the figures that a screen has room for are read.
"""

import json
from collections import Counter, deque
from statistics import median
from typing import Final, NamedTuple

from farm import schema
from farm.console import JobLine, RunState
from farm.effort import repeat_words
from farm.errors import FarmError
from farm.fleet import held_up
from farm.ledger import ENDS, Event, Ledger, Record
from farm.report import words
from farm.schema import ANSWERS, Latency, Manifest, Profile
from farm.store import Store, StoreError
from farm.sweep import label_text

# What a person reads for a state of the ledger.
WORDS: Final = {
    "READY": "queued",
    "RUNNING": "measuring",
    "UPLOADING": "uploading",
    "BACKOFF": "waiting",
    "DONE": "done",
    "FAILED": "failed",
    "DEAD": "dead",
    "CANCELLED": "cancelled",
}
_SHOWN: Final = 40  # ended jobs that a screen may have room for
_RECENT: Final = 200  # ended jobs that the time left is guessed from


class _Seen(NamedTuple):
    """What we know of an entry; profile_key: "" if only the ledger knows it."""

    state: str
    attempt: int = 0
    owner: str = ""
    node: str = ""
    cause: str = ""
    since_ms: float = 0.0
    profile_key: str = ""


class Moved(NamedTuple):
    """A job of the run that changed: where it was, its state in words, and its figure if known."""

    job_id: str
    label: str
    line: JobLine


class Watch:
    """Knows how a run stands; jobs that the ledger does not hold are answered, and count as done.

    began: when it was submitted, on the clock of `state`.
    """

    def __init__(self, expected: Manifest, *, ledger: Ledger, store: Store, began: float) -> None:
        self._expected, self._ledger, self._store = expected, ledger, store
        self._began = began
        self._labels = {
            f"{each.job_id}.{expected.repeat_set}": label_text(each.labels)
            for each in expected.jobs
        }
        self._seen: dict[str, _Seen] = {}
        self._ever: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._ended: deque[str] = deque(maxlen=_SHOWN)
        self._took: deque[float] = deque(maxlen=_RECENT)
        self._figures: dict[tuple[str, str, int], tuple[float | None, str]] = {}
        self._after = "0-0"
        self._changed: list[str] = []
        self.snapshot()

    @property
    def is_known(self) -> bool:
        """Whether the ledger holds anything of this run."""
        return bool(self._seen)

    @property
    def is_ended(self) -> bool:
        return all(state in ENDS for state, count in self._counts.items() if count)

    def snapshot(self) -> None:
        """Take every entry of the run as it stands now."""
        after = self._ledger.last_event()
        records = self._ledger.entries(self._expected.run_id)
        self._after = after
        self._seen, self._counts = {}, Counter()
        self._ended.clear()
        self._took.clear()
        for each in sorted(records, key=lambda record: record.changed_ms):
            self._note(
                each.key,
                _Seen(
                    state=each.state,
                    attempt=each.attempt,
                    owner=each.owner,
                    node=each.node,
                    cause=each.cause,
                    since_ms=each.changed_ms,
                    profile_key=each.profile_key,
                ),
            )
            if each.state in ("DONE", "FAILED") and each.started_ms is not None:
                self._took.append((each.changed_ms - each.started_ms) / 1000)

    def catch_up(self) -> list[str]:
        """Take in what happened since, and return the keys of our jobs that changed, in order.

        If the broker goes away meanwhile, the next call returns what this one had found.
        """
        self._take_in()
        changed, self._changed = self._changed, []
        return changed

    def state(self, now: float, *, slots: int) -> RunState:
        """Return the run as it stands; the time left is a guess from the jobs that ended."""
        counts = self._counts
        open_ = sum(count for state, count in counts.items() if state not in ENDS)
        answers = Counter(
            words.failure(each.cause)
            for each in self._seen.values()
            if each.state == "FAILED" and each.cause in ANSWERS
        )
        left = median(self._took) * open_ / max(1, slots) if self._took and open_ else None
        return RunState(
            run_id=self._expected.run_id,
            name=self._expected.name,
            total=len(self._expected.jobs),
            done=counts["DONE"] + self._before(),
            failed=counts["FAILED"] + counts["DEAD"] - answers.total(),
            running=counts["RUNNING"],
            queued=open_ - counts["RUNNING"] - counts["UPLOADING"],
            uploading=counts["UPLOADING"],
            notes=tuple(held_up(self._ledger.nodes())) if counts["UPLOADING"] else (),
            cancelled=counts["CANCELLED"],
            answers=tuple(sorted(answers.items())),
            elapsed_s=now - self._began,
            left_s=left,
            lines=tuple(self._lines()),
        )

    def counts(self) -> dict[str, int]:
        """Return jobs by state in words, each state named; those not waited for are done."""
        found = {word: self._counts[state] for state, word in WORDS.items()}
        return found | {"done": found["done"] + self._before()}

    def moved(self, key: str) -> Moved:
        """Return how one of our jobs stands now, with its figure."""
        records = self._ledger.records([key])
        line = self._line(key, records[0] if records else None)
        return Moved(key.partition(".")[0], line.label, line)

    def _before(self) -> int:
        """How many jobs the ledger never held; one that it has lost is not done by that."""
        return len(self._expected.jobs) - len(self._ever)

    def _take_in(self) -> None:
        if self._ledger.is_trimmed(self._after):
            self._begin_anew()
            return
        while events := self._ledger.events(self._after):
            for each in filter(self._may_be_ours, events):
                if self._is_unclear(each):
                    self._begin_anew()
                    return
                node = each.owner.partition("/")[0]
                seen = _Seen(each.state, each.attempt, each.owner, node, each.cause, each.at_ms)
                self._note(each.key, seen)
                self._changed.append(each.key)
            self._after = events[-1].id
        # A run that joins an entry which is under way for another one moves nothing.
        if dict(+self._counts) != self._ledger.counts(self._expected.run_id):
            self._begin_anew()

    def _begin_anew(self) -> None:
        former = self._seen
        self.snapshot()
        for key, each in self._seen.items():
            if key not in former or former[key][:2] != each[:2]:
                self._changed.append(key)

    def _may_be_ours(self, event: Event) -> bool:
        return event.key in self._labels and event.run in ("", self._expected.run_id)

    def _is_unclear(self, event: Event) -> bool:
        """Whether only the ledger knows if we want the entry: it is new to us, or had ended, or we
        had let go of it, and moves for us again or for another run alone."""
        seen = self._seen.get(event.key)
        return seen is None or seen.state in ENDS

    def _note(self, key: str, seen: _Seen) -> None:
        former = self._seen.get(key)
        if former is not None:
            self._counts[former.state] -= 1
            if former.state == "RUNNING" and seen.state in ("UPLOADING", "DONE", "FAILED"):
                self._took.append((seen.since_ms - former.since_ms) / 1000)
            # Whoever ends an entry lets go of it first, and a spool is no device.
            if not seen.owner or seen.state == "UPLOADING":
                seen = seen._replace(owner=former.owner, node=former.node)
        self._seen[key] = seen
        self._ever.add(key)
        self._counts[seen.state] += 1
        if seen.state in ENDS:
            self._ended.append(key)

    def _lines(self) -> list[JobLine]:
        """Return the jobs under way, then those that ended last."""
        running = [key for key, each in self._seen.items() if each.state == "RUNNING"][:_SHOWN]
        ended = [key for key in reversed(self._ended) if self._seen[key].state in ENDS]
        keys = dict.fromkeys([*running, *ended])
        asked = [key for key in keys if key in running or self._is_owed(key)]
        records = {each.key: each for each in self._ledger.records(asked)}
        return [self._line(key, records.get(key)) for key in keys]

    def _is_owed(self, key: str) -> bool:
        """Whether only the ledger knows where the figure of an ended job is."""
        seen = self._seen[key]
        known = (key, seen.state, seen.attempt) in self._figures
        return seen.state in ("DONE", "FAILED") and not seen.profile_key and not known

    def _line(self, key: str, record: Record | None) -> JobLine:
        seen = self._seen.get(key, _Seen("READY"))
        p50, note = None, ""
        if seen.state in ENDS:
            p50, note = self._figure(key, seen, record)
        elif seen.state == "RUNNING" and record is not None and record.progress:
            said = json.loads(record.progress)
            note = f"{said['phase']}, {repeat_words(said['repeat'], self._expected.effort.repeats)}"
        is_answer = seen.state == "FAILED" and seen.cause in ANSWERS
        return JobLine(
            node=seen.node,
            device=seen.owner.partition("/")[2].partition("#")[0].removesuffix("spool"),
            label=self._labels.get(key, key),
            state=words.failure(seen.cause) if is_answer else WORDS[seen.state],
            p50_ms=p50,
            note=note,
        )

    def _figure(self, key: str, seen: _Seen, record: Record | None) -> tuple[float | None, str]:
        known = (key, seen.state, seen.attempt)
        if known not in self._figures:
            self._figures[known] = self._read(seen, record)
        return self._figures[known]

    def _read(self, seen: _Seen, record: Record | None) -> tuple[float | None, str]:
        cause = "" if seen.cause == "ok" else words.failure(seen.cause)
        place = seen.profile_key or (record.profile_key if record is not None else "")
        if not place or seen.state not in ("DONE", "FAILED"):
            return None, cause
        try:
            profile = schema.decode(self._store.get(place), Profile)
        except (StoreError, FarmError) as error:
            return None, f"unreadable: {error}"
        if isinstance(profile.latency, Latency):
            flags = profile.quality.flags if isinstance(profile.quality, schema.Quality) else []
            return profile.latency.p50_ms, ", ".join(map(words.flag, flags))
        failure = profile.failure
        told = failure.message if isinstance(failure, schema.Failure) else ""
        return None, " ".join(told.split()) or cause
