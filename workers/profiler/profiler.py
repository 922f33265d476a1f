"""The profiler of a course module, by its names, over counts and times that hold.

It works in the caller's process, so it is for looking, not for publishing: nothing is pinned, no
neighbour is noticed, and there is one process. Every call leaves the model and torch as they were.
"""

import os
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from farm.errors import Refused
from farm.hardware import (
    GPUSpec,
    changes,
    gflops_per_second,
    heuristic_bound,
    memory_bandwidth_mbs,
    share_of_peak,
)
from farm.schema import Protocol
from workers import card, phases
from workers.backends.torch import borrowed
from workers.backends.torch.borrowed import Borrowed
from workers.devices import Slot
from workers.host import Host
from workers.profiler.speed import Milliseconds
from workers.record import CostReading
from workers.timing import without_collector

_MIB: Final = 2**20
_LAYER, _FORWARD = (3, 10), (5, 20)  # warm-up and timed calls, those of the course module
_QUICK: Final = ("parameters", "flops", "latency_ms", "gflops_per_second", "bottleneck")
Numbers = dict[str, Any]  # as the course module hands them out: by name, nested where it says so


class Profiler:
    """Counts, measures and explains one torch module at a time.

    spec: peaks of the device that it runs on, for `compute_efficiency`; without them that is None.
    clock: in ns. Inputs are a tensor, several, or the shape of one; its leading dimension is the
    batch. `flops` is per item and `batch_flops` per batch; sizes in `_mb` are MiB.
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
            return _per_item(_whole(guest.cost()), guest.batch)

    def measure_memory(self, model: object, given: object) -> Numbers:
        """Return MiB of parameters, of activations as measured, and of both with the buffers."""
        with borrowed.borrowed(model, given) as guest:
            return _memory(guest.cost())

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
            found = _figures(reading, latency, guest.batch)
        return {"layer_type": kinds[""], **found, "quantisation": _quantisation(reading, kinds)}

    def profile_forward_pass(self, model: object, given: object) -> Numbers:
        """Return what one call needs and takes, and by the old rule what limits it.

        With the card of this machine and the protocol, so that two of them can be compared (S2.14).
        """
        with borrowed.borrowed(model, given) as guest:
            latency = self._timed(guest, *_FORWARD)
            reading = guest.cost()
        found = _figures(reading, latency, guest.batch)
        found |= _heuristic(found) | {"compute_efficiency": self._efficiency(reading, latency)}
        return {**found, "card": _card(), "protocol": _protocol(guest, *_FORWARD)}

    def profile_backward_pass(self, model: object, given: object) -> Numbers:
        """Return an estimate of a training step: backward twice forward, and what optimisers keep.

        Nothing of it was run but the forward pass; both sides of `gflops_per_second` are per batch.
        """
        forward = self.profile_forward_pass(model, given)
        trained = borrowed.holdings(model).trainable_bytes
        flops, batch_flops = forward["flops"], forward["batch_flops"]
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
            "gradient_memory_mb": trained / _MIB,
            "optimizer_memory_estimates": {
                name: each / _MIB for name, each in changes.optimiser_bytes(trained).items()
            },
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
    return {name: found[name] for name in _QUICK}


# ── figures ──────────────────────────────────────────────────────────────────────────────────────


def _whole(reading: CostReading) -> int:
    """Return the FLOPs of a batch; raise Refused unless every operator was counted."""
    if reading.flops_per_batch is None or reading.uncounted_ops:
        raise Refused(
            "its FLOPs are not known",
            why=reading.reasons.get("flops_per_batch", f"no formula for {reading.uncounted_ops}"),
        )
    return reading.flops_per_batch


def _per_item(flops: int, batch: int) -> int | float:
    return flops // batch if flops % batch == 0 else flops / batch


def _figures(reading: CostReading, latency: Milliseconds, batch: int) -> Numbers:
    flops = reading.flops_per_batch
    return {
        "parameters": reading.params_total,
        "flops": None if flops is None else _per_item(flops, batch),
        "batch_flops": flops,
        "flops_status": reading.flops_status,
        "uncounted_ops": reading.uncounted_ops,
        "latency_ms": float(latency),
        "latency_interval_ms": None if latency.lo is None else [latency.lo, latency.hi],
        "gflops_per_second": None if flops is None else gflops_per_second(flops, latency),
        **_memory(reading),
    }


def _memory(reading: CostReading) -> Numbers:
    held = (reading.params_unique_bytes or 0) + (reading.buffers_bytes or 0)
    active = reading.activation_peak_bytes
    return {
        "parameter_memory_mb": (reading.params_unique_bytes or 0) / _MIB,
        "activation_memory_mb": None if active is None else active / _MIB,
        "peak_memory_mb": None if active is None else (held + active) / _MIB,
    }


def _heuristic(found: Numbers) -> Numbers:
    gflops, peak = found["gflops_per_second"], found["peak_memory_mb"]
    if gflops is None or peak is None:
        return {"memory_bandwidth_mbs": None, "heuristic_bound": None, "bottleneck": None}
    mbs = memory_bandwidth_mbs(peak * _MIB, found["latency_ms"])
    bound = heuristic_bound(gflops, mbs)
    return {"memory_bandwidth_mbs": mbs, "heuristic_bound": bound, "bottleneck": bound}


def _quantisation(reading: CostReading, kinds: dict[str, str]) -> Numbers:
    total = sum(reading.flops_by_layer.values()) or 1
    parts = [
        changes.Part(name, kinds.get(name, ""), 100 * each / total)
        for name, each in reading.flops_by_layer.items()
    ]
    words = reading.param_dtypes or {}
    precision = max(words, key=lambda each: words[each], default="unspecified")
    found = changes.candidates(parts, precision=precision)
    return {
        "rule": changes.QUANTISATION_RULE,
        "candidates": [each.layer or kinds[""] for each in found],
        "modelled_int8_bytes": changes.modelled_bytes(reading.params_total or 0, "int8"),
        "actual_bytes": reading.params_unique_bytes,
    }


def _card() -> Numbers:
    """Return the hardware and software of this process, as the system card of a job has them."""
    cpus = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else (0,)
    found = card.collect(
        Slot(number=0, cpus=cpus, housekeeping=()),
        Host(),
        node_id="",
        lease_scope="user",
        environment=os.environ,
    )
    plain: Numbers = msgspec.to_builtins(found)
    reasons = {path: why for path, why in found.null_reasons.items() if path.startswith("stable")}
    kept = ("system_id", "system_class", "stable")
    return {**{name: plain[name] for name in kept}, "null_reasons": reasons}


def _protocol(guest: Borrowed, warmup: int, iterations: int) -> Numbers:
    asked = Protocol(warmup=warmup, iterations=iterations, grad="no_grad", compat="tinytorch")
    return {**msgspec.to_builtins(asked), "statistic": "median", "threads": dict(guest.threads)}
