"""The parts of a profile of one model, for other programs: what it costs, and what was measured.

The three kinds of evidence stay apart: cost comes from the model, an estimate from peaks
(`farm.hardware`), and only what a loop has timed is measured.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct, structs

from farm.errors import Refused
from farm.interchange.document import SystemCard
from farm.interchange.writing import system_of
from farm.schema import Cost
from workers import card, devices
from workers.backends.torch import borrowed, calling, cost
from workers.backends.torch.naming import printable
from workers.host import Host
from workers.profiler.clocks import LatencyProfiler, MemoryPeaks, MemoryProfiler, Percentiles
from workers.record import CostReading

if TYPE_CHECKING:
    import torch

__all__ = [
    "EfficiencyMetadata",
    "ModelProfiler",
    "ProfileReport",
    "SystemCard",
    "profile_model",
]

T = TypeVar("T", bound=Struct)
Shape = Sequence[int]
Inputs = Mapping[str, object] | Sequence[object] | object

_READ: Final = set(CostReading.__struct_fields__)
_HIDDEN: Final = "not_applicable: nobody sees into a function"


class EfficiencyMetadata(Struct, frozen=True, kw_only=True):
    """What a model needs: parameters, FLOPs, MACs, and the bytes that it moves at least.

    evidence: it was counted, and nothing was timed. batch: items of the call that was counted.
    """

    evidence: Literal["cost"] = "cost"
    batch: int
    cost: Cost
    null_reasons: dict[str, str]


class ProfileReport(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.profile_report/v1"
):
    """Cost, and what a runner has measured, beside the machine it ran on.

    Every null has its reason in null_reasons, by its path.
    """

    model: str
    device: str
    efficiency: EfficiencyMetadata
    latency: Percentiles
    memory: MemoryPeaks
    system_card: SystemCard
    null_reasons: dict[str, str]


class ModelProfiler:
    """Cost first, measurements later: the loop that calls the model is somebody else's.

    input_shape: of one input, batch first, or of each by its name; they are drawn from a standard
    normal. The runner feeds `latency` and resets `memory` after warming up. Source: S1.36.
    """

    def __init__(
        self,
        model: "torch.nn.Module",
        input_shape: Shape | Mapping[str, Shape],
        device: str = "cpu",
        *,
        latency: LatencyProfiler | None = None,
        memory: MemoryProfiler | None = None,
    ) -> None:
        if not calling.is_module(model):
            raise Refused(
                f"{type(model).__name__} is no torch module",
                hint="`farm profile callable` measures any function",
            )
        self._model, self._device = model, device
        self._shapes = _checked(input_shape)
        self._efficiency: EfficiencyMetadata | None = None
        self.latency = latency if latency is not None else LatencyProfiler()
        self.memory = memory if memory is not None else MemoryProfiler()

    def pre_run_profile(self) -> EfficiencyMetadata:
        """Return what the model needs, counted once, before anything is timed (S1.47)."""
        if self._efficiency is None:
            drawn = {name: _drawn(shape, self._device) for name, shape in self._shapes.items()}
            self._efficiency = profile_model(self._model, drawn)
        return self._efficiency

    def full_report(self, *, precision: str = "unspecified") -> ProfileReport:
        """Return cost and what was measured until now, with the machine.

        precision: as the runner knows it. Raises Bad if no sample was added.
        """
        efficiency, times = self.pre_run_profile(), self.latency.percentiles()
        peaks = self.memory.peaks()
        system, why_unknown = _system(precision, self._device)
        parts = {
            "efficiency": efficiency.null_reasons,
            "latency": times.null_reasons,
            "memory": peaks.null_reasons,
            "system_card": why_unknown,
        }
        return ProfileReport(
            model=printable(type(self._model).__name__),
            device=self._device,
            efficiency=_without_reasons(efficiency),
            latency=_without_reasons(times),
            memory=_without_reasons(peaks),
            system_card=system,
            null_reasons={
                f"{part}.{path}": why
                for part, found in parts.items()
                for path, why in found.items()
            },
        )


def profile_model(model: object, inputs: Inputs) -> EfficiencyMetadata:
    """Return what a standalone torch module needs for one call with these inputs.

    inputs: tensors or arrays by name, in their order, or a single one; batch first. Whatever cannot
    be had is null, with a status of the FLOPs: measured, partial, unsupported, failed, skipped
    (S1.48). A function has neither parameters nor FLOPs that could be seen (S1.7). Nothing is
    timed; it is counted in evaluation mode and left as it was. Raises Refused for a lazy module
    that was never called. Source: S1.37, S1.38, S1.49.
    """
    named = _named(inputs)
    batch = _batch(named)
    if not calling.is_module(model):
        return _hidden(batch)
    module = borrowed.checked(model)
    tensors = {name: _tensor(each) for name, each in named.items()}
    with borrowed.evaluating(module):
        reading = cost.read(module, calling.bind(module, tensors), tensors, batch=batch)
    return _efficiency(reading, batch)


def _efficiency(reading: CostReading, batch: int) -> EfficiencyMetadata:
    flops = reading.flops_per_batch
    per_item = None if flops is None else flops / batch
    known = {name: getattr(reading, name) for name in Cost.__struct_fields__ if name in _READ}
    found = Cost(
        **known, flops_per_item=per_item, macs_per_item=None if per_item is None else per_item / 2
    )
    why = dict(reading.reasons)
    why |= dict.fromkeys(("flops_per_item", "macs_per_item"), why.get("flops_per_batch", ""))
    nulls = [name for name in Cost.__struct_fields__ if getattr(found, name) is None]
    reasons = {f"cost.{name}": why.get(name) or "not_supported" for name in nulls}
    return EfficiencyMetadata(batch=batch, cost=found, null_reasons=reasons)


def _hidden(batch: int) -> EfficiencyMetadata:
    told: dict[str, Any] = {"flops_status": "unsupported", "uncounted_ops": []}
    nothing = [name for name in Cost.__struct_fields__ if name not in told]
    fields: dict[str, Any] = dict.fromkeys(nothing)
    return EfficiencyMetadata(
        batch=batch,
        cost=Cost(**told, **fields),
        null_reasons={f"cost.{name}": _HIDDEN for name in nothing},
    )


def _named(inputs: Inputs) -> dict[str, object]:
    if isinstance(inputs, Mapping):
        return {str(name): each for name, each in inputs.items()}
    if isinstance(inputs, list | tuple):
        return {str(at): each for at, each in enumerate(inputs)}
    return {"0": inputs}


def _batch(named: Mapping[str, object]) -> int:
    """Return the leading dimension of the first input that has one (C15); 1 without any."""
    shapes = (tuple(getattr(each, "shape", ())) for each in named.values())
    return max(1, int(next((shape[0] for shape in shapes if shape), 1)))


def _tensor(value: object) -> object:
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor) or not hasattr(value, "__array_interface__"):
        return value
    return torch.as_tensor(value)


def _drawn(shape: Shape, device: str) -> object:
    torch: Any = sys.modules["torch"]
    seeded = torch.Generator().manual_seed(0)
    return torch.randn(tuple(shape), generator=seeded).to(device)


def _checked(given: Shape | Mapping[str, Shape]) -> dict[str, Shape]:
    shapes = dict(given) if isinstance(given, Mapping) else {"0": given}
    for name, shape in shapes.items():
        lengths: list[object] = list(shape)
        if not lengths or any(type(each) is not int or each < 1 for each in lengths):
            raise Refused(
                f"input_shape {list(shape)!r} of {name!r} makes no sense",
                why="it is one whole number or more, each at least 1, the batch first",
            )
    return shapes


def _system(precision: str, device: str) -> tuple[SystemCard, dict[str, str]]:
    """Return the machine as it is now; its node is nobody's, since nothing of it is kept."""
    cpus = tuple(sorted(devices.own_affinity() or range(os.cpu_count() or 1)))
    slot = devices.Slot(number=0, cpus=cpus, housekeeping=())
    found = card.collect(slot, Host(), node_id="0" * 32, lease_scope="user")
    return system_of(found, precision=precision, on_gpu=device != "cpu")


def _without_reasons(part: T) -> T:
    """Return a part of a report, whose reasons stand in the one map of the whole."""
    return structs.replace(part, null_reasons={})
