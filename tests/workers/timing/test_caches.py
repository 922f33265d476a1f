"""What an iteration finds in the cache."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.fakes import FakeClock, FakeKernels, FakeStream
from workers.timing import host_flush, pool_size, rotating, rotation, timed_after

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def test_a_flush_is_over_before_the_clock_starts() -> None:
    """Its time stands in no sample, though the device writes it after the host has gone on."""
    device = FakeStream(FakeClock())
    flush = FakeKernels(device, host_ns=1_000, device_ns=700_000)
    step = FakeKernels(device, host_ns=1_000, device_ns=30_000)
    into = array("q", [0] * 4)

    timed_after(flush, step, device.synchronize, clock=device.clock, into=into, begin=1, end=4)

    assert [0, 31_000, 31_000, 31_000] == list(into)
    assert (3, 3) == (flush.calls, step.calls)


def test_the_output_is_released_after_the_clock_stopped() -> None:
    """A finaliser that takes time is not part of the step (pitfall 20)."""
    clock = FakeClock()
    into = array("q", [0] * 3)

    class Slow:
        def __del__(self) -> None:
            clock.advance(50_000)

    def step() -> object:
        clock.advance(10)
        return Slow()

    timed_after(lambda: None, step, None, clock=clock, into=into, begin=0, end=3)

    assert [10, 10, 10] == list(into)


def test_a_host_flush_writes_as_much_as_the_cache_holds() -> None:
    """Every call writes the whole buffer anew, and allocates nothing."""
    flush = host_flush(64 * KIB)

    first, second = flush(), flush()

    assert first is second
    assert 64 * KIB == first.nbytes  # type: ignore[attr-defined]
    assert {2} == set(first.tolist())  # type: ignore[attr-defined]


@given(each=st.integers(1, 4 * GIB), cache=st.integers(0, 2 * GIB))
def test_a_pool_is_twice_the_cache_or_a_gibibyte(each: int, cache: int) -> None:
    """At least two inputs and twice the cache, unless that is above 1 GiB; never above it but for
    a single input."""
    count = pool_size(each, cache_bytes=cache)

    assert count == 1 or count * each <= GIB
    assert count * each >= 2 * cache or (count + 1) * each > GIB
    assert count >= 2 or 2 * each > GIB


def test_a_pool_holds_different_inputs_and_a_step_takes_them_in_turn() -> None:
    """Each is made once, by its index, and all come round before one comes again."""
    made = rotation(lambda index: index, each_bytes=MIB, cache_bytes=3 * MIB // 2)
    step = rotating([lambda index=index: index for index in made])  # type: ignore[misc]

    assert [0, 1, 2] == made
    assert [0, 1, 2, 0, 1, 2, 0] == [step() for _ in range(7)]


@pytest.mark.parametrize(("each", "expected"), [(GIB, 1), (GIB // 2 + 1, 1), (GIB // 2, 2)])
def test_inputs_too_large_for_two_do_not_rotate(each: int, expected: int) -> None:
    """One input above half a gibibyte is a pool by itself."""
    assert expected == pool_size(each, cache_bytes=32 * MIB)
