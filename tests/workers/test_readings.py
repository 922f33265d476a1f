"""What an instrumented child is worth: layers, cost and what limits the step."""

import msgspec
import numpy as np
import pytest

from farm import schema
from farm.hardware import Product, Roofs, Stream
from farm.schema import Failure, GpuTime
from tests.workers import make
from workers import figures, readings, resources
from workers.readings import Found, Seen
from workers.record import CostReading


def seen(**changes: object) -> Seen:
    return Seen(record=make.instrumented(**changes), arrays=make.layer_arrays())


def found(
    what: Seen | None,
    *,
    roofs: Roofs | None = None,
    clean: bool = True,
    on_gpu: bool = False,
    gpu_time: GpuTime | None = None,
) -> Found:
    taken = figures.taken(make.record(), make.arrays(), batch=4, neighbours=())
    latency = figures.latency([taken], batch=4)[0] if clean else None
    memory = resources.memory([taken])[0] if clean else None
    return readings.found(
        what,
        order=make.order(),
        device=make.device(),
        on_gpu=on_gpu,
        latency=latency,
        gpu_time=gpu_time,
        memory=memory,
        roofs=roofs,
    )


def measured_roofs() -> Roofs:
    """10 GFLOP/s and 1 GB/s: a machine that is slow enough for the figures of `make`."""
    stream = Stream(
        working_set_bytes=1 << 30,
        triad_bytes_per_s=1e9,
        read_bytes_per_s=1e9,
        runs=5,
        taken_at="2026-11-30T02:00:00Z",
    )
    product = Product(
        flops_per_s=1e10, size=512, sizes=[512], runs=5, taken_at="2026-11-30T02:00:00Z"
    )
    return Roofs(
        system_id="5" * 32,
        system_class="test-cpu_1c",
        device="test cpu",
        threads=1,
        recipe="roofs/1",
        tried_at="2026-11-30T02:00:00Z",
        cache_bytes=1 << 20,
        products={"fp32": product},
        caches=[],
        memory=stream,
    )


def test_the_cost_is_per_batch_and_per_item() -> None:
    """FLOPs per item are a batch's over the batch, MACs are half of them (S1.3)."""
    cost = found(seen()).blocks["cost"]

    assert (65_536, 16_384, 8_192) == (
        cost.flops_per_batch,
        cost.flops_per_item,
        cost.macs_per_item,
    )


def test_a_profile_keeps_the_five_largest_layers_and_the_table_keeps_all() -> None:
    came = found(seen())

    layers = came.blocks["layers"]
    assert came.table is not None
    assert (2, 2, "first") == (layers.rows, len(came.table.rows), layers.hotspots[0].layer)
    assert 75.0 == pytest.approx(layers.hotspots[0].share_pct)
    assert 0.05 == pytest.approx(layers.perturbation, abs=1e-6)


def test_hotspots_are_ranked_by_medians_which_one_iteration_does_not_move() -> None:
    arrays = {name: np.array(each) for name, each in make.layer_arrays().items()}
    arrays["layer_ns"][1, 0] += 10**9
    arrays["profiled_ns"][0] += 10**9

    came = readings.found(
        Seen(record=make.instrumented(), arrays=arrays),
        order=make.order(),
        device=make.device(),
        on_gpu=False,
        latency=None,
        gpu_time=None,
        memory=None,
        roofs=None,
    )

    layers = came.blocks["layers"]
    assert came.table is not None
    assert came.table.rows[1].share_pct > 50
    assert not came.table.rows[1].reliable
    assert "first" == layers.hotspots[0].layer
    assert 75.0 == pytest.approx(layers.hotspots[0].share_pct, abs=1)


def test_a_profiled_iteration_is_no_latency() -> None:
    """Nothing of an instrumented child reaches the latency block (pitfall 2)."""
    assert not set(readings._BLOCKS) & {"latency", "throughput", "memory"}
    assert {"layers", "cost", "estimate", "bounds"} == set(found(seen()).blocks)


def test_measured_roofs_tell_what_limits_the_step() -> None:
    came = found(seen(), roofs=measured_roofs())

    estimate, bounds = came.blocks["estimate"], came.blocks["bounds"]
    assert ("measured", True) == (estimate.peak_source, estimate.not_measured)
    assert 65_536 / 1e10 * 1000 == pytest.approx(estimate.compute_ms)
    assert "overhead" == bounds.measured_bound
    assert 0 < bounds.mfu < 0.01


def test_without_roofs_there_is_no_estimate_and_a_word_how_to_get_them() -> None:
    came = found(seen())

    assert came.blocks["estimate"] is None
    assert "farm-worker roofs" in came.nulls["estimate"]
    assert came.blocks["bounds"].measured_bound is None
    assert came.blocks["bounds"].heuristic_bound is not None


def test_a_gpu_beside_a_cpu_slot_is_judged_as_what_it_is() -> None:
    """By hand a child leases CPU cores and computes on the GPU that the record names."""
    came = found(seen(resolved={"cuda_device": "no such GPU"}), on_gpu=True)

    assert came.table is not None
    assert "no such GPU" == came.table.device
    assert came.blocks["estimate"] is None
    assert "farm-worker roofs" not in came.nulls["estimate"]
    assert came.blocks["bounds"].measured_bound is None
    assert "not_probed: no trace" == came.nulls["bounds.measured_bound"]


H200 = {"cuda_device": "NVIDIA H200", "cuda_memory_bytes": str(140 << 30)}


