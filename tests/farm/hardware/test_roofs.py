"""The laws of measured peaks: the best is kept, and memory is not held against a cache."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from farm import schema
from farm.errors import Bad
from farm.hardware import Product, Roofs, Stream, peaks
from farm.hardware.roofs import RECIPE, better

MIB = 1 << 20


def product(flops_per_s: float = 1e11) -> Product:
    return Product(
        flops_per_s=flops_per_s, size=512, sizes=[256, 512], runs=6, taken_at="2026-11-30T02:00:00Z"
    )


def stream(mib: float, triad: float, read: float = 0.0) -> Stream:
    return Stream(
        working_set_bytes=int(mib * MIB),
        triad_bytes_per_s=triad,
        read_bytes_per_s=read or triad,
        runs=6,
        taken_at="2026-11-30T02:00:00Z",
    )


def roofs(**changes: Any) -> Roofs:
    made = Roofs(
        system_id="5" * 32,
        system_class="test-cpu_1c",
        device="test cpu",
        threads=1,
        recipe=RECIPE,
        tried_at="2026-11-30T02:00:00Z",
        cache_bytes=64 * MIB,
        products={"fp32": product(), "bf16": None},
        caches=[stream(1, 90e9), stream(32, 27e9)],
        memory=stream(256, 13e9, 15e9),
        null_reasons={"products.bf16": "not_probed: python (pid 7)"},
    )
    return structs.replace(made, **changes)


def test_roofs_are_a_document_like_any_other() -> None:
    made = roofs()

    assert made == schema.decode(schema.encode(made), Roofs)
    with pytest.raises(Bad, match=r"memory is null without a reason"):
        schema.encode(structs.replace(made, memory=None))


def test_the_wider_of_triad_and_read_is_the_roof_of_memory() -> None:
    """A triad's write also reads its line, which nobody counts: reading alone may be quicker."""
    found = peaks(roofs())

    assert (15e9, "measured", "test cpu") == (
        found.peak_bytes_per_s,
        found.source,
        found.name,
    )
    assert {"fp32": 1e11} == found.peak_flops_per_s
    assert "not_probed: python (pid 7)" == found.unknown["bf16"]


@pytest.mark.parametrize(
    ("mib", "expected"),
    [
        (0.1, 90e9),
        (1, 90e9),
        (31, 90e9),
        (32, 27e9),
        (255, 27e9),
        (256, 15e9),
        (9000, 15e9),
        (None, 15e9),
    ],
)
def test_work_is_held_against_the_largest_set_that_is_not_larger(
    mib: float | None, expected: float
) -> None:
    """What stays in a cache is not called impossible because memory is slower."""
    moved = None if mib is None else mib * MIB

    assert expected == peaks(roofs(), moved_bytes=moved).peak_bytes_per_s


def test_without_a_stream_there_is_no_memory_roof_and_a_reason() -> None:
    blind = roofs(
        memory=None,
        caches=[],
        null_reasons={"products.bf16": "not_probed", "memory": "error: host_oom"},
    )

    assert peaks(blind).peak_bytes_per_s is None
    assert "error: host_oom" == peaks(blind, moved_bytes=1e9).unknown["bytes"]
    assert not blind.is_empty
    assert structs.replace(blind, products={"fp32": None}).is_empty


# ── keeping the best ─────────────────────────────────────────────────────────────────────────────


def test_the_best_valid_value_is_kept_and_a_gap_is_filled() -> None:
    old = roofs()
    new = roofs(
        products={"fp32": None, "bf16": product(9e11)},
        caches=[stream(1, 80e9, 95e9)],
        memory=stream(256, 14e9, 10e9),
        tried_at="2026-12-01T02:00:00Z",
        null_reasons={"products.fp32": "not_probed: python (pid 8)"},
    )

    best = better(old, new)

    assert {"fp32": product(), "bf16": product(9e11)} == best.products
    assert [(90e9, 95e9), (27e9, 27e9)] == [
        (each.triad_bytes_per_s, each.read_bytes_per_s) for each in best.caches
    ]
    assert best.memory is not None
    assert (14e9, 15e9) == (best.memory.triad_bytes_per_s, best.memory.read_bytes_per_s)
    assert {} == best.null_reasons
    assert "2026-12-01T02:00:00Z" == best.tried_at


@pytest.mark.parametrize("change", [{"system_id": "6" * 32}, {"recipe": "roofs/0"}])
def test_peaks_of_another_system_or_recipe_are_not_mixed_in(change: dict[str, str]) -> None:
    slower = roofs(products={"fp32": product(1.0)})

    assert slower == better(roofs(**change), slower)
    assert slower == better(None, slower)


RATE = st.floats(1e6, 1e15)
GAP = st.one_of(st.none(), RATE)


@given(GAP, GAP, GAP, GAP)
def test_a_try_never_makes_a_roof_lower(
    old_flops: float | None,
    new_flops: float | None,
    old_bytes: float | None,
    new_bytes: float | None,
) -> None:
    """And the document stays one whose nulls are its reasons."""

    def made(flops: float | None, width: float | None) -> Roofs:
        nulls = {} if flops else {"products.fp32": "not_probed"}
        return roofs(
            products={"fp32": product(flops) if flops else None},
            memory=stream(256, width) if width else None,
            null_reasons=nulls if width else nulls | {"memory": "not_probed"},
        )

    best = better(made(old_flops, old_bytes), made(new_flops, new_bytes))

    schema.encode(best)
    known = [each for each in (old_flops, new_flops) if each is not None]
    kept = best.products["fp32"]
    assert max(known, default=None) == (kept.flops_per_s if kept else None)
    widths = [each for each in (old_bytes, new_bytes) if each is not None]
    assert max(widths, default=None) == (best.memory.bytes_per_s if best.memory else None)
