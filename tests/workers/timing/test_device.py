"""A device that works on its own, timed: what events see, what the host sees, and who is right."""

import subprocess
import sys
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers import phases
from workers.fakes import FakeClock, FakeKernels, FakeStream
from workers.timing import (
    completions,
    gpu_time_pass,
    is_long_enough,
    pass_iterations,
    pipelined,
)

US, MS = 1_000, 1_000_000


def stream(**changes: int | bool) -> FakeStream:
    return FakeStream(FakeClock(), **changes)  # type: ignore[arg-type]


def test_a_missing_sync_is_seen() -> None:
    """The unsynchronised loop times the queueing, the synchronised one the work (pitfall 1)."""
    unsynced, synced = array("q", [0] * 5), array("q", [0] * 5)
    one, two = stream(), stream()

    phases.loop(FakeKernels(one, host_ns=10 * US, device_ns=MS), None, one.clock, unsynced, 0, 5)
    step = FakeKernels(two, host_ns=10 * US, device_ns=MS)
    phases.loop(step, two.synchronize, two.clock, synced, 0, 5)

    assert [10 * US] * 5 == list(unsynced)
    assert [MS + 10 * US] * 5 == list(synced)


def test_event_pairs_time_the_device_and_the_host_apart() -> None:
    """Device time without the host's, host time without the device's, all 200 of a pass."""
    device = stream()
    step = FakeKernels(device, host_ns=10 * US, device_ns=500 * US)

    found = gpu_time_pass(step, device, clock=device.clock, iterations=1_000)

    assert found.gpu_time_ns is not None
    assert found.enqueue_ns is not None
    # The queue of the first iteration is empty, so the device waits for its launch.
    assert [510 * US] + [500 * US] * 199 == list(found.gpu_time_ns)
    assert [10 * US] * 200 == list(found.enqueue_ns)
    assert (200, False, False, "") == (
        step.calls,
        found.enqueue_bound,
        found.behind_spin,
        found.reason,
    )


def test_the_pass_waits_for_the_device_only_at_its_ends() -> None:
    """Events are read after one final synchronisation: one more would empty the queue."""
    device = stream()

    gpu_time_pass(
        FakeKernels(device, host_ns=US, device_ns=MS), device, clock=device.clock, iterations=50
    )

    assert 2 == device.synchronized


def test_a_step_bound_by_queueing_is_timed_behind_a_blocking_kernel() -> None:
    """Between events lie the host's gaps; behind the kernel there are none, and the flag is set."""
    device = stream()
    step = FakeKernels(device, launches=20, host_ns=10 * US, device_ns=4 * US)

    found = gpu_time_pass(step, device, clock=device.clock)

    assert found.gpu_time_ns is not None
    assert {80 * US} == set(found.gpu_time_ns)
    assert (True, True) == (found.enqueue_bound, found.behind_spin)
    assert found.enqueue_ns is not None
    assert {200 * US} == set(found.enqueue_ns)


def test_a_full_launch_queue_is_not_mistaken_for_slow_queueing() -> None:
    """A pass of 10,000 launches is held back to the device's pace, and yet not bound by queueing.

    CUDA's queue holds some 1,000 launches (NVIDIA forum 68937).
    """
    device = stream(depth=1_000)
    step = FakeKernels(device, launches=50, host_ns=5 * US, device_ns=20 * US)

    found = gpu_time_pass(step, device, clock=device.clock)

    assert found.gpu_time_ns is not None
    assert found.enqueue_ns is not None
    assert {MS} == set(found.gpu_time_ns)
    assert 250 * US == sorted(found.enqueue_ns)[100]
    assert (False, True) == (found.enqueue_bound, found.behind_spin)


@pytest.mark.parametrize(
    ("device", "waits", "code"),
    [
        (stream(can_spin=False), False, "not_supported"),
        (stream(), True, "below_resolution"),
        (stream(depth=8), False, "below_resolution"),
    ],
)
def test_device_time_is_null_where_the_queue_cannot_run_ahead(
    device: FakeStream, waits: bool, code: str
) -> None:
    """No blocking kernel, a step that waits itself, a step larger than the queue: null and why."""
    step = FakeKernels(device, launches=20, host_ns=10 * US, device_ns=4 * US, waits=waits)

    found = gpu_time_pass(step, device, clock=device.clock, iterations=20)

    assert found.gpu_time_ns is None
    assert code == found.reason.partition(":")[0]
    assert (True, False) == (found.enqueue_bound, found.reliable)
    assert found.enqueue_ns is not None


