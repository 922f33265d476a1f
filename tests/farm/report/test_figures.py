"""Figures are those of the profile, and what is null says why."""

from hypothesis import given
from hypothesis import strategies as st

from farm.report.figures import figures, reasons_of
from farm.report.record import Figures
from tests.farm import make


def test_figures_are_those_of_the_profile():
    """A report rounds nothing and recomputes nothing."""
    profile = make.profile(p50_ms=10.0, half_rel=0.01)

    found = figures(profile, wanted=3)

    assert (10.0, 9.9, 10.1) == (found.p50_ms, found.p50_lo_ms, found.p50_hi_ms)
    assert max(10.1 - 10.0, 10.0 - 9.9) == found.p50_half_ms
    assert profile.throughput.throughput_items_per_s == found.throughput_items_per_s
    assert profile.memory.cpu_rss_peak_bytes == found.cpu_rss_peak_bytes


def test_repeats_count_those_that_can_be_used():
    """A repeat that was disturbed is no evidence."""
    found = figures(make.profile(repeats=3, repeat_flags=[["contended"]]), wanted=3)

    assert (2, 3) == (found.repeats, found.repeats_wanted)


def test_a_profile_that_did_not_end_well_has_no_figures():
    """A failure is an answer in words."""
    assert None is figures(make.profile(status="failed"), wanted=3)


@given(st.integers(1, 4), st.integers(6, 400), st.none() | st.integers(1, 2**40))
def test_every_null_has_the_reason_that_the_profile_gives(repeats, n, rss):
    """No null without a reason, no reason without a null."""
    profile = make.profile(repeats=repeats, n=n, rss_bytes=rss)

    found = figures(profile, wanted=3)
    reasons = reasons_of(profile, found)

    nulls = {name for name in Figures.__struct_fields__ if getattr(found, name) is None}
    assert nulls == set(reasons)
    assert set(reasons.values()) <= {"single_repeat", "below_resolution", "no_permission"}
