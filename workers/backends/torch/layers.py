"""The time of every layer of a module, in iterations that alternate with clean ones.

Blocks of profiled iterations follow blocks of as many clean ones, so that what the wrappers cost is
known. A layer's time is without what it calls: an attention never calls its output projection as a
module, and a pass over leaves would lose that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from farm.trace.layers import SELF
from workers.backends import LayerAsk, LayerPass, NotOffered
from workers.backends.torch.wrapping import Site, sites, wrapped
from workers.record import LayerReading
from workers.timing import in_turns, without_collector

if TYPE_CHECKING:
    from torch import nn

Run = Callable[[], object]

_LONGEST_SPIN_NS = 250_000_000
_THREADS = "its layers run in several threads at once"


class Device(Protocol):
    """A device that works through a queue of its own: events in it, and their times."""

    def event(self) -> Any: ...
    def record(self, event: Any, /) -> None: ...
    def elapsed_ns(self, begin: Any, end: Any, /) -> int: ...
    def synchronize(self) -> None: ...
    def spin(self, ns: int, /) -> bool: ...


def measure(
    target: "nn.Module", run: Run, asked: LayerAsk, *, device: Device | None = None
) -> LayerPass:
    """Return what every layer of the target took in each profiled iteration, in ns.

    run: one iteration that calls the target, already in its gradient mode. device: where the
    target computes, None for a CPU, whose layers are timed by the host clock. Rows are modules
    that were called, by their qualified names and in the order of their first call; one that calls
    others is a row of its own work. The first iterations are untimed; with a budget the blocks are
    small enough for a slow step, and no block begins once it is spent. Raises NotOffered where the
    layers cannot be told apart; what the model raises goes through, its modules put back.
    """
    if device is None and is_on_gpu(target):
        raise NotOffered("not_supported", "no events of this device are offered")
    found = sites(target)
    ruler = _Wall(asked.clock) if device is None else _Events(asked.clock, device)
    seen = _Seen(found, run, ruler)
    with without_collector():
        blocks = in_turns(
            seen.clean,
            seen.profiled,
            iterations=asked.iterations,
            typical_ns=_warm_up(found, run, asked, ruler),
            budget_ns=asked.budget_ns,
            clock=asked.clock,
            progress=partial(asked.progress, "layers"),
        )
    return seen.whole(asked, blocks)


def is_on_gpu(target: "nn.Module") -> bool:
    """Whether a module computes on a CUDA device, where only its events tell the time."""
    return any(each.is_cuda for each in target.parameters())


@dataclass
class _Seen:
    """What the blocks so far have shown, by the index of a site."""

    found: list[Site]
    run: Run
    ruler: "_Wall | _Events"
    log: list[int] = field(default_factory=list)
    own_ns: list[dict[int, int]] = field(default_factory=list)  # one for each profiled iteration
    calls: dict[int, int] = field(default_factory=dict)  # in the order of first calls
    containers: set[int] = field(default_factory=set)
    profiled_ns: list[int] = field(default_factory=list)
    clean_ns: list[int] = field(default_factory=list)

    def clean(self, size: int) -> None:
        """Run iterations with nothing around the layers."""
        self.clean_ns += [self.ruler.iteration(self.run) for _ in range(size)]

    def profiled(self, size: int) -> None:
        """Run profiled iterations, and only then look at what they noted."""
        ends: list[int] = []
        strays: list[int] = []
        stray = partial(strays.append, 0)
        with wrapped(self.found, self.log.append, self.ruler.stamp, stray):
            for _ in range(size):
                self.profiled_ns.append(self.ruler.iteration(self.run))
                ends.append(len(self.log))
        if strays:
            raise NotOffered("not_supported", _THREADS)
        begin = 0
        for end in ends:
            self.own_ns.append(self._replayed(self.log[begin:end]))
            begin = end
        self.log.clear()
        self.ruler.forget()

    def _replayed(self, log: list[int]) -> dict[int, int]:
        """Return each layer's own time in one iteration, from its begins and ends in order."""
        own: dict[int, int] = {}
        open_: list[list[int]] = []  # index, begin, time of what it called
        entries = iter(log)
        for entry in entries:
            if entry >= 0:
                if open_ and open_[-1][0] != entry:
                    self.containers.add(open_[-1][0])
                self.calls[entry] = self.calls.get(entry, 0) + 1
                open_.append([entry, next(entries), 0])
                continue
            if not open_:
                raise NotOffered("not_supported", _THREADS)
            index, begin, inner = open_.pop()
            took = self.ruler.between(begin, ~entry)
            own[index] = own.get(index, 0) + took - inner
            if open_:
                open_[-1][2] += took
        if open_:
            raise NotOffered("not_supported", _THREADS)
        return own

    def whole(self, asked: LayerAsk, blocks: int) -> LayerPass:
        if not self.calls:
            raise NotOffered("not_supported", "no module is called as a module")
        order = list(self.calls)
        iterations = len(self.own_ns)
        layer_ns = np.array(
            [[own.get(index, 0) for own in self.own_ns] for index in order], dtype=np.int64
        )
        called = [self.found[index] for index in order]
        reading = LayerReading(
            method="wrapped",
            clock=self.ruler.clock,
            layers=[self._name(index) for index in order],
            types=[each.type for each in called],
            calls=[self.calls[index] / iterations for index in order],
            warmup=asked.warmup,
            iterations=iterations,
            blocks=blocks,
            attributed=order[0] == 0,  # else the target's own forward was never called
        )
        return LayerPass(
            reading=reading,
            layer_ns=layer_ns,
            profiled_ns=np.array(self.profiled_ns, dtype=np.int64),
            clean_ns=np.array(self.clean_ns, dtype=np.int64),
        )

    def _name(self, index: int) -> str:
        return self.found[index].name + (SELF if index in self.containers else "")


