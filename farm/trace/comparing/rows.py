"""One row for each metric, and the rule of the seeds for what has several trials."""

import math
from typing import Final

from msgspec import UNSET, UnsetType

from farm.stats.unpaired import Moments, moments, two_se
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.figures import Figure, Metric, figure, metrics
from farm.trace.comparing.record import Leaning, Row, Rule

SINGLE: Final = "a single run cannot support the call"


def rows(before: Analysis, after: Analysis, *, comparable: bool) -> list[Row]:
    """Return a row for each metric in their order; nothing is called unless comparable."""
    return [
        _row(each, figure(before, each), figure(after, each), comparable=comparable)
        for each in metrics(before, after)
    ]


def _row(metric: Metric, before: Figure, after: Figure, *, comparable: bool) -> Row:
    change = ratio = None
    found: Rule | UnsetType = UNSET
    call: Leaning = "none"
    if before.value is not None and after.value is not None:
        # a mean of counts may be off by its last bit, which is no difference
        same = metric.exact and math.isclose(before.value, after.value, rel_tol=1e-9)
        change = 0.0 if same else after.value - before.value
        ratio = after.value / before.value if before.value else None
        found = UNSET if metric.exact else rule(before, after, unit=metric.unit)
        supported = metric.exact or (found is not UNSET and found.exceeds)
        call = _towards(metric, change) if comparable and supported else "none"
    return Row(
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        exact=metric.exact,
        before=before.value,
        after=after.value,
        change=change,
        ratio=ratio,
        call=call,
        rule=found,
    )


def rule(before: Figure, after: Figure, *, unit: str) -> Rule:
    """Return the rule of the seeds for two figures that are known (S4.86, S4.87)."""
    one, other = _moments(before), _moments(after)
    found = two_se(one, other)
    return Rule(
        before_n=one.n,
        after_n=other.n,
        before_std=one.std,
        after_std=other.std,
        two_se=found.bound,
        exceeds=found.exceeds,
        false_alarm=found.false_alarm,
        words=_words(found.difference, found.bound, found.false_alarm, unit),
    )


def _moments(figure: Figure) -> Moments:
    if figure.trials:
        return moments(figure.trials)
    assert figure.value is not None, "a figure that is known"
    return Moments(1, figure.value, None)


def _words(difference: float, bound: float | None, false_alarm: float | None, unit: str) -> str:
    if bound is None or false_alarm is None:
        return SINGLE
    sign, unit = ">" if abs(difference) > bound else "≤", "" if unit == "of 1" else f" {unit}"
    return (
        f"|{difference:+.4g}|{unit} {sign} 2 SE = {bound:.4g}{unit}; "
        f"equal sides exceed it in {100 * false_alarm:.1f} % of comparisons"
    ).replace("|-", "|−")


def _towards(metric: Metric, change: float) -> Leaning:
    """Return where a change goes: what is better of the metric, or worse."""
    if metric.better == "neither":
        return "none"
    if not change:
        return "same"
    return "better" if (change > 0) == (metric.better == "larger") else "worse"