@pytest.mark.parametrize("host_us", [10, 400])
def test_what_prepares_an_iteration_is_in_neither_time(host_us: int) -> None:
    """A flush lies between the pairs; one that lets the queue run dry is no part of them either."""
    device = stream()
    step = FakeKernels(device, host_ns=host_us * US, device_ns=300 * US)
    flush = FakeKernels(device, host_ns=900 * US, device_ns=50 * US)

    found = gpu_time_pass(step, device, clock=device.clock, iterations=30, prepare=flush)

    assert found.gpu_time_ns is not None
    assert found.enqueue_ns is not None
    assert {host_us * US} == set(found.enqueue_ns)
    assert {300 * US} == set(found.gpu_time_ns)
    assert (host_us > 300, True) == (found.enqueue_bound, found.behind_spin)


def test_a_device_without_events_has_no_device_time() -> None:
    """Null with `not_supported`, and no step is run for it."""
    ran: list[int] = []

    found = gpu_time_pass(lambda: ran.append(1), None, clock=FakeClock())

    assert (None, None) == (found.gpu_time_ns, found.enqueue_ns)
    assert "not_supported" == found.reason.partition(":")[0]
    assert [] == ran


@pytest.mark.parametrize(("device_us", "reliable"), [(49, False), (50, True)])
def test_device_time_below_fifty_microseconds_is_not_reliable(
    device_us: int, reliable: bool
) -> None:
    """An event's quantum of 0.5 µs is over 1 % of it."""
    device = stream(quantum_ns=500)
    step = FakeKernels(device, host_ns=US, device_ns=device_us * US)

    found = gpu_time_pass(step, device, clock=device.clock)

    assert reliable == found.reliable


@given(
    launches=st.integers(1, 60),
    host_us=st.integers(1, 40),
    device_us=st.integers(1, 200),
    depth=st.integers(130, 2_000),
)
def test_device_time_is_the_work_alone(
    launches: int, host_us: int, device_us: int, depth: int
) -> None:
    """Whoever is faster and however small the queue, if it holds two steps: not the host's gaps.

    The first iteration may have waited for its launch.
    """
    device = stream(depth=depth)
    step = FakeKernels(device, launches=launches, host_ns=host_us * US, device_ns=device_us * US)

    found = gpu_time_pass(step, device, clock=device.clock, iterations=20)

    assert found.gpu_time_ns is not None
    assert {launches * device_us * US} == set(found.gpu_time_ns[1:])


@pytest.mark.parametrize(("typical_ms", "expected"), [(0.0, 200), (1.0, 200), (50.0, 40), (2e4, 6)])
def test_a_slow_step_gets_fewer_event_pairs(typical_ms: float, expected: int) -> None:
    """A budget of 2 s, at most 200, at least 6 (rule 6)."""
    assert expected == pass_iterations(typical_ms * MS, budget_ns=2_000 * MS)


@pytest.mark.parametrize("host_us", [10, 900, 5_000])
def test_at_most_four_iterations_are_in_flight(host_us: int) -> None:
    """Whoever is faster: the queue never holds more than four."""
    device = stream()
    step = FakeKernels(device, host_ns=host_us * US, device_ns=MS)

    pipelined(step, device, clock=device.clock)

    assert device.most_queued <= 4


@pytest.mark.parametrize("host_us", [10, 900, 3_000])
def test_completions_come_at_the_pace_of_the_slower_side(host_us: int) -> None:
    """Host and device overlap: 1 ms a piece, not 1.9, and one stamp per iteration, in order.

    The first stamps too, which the host sees late because it is still queueing.
    """
    device = stream()
    step = FakeKernels(device, host_ns=host_us * US, device_ns=MS)

    stamps = pipelined(step, device, clock=device.clock)

    assert step.calls == len(stamps)
    assert {max(host_us, 1_000) * US} == {b - a for a, b in pairwise(stamps)}


