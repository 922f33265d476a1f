"""Which rows of a layer profile are meant: by pattern and order."""

from collections.abc import Callable
from typing import Final

from msgspec import structs

from farm.trace.analysis.choosing import Order, pattern_of
from farm.trace.importing.record import LayerProfile, LayerTime, LayerTimesRead, OpTimesRead

_BY: Final[dict[Order, Callable[[LayerTime], tuple[float, str]]]] = {
    "time": lambda row: (-row.ms_per_step, row.layer),
    "count": lambda row: (-(row.count_per_step or 0.0), row.layer),
    "name": lambda row: (0.0, row.layer),
}


def layers(
    found: LayerProfile,
    *,
    pattern: str | None = None,
    order: Order = "time",
    top: int | None = None,
) -> LayerTimesRead:
    """Return the layers that are meant; top: so many of them, None for all.

    Raises Refused for a pattern that is no regular expression.
    """
    chosen = list(enumerate(found.rows))
    if pattern is not None:
        wanted = pattern_of(pattern)
        chosen = [(at, row) for at, row in chosen if wanted.search(row.layer)]
    shown = sorted(chosen, key=lambda each: _BY[order](each[1]))[:top]
    reasons = {
        f"rows.{new}.{name}": found.null_reasons[f"rows.{old}.{name}"]
        for new, (old, row) in enumerate(shown)
        for name, each in structs.asdict(row).items()
        if each is None
    }
    return LayerTimesRead(
        trace=found.trace,
        tool=found.tool,
        of=len(chosen),
        rows=[row for _, row in shown],
        null_reasons=reasons,
    )


def ops(found: LayerProfile, *, top: int | None = None) -> OpTimesRead:
    """Return the layers by kind of work; top: so many kinds, None for all."""
    return OpTimesRead(trace=found.trace, tool=found.tool, of=len(found.ops), rows=found.ops[:top])
