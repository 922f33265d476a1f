"""Which iterations a slowed clock has touched."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.fakes import Disturbance, FakeClock, FakeSensors
from workers.telemetry import Sample, spans, take, throttled

MS, S = 1_000_000, 1_000_000_000


def sampled(script: list[Disturbance]) -> list[Sample]:
    clock = FakeClock()
    sensors = FakeSensors(clock, script)
    samples = []
    for _ in range(120):
        samples.append(take(sensors, at_ns=clock.now_ns))
        clock.advance(100 * MS)
    return samples


def iterations(count: int, each_ms: int) -> tuple[np.ndarray, np.ndarray]:
    return spans(np.full(count, each_ms * MS), begin_ns=S, end_ns=S + count * each_ms * MS)


@given(
    begin_ms=st.integers(1_000, 9_000),
    length_ms=st.integers(200, 900),
    bits=st.sampled_from([0x0, 0x8, 0x40]),
)
def test_iterations_in_a_dip_are_labelled_and_others_are_not(
    begin_ms: int, length_ms: int, bits: int
) -> None:
    """All that overlap it, none that ended 200 ms before it or began 200 ms after."""
    begin, end = begin_ms * MS, (begin_ms + length_ms) * MS
    slow = None if bits else 0.6 * 1.98e9
    samples = sampled([Disturbance(begin_ns=begin, end_ns=end, events=bits, sm_clock_hz=slow)])
    begins, ends = iterations(900, 10)

    marked = throttled(samples, begins_ns=begins, ends_ns=ends)

    assert marked[(ends > begin) & (begins < end)].all()
    assert not marked[(ends < begin - 200 * MS) | (begins > end + 200 * MS)].any()


def test_a_quiet_pass_has_no_throttled_iteration() -> None:
    """Nor has a power cap, which is how a device is meant to work."""
    capped = [Disturbance(begin_ns=3 * S, end_ns=9 * S, events=0x4)]
    begins, ends = iterations(900, 10)

    assert not throttled(sampled([]), begins_ns=begins, ends_ns=ends).any()
    assert not throttled(sampled(capped), begins_ns=begins, ends_ns=ends).any()


def test_iterations_fill_their_pass() -> None:
    """The time of the loop itself lies between them, an equal part before each."""
    begins, ends = spans(np.array([10, 30, 20]) * MS, begin_ns=S, end_ns=S + 90 * MS)

    assert [S + 10 * MS, S + 30 * MS, S + 70 * MS] == begins.tolist()
    assert [S + 20 * MS, S + 60 * MS, S + 90 * MS] == ends.tolist()


def test_a_pass_without_iterations_has_no_labels() -> None:
    """Nothing to place, nothing to label."""
    begins, ends = spans(np.zeros(0, dtype=np.int64), begin_ns=0, end_ns=S)

    assert (0, 0) == (len(begins), len(throttled(sampled([]), begins_ns=begins, ends_ns=ends)))
