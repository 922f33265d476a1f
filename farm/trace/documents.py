"""What the verbs about layers print with --json."""

from typing import Literal

from msgspec import UNSET, UnsetType

from farm.schema import Latency, LayerTable, Stored
from farm.trace.blocks import BlockRow


class LayersTaken(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layers_taken/v1"
):
    """A layer pass, and where its table was appended; latency: of a clean pass of its own.

    block: its number in the file, 0 where that is no plain file. overhead_factor: a profiled
    iteration over a clean one, and overhead what one calls it. output: where the model's outputs
    were written.
    """

    file: str
    block: int
    job_id: str
    model: str
    batch: int
    overhead_factor: float | None
    overhead: Literal["low", "moderate", "high"] | None
    flags: list[str]
    table: LayerTable
    latency: Latency | UnsetType = UNSET
    output: str | UnsetType = UNSET
    null_reasons: dict[str, str]


class LayersRead(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layers_read/v1"):
    """A layer table that was taken before, by us or by another tool; nothing was measured.

    source: `FILE#2`, or the profile that was imported. file, block: where it was appended, absent
    where it only was shown. Its rows are in their order, and null is what the source lacks.
    """

    source: str
    file: str | UnsetType = UNSET
    block: int | UnsetType = UNSET
    job_id: str | None
    model: str | None
    batch: int | None
    precision: str | None
    device: str | None
    method: str | None
    clock: str | None
    warmup_iterations: int | None
    iterations: int | None
    rows: list[BlockRow]
    null_reasons: dict[str, str]
