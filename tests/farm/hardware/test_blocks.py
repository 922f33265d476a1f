"""The laws of the blocks `estimate` and `bounds`: what follows, and why something is null."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.hardware import GPUSpec, Times, Work, bounds, chosen, estimate, table
from farm.hardware.blocks import Reasons
from farm.schema import NULL_CODES, Bounds, Estimate

A100 = table()["A100-40GB-SXM"].spec
CPU = GPUSpec(
    name="test cpu", peak_flops_per_s={"fp32": 1e11}, peak_bytes_per_s=1e10, source="measured"
)
WORK = Work(flops=187.3e9, moved_bytes=1.555e9)
TIMES = Times(p50_ms=20.0, peak_memory_bytes=1024 * 2**20)


def nulls(block: Estimate | Bounds) -> set[str]:
    return set(schema.null_paths(msgspec.to_builtins(block)))


def judged(times: Times = TIMES, spec: GPUSpec | None = CPU, work: Work = WORK) -> tuple[
    Bounds, Reasons
]:  # fmt: skip
    found, why = estimate(work, spec, dtype="fp32", device="test")
    return bounds(work, found, times, reasons=why)


# ── estimate ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S1.4", "S2.8")
def test_an_estimate_is_marked_as_not_measured_and_names_its_peaks() -> None:
    found, why = estimate(WORK, A100, dtype="fp32")

    assert {} == why
    assert (True, "A100-40GB-SXM", "fp32", "datasheet") == (
        found.not_measured,
        found.spec,
        found.dtype,
        found.peak_source,
    )
    assert found.compute_ms is not None
    assert (9.6051, 1.0, "compute") == (
        round(found.compute_ms, 4),
        found.memory_ms,
        found.roofline_bound,
    )
    assert found.compute_ms == found.roofline_ms


def test_the_tf32_setting_decides_which_fp32_peak_counts() -> None:
    found, _ = estimate(WORK, A100, dtype="fp32", tf32=True)

    assert ("tf32", 156e12) == (found.dtype, found.peak_flops_per_s)


def test_an_unknown_device_has_no_estimate_and_says_so() -> None:
    """No peak is borrowed from a device of the same family."""
    found, why = estimate(
        WORK, None, dtype="fp32", device="NVIDIA H20", reason="unknown_device: no row"
    )

    assert "NVIDIA H20" == found.spec
    assert found.arithmetic_intensity_flop_per_byte is not None
    assert nulls(found) == set(why)
    assert {"unknown_device: no row"} == set(why.values())


def test_a_format_that_the_device_lacks_leaves_the_memory_side() -> None:
    found, why = estimate(WORK, table()["T4"].spec, dtype="bf16")

    assert found.memory_ms is not None
    assert "datasheet" == found.peak_source
    assert "not_supported: T4 has no bf16 peak" == why["compute_ms"]
    assert "memory_ms" not in why


def test_work_that_was_not_counted_keeps_its_own_reason() -> None:
    work = Work(flops=None, moved_bytes=5.0, reasons={"flops": "not_supported: custom op"})

    found, why = estimate(work, A100, dtype="fp16")

    assert 312e12 == found.peak_flops_per_s
    assert "not_supported: custom op" == why["compute_ms"] == why["roofline_ms"]


@given(
    st.one_of(st.none(), st.floats(0, 1e15)),
    st.one_of(st.none(), st.floats(0, 1e12)),
    st.sampled_from([None, CPU, A100, table()["T4"].spec]),
    st.sampled_from(["fp32", "bf16", "fp8", "unspecified"]),
    st.booleans(),
)
def test_nulls_of_an_estimate_are_its_reasons(
    flops: float | None, moved: float | None, spec: GPUSpec | None, dtype: str, tf32: bool
) -> None:
    """Exactly, each a code of the closed list, whatever is unknown."""
    work = Work(flops=flops, moved_bytes=moved)

    found, why = estimate(work, spec, dtype=dtype, tf32=tf32, device="test")

    assert nulls(found) == set(why)
    assert {each.partition(":")[0] for each in why.values()} <= NULL_CODES


# ── which peaks ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S1.45")
def test_a_gpu_beside_a_cpu_never_lends_its_peaks() -> None:
    """A visible but unused GPU is not shown as measured hardware."""
    assert chosen(on_gpu=False, measured=None, listed=A100, dtype="fp32") is None
    assert CPU is chosen(on_gpu=False, measured=CPU, listed=A100, dtype="fp32")


def test_measured_peaks_come_before_the_table_where_they_hold_the_format() -> None:
    assert CPU is chosen(on_gpu=True, measured=CPU, listed=A100, dtype="fp32")
    assert A100 is chosen(on_gpu=True, measured=CPU, listed=A100, dtype="bf16")
    assert A100 is chosen(on_gpu=True, measured=None, listed=A100, dtype="fp32")
    assert chosen(on_gpu=True, measured=None, listed=None, dtype="fp32") is None


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.20")
def test_bounds_compare_with_the_device_s_peaks() -> None:
    """10¹¹ FLOP/s for 2 s are 2·10¹¹ FLOPs, of which 1.873·10¹¹ were done."""
    block, why = judged(Times(p50_ms=2000.0, peak_memory_bytes=1024 * 2**20))

    assert {} == why
    assert (0.9365, 0.07775) == (round(block.mfu or 0, 6), round(block.mbu or 0, 6))
    assert ("compute", 93.65, 512.0, "compute") == (
        block.measured_bound,
        block.gflops_per_second,
        block.memory_bandwidth_mbs,
        block.heuristic_bound,
    )
    assert block.roof_violation is False


def test_a_step_that_beats_its_roof_concludes_nothing_from_it() -> None:
    block, why = judged(Times(p50_ms=20.0, peak_memory_bytes=2**20))

    assert block.roof_violation
    assert {"measured_bound", "mfu", "mbu"} == set(why) == nulls(block)
    assert {"error"} == {each.partition(":")[0] for each in why.values()}
    assert "compute" == block.heuristic_bound


def test_gpu_time_counts_before_the_latency_but_not_for_the_rule_of_thumb() -> None:
    times = Times(p50_ms=4000.0, gpu_time_ms=2000.0, on_gpu=True, busy=0.9)

    block, why = judged(times)

    assert (0.9365, "compute") == (round(block.mfu or 0, 6), block.measured_bound)
    assert 46.825 == block.gflops_per_second
    assert {"memory_bandwidth_mbs": "not_probed", "heuristic_bound": "not_probed"} == why


def test_a_gpu_without_a_trace_keeps_its_shares() -> None:
    block, why = judged(Times(p50_ms=2000.0, on_gpu=True, peak_memory_bytes=1.0))

    assert block.mfu is not None
    assert {"measured_bound": "not_probed: no trace"} == why


def test_the_four_words_stay_apart() -> None:
    """A roofline may say compute where the measured bound says overhead (C10)."""
    found, why = estimate(WORK, CPU, dtype="fp32")
    block, _ = bounds(WORK, found, Times(p50_ms=9000.0, peak_memory_bytes=9e12), reasons=why)

    assert ("compute", "overhead", "memory") == (
        found.roofline_bound,
        block.measured_bound,
        block.heuristic_bound,
    )


AMOUNT = st.one_of(st.none(), st.floats(1, 1e15))
TIME = st.one_of(st.none(), st.floats(1e-3, 1e7))


@given(AMOUNT, AMOUNT, st.sampled_from([None, CPU, A100]), st.sampled_from(["fp32", "fp8"]),
       st.builds(Times, p50_ms=TIME, gpu_time_ms=TIME, on_gpu=st.booleans(),
                 busy=st.one_of(st.none(), st.floats(0, 1)), peak_memory_bytes=AMOUNT))  # fmt: skip
def test_nulls_of_bounds_are_their_reasons(
    flops: float | None, moved: float | None, spec: Any, dtype: str, times: Times
) -> None:
    work = Work(flops=flops, moved_bytes=moved)
    found, reasons = estimate(work, spec, dtype=dtype, device="test")

    block, why = bounds(work, found, times, reasons=reasons)

    assert nulls(block) == set(why)
    assert {each.partition(":")[0] for each in why.values()} <= NULL_CODES
    if not times.on_gpu:
        assert block.measured_bound not in ("launch", "transfer")