def test_a_gpu_without_measured_peaks_has_those_of_its_data_sheet() -> None:
    """Found by its whole name; fp32 products count as tf32 only where torch was set to that."""
    came = found(seen(resolved=H200), on_gpu=True)
    fewer = found(seen(resolved=H200, precision_observed={"matmul_fp32": "high"}), on_gpu=True)

    estimate, bounds = came.blocks["estimate"], came.blocks["bounds"]
    assert ("datasheet", "H200-SXM", "fp32") == (
        estimate.peak_source,
        estimate.spec,
        estimate.dtype,
    )
    assert pytest.approx(66.9e12) == estimate.peak_flops_per_s
    assert pytest.approx(4.8e12) == estimate.peak_bytes_per_s
    assert 0 < bounds.mfu < 1
    assert pytest.approx(494.7e12) == fewer.blocks["estimate"].peak_flops_per_s


def test_a_share_of_the_peak_is_of_the_time_on_the_device_where_that_was_taken() -> None:
    """The wall also holds the way to the device and back, in which nothing is computed."""
    half = found(seen(resolved=H200), on_gpu=True).blocks["bounds"]
    p50_ms = figures.latency(
        [figures.taken(make.record(), make.arrays(), batch=4, neighbours=())], batch=4
    )[0].p50_ms
    device = GpuTime(
        n=10,
        p50_ms=p50_ms / 2,
        p50_lo_ms=None,
        p50_hi_ms=None,
        std_ms=None,
        enqueue_p50_ms=None,
        enqueue_bound=False,
        reliable=True,
    )

    whole = found(seen(resolved=H200), on_gpu=True, gpu_time=device).blocks["bounds"]

    assert pytest.approx(2 * half.mfu) == whole.mfu
    assert half.gflops_per_second == whole.gflops_per_second


def test_measured_peaks_of_a_gpu_come_before_its_data_sheet() -> None:
    came = found(seen(resolved=H200), roofs=measured_roofs(), on_gpu=True)

    assert ("measured", 1e10) == (
        came.blocks["estimate"].peak_source,
        came.blocks["estimate"].peak_flops_per_s,
    )


@pytest.mark.parametrize(
    ("resolved", "reason"),
    [
        ({"cuda_device": "NVIDIA H200 MIG 1g.18gb"}, "unknown_device: no row for"),
        (H200 | {"cuda_memory_bytes": str(18 << 30)}, "unknown_device: H200-SXM has 141 GB"),
        ({}, "unknown_device: no row for 'test cpu'"),
    ],
)
def test_a_gpu_that_is_not_that_of_the_table_has_no_peak_and_the_reason(resolved, reason) -> None:
    """A slice of one, or one that reports other memory, is another device."""
    came = found(seen(resolved=resolved), on_gpu=True)

    assert came.blocks["estimate"] is None
    assert came.nulls["estimate"].startswith(reason)
    assert came.nulls["bounds.mfu"].startswith(reason)


@pytest.mark.seed("S1.45")
def test_a_cpu_never_has_the_peaks_of_a_data_sheet() -> None:
    """Whatever GPU stands beside it: a CPU has measured peaks or none."""
    came = found(seen(resolved=H200))

    assert came.blocks["estimate"] is None
    assert "farm-worker roofs" in came.nulls["estimate"]


def test_what_was_not_asked_for_is_null_with_that_reason() -> None:
    came = found(None)

    assert dict.fromkeys(("layers", "cost", "estimate", "bounds")) == came.blocks
    assert {"not_requested"} == set(came.nulls.values())


def test_a_function_has_neither_layers_nor_flops() -> None:
    """`not_applicable`, as the child says, in every block (S1.7)."""
    reasons = {"layers": "not_applicable: a function", "flops": "not_applicable: a function"}

    came = found(seen(layers=None, cost=None, reasons=reasons))

    assert {"not_applicable: a function"} == set(came.nulls.values())


@pytest.mark.parametrize(("kind", "code"), [("timeout", "timed_out"), ("crashed", "phase_failed")])
def test_a_child_that_died_costs_its_own_blocks(kind: str, code: str) -> None:
    came = found(Seen(failure=Failure(kind=kind, phase="layers", message="no")))

    assert {f"{code}: {kind} in phase layers"} == set(came.nulls.values())


def test_an_unknown_count_is_null_per_item_as_well() -> None:
    reading = CostReading(
        flops_status="partial", reasons={"flops_per_batch": "not_supported: nothing was counted"}
    )

    came = found(seen(cost=reading))

    for name in ("flops_per_batch", "flops_per_item", "macs_per_item"):
        assert "not_supported: nothing was counted" == came.nulls[f"cost.{name}"]


def test_without_clean_children_nothing_says_what_limits_the_step() -> None:
    came = found(seen(), roofs=measured_roofs(), clean=False)

    assert (None, "not_requested") == (came.blocks["bounds"], came.nulls["bounds"])


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("roofs", [None, measured_roofs()])
def test_every_null_of_the_blocks_has_a_reason_and_every_reason_a_null(
    roofs: Roofs | None, on_gpu: bool
) -> None:
    """As the encoder of a profile demands it."""
    for what in (
        seen(),
        seen(resolved=H200),
        None,
        seen(cost=None, reasons={"flops": "error"}),
    ):
        came = found(what, roofs=roofs, on_gpu=on_gpu)
        plain = {name: msgspec.to_builtins(each) for name, each in came.blocks.items()}

        assert set(came.nulls) == set(schema.null_paths(plain))


def test_peaks_of_a_smaller_working_set_hold_for_work_that_fits_into_it() -> None:
    """What a small model moves is held against the cache's stream, as `hardware.peaks` chooses."""
    roofs = measured_roofs()
    assert roofs.memory is not None
    cache = msgspec.structs.replace(
        roofs.memory, working_set_bytes=1 << 12, triad_bytes_per_s=5e9, read_bytes_per_s=5e9
    )
    both = msgspec.structs.replace(roofs, caches=[cache])

    assert 5e9 == found(seen(), roofs=both).blocks["estimate"].peak_bytes_per_s