def test_the_pipelined_loop_never_waits_for_the_whole_device() -> None:
    """One synchronisation before the first iteration, none per iteration (pitfall 6)."""
    device = stream()

    pipelined(FakeKernels(device, host_ns=US, device_ns=MS), device, clock=device.clock)

    assert 1 == device.synchronized


@pytest.mark.seed("S4.25")
@pytest.mark.parametrize(("host_us", "pace_us"), [(10, 1_000), (900, 1_000), (3_000, 3_000)])
def test_steps_of_a_window_last_from_one_completion_to_the_next(host_us: int, pace_us: int) -> None:
    """On the device's clock: a host that runs ahead of it, or behind, changes nothing else."""
    device = stream()
    step = FakeKernels(device, host_ns=host_us * US, device_ns=MS)
    device.launch(7 * MS)  # of before, and no part of the window

    stamps = completions(step, device, 20, clock=device.clock)

    assert (20, 21, 7 * MS) == (step.calls, len(stamps), stamps[0])
    first, *others = (b - a for a, b in pairwise(stamps))
    assert (host_us * US + MS, {pace_us * US}) == (first, set(others))


def test_nothing_waits_for_the_device_within_a_window() -> None:
    """Once before the first step and once behind the last: the host is all ahead of it."""
    device, queued = stream(), []
    step = FakeKernels(device, host_ns=US, device_ns=MS)

    completions(step, device, 50, clock=device.clock, progress=queued.append)

    assert (2, 50) == (device.synchronized, device.most_queued)
    assert list(range(1, 51)) == queued


def test_a_window_of_no_step_is_its_begin() -> None:
    device = stream()

    assert [0] == list(completions(lambda: None, device, 0, clock=device.clock))


@pytest.mark.parametrize(
    ("step_ms", "at_least_s", "fewest", "most"),
    [(1, 1, 1_000, 1_010), (100, 1, 30, 34), (500, 1, 20, 24), (4_000, 1, 5, 9), (1, 5, 5e3, 5010)],
)
def test_a_pipelined_pass_is_as_long_as_throughput_and_energy_ask(
    step_ms: int, at_least_s: int, fewest: int, most: int
) -> None:
    """1 s and 30 iterations; slow steps until 10 s, then at least 5; an energy window longer."""
    device = stream()
    step = FakeKernels(device, host_ns=US, device_ns=step_ms * MS)

    stamps = pipelined(step, device, clock=device.clock, at_least_ns=at_least_s * 1_000 * MS)

    assert fewest <= len(stamps) <= most


def test_the_output_of_an_iteration_is_released_outside_its_queueing() -> None:
    """A finaliser that takes time is not the host time of a step (pitfall 20)."""
    device = stream()
    launch = FakeKernels(device, host_ns=10 * US, device_ns=500 * US)

    class Slow:
        def __del__(self) -> None:
            device.clock.advance(50 * MS)

    def step() -> object:
        launch()
        return Slow()

    found = gpu_time_pass(step, device, clock=device.clock, iterations=6)

    assert found.enqueue_ns is not None
    assert {10 * US} == set(found.enqueue_ns)


@pytest.mark.parametrize(
    ("done", "spent_s", "ends"),
    [
        *((1_000, 0.9, False), (29, 9.9, False), (30, 1.0, True)),
        *((30, 0.99, False), (5, 10.0, True), (4, 60.0, False), (5, 9.99, False)),
    ],
)
def test_a_throughput_pass_ends_after_thirty_or_after_five_once_its_budget_is_spent(
    done: int, spent_s: float, ends: bool
) -> None:
    """And never before its second is over (`measurement.md` §9)."""
    spent_ns = round(spent_s * 1e9)

    found = is_long_enough(done, spent_ns, at_least_ns=1_000 * MS, budget_ns=10_000 * MS)

    assert ends == found


def test_whoever_starts_children_imports_no_framework() -> None:
    """Neither timing, energy and telemetry nor the fakes bring torch into a parent (pitfall 8)."""
    program = (
        "import sys, workers.measure, workers.station, workers.timing, workers.energy, "
        "workers.telemetry, workers.fakes, workers.host.rapl, workers.host.thermal\n"
        "print([name for name in ('torch', 'onnxruntime', 'pynvml') if name in sys.modules])"
    )

    out = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True
    ).stdout

    assert "[]" == out.strip()
