"""The layer pass: what it costs beside other instruments, and how right it is (T8)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from farm.schema import LayerTable
from farm.trace import shares
from tests.bench.row import Row, compare

if TYPE_CHECKING:
    from tests.workers.backends.torch.spinning import Chain


def rows() -> Iterator[Row]:
    """Yield the price of a module with our wrapper, and what the pass says of known layers."""
    try:
        from tests.workers.backends.torch import spinning
    except ImportError:  # no torch here
        return
    prices = {
        "two forward hooks": spinning.hooks,
        "record_function": spinning.record_functions,
    }
    for beside, instrument in prices.items():
        yield compare(
            "layers: added to the call of a module",
            beside,
            "ns",
            lambda: spinning.price_ns(spinning.wrappers),
            partial(spinning.price_ns, instrument),
        )
    yield compare(
        "layers: 100 modules, an iteration",
        "under torch.profiler",
        "ms",
        _ours,
        _profiled,
        rounds=5,
    )
    yield compare(
        "layers: 100 of 5 us, profiled", "clean (perturbation)", "ms", *_pair(5_000, count=100)
    )
    yield compare(
        "layers: 100 of 50 us, profiled", "clean (perturbation)", "ms", *_pair(50_000, count=100)
    )
    yield compare("layers: sum of scaled 1:2:4", "a clean iteration", "ms", _scaled, _clean)
    for at, share in enumerate((100 / 7, 200 / 7, 400 / 7)):
        yield compare(
            f"layers: share of layer {at + 1} of 1:2:4",
            "what it is",
            "%",
            partial(_share, at),
            partial(float, share),
            rounds=3,
        )


def _chain(*ns: int) -> "Chain":
    from tests.workers.backends.torch.spinning import Chain, Spin

    return Chain(*(Spin(each) for each in ns))


def _table(*ns: int, iterations: int = 40) -> LayerTable:
    from tests.workers.backends.torch.spinning import table

    return table(_chain(*ns), iterations=iterations)


def _share(at: int) -> float:
    found = _table(200_000, 400_000, 800_000)
    return next(row.share_pct for row in found.rows if row.layer == f"parts.{at}")


def _scaled() -> float:
    """What is in no row counts, scaled as the rows are."""
    found = _table(50_000, 100_000, 200_000)
    inside = sum(row.average_ms for row in found.rows)
    rest = 1 - shares.attributed(inside, found.unattributed_ms)
    layers = sum(row.scaled_ms or 0.0 for row in found.rows if row.type == "Spin")
    return layers + rest * (found.clean_ms or 0.0)


def _clean() -> float:
    return _table(50_000, 100_000, 200_000).clean_ms or 0.0


def _pair(ns: int, *, count: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return profiled and clean medians of one pass, which alternates between them."""
    last: list[LayerTable] = []

    def profiled() -> float:
        last[:] = [_table(*[ns] * count)]
        return last[0].profiled_ms or 0.0

    return profiled, lambda: last[0].clean_ms or 0.0


def _idle_ms(instrument: Callable[..., Any]) -> float:
    from tests.workers.backends.torch import spinning

    model = spinning.idle()
    with instrument(model) as clear:

        def run() -> None:
            model(0)
            clear()

        return spinning.bare_ns(run) * len(model.parts) / 1e6 / 5


def _ours() -> float:
    from tests.workers.backends.torch import spinning

    return _idle_ms(spinning.wrappers)


def _profiled() -> float:
    import torch

    from tests.workers.backends.torch import spinning

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        return _idle_ms(spinning.record_functions)
