"""What `farm profile cost` answers, part by part."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from farm.schema import INVALIDATING, Bounds, Cost, Estimate, Hotspot


class CostTaken(Struct, frozen=True, kw_only=True):
    """A latency beside a cost: measured here just now, or given by whoever asked.

    lo_ms, hi_ms: 95 % interval of the median; n: timed iterations over all repeats.
    peak_memory_bytes: of the process, beside a given latency weights, buffers and activations.
    estimate: of the peaks that bounds hold it against, measured ones of this machine, or those of
    the device that was named with a given latency.
    """

    source: Literal["measured", "given"]
    p50_ms: float
    lo_ms: float | None
    hi_ms: float | None
    n: int | None
    device: str
    peak_memory_bytes: int | None
    flags: list[str]
    estimate: Estimate | None
    bounds: Bounds | None

    @property
    def not_to_be_believed(self) -> list[str]:
        """The flags for which nothing is concluded from its times."""
        return [each for each in self.flags if each in INVALIDATING]


class CostTraining(Struct, frozen=True, kw_only=True):
    """What training would take, by a formula: backward twice forward, and what optimisers keep."""

    not_measured: Literal[True]
    backward_flops_per_batch: float | None
    gradient_bytes: int | None
    optimiser_bytes: dict[str, int] | None


class CostPacked(Struct, frozen=True, kw_only=True):
    """The weights as integers of 8 bits: what they would take if packed, and what they take."""

    modelled_int8_bytes: int | None
    actual_bytes: int | None


class CostSaid(Struct, frozen=True, kw_only=True):
    """One question and its answer in a sentence."""

    question: Literal["bound", "layer", "quantisation", "caching"]
    said: str


class CostReport(Struct, frozen=True, kw_only=True, tag_field="schema", tag="farm.cost_report/v1"):
    """What a model needs, what that means for hardware, and what was measured: never mixed.

    cost: from the model. estimates: computed from the peaks of devices, and not measured, the
    quickest first. taken: absent where no latency is known. hotspots: the five layers with the
    largest shares of the time. candidates: those that quantisation_rule names.
    """

    model: str
    precision: str
    batch: int
    item: str
    cost: Cost
    training: CostTraining
    packed: CostPacked
    estimates: list[Estimate]
    taken: CostTaken | UnsetType = UNSET
    hotspots: list[Hotspot] | None
    candidates: list[Hotspot] | None
    quantisation_rule: str
    answers: list[CostSaid]
    null_reasons: dict[str, str]
