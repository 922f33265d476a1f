"""Two layer tables side by side: matched by name, then what only one of them has.

Engines fuse layers as they like, so the rows of two precisions or devices need not be the same
(S0.39). The times are of profiled passes: only shares compare across passes, and a ratio of
medians says where to look. No verdict follows from two stored tables (`measurement.md` §15).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from farm.schema import Stored
from farm.trace.blocks import BlockRow
from farm.trace.files import Chosen
from farm.trace.layers import numbered

_TOLD: Final = ("job_id", "model", "batch", "precision", "device", "clock", "iterations")
NOTE: Final = (
    "only shares compare: both passes were slowed down by their profiler; a ratio of medians says "
    "where to look, and the latency says whether it helped"
)


class Side(Stored, frozen=True, kw_only=True):
    """One table: how one addresses it, and what is known of its run; None where nothing is."""

    name: str
    layers: int
    job_id: str | None
    model: str | None
    batch: int | None
    precision: str | None
    device: str | None
    clock: str | None
    iterations: int | None


class Matched(Stored, frozen=True, kw_only=True):
    """A layer that both have. change_points: of its share, head − base. median_ratio: head/base."""

    layer: str
    base_share_pct: float
    head_share_pct: float
    change_points: float
    base_median_ms: float | None
    head_median_ms: float | None
    median_ratio: float | None


class Unmatched(Stored, frozen=True, kw_only=True):
    layer: str
    share_pct: float
    median_ms: float | None


class LayerComparison(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layer_comparison/v1"
):
    """Matched rows in the order of the base, then the rows of either side alone with their shares.

    verdict: two stored passes are no pairs, so it is always `inconclusive`.
    """

    base: Side
    head: Side
    matched: list[Matched]
    only_base: list[Unmatched]
    only_head: list[Unmatched]
    only_base_share_pct: float
    only_head_share_pct: float
    verdict: str
    reason: str
    note: str
    null_reasons: dict[str, str]


def compare(base: Chosen, head: Chosen) -> LayerComparison:
    """Return how two layer tables differ, layer by layer."""
    here, there = _by_name(base.rows), _by_name(head.rows)
    matched = [_matched(name, here[name], there[name]) for name in here if name in there]
    only_base = [_unmatched(name, here[name]) for name in here if name not in there]
    only_head = [_unmatched(name, there[name]) for name in there if name not in here]
    sides = {"base": _side(base), "head": _side(head)}
    return LayerComparison(
        base=sides["base"],
        head=sides["head"],
        matched=matched,
        only_base=only_base,
        only_head=only_head,
        only_base_share_pct=sum((each.share_pct for each in only_base), 0.0),
        only_head_share_pct=sum((each.share_pct for each in only_head), 0.0),
        verdict="inconclusive",
        reason="unpaired",
        note=NOTE,
        null_reasons=_reasons(
            {"matched": matched, "only_base": only_base, "only_head": only_head}, sides
        ),
    )


def other_work(base: Chosen, head: Chosen) -> str:
    """Return in which the work of the two differs, model or batch, "" where nothing says so.

    An imported table knows the name of its file and no model.
    """
    one, other = base.about, head.about
    if one is None or other is None:
        return ""
    differs = []
    if "imported" not in (one.method, other.method) and one.model != other.model:
        differs.append(f"model {one.model} and {other.model}")
    if None not in (one.batch, other.batch) and one.batch != other.batch:
        differs.append(f"batch {one.batch} and {other.batch}")
    return ", ".join(differs)


def _by_name(rows: Sequence[BlockRow]) -> dict[str, BlockRow]:
    """Return the rows by name; other tools let a name stand twice."""
    return dict(zip(numbered(each.layer for each in rows), rows, strict=True))


def _matched(name: str, base: BlockRow, head: BlockRow) -> Matched:
    ratio = None
    if base.median_ms and head.median_ms is not None:
        ratio = head.median_ms / base.median_ms
        ratio = ratio if math.isfinite(ratio) else None
    return Matched(
        layer=name,
        base_share_pct=base.share_pct,
        head_share_pct=head.share_pct,
        change_points=head.share_pct - base.share_pct,
        base_median_ms=base.median_ms,
        head_median_ms=head.median_ms,
        median_ratio=ratio,
    )


def _unmatched(name: str, row: BlockRow) -> Unmatched:
    return Unmatched(layer=name, share_pct=row.share_pct, median_ms=row.median_ms)


def _side(chosen: Chosen) -> Side:
    about = chosen.about
    known = {} if about is None else {name: getattr(about, name) for name in _TOLD}
    return Side(
        name=chosen.name, layers=len(chosen.rows), **{name: known.get(name) for name in _TOLD}
    )


def _reasons(lists: Mapping[str, Sequence[Struct]], sides: Mapping[str, Side]) -> dict[str, str]:
    """Return a reason for every null: a median that the file lacks, or one too small to divide by.

    What is unknown of a run was not told beside its file.
    """
    found = {
        f"{name}.{field}": "not_probed"
        for name, side in sides.items()
        for field in side.__struct_fields__
        if getattr(side, field) is None
    }
    for name, rows in lists.items():
        for at, row in enumerate(rows):
            lacking = [each for each in row.__struct_fields__ if getattr(row, each) is None]
            only_ratio = lacking == ["median_ratio"]
            why = "below_resolution" if only_ratio else "not_supported: the file has no median"
            found |= {f"{name}.{at}.{field}": why for field in lacking}
    return found
