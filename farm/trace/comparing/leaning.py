"""Which way two sides lean, by the trials of the metric that is to be read first."""

from math import log
from typing import Final

from farm.stats.pairs import LargerIs
from farm.stats.unpaired import log_moments, welch, welch_log
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.figures import IMG_PER_S, PER_ITEM, STEP, Metric, batch, figure
from farm.trace.comparing.record import Lean, Leaning

_APART: Final = 0.02  # less is noise of either
_NUMBERS: Final = ("ratio", "ratio_lo", "ratio_hi", "p", "df")


def batches(before: Analysis, after: Analysis) -> tuple[int, int] | None:
    """Return the batches of the two where both are known and they are not the same."""
    one, other = batch(before), batch(after)
    return (one, other) if one is not None and other is not None and one != other else None


def headline(before: Analysis, after: Analysis) -> Metric | None:
    """Return the metric to read first: one with trials on both sides, else one that both tell.

    That is the step, per item where the batches differ, before the throughput.
    """
    known = []
    for metric in (STEP if batches(before, after) is None else PER_ITEM, IMG_PER_S):
        sides = [figure(each, metric) for each in (before, after)]
        if all(len(each.trials) > 1 for each in sides):
            return metric
        if all(each.value is not None for each in sides):
            known.append(metric)
    return known[0] if known else None


def points_apart(before: Analysis, after: Analysis) -> bool:
    """Tell if a step became longer and the throughput larger all the same, or the reverse.

    The median of steps that come in bursts has none of the waiting that the throughput counts.
    """
    sides = [
        [figure(each, metric).value for each in (before, after)] for metric in (STEP, IMG_PER_S)
    ]
    if batches(before, after) is not None or any(not each for side in sides for each in side):
        return False
    longer, faster = (log((after or 1.0) / (before or 1.0)) for before, after in sides)
    return min(abs(longer), abs(faster)) > _APART and (longer > 0) == (faster > 0)


def leaning(metric: Metric, before: Analysis, after: Analysis) -> tuple[Lean, Leaning]:
    """Return what Welch says of the logarithms of the trials of a metric that both sides tell.

    What is not positive has no logarithm, and leans nowhere. Source: C14, `measurement.md` §15.
    """
    sides = [figure(each, metric) for each in (before, after)]
    trials = [each.trials or (each.value or 0.0,) for each in sides]
    if min(map(min, trials)) <= 0:
        return Lean(metric=metric.name, **dict.fromkeys(_NUMBERS)), "none"
    one, other = [log_moments(each) for each in trials]
    larger_is: LargerIs = "better" if metric.better == "larger" else "worse"
    found, whole = welch_log(one, other, larger_is=larger_is), welch(one, other)
    lean = Lean(
        metric=metric.name,
        ratio=found.ratio,
        ratio_lo=found.lo,
        ratio_hi=found.hi,
        p=found.p,
        df=None if whole is None else whole.df,
    )
    return lean, found.leaning
