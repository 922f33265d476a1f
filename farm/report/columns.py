"""The columns of figures: how each is headed, and what a measured cell shows in it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from farm.report import words
from farm.report.record import Figures
from farm.report.table import Column, Datum


class Measure(NamedTuple):
    """A column of figures. fields: whose reason explains a mark or a missing number in it."""

    column: Column
    fields: tuple[str, ...]
    show: Callable[[Figures], Datum]


def p50(figures: Figures) -> Datum:
    """Return the headline with what surrounds it: ± where that reads well, else the interval."""
    half, lo, hi = figures.p50_half_ms, figures.p50_lo_ms, figures.p50_hi_ms
    if half is not None and half > figures.p50_ms / 2:
        # Such an interval is lopsided, and a figure ± more than itself reads as a negative time.
        between = words.interval(lo, hi, value=figures.p50_ms, half=half)
        return Datum(f"{words.number(figures.p50_ms, half=half)} {between}", figures.p50_ms)
    shown = words.plus_minus(figures.p50_ms, half, reliable=figures.p50_reliable)
    return Datum(shown, figures.p50_ms)


def _p50_alone(figures: Figures) -> Datum:
    shown = words.number(figures.p50_ms, half=figures.p50_half_ms)
    return Datum(words.marked(shown, reliable=figures.p50_reliable), figures.p50_ms)


def _interval(figures: Figures) -> Datum:
    shown = words.interval(
        figures.p50_lo_ms, figures.p50_hi_ms, value=figures.p50_ms, half=figures.p50_half_ms
    )
    return Datum(shown, figures.p50_half_ms)


def _p90(figures: Figures) -> Datum:
    shown = words.number(figures.p90_ms)
    return Datum(words.marked(shown, reliable=figures.p90_reliable), figures.p90_ms)


def _p99(figures: Figures) -> Datum:
    shown = words.number(figures.p99_ms)
    return Datum(words.marked(shown, reliable=figures.p99_reliable), figures.p99_ms)


def _throughput(figures: Figures) -> Datum:
    rate = figures.throughput_items_per_s
    return Datum(words.number(rate), rate)


def _memory(figures: Figures) -> Datum:
    held = figures.cpu_rss_peak_bytes
    return Datum(words.mebibytes(held), held)


def _repeats(figures: Figures) -> Datum:
    if figures.repeats < figures.repeats_wanted:
        shown = f"{figures.repeats} of {figures.repeats_wanted}"
        return Datum(shown, figures.repeats, "warn", words.flag("repeats_missing"))
    return Datum(str(figures.repeats), figures.repeats)


def _samples(figures: Figures) -> Datum:
    return Datum(str(figures.n), figures.n)


def _spread(figures: Figures) -> Datum:
    return Datum(words.percent(figures.proc_cv), figures.proc_cv)


_P99: Final = Measure(Column("p99", "ms", right=True), ("p99_lo_ms",), _p99)
_THROUGHPUT: Final = Measure(
    Column("items/s", right=True), ("throughput_items_per_s",), _throughput
)
_MEMORY: Final = Measure(
    Column("peak", "MiB", right=True, spare=2), ("cpu_rss_peak_bytes",), _memory
)
_REPEATS: Final = Measure(Column("repeats", right=True, spare=1), (), _repeats)
NARROW: Final = (
    Measure(Column("p50", "ms", right=True), ("p50_lo_ms",), p50),
    _P99,
    _THROUGHPUT,
    _MEMORY,
    _REPEATS,
)
WIDE: Final = (
    Measure(Column("p50", "ms", right=True), ("p50_lo_ms",), _p50_alone),
    Measure(Column("95 % interval", "ms", right=True), ("p50_lo_ms",), _interval),
    Measure(Column("p90", "ms", right=True), ("p90_lo_ms",), _p90),
    _P99,
    _THROUGHPUT,
    _MEMORY,
    _REPEATS,
    Measure(Column("samples", right=True), (), _samples),
    Measure(Column("spread", "%", right=True), ("proc_cv",), _spread),
)
