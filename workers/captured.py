"""What an attempt found beside its trace: plain steps, traced ones, and phases timed apart."""

from collections.abc import Sequence

import numpy as np

from farm.schema import Captured, Traced
from workers.figures import Taken, counted
from workers.readings import Seen
from workers.record import Record, TraceReading


def beside(taken: Sequence[Taken], seen: Seen | None) -> tuple[Captured, Traced | None, str]:
    """Return what the children of an attempt left beside a trace, what that is, or why not.

    Of several clean children it is the first that counts.
    """
    clean = counted(taken)[0] if taken else None
    traced = seen.record.trace if seen is not None and seen.record is not None else None
    told = seen.record if seen is not None and seen.record is not None else None
    told = told or (clean.record if clean is not None else None)
    plain = _plain_ns(clean)
    found = Captured(
        plain_ns=plain,
        waits_ns=clean.record.waits_ns[-len(plain) :] if clean is not None and plain else [],
        traced_ns=traced.traced_ns if traced else [],
        stages_ns=told.stages_ns if told else {},
        pipeline=told.pipeline if told else "plain",
        unused=told.unused if told else [],
        notes=[*_notes(told, traced), *_untimed(seen)],
    )
    if traced is not None:
        return found, Traced(iterations=traced.iterations, bytes=traced.trace_bytes), ""
    return found, None, seen.reason("trace") if seen is not None else "not_requested"


def _plain_ns(clean: Taken | None) -> list[int]:
    """Return the intervals between completions, which nothing waited for."""
    if clean is None or len(stamps := clean.arrays["completion_ns"]) < 2:
        return []
    return [int(each) for each in np.diff(stamps)]


def _untimed(seen: Seen | None) -> list[str]:
    """Return a note of phases that were to be timed apart and were not."""
    if seen is None or (seen.record is not None and seen.record.stages_ns):
        return []
    why = seen.reason("stages")
    quiet = ("not_requested", "not_applicable")
    return [] if why.partition(":")[0] in quiet else [f"the phases were not timed apart: {why}"]


def _notes(told: Record | None, traced: TraceReading | None) -> list[str]:
    notes = [*told.notes] if told else []
    if traced is not None and traced.iterations < traced.wanted:
        some = f"{traced.iterations} of {traced.wanted} iterations"
        notes.append(f"the trace holds {some}: more would be too large")
    return notes
