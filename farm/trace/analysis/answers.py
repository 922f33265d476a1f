"""What the verbs about traces print with --json, beside the analysis itself."""

from farm.schema import Stored
from farm.trace.analysis.tables import KernelRow, OpRow, PhaseRow

Value = float | int | bool | str | None


class MetricsRead(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.trace_metrics/v1"
):
    """Every number of a trace by name."""

    trace: str
    metrics: dict[str, Value]
    null_reasons: dict[str, str]


class PhasesRead(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.trace_phases/v1"):
    """The phases of a trace, in the order in which a step has them.

    inferred_forward: some launches or ops were taken for forward: they came before the first
    backward.
    """

    trace: str
    inferred_forward: bool
    rows: list[PhaseRow]
    null_reasons: dict[str, str]


class KernelsRead(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.trace_kernels/v1"
):
    """Kernels of a trace. phase: "" for all; of: how many there are without a limit."""

    trace: str
    phase: str
    of: int
    rows: list[KernelRow]


class OpsRead(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.trace_ops/v1"):
    """Operators of a trace. phase: "" for all; of: how many there are without a limit."""

    trace: str
    phase: str
    of: int
    rows: list[OpRow]


class RemovedWork(Stored, frozen=True, kw_only=True):
    """Per step: kernel time, the part in which nothing else ran, and launch calls."""

    gpu_ms: float
    exclusive_gpu_ms: float
    launches: float


class StepTimes(Stored, frozen=True, kw_only=True):
    """Milliseconds of a step: as it is, by the model of the original, and the bounds of any."""

    now: float
    projected: float
    best: float
    worst: float


class Rates(Stored, frozen=True, kw_only=True):
    """Images per second as they are, and by the same model."""

    now: float
    projected: float


class WhatIf(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.what_if/v1"):
    """A projection. model_below_bound: it is less than what is left has to take.

    img_per_s: None where the trace does not tell how many images a step has.
    """

    trace: str
    bound: str
    mechanism: str
    removed: RemovedWork
    step_ms: StepTimes
    img_per_s: Rates | None
    model_below_bound: bool
    caveat: str
    note: str
    null_reasons: dict[str, str]
