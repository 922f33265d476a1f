"""How far a row of a layer table is believed: its share by totals beside its share by medians.

The share of a table is of totals (S0.15), which one preempted iteration may carry; the share by
medians is what most iterations say. Where the two part, the row is not reliable. What a row takes
of a clean iteration, and when its clock is too coarse for it, are told here too.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from farm.schema import LayerRow, LayerTable

CARRIED: Final = "a few slow iterations carry it"
SHORT: Final = "shorter than ten steps of its clock"

_APART_POINTS: Final = 2.0  # as much as shares of known layers may be off (T8)
_SKEWED: Final = 1.5  # mean over median
_COUNTS_PCT: Final = 5.0  # below it a skewed row misleads nobody
# What the printing of a share takes or gives, in percent, and that of a total, in ms.
_PRINTED_PCT, _PRINTED_MS = 0.05, 1e-4
_EXACT: Final = 1e-6  # more than the rounding of floats, and far less than that of print
_MOST_PERTURBATION: Final = 0.20
# What a row must take before its time is believed: ten steps of its clock. A wrapper reads the
# host clock with about 0.1 µs of its own, a hook with about 1 µs; the profiler of ONNX Runtime
# counts whole microseconds; events of a device have a quantum of about 0.5 µs.
_BELIEVED_MS: Final = {
    **{"wrapped": 0.001, "fake": 0.001},
    **{"hooks": 0.010, "profiler": 0.010, "imported": 0.010},
}
_BELIEVED_ON_DEVICE_MS: Final = 0.005


class Timed(Protocol):
    """A row as a table or a file holds it; a file may lack the median."""

    @property
    def share_pct(self) -> float: ...
    @property
    def average_ms(self) -> float: ...
    @property
    def median_ms(self) -> float | None: ...


class Totalled(Protocol):
    """A row with its share and the total that it is the share of."""

    @property
    def share_pct(self) -> float: ...
    @property
    def total_ms(self) -> float: ...


class Ranked(NamedTuple):
    """A row, and its share by medians in percent."""

    row: LayerRow
    share_pct: float


def by_median(table: LayerTable) -> list[Ranked]:
    """Return the rows with their shares by medians, the largest first; equal ones in their order.

    Where all medians are zero, the shares are those of totals.
    """
    shares = median_shares(table.rows)
    found = [
        Ranked(row, row.share_pct if share is None else share)
        for row, share in zip(table.rows, shares, strict=True)
    ]
    return sorted(found, key=lambda each: -each.share_pct)


def median_shares(rows: Sequence[Timed]) -> list[float | None]:
    """Return the median of each row over the sum of all medians, in percent.

    None throughout where a median is missing, or where all are zero.
    """
    known = [each.median_ms for each in rows if each.median_ms is not None]
    whole = sum(known)
    if len(known) < len(rows) or not whole:
        return [None] * len(rows)
    return [100.0 * each / whole for each in known]


def odd(rows: Sequence[Totalled]) -> str:
    """Return why the shares of a table are not what shares are, "" if they are.

    They add up to 100 within rows × 0.05, as they are printed (S0.16), and each is the part that
    its total is of all totals (S0.15), within 2 percentage points and the rounding of the totals.
    """
    whole_pct = sum(each.share_pct for each in rows)
    if abs(whole_pct - 100.0) > len(rows) * _PRINTED_PCT + _EXACT:
        return f"its shares add up to {whole_pct:.1f} %, and not to 100"
    whole_ms = sum(each.total_ms for each in rows)
    if not whole_ms:
        return ""
    printed = _PRINTED_PCT + 100.0 * _PRINTED_MS * (len(rows) + 1) / whole_ms
    apart = (abs(each.share_pct - 100.0 * each.total_ms / whole_ms) for each in rows)
    return "its shares are not those of its totals" if max(apart) > _APART_POINTS + printed else ""


def carried(rows: Sequence[Timed]) -> list[bool]:
    """Return for each row whether a few slow iterations carry it, or its part of the table.

    They do where the shares by totals and by medians are more than 2 percentage points apart, and
    where a row of 5 % or more has a mean above 1.5 times its median.
    """
    return [
        share is not None and _is_carried(row, share)
        for row, share in zip(rows, median_shares(rows), strict=True)
    ]


def is_short(median_ms: float | None, *, method: str | None, clock: str | None) -> bool:
    """Whether a row takes less than ten steps of its clock; not known without median or method."""
    least = _BELIEVED_ON_DEVICE_MS if clock == "device" else _BELIEVED_MS.get(method or "")
    return median_ms is not None and least is not None and median_ms < least


def doubt(table: LayerTable, at: int) -> str:
    """Return why a row of a table is not reliable, "" if it is."""
    if carried(table.rows)[at]:
        return CARRIED
    return "" if table.rows[at].reliable else SHORT


def attributed(inside_ms: float, unattributed_ms: float | None) -> float:
    """Return the part of a profiled iteration that is in rows; 1 where the rest is not known.

    inside_ms: the averages of all rows together; with the rest they are the mean iteration. 1 too
    where rows that ran side by side took more than the iteration.
    """
    if unattributed_ms is None or unattributed_ms <= 0 or not inside_ms:
        return 1.0
    return inside_ms / (inside_ms + unattributed_ms)


def of_clean(
    share: float, clean_ms: float | None, perturbation: float | None, *, attributed: float
) -> tuple[float | None, str]:
    """Return what a layer takes of a clean iteration in ms, or None and the reason.

    share: of all rows, 0 to 1. attributed: the part of an iteration that all rows are; the same
    part of the clean one is spread over them, so the rows and the scaled rest add up to it.
    """
    if clean_ms is None or perturbation is None:
        return None, "not_probed"
    if perturbation > _MOST_PERTURBATION:
        detail = f"{100 * perturbation:.0f} % slower than a clean iteration"
        return None, f"perturbation_too_high: {detail}"
    return share * clean_ms * attributed, ""


def _is_carried(row: Timed, median_share: float) -> bool:
    apart = abs(row.share_pct - median_share) > _APART_POINTS
    skewed = row.average_ms > _SKEWED * (row.median_ms or 0.0)
    return apart or (skewed and row.share_pct >= _COUNTS_PCT)