# ── rulers ───────────────────────────────────────────────────────────────────────────────────────


class _Wall:
    """The host clock: on a CPU a call returns finished work."""

    clock: Literal["wall"] = "wall"

    def __init__(self, clock: Callable[[], int]) -> None:
        self.stamp = clock

    def iteration(self, run: Run) -> int:
        clock = self.stamp
        began = clock()
        output = run()
        ended = clock()
        del output
        return ended - began

    def between(self, begin: int, end: int) -> int:
        return end - begin

    def forget(self) -> None:
        """A stamp is a time; there is nothing to forget."""


class _Events:
    """Events in the queue of a device, read when it has finished; a stamp is the place of one.

    While the host queues an iteration, a blocking kernel keeps the device from starting it: else
    a layer would also take the time in which the device waits for its next kernel.
    """

    clock: Literal["device"] = "device"

    def __init__(self, clock: Callable[[], int], device: Device) -> None:
        self._clock, self._device = clock, device
        self._pool: list[Any] = []
        self._used = self._queueing_ns = 0

    def stamp(self) -> int:
        at = self._used
        if at == len(self._pool):
            self._pool.append(self._device.event())
        self._device.record(self._pool[at])
        self._used = at + 1
        return at

    def iteration(self, run: Run) -> int:
        """Return the time to queue an iteration, or to work it off, whichever is longer."""
        device, clock = self._device, self._clock
        device.synchronize()
        if self._queueing_ns:
            device.spin(min(2 * self._queueing_ns, _LONGEST_SPIN_NS))
        begin = self.stamp()
        began = clock()
        output = run()
        self._queueing_ns = clock() - began
        end = self.stamp()
        device.synchronize()
        del output
        return max(self._queueing_ns, self.between(begin, end))

    def between(self, begin: int, end: int) -> int:
        return self._device.elapsed_ns(self._pool[begin], self._pool[end])

    def forget(self) -> None:
        self._used = 0


# ── around the blocks ────────────────────────────────────────────────────────────────────────────


def _warm_up(found: list[Site], run: Run, asked: LayerAsk, ruler: _Wall | _Events) -> float:
    """Run the untimed iterations, wrapped but for the first; return what one takes, in ns.

    The first one lets lazy modules become what they are. Raises NotOffered if layers are called
    from another thread than ours: their times would be mixed up.
    """
    took = [ruler.iteration(run)] if asked.warmup else []
    strays: list[int] = []
    with wrapped(found, lambda _entry: None, ruler.stamp, partial(strays.append, 0)):
        for _ in range(asked.warmup - 1):
            took.append(ruler.iteration(run))
            ruler.forget()
    if strays:
        raise NotOffered("not_supported", _THREADS)
    return median(took) if took else 0.0
