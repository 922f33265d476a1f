"""Layers that take a known time, and what the layer pass says of them."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from statistics import median

import torch
from torch import nn

from farm.schema import LayerTable
from farm.trace.layers import reduce
from workers.backends import LayerAsk
from workers.backends.torch import layers
from workers.backends.torch.wrapping import sites, wrapped

clock = time.perf_counter_ns


class Spin(nn.Module):
    """Keeps the core busy for so many nanoseconds."""

    def __init__(self, ns: int) -> None:
        super().__init__()
        self.ns = ns

    def forward(self, x: object) -> object:
        until = clock() + self.ns
        while clock() < until:
            pass
        return x


class Chain(nn.Module):
    """Layers one after the other, and hardly anything around them."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: object) -> object:
        for each in self.parts:
            x = each(x)
        return x


def table(model: nn.Module, *, iterations: int = 100) -> LayerTable:
    """Return the layer table of a model that takes anything."""
    asked = LayerAsk(
        iterations=iterations,
        warmup=5,
        budget_ns=None,
        clock=clock,
        progress=lambda _phase, _done: None,
    )
    with torch.inference_mode():
        found = layers.measure(model, lambda: model(0), asked)
    return reduce(
        found.reading,
        found.layer_ns,
        profiled_ns=found.profiled_ns,
        clean_ns=found.clean_ns,
        precision="fp32",
        device="cpu",
    )


# ── what an instrument costs for each module ─────────────────────────────────────────────────────

_MODULES = 500


def bare_ns(run: Callable[[], object], *, rounds: int = 15) -> float:
    """Return the median time of a call, for each of the modules in it."""
    found = []
    for _ in range(rounds):
        began = clock()
        run()
        found.append((clock() - began) / _MODULES)
    return median(found)


def idle() -> Chain:
    """Return many layers that do nothing, so that what is around them is all there is."""
    return Chain(*(nn.Identity() for _ in range(_MODULES)))


@contextmanager
def wrappers(model: nn.Module):
    """Our wrappers on every module."""
    log: list[int] = []
    with wrapped(sites(model), log.append, clock):
        yield log.clear


@contextmanager
def hooks(model: nn.Module):
    """A forward hook and one before it on every module, each of which reads the clock."""
    log: list[int] = []
    held = []
    for each in model.modules():
        held += [
            each.register_forward_pre_hook(lambda _module, _args: log.append(clock())),
            each.register_forward_hook(lambda _module, _args, _output: log.append(clock())),
        ]
    try:
        yield log.clear
    finally:
        for each in held:
            each.remove()


@contextmanager
def record_functions(model: nn.Module):
    """A `record_function` around every module, as torch's own traces have them."""

    def named(forward, name):
        def run(*args):
            with torch.profiler.record_function(name):
                return forward(*args)

        return run

    for name, each in model.named_modules():
        each.__dict__["forward"] = named(each.forward, name)
    try:
        yield lambda: None
    finally:
        for each in model.modules():
            del each.__dict__["forward"]


def price_ns(instrument) -> float:
    """Return what an instrument adds to the call of a module, in ns."""
    model = idle()
    with torch.inference_mode():
        before = bare_ns(lambda: model(0))
        with instrument(model) as clear:

            def run() -> None:
                model(0)
                clear()

            return bare_ns(run) - before
