"""A scripted queue behaves as a device's does."""

import pytest

from workers.fakes import FakeClock, FakeKernels, FakeStream


def test_the_host_goes_on_while_the_device_works() -> None:
    """A launch costs the host nothing but its own time; an event happens when the work has."""
    device = FakeStream(FakeClock(1_000))
    begin, end = device.event(), device.event()

    device.record(begin)
    device.launch(500)
    device.launch(200)
    device.record(end)

    assert (1_000, False) == (device.clock.now_ns, device.done(end))
    device.wait(end)
    assert (1_700, True, 700) == (
        device.clock.now_ns,
        device.done(end),
        device.elapsed_ns(begin, end),
    )


def test_a_full_queue_holds_the_host_back() -> None:
    """The launch after the last place waits until the oldest work has ended."""
    device = FakeStream(FakeClock(), depth=2)

    for _ in range(3):
        device.launch(100)

    assert (100, 2) == (device.clock.now_ns, device.most_queued)


def test_an_idle_device_starts_when_work_comes() -> None:
    """Time without work is no work: the queue does not begin before its launch."""
    device = FakeStream(FakeClock())
    device.launch(100)
    device.clock.advance(1_000)
    device.launch(100)

    device.synchronize()

    assert 1_100 == device.clock.now_ns


def test_event_times_come_in_quanta() -> None:
    """As on real devices: half a microsecond."""
    device = FakeStream(FakeClock(), quantum_ns=500)
    begin, end = device.event(), device.event()

    device.record(begin)
    device.launch(1_740)
    device.record(end)
    device.synchronize()

    assert 1_500 == device.elapsed_ns(begin, end)


def test_an_event_that_has_not_happened_has_no_time() -> None:
    """Never recorded, or still in the queue: reading it is a mistake of the caller."""
    device = FakeStream(FakeClock())
    begin, end = device.event(), device.event()
    device.record(begin)
    device.launch(100)
    device.record(end)

    with pytest.raises(RuntimeError, match="never recorded"):
        device.wait(device.event())
    with pytest.raises(RuntimeError, match="not happened yet"):
        device.elapsed_ns(begin, end)


def test_a_step_that_waits_returns_finished_work() -> None:
    """As one does that reads a number back."""
    device = FakeStream(FakeClock())
    step = FakeKernels(device, launches=3, host_ns=10, device_ns=100, waits=True)

    step()

    assert 310 == device.clock.now_ns
