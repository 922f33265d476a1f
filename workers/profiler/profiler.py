"""The profiler of a course module, by its names, over counts and times that hold.

It works in the caller's process, so it is for looking, not for publishing: nothing is pinned, no
neighbour is noticed, and there is one process. Every call leaves the model and torch as they were.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from farm.errors import Refused
from farm.hardware import GPUSpec, changes, share_of_peak
from farm.schema import Protocol
from workers import phases
from workers.backends.torch import borrowed
from workers.backends.torch.borrowed import Borrowed
from workers.profiler.figures import (
    MIB,
    Numbers,
    figures,
    heuristic,
    memory,
    per_item,
    quantisation,
    with_reasons,
)
from workers.profiler.machine import system_card
from workers.profiler.speed import Milliseconds
from workers.record import CostReading
from workers.timing import without_collector

_LAYER, _FORWARD = (3, 10), (5, 20)  # warm-up and timed calls, those of the course module
_QUICK: Final = ("parameters", "flops", "latency_ms", "gflops_per_second", "bottleneck")


class Profiler:
    """Counts, measures and explains one torch module at a time.

    spec: peaks of the device that it runs on, for `compute_efficiency`; without them that is None.
    clock: in ns. Inputs are a tensor, several, or the shape of one; its leading dimension is the
    batch. `flops` is per item and `batch_flops` per batch; sizes in `_mb` are MiB. Whatever could
    not be had is None, and `null_reasons` tells why by its path.
    """

    def __init__(
        self, *, spec: GPUSpec | None = None, clock: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._spec = spec
        self._clock = clock

    def count_parameters(self, model: object) -> int:
        """Return the exact number of parameters, trained or not, shared ones once."""
        return borrowed.holdings(model).total

    def count_flops(self, model: object, given: object) -> int | float:
        """Return the FLOPs of one item, a multiply-accumulate being two.

        Raises Refused if an operator that does the work has no formula: no number is a guess.
        """
        with borrowed.borrowed(model, given) as guest:
            return per_item(_whole(guest.cost()), guest.batch)

    def measure_memory(self, model: object, given: object) -> Numbers:
        """Return MiB of parameters, of activations as measured, and of both with the buffers."""
        with borrowed.borrowed(model, given) as guest:
            reading = guest.cost()
        return with_reasons(memory(reading), reading)

    def measure_latency(
        self, model: object, given: object, warmup: int = 10, iterations: int = 100
    ) -> Milliseconds:
        """Return the median time of a call in ms, after untimed ones; nothing else is attached.

        It has its interval, so that before and after a change say whether that helped: see
        `speedup`. Raises Refused for a warm-up below 0 or no iteration.
        """
        with borrowed.borrowed(model, given) as guest:
            return self._timed(guest, warmup, iterations)

    def profile_layer(self, layer: object, given: object) -> Numbers:
        """Return what a layer needs and takes, and which parts of it to quantise, by which rule."""
        kinds = borrowed.types(layer)
        with borrowed.borrowed(layer, given) as guest:
            latency = self._timed(guest, *_LAYER)
            reading = guest.cost()
        found = {"layer_type": kinds[""], **figures(reading, latency, guest.batch)}
        return with_reasons({**found, "quantisation": quantisation(reading, kinds)}, reading)

    def profile_forward_pass(self, model: object, given: object) -> Numbers:
        """Return what one call needs and takes, and by the old rule what limits it.

        With the card of this machine and the protocol, so that two of them can be compared (S2.14).
        """
        with borrowed.borrowed(model, given) as guest:
            latency = self._timed(guest, *_FORWARD)
            reading = guest.cost()
        found = figures(reading, latency, guest.batch)
        found |= heuristic(found) | {"compute_efficiency": self._efficiency(reading, latency)}
        card, why = _card()
        found |= {"card": card, "protocol": _protocol(guest, *_FORWARD)}
        return with_reasons(found, reading, {f"card.{path}": each for path, each in why.items()})

    def profile_backward_pass(self, model: object, given: object) -> Numbers:
        """Return an estimate of a training step: backward twice forward, and what optimisers keep.

        Nothing of it was run but the forward pass. `batch_flops` and `total_latency_ms` are those
        of a whole step, the other FLOPs those of one item; MiB are those of what is trained.
        """
        forward = self.profile_forward_pass(model, given)
        trained = borrowed.holdings(model).trainable_bytes
        flops, batch_flops = forward["flops"], forward["batch_flops"]
        unknown = ("forward_flops", "backward_flops", "total_flops", "batch_flops")
        why = forward["null_reasons"].get("flops")
        return {
            "estimate": True,
            "method": "backward is taken as twice forward",
            "forward_flops": flops,
            "backward_flops": None if flops is None else changes.backward_flops(flops),
            "total_flops": None if flops is None else flops + changes.backward_flops(flops),
            "batch_flops": None if batch_flops is None else 3 * batch_flops,
            "forward_latency_ms": forward["latency_ms"],
            "backward_latency_ms": 2 * forward["latency_ms"],
            "total_latency_ms": 3 * forward["latency_ms"],
            "gradient_memory_mb": trained / MIB,
            "optimizer_memory_estimates": {
                name: each / MIB for name, each in changes.optimiser_bytes(trained).items()
            },
            "null_reasons": {} if why is None else dict.fromkeys(unknown, why),
        }

    def analyze_weight_distribution(
        self, model: object, percentiles: Sequence[float] = (10, 25, 50, 75, 90)
    ) -> Numbers:
        """Return how the magnitudes of the weights lie, and which share is close to zero.

        Raises Refused if it has no floating-point weights.
        """
        found = borrowed.spread(model, percentiles)
        if found is None:
            raise Refused("it has no floating-point weights", why="nothing lies anywhere")
        return {
            "n": found.n,
            "used": found.used,
            "percentiles": found.percentiles,
            "shares_below": found.shares_below,
        }

    def _timed(self, guest: Borrowed, warmup: int, iterations: int) -> Milliseconds:
        if warmup < 0 or iterations < 1:
            raise Refused(f"{warmup} untimed and {iterations} timed calls", why="at least 0 and 1")
        into = array("q", bytes(8 * (warmup + iterations)))
        with without_collector():
            phases.loop(guest.call, guest.sync, self._clock, into, 0, len(into))
        return Milliseconds([each / 1e6 for each in into[warmup:]])

    def _efficiency(self, reading: CostReading, latency: float) -> float | None:
        """Return the share of the device's own peak, None without one: S2.20."""
        words = reading.param_dtypes or {}
        word = max(words, key=lambda each: words[each], default="fp32")
        peaks = self._spec.peak_flops_per_s if self._spec is not None else {}
        return share_of_peak(reading.flops_per_batch, peaks.get(word), latency)


