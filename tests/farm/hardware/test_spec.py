"""The laws of a roofline: what it says of some work, and where it says nothing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.hardware import GPUSpec, RooflineBound, peak_format, roofline, uses_tf32

AMOUNTS = st.floats(1e-3, 1e18)
PEAKS = st.floats(1e3, 1e16)


def bound(
    flops: float | None, moved: float | None, peak: float | None, width: float | None
) -> RooflineBound:
    return RooflineBound(
        flops=flops, moved_bytes=moved, peak_flops_per_s=peak, peak_bytes_per_s=width
    )


def spec(**peaks: float) -> GPUSpec:
    return GPUSpec(
        name="test gpu", peak_flops_per_s=peaks, peak_bytes_per_s=1e9, source="datasheet"
    )


# ── the golden numbers G6 ────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S1.4")
@pytest.mark.parametrize(
    ("peak", "expected_ms"),
    [(19.5e12, 9.6051), (82.6e12, 2.2676), (5.3e12, 35.3396)],
    ids=["A100", "RTX 4090", "Orin"],
)
def test_187_gflop_in_fp32_take_what_the_peaks_say(peak: float, expected_ms: float) -> None:
    found = roofline(187.3e9, 1.0, spec=spec(fp32=peak), dtype="fp32")

    assert found.compute_ms is not None
    assert expected_ms == round(found.compute_ms, 4)
    assert found.not_measured is True


@pytest.mark.seed("S1.4")
def test_the_bound_is_the_larger_of_two_ideal_times() -> None:
    """100 GFLOP at 10 TFLOP/s and 1 GB at 100 GB/s: 10 ms each, which is compute."""
    even = bound(100e9, 1e9, 10e12, 100e9)
    wider = bound(100e9, 1.001e9, 10e12, 100e9)

    assert (10.0, 10.0, 10.0, "compute") == (
        even.compute_ms,
        even.memory_ms,
        even.roofline_ms,
        even.bound,
    )
    assert ("memory", wider.memory_ms) == (wider.bound, wider.roofline_ms)


@pytest.mark.seed("S2.8")
def test_below_the_ridge_bandwidth_is_the_limit() -> None:
    """1000 GFLOP/s and 200 GB/s meet at 5 FLOP/byte; an intensity of 2 allows 400 GFLOP/s."""
    found = bound(2e9, 1e9, 1000e9, 200e9)
    above = bound(6e9, 1e9, 1000e9, 200e9)

    assert (5.0, 2.0, 400e9) == (
        found.ridge_flop_per_byte,
        found.arithmetic_intensity_flop_per_byte,
        found.attainable_flops_per_s,
    )
    assert 1000e9 == above.attainable_flops_per_s


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────


@given(AMOUNTS, AMOUNTS, PEAKS, PEAKS)
def test_the_roof_is_one_line_however_it_is_asked(
    flops: float, moved: float, peak: float, width: float
) -> None:
    """Work at the attainable rate takes the roofline's time, and no rate exceeds the peak."""
    found = bound(flops, moved, peak, width)

    assert found.attainable_flops_per_s is not None
    assert found.roofline_ms is not None
    assert found.arithmetic_intensity_flop_per_byte is not None
    assert found.attainable_flops_per_s <= peak
    at_roof_ms = 1000 * flops / found.attainable_flops_per_s
    assert math.isclose(found.roofline_ms, at_roof_ms, rel_tol=1e-9)
    if not math.isclose(flops / moved, peak / width, rel_tol=1e-9):
        is_compute = flops / moved > peak / width
        assert ("compute" if is_compute else "memory") == found.bound


@given(*[st.one_of(st.none(), PEAKS)] * 4)
def test_what_is_not_known_is_never_a_number(
    flops: float | None, moved: float | None, peak: float | None, width: float | None
) -> None:
    found = bound(flops, moved, peak, width)

    assert (None in (flops, peak)) == (found.compute_ms is None)
    assert (None in (moved, width)) == (found.memory_ms is None)
    assert (None in (flops, moved)) == (found.arithmetic_intensity_flop_per_byte is None)
    assert (None in (peak, width)) == (found.ridge_flop_per_byte is None)
    for whole in (found.roofline_ms, found.bound, found.attainable_flops_per_s):
        assert (None in (flops, moved, peak, width)) == (whole is None)


def test_work_that_moves_nothing_has_no_intensity() -> None:
    found = bound(1e9, 0, 1e12, 1e9)

    assert found.arithmetic_intensity_flop_per_byte is None
    assert (1.0, 0.0, "compute") == (found.compute_ms, found.memory_ms, found.bound)


@pytest.mark.parametrize("peak", [0.0, -1.0, math.inf, math.nan])
def test_a_peak_that_is_none_is_refused(peak: float) -> None:
    with pytest.raises(ValueError, match="a peak of"):
        bound(1.0, 1.0, peak, 1.0)


# ── which peak ───────────────────────────────────────────────────────────────────────────────────


def test_fp32_follows_the_tf32_setting_where_there_is_such_a_unit() -> None:
    ampere, volta = spec(fp32=19.5e12, tf32=156e12), spec(fp32=15.7e12)

    assert ["fp32", "tf32"] == [peak_format(ampere, "fp32", tf32=on) for on in (False, True)]
    assert "fp32" == peak_format(volta, "fp32", tf32=True)
    assert "fp16" == peak_format(ampere, "fp16", tf32=True)
    assert 156e12 == roofline(1, 1, spec=ampere, dtype="fp32", tf32=True).peak_flops_per_s


@pytest.mark.parametrize(
    ("word", "expected"), [("highest", False), ("high", True), ("medium", True), ("", False)]
)
def test_tf32_is_what_torch_calls_less_than_the_highest_precision(
    word: str, expected: bool
) -> None:
    assert expected is uses_tf32(word)


def test_a_format_without_a_peak_has_no_compute_time() -> None:
    found = roofline(1e9, 1e6, spec=spec(fp32=1e12), dtype="bf16")

    assert (None, 1.0) == (found.compute_ms, found.memory_ms)
