"""What an iteration starts from: inputs that stay or take turns, on the device or on the host.

`input_policy`, `input_scope`, `output_scope` and `l2` of a protocol become one call without
arguments, and what runs before it outside the clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from farm.schema import Protocol
from workers.backends import LoadFailed
from workers.backends.torch import outputs, transfers
from workers.backends.torch.calling import bind
from workers.backends.torch.cuda import l2_flush
from workers.backends.torch.placing import Place
from workers.timing import host_flush, rotating, rotation

Inputs = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Fed:
    """A step with its inputs: the call, and what prepares each one, None for nothing."""

    run: Callable[[], object]
    prepare: Callable[[], object] | None


def check(protocol: Protocol, *, on_gpu: bool) -> None:
    """Raise LoadFailed unless this device can do what the protocol asks for.

    A CPU has its inputs in its own memory; only root may lock the clocks of a GPU, and nothing
    here does it yet.
    """
    moved = (protocol.input_scope, protocol.output_scope) != ("device", "device")
    if moved and not on_gpu:
        raise LoadFailed("unsupported", "inputs and outputs of a CPU are on the host already")
    if protocol.clocks != "as_found":
        raise LoadFailed("unsupported", f"clocks: {protocol.clocks!r} needs a GPU and its root")


def feed(target: Callable[..., object], inputs: Inputs, protocol: Protocol, place: Place) -> Fed:
    """Return the call of one iteration on these inputs.

    Raises LoadFailed where a cache is to be flushed or outgrown whose size is not known.
    """
    run = _in_turns(target, inputs, protocol, place)
    if protocol.input_scope != "device":
        pinned = protocol.input_scope == "host_pinned"
        buffers = [leaf for leaf in outputs.leaves(inputs) if outputs.is_tensor(leaf)]
        hosts = transfers.on_host(buffers, pinned=pinned)
        run = transfers.uploading(run, list(zip(buffers, hosts, strict=True)), pinned=pinned)
    if protocol.output_scope == "host":
        run = transfers.downloading(run)
    if protocol.l2 != "flushed":
        return Fed(run=run, prepare=None)
    if place.cache_bytes is None:
        raise LoadFailed("unsupported", "this machine does not show its caches to be flushed")
    if place.accelerator is None:
        return Fed(run=run, prepare=host_flush(place.cache_bytes))
    return Fed(run=run, prepare=l2_flush(place.cache_bytes, device=place.device))


def _in_turns(
    target: Callable[..., object], inputs: Inputs, protocol: Protocol, place: Place
) -> Callable[[], object]:
    """Return a call on one set of inputs, or on equal ones that outgrow the cache, in turn."""
    if protocol.input_policy == "fixed":
        return bind(target, inputs)
    if place.cache_bytes is None:
        raise LoadFailed("unsupported", "this machine does not show its caches, so no pool is made")
    each_bytes = sum(leaf.nbytes for leaf in outputs.leaves(inputs))

    def made(index: int) -> Callable[[], object]:
        return bind(target, inputs if index == 0 else {n: _copy(v) for n, v in inputs.items()})

    return rotating(rotation(made, each_bytes=each_bytes, cache_bytes=place.cache_bytes))


def _copy(value: object) -> object:
    return value.clone() if outputs.is_tensor(value) else np.array(value)
