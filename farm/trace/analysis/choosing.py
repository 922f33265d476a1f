"""Which rows of a trace are meant: by phase, category, pattern and order."""

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeVar

from farm.errors import Refused, did_you_mean
from farm.reading import short
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.tables import KernelRow, OpRow

Order = Literal["time", "count", "name"]
Value = float | int | bool | str | None
Row = TypeVar("Row")
_BY: Final[dict[Order, Callable[[KernelRow], tuple[float, str]]]] = {
    "time": lambda row: (-row.ms_per_step, row.raw_name),
    "count": lambda row: (-row.count_per_step, row.raw_name),
    "name": lambda row: (0.0, row.raw_name),
}
_MOST: Final = 20
_LONGEST: Final = 40


class Told(Protocol):
    """What has metrics by name, and a reason for each that is null."""

    @property
    def metrics(self) -> dict[str, Value]: ...
    @property
    def null_reasons(self) -> dict[str, str]: ...


def kernels(
    analysis: Analysis,
    *,
    phase: str | None = None,
    category: str | None = None,
    pattern: str | None = None,
    tensorcore: bool = False,
    order: Order = "time",
) -> list[KernelRow]:
    """Return the kernels that are meant; category: part of the name of one, in
    any case.

    Raises Refused for a phase that is not there, a category that no kernel could have, or a
    pattern that is no regular expression.
    """
    rows = _of_phase(analysis.kernels, analysis.kernels_by_phase, phase)
    if category is not None:
        word = category.lower()
        _check_category(category)
        rows = [each for each in rows if word in each.category]
    if pattern is not None:
        found = pattern_of(pattern)
        rows = [each for each in rows if found.search(each.raw_name)]
    if tensorcore:
        rows = [each for each in rows if each.tensorcore]
    return sorted(rows, key=_BY[order])


def ops(analysis: Analysis, *, phase: str | None = None) -> list[OpRow]:
    """Return the operators of a trace or of a phase; raises Refused for one that is not there."""
    return list(_of_phase(analysis.ops, analysis.ops_by_phase, phase))


def metric(found: Told, field: str) -> Value:
    """Return a metric by its name; raises Refused, which points to the listing, for others."""
    if field not in found.metrics:
        why = "without FIELD all of them are listed"
        near = did_you_mean(field[:100], list(found.metrics))
        raise Refused(f"no metric {short(field)}", why=why, hint=near)
    return found.metrics[field]


def _of_phase(
    rows: Sequence[Row], by_phase: dict[str, list[Row]], phase: str | None
) -> Sequence[Row]:
    if phase is None:
        return rows
    if phase not in by_phase:
        why = f"here are {_listed([*by_phase])}" if by_phase else "the trace has none"
        hint = did_you_mean(phase[:100], [*by_phase])
        raise Refused(f"no phase {short(phase)}", why=why, hint=hint)
    return by_phase[phase]


def _listed(names: Sequence[str]) -> str:
    """Return names as a message lists them: anybody may give a span any name."""
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return ", ".join([*(each[:_LONGEST] for each in names[:_MOST]), *more])


def _check_category(category: str) -> None:
    from farm.trace.analysis.kernels import categories

    known = categories()
    word = category[:100].lower()
    if not any(category.lower() in each for each in known):
        hint = did_you_mean(word, list(known))
        raise Refused(f"no category {short(category)}", why=f"known: {', '.join(known)}", hint=hint)


def pattern_of(text: str) -> re.Pattern[str]:
    """Return a pattern that a person wrote; raises Refused for what is no regular expression."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what another version may read otherwise
            return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise Refused(f"{short(text)} is no regular expression", why=str(error)) from error
