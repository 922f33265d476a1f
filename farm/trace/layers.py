"""The layers of a model: the samples of a profiled pass, reduced to one row each.

A layer profiler slows the model down, and not every layer alike: the shares of this table mean
something, its totals do not, and the wall time of the pass is no latency. What a layer takes of a
clean iteration is therefore estimated from its share (`scaled_ms`), and how far a row is believed
stands in `farm.trace.shares`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from farm.errors import Bad
from farm.schema import LayerRow, LayerTable
from farm.stats.spread import std
from farm.trace import shares

# A module that calls others is a row of what it does itself, under this name.
SELF: Final = " (self)"
_OWN_WORK: Final = 0.01  # of all layers: a container that does less is no row
_ROOF_PCT: Final = 105.0  # above it the count or the peak is wrong, and not the layer fast

Times = NDArray[np.int64]


class Reading(Protocol):
    """What is told of a layer pass besides its times; rows in the order of their first execution.

    calls: per iteration. attributed: whether the rows are all that an iteration does; the first
    one is the whole model then.
    """

    @property
    def method(self) -> Literal["wrapped", "hooks", "profiler", "fake"]: ...
    @property
    def clock(self) -> Literal["wall", "device"]: ...
    @property
    def layers(self) -> Sequence[str]: ...
    @property
    def types(self) -> Sequence[str]: ...
    @property
    def calls(self) -> Sequence[float]: ...
    @property
    def warmup(self) -> int: ...
    @property
    def attributed(self) -> bool: ...


class Overhead(NamedTuple):
    """How many times as long an iteration took with the instrument, and a word for it."""

    factor: float
    word: Literal["low", "moderate", "high"]


class _Number(NamedTuple):
    """A number, or None for the reason."""

    value: float | None
    reason: str = ""


class _Iterations(NamedTuple):
    """Medians of whole iterations in ms, with the instrument and without, and how they compare."""

    profiled: _Number
    clean: _Number
    perturbation: _Number


def reduce(
    reading: Reading,
    layer_ns: Times,
    *,
    profiled_ns: Times,
    clean_ns: Times,
    precision: str,
    device: str,
    flops_by_layer: Mapping[str, int] | None = None,
    peak_flops_per_s: float | None = None,
) -> LayerTable:
    """Return the table of a layer pass, its rows in the order of their first execution.

    layer_ns: int64[layers, iterations], what each layer took in each profiled iteration, all its
    calls together and without what it called. profiled_ns: int64[iterations], clean_ns: int64[k],
    whole iterations with and without the instrument, by the host clock. flops_by_layer: per batch,
    by the qualified name of a module, without its children; "" is the whole model. Raises Bad if
    no layer took any time. A row is reliable where its clock is fine enough for it and no few slow
    iterations carry it (`shares.carried`). Sources: S0.10 to S0.21, `measurement.md` §12.
    """
    totals = layer_ns.sum(axis=1)
    kept = _kept(reading.layers, totals)
    table_ns = int(totals[kept].sum())
    if not table_ns:
        raise Bad("no layer took any time", why="its clock is too coarse for this model")
    whole = _iterations(profiled_ns, clean_ns)
    rest = _rest(reading, profiled_ns, totals, table_ns=table_ns, iterations=layer_ns.shape[1])
    attributed = shares.attributed(table_ns / layer_ns.shape[1] / 1e6, rest.value)
    flops = _flops(reading, flops_by_layer)
    rows: list[LayerRow] = []
    reasons: dict[str, str] = {}
    for at, name in zip(kept, numbered(reading.layers[at] for at in kept), strict=True):
        share = float(totals[at] / table_ns)
        scaled = _scaled(share, whole, attributed)
        peak = _of_peak(flops[at], scaled, peak_flops_per_s)
        numbers = {"scaled_ms": scaled, "flops_per_batch": flops[at], "pct_of_peak": peak}
        row = _row(reading, at, layer_ns[at], name=name, share=share, numbers=numbers)
        numbers["std_ms"] = _Number(row.std_ms, "single_sample")
        reasons |= _reasons(numbers, f"rows.{len(rows)}.")
        rows.append(row)
    about = {
        "unattributed_ms": rest,
        "profiled_ms": whole.profiled,
        "clean_ms": whole.clean,
        "perturbation": whole.perturbation,
    }
    return LayerTable(
        method=reading.method,
        clock=reading.clock,
        precision=precision,
        device=device,
        warmup_iterations=reading.warmup,
        iterations=layer_ns.shape[1],
        **{field: each.value for field, each in about.items()},
        rows=_believed(rows),
        null_reasons=reasons | _reasons(about, ""),
    )


def by_share(table: LayerTable) -> list[LayerRow]:
    """Return the rows of a table, the largest share first; equal ones stay in their order."""
    return sorted(table.rows, key=lambda each: -each.share_pct)


def overhead(perturbation: float) -> Overhead:
    """Return profiled over clean, and what one calls it: below 2 low, below 10 moderate (S2.26)."""
    factor = 1.0 + perturbation
    return Overhead(factor, "low" if factor < 2.0 else "moderate" if factor < 10.0 else "high")


def numbered(names: Iterable[str]) -> list[str]:
    """Return the names in their order; a name that comes again gets `#2`, then `#3` (S0.13).

    All are different, also where a name ends so already.
    """
    found: dict[str, int] = {}  # each name, and how far its numbers are taken
    for name in names:
        unique, count = name, found.get(name, 1)
        while unique in found:
            count += 1
            unique = f"{name}#{count}"
        found[name] = count
        found[unique] = 1
    return list(found)


# ── parts of the table ───────────────────────────────────────────────────────────────────────────


def _kept(names: Sequence[str], totals: Times) -> list[int]:
    """Return which layers are rows: all but containers that hardly do anything themselves."""
    least = _OWN_WORK * int(totals.sum())
    return [
        at for at, name in enumerate(names) if not name.endswith(SELF) or int(totals[at]) >= least
    ]


def _row(
    reading: Reading,
    at: int,
    samples: Times,
    *,
    name: str,
    share: float,
    numbers: Mapping[str, _Number],
) -> LayerRow:
    total_ms = int(samples.sum()) / 1e6
    median_ns = float(np.median(samples))
    flops = numbers["flops_per_batch"].value
    is_short = shares.is_short(median_ns / 1e6, method=reading.method, clock=reading.clock)
    return LayerRow(
        layer=name,
        type=reading.types[at],
        calls_per_iteration=reading.calls[at],
        share_pct=100.0 * share,
        average_ms=total_ms / samples.size,
        median_ms=median_ns / 1e6,
        std_ms=std(samples / 1e6),
        total_ms=total_ms,
        scaled_ms=numbers["scaled_ms"].value,
        flops_per_batch=None if flops is None else int(flops),
        pct_of_peak=numbers["pct_of_peak"].value,
        reliable=not is_short,
    )


def _iterations(profiled_ns: Times, clean_ns: Times) -> _Iterations:
    profiled, clean = _median(profiled_ns), _median(clean_ns)
    if profiled.value is None or not clean.value:
        return _Iterations(profiled, clean, _Number(None, "not_probed"))
    return _Iterations(profiled, clean, _Number(profiled.value / clean.value - 1.0))


def _median(samples_ns: Times) -> _Number:
    return _Number(float(np.median(samples_ns)) / 1e6 if samples_ns.size else None, "not_probed")


def _scaled(share: float, whole: _Iterations, attributed: float) -> _Number:
    """Return what the layer takes of a clean iteration, in ms."""
    clean, perturbation = whole.clean.value, whole.perturbation.value
    return _Number(*shares.of_clean(share, clean, perturbation, attributed=attributed))


def _believed(rows: Sequence[LayerRow]) -> list[LayerRow]:
    """Return the rows, those that a few slow iterations carry no longer reliable."""
    return [
        structs.replace(row, reliable=row.reliable and not carried)
        for row, carried in zip(rows, shares.carried(rows), strict=True)
    ]


def _rest(
    reading: Reading, profiled_ns: Times, totals: Times, *, table_ns: int, iterations: int
) -> _Number:
    """Return what an iteration takes outside of all rows, in ms; their averages add up with it."""
    if not reading.attributed or not profiled_ns.size:
        return _Number(None, "not_probed")
    # A device's layers are not a part of the host's iteration; what was left out of the table is.
    all_ns = int(totals.sum() if reading.clock == "device" else profiled_ns.sum())
    return _Number((all_ns - table_ns) / iterations / 1e6)


def _of_peak(flops: _Number, scaled: _Number, peak_flops_per_s: float | None) -> _Number:
    """Return which part of the device's peak the layer reaches in a clean iteration, in percent."""
    if flops.value is None:
        return _Number(None, flops.reason)
    if not scaled.value:
        return _Number(None, scaled.reason or "below_resolution")
    if not peak_flops_per_s:
        return _Number(None, "not_probed: no peak of this device is known")
    percent = 100.0 * flops.value / (scaled.value / 1e3) / peak_flops_per_s
    if percent > _ROOF_PCT:
        return _Number(None, f"error: {percent:.0f} % of the peak, which cannot be")
    return _Number(percent)


def _flops(reading: Reading, by_layer: Mapping[str, int] | None) -> list[_Number]:
    """Return the FLOPs of each row: its own, and those of modules below it that are no row.

    A fused encoder layer or an attention never calls some of its modules: what is counted for
    these runs in the layer that the table shows.
    """
    if by_layer is None:
        return [_Number(None, "not_requested")] * len(reading.layers)
    places = {name.removesuffix(SELF): at for at, name in enumerate(reading.layers)}
    if reading.attributed and reading.layers:
        places[""] = 0
    counts: dict[int, int] = {}
    for name, count in by_layer.items():
        place = _nearest(name, places)
        if place is not None:
            counts[place] = counts.get(place, 0) + count
    unknown = _Number(None, "not_supported: nothing of it was counted")
    return [_Number(counts[at]) if at in counts else unknown for at in range(len(reading.layers))]


def _nearest(name: str, places: Mapping[str, int]) -> int | None:
    while name and name not in places:
        name = name.rpartition(".")[0]
    return places.get(name)


def _reasons(numbers: Mapping[str, _Number], prefix: str) -> dict[str, str]:
    return {
        f"{prefix}{field}": each.reason for field, each in numbers.items() if each.value is None
    }
