"""Which kernels came, went, or take another time: by category, and by name."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from farm.trace.analysis.record import Analysis
from farm.trace.analysis.tables import KernelRow
from farm.trace.comparing.record import CategoryChange, KernelChange, Listed

SIGN: Final = "#"
CUT: Final = "cut"  # the flag of a side whose lists do not hold all
_DIGITS: Final = re.compile(r"[0-9]+")


class _Group(NamedTuple):
    """The kernels of one folded name; category: of the costliest of them."""

    names: int
    category: str
    ms: float
    calls: float


def folded(name: str) -> str:
    """Return a kernel's name with one sign for each run of digits: tile sizes and the like."""
    return _DIGITS.sub(SIGN, name)


def by_category(before: Analysis, after: Analysis) -> list[CategoryChange]:
    """Return the kernel time of each category, the largest change first; [] unless both have it."""
    if not (before.categories and after.categories):
        return []
    here = {each.name: each.ms_per_step for each in before.categories}
    there = {each.name: each.ms_per_step for each in after.categories}
    rows = [
        CategoryChange(
            name=name,
            before_ms=(old := here.get(name, 0.0)),
            after_ms=(new := there.get(name, 0.0)),
            change_ms=new - old,
            ratio=new / old if old else None,
        )
        for name in {**here, **there}
    ]
    return sorted(rows, key=lambda row: (-abs(row.change_ms), row.name))


def by_name(before: Analysis, after: Analysis) -> list[KernelChange]:
    """Return all kernels by their folded names, the largest change first; [] unless both have any.

    Of equal changes the name decides.
    """
    if not (before.kernels and after.kernels):
        return []
    here, there = _groups(before.kernels), _groups(after.kernels)
    none = _Group(0, "", 0.0, 0.0)  # of what did not run, unless the list was cut
    old = None if CUT in before.quality.flags else none
    new = None if CUT in after.quality.flags else none
    rows = [_row(name, here.get(name, old), there.get(name, new)) for name in {**here, **there}]
    return sorted(rows, key=_order)


def _order(row: KernelChange) -> tuple[float, str]:
    size = row.change_ms
    if size is None:
        size = row.before_ms or row.after_ms or 0.0
    return -abs(size), row.kernel


def _groups(rows: Sequence[KernelRow]) -> dict[str, _Group]:
    found: dict[str, _Group] = {}
    for each in rows:  # the costliest first
        name = folded(each.raw_name)
        old = found.get(name, _Group(0, each.category, 0.0, 0.0))
        found[name] = _Group(
            old.names + 1, old.category, old.ms + each.ms_per_step, old.calls + each.count_per_step
        )
    return found


def _row(name: str, before: _Group | None, after: _Group | None) -> KernelChange:
    """Return a row; None is a side that does not know."""
    listing = [each for each in (before, after) if each is not None and each.names]
    listed: Listed = "both" if len(listing) > 1 else "before" if before in listing else "after"
    was, is_ = before.ms if before else None, after.ms if after else None
    old, new = before.calls if before else None, after.calls if after else None
    return KernelChange(
        kernel=name,
        names=max(each.names for each in listing),
        category=listing[0].category,
        listed=listed,
        before_ms=was,
        after_ms=is_,
        change_ms=None if was is None or is_ is None else is_ - was,
        ratio=is_ / was if was and is_ is not None else None,
        before_count=old,
        after_count=new,
        change_count=None if old is None or new is None else new - old,
    )