def quick_profile(model: object, given: object, profiler: Profiler | None = None) -> Numbers:
    """Return the few numbers of a forward pass that one looks at first."""
    found = (profiler or Profiler()).profile_forward_pass(model, given)
    why = found["null_reasons"]
    reasons = {name: why[name] for name in _QUICK if name in why}
    return {**{name: found[name] for name in _QUICK}, "null_reasons": reasons}


def _whole(reading: CostReading) -> int:
    """Return the FLOPs of a batch; raise Refused unless every operator was counted."""
    if reading.flops_per_batch is None or reading.uncounted_ops:
        raise Refused(
            "its FLOPs are not known",
            why=reading.reasons.get("flops_per_batch", f"no formula for {reading.uncounted_ops}"),
        )
    return reading.flops_per_batch


def _card() -> tuple[Numbers, dict[str, str]]:
    """Return hardware and software of this process, as the card of a job has them; and reasons."""
    found = system_card()
    plain: Numbers = msgspec.to_builtins(found)
    kept = ("system_id", "system_class", "stable")
    reasons = {path: why for path, why in found.null_reasons.items() if path.startswith(kept)}
    return {name: plain[name] for name in kept}, reasons


def _protocol(guest: Borrowed, warmup: int, iterations: int) -> Numbers:
    asked = Protocol(warmup=warmup, iterations=iterations, grad="no_grad", compat="tinytorch")
    return {**msgspec.to_builtins(asked), "statistic": "median", "threads": dict(guest.threads)}
