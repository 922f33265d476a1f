"""A layer profile as the verbs about traces show it: layers in place of kernels, and no GPU."""

from typing import Literal

from farm.schema import Stored
from farm.trace.importing.original import Value

Tool = Literal["TensorRT", "ONNX Runtime", "layer CSV"]


class LayerTime(Stored, frozen=True, kw_only=True):
    """A layer, per run of the model. op: what kind of work it is. pct: of all layers.

    None is what the tool does not tell.
    """

    layer: str
    op: str | None
    ms_per_step: float
    pct: float
    count_per_step: float | None
    median_ms: float | None
    std_ms: float | None


class OpTime(Stored, frozen=True, kw_only=True):
    """The layers of one kind of work, per run of the model. pct: of all layers."""

    op: str
    ms_per_step: float
    pct: float
    layers: int
    count_per_step: float


class LayerProfile(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layer_profile/v1"
):
    """What another tool says of the layers of a model. trace: the file. metrics: as of a trace.

    rows: in the order of the file. ops: the costliest first, none where no row tells its kind.
    """

    trace: str
    tool: Tool
    metrics: dict[str, Value]
    rows: list[LayerTime]
    ops: list[OpTime]
    null_reasons: dict[str, str]


class LayerTimesRead(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layer_times/v1"
):
    """Layers of a profile, those that were asked for. of: how many there are without a limit."""

    trace: str
    tool: Tool
    of: int
    rows: list[LayerTime]
    null_reasons: dict[str, str]


class OpTimesRead(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layer_ops/v1"):
    """The layers of a profile by kind of work. of: how many kinds there are without a limit."""

    trace: str
    tool: Tool
    of: int
    rows: list[OpTime]
