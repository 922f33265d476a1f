"""What a step would take without some of its work, as one document."""

from typing import Final

from farm.trace.analysis import timings, what_if
from farm.trace.analysis.answers import Rates, RemovedWork, StepTimes, WhatIf
from farm.trace.analysis.timings import Ran, Timings
from farm.trace.analysis.what_if import Projection
from farm.trace.opening import Opened

_UNKNOWN: Final = "not_probed: a trace does not tell its images; a capture does"


def projected(opened: Opened, *, category: str | None, launches: int | None) -> WhatIf:
    """Return the projection without a category, or with fewer launches.

    An analysis that was kept with its timings gives the same as its trace. Raises Refused where
    there is nothing to remove or to project from, and for a category where the events are not kept.
    """
    found = what_if.basis(opened.analysis, _ran(opened))
    if category is not None:
        made = what_if.without_category(found, category)
    else:
        made = what_if.without_launches(found, launches or 0)
    rates = _rates(opened.analysis.img_per_s, made)
    return WhatIf(
        trace=opened.name,
        bound=opened.analysis.bound,
        mechanism=made.mechanism,
        removed=RemovedWork(**made.removed._asdict()),
        step_ms=StepTimes(now=made.now, projected=made.projected, best=made.best, worst=made.worst),
        img_per_s=rates,
        model_below_bound=made.below_bound,
        caveat=what_if.CAVEAT,
        note=made.note,
        null_reasons={"img_per_s": _UNKNOWN} if rates is None else {},
    )


def _ran(opened: Opened) -> Ran | None:
    if opened.made is not None:
        return timings.of_trace(opened.made.found)
    kept = opened.analysis.timings
    return timings.of_document(kept) if isinstance(kept, Timings) else None


def _rates(now: float | None, made: Projection) -> Rates | None:
    if now is None or not made.projected:
        return None
    return Rates(now=now, projected=now * made.now / made.projected)
