"""A clock that only work moves, and layers that move it."""

from collections.abc import Callable
from typing import Any

from torch import nn

from workers.backends import LayerAsk, LayerPass
from workers.backends.torch import layers


class Clock:
    """Time that passes only when somebody works, in ns."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Work(nn.Module):
    """A layer that takes so long, and calls others meanwhile."""

    def __init__(self, clock: Clock, ns: int, *inner: nn.Module) -> None:
        super().__init__()
        self.clock, self.ns = clock, ns
        self.inner = nn.ModuleList(inner)

    def forward(self, x: object) -> object:
        self.clock.now += self.ns
        for each in self.inner:
            x = each(x)
        return x


def ask(clock: Callable[[], int], *, iterations: int = 10, warmup: int = 2, **more) -> LayerAsk:
    told: dict[str, Any] = {"budget_ns": None, "progress": lambda _phase, _done: None}
    return LayerAsk(iterations=iterations, warmup=warmup, clock=clock, **{**told, **more})


def taken(model: nn.Module, clock: Callable[[], int] | None = None, **more) -> LayerPass:
    return layers.measure(model, lambda: model(0), ask(clock or Clock(), **more))


def by_name(found: LayerPass) -> dict[str, int]:
    """Return what each layer took in all, in ns."""
    totals = found.layer_ns.sum(axis=1).tolist()
    return dict(zip(found.reading.layers, totals, strict=True))
