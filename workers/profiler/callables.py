"""The parts of a profile of one model, for other programs: what it costs, and what was measured.

The three kinds of evidence stay apart: cost comes from the model, an estimate from peaks
(`farm.hardware`), and only what a loop has timed is measured.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct, structs

from farm.errors import Refused
from farm.interchange.document import SystemCard
from farm.interchange.writing import system_of
from farm.schema import Cost
from workers import readings
from workers.backends.torch import borrowed, calling
from workers.backends.torch.naming import printable
from workers.profiler.clocks import LatencyProfiler, MemoryPeaks, MemoryProfiler, Percentiles
from workers.profiler.machine import system_card

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
    normal in the dtype of the weights. The runner feeds `latency` and resets `memory` after warming
    up. Source: S1.36.
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
            inputs = {
                name: borrowed.drawn(self._model, shape).to(self._device)
                for name, shape in self._shapes.items()
            }
            self._efficiency = profile_model(self._model, inputs)
        return self._efficiency

    def full_report(self, *, precision: str = "unspecified") -> ProfileReport:
        """Return cost and what was measured until now, with the machine.

        precision: as the runner knows it. Raises Bad if no sample was added.
        """
        efficiency, times = self.pre_run_profile(), self.latency.percentiles()
        peaks = self.memory.peaks()
        system, why_unknown = system_of(
            system_card(), precision=precision, on_gpu=self._device != "cpu"
        )
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


def profile_model(model: object, inputs: object) -> EfficiencyMetadata:
    """Return what a standalone torch module needs for one call with these inputs.

    inputs: tensors or arrays by name, in their order, or a single one; or the shape of one, drawn
    in the dtype of the weights. Whatever cannot be had is null, with a status of the FLOPs:
    measured, partial, unsupported, failed, skipped (S1.48). A function has neither parameters nor
    FLOPs that could be seen (S1.7). Nothing is timed; it is counted in evaluation mode and left as
    it was. Raises Refused for a lazy module that was never called, for what is no input, and for an
    empty batch. Source: S1.37, S1.38, S1.49.
    """
    if not calling.is_module(model):
        return _hidden(borrowed.batch_of(inputs))
    with borrowed.borrowed(model, inputs) as guest:
        found, why = readings.cost(guest.cost(), batch=guest.batch)
    reasons = {f"cost.{name}": each for name, each in why.items()}
    return EfficiencyMetadata(batch=guest.batch, cost=found, null_reasons=reasons)


def _hidden(batch: int) -> EfficiencyMetadata:
    told: dict[str, Any] = {"flops_status": "unsupported", "uncounted_ops": []}
    nothing = [name for name in Cost.__struct_fields__ if name not in (*told, "weights")]
    fields: dict[str, Any] = dict.fromkeys(nothing)
    return EfficiencyMetadata(
        batch=batch,
        cost=Cost(**told, **fields),
        null_reasons={f"cost.{name}": _HIDDEN for name in nothing},
    )


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


def _without_reasons(part: T) -> T:
    """Return a part of a report, whose reasons stand in the one map of the whole."""
    return structs.replace(part, null_reasons={})
