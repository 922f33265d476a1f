"""The passes of a child against a simulated clock: what is recorded, and when they stop."""

import gc
import random
from typing import Any

import pytest

from farm.schema import Protocol
from tests.workers.clockwork import MS, FakeDevice, Machine, bench
from workers import phases
from workers.bench import (
    LABEL_ALLOC,
    LABEL_COMPILE,
    LABEL_GC,
    LABEL_PREEMPTED,
    LABEL_UNEXPLAINED,
    Bench,
    Samples,
)
from workers.energy import CounterGauge, Meter, update_period
from workers.fakes import FakeClock, FakeCounter, FakeKernels, PowerCurve


def test_every_iteration_is_recorded_in_order() -> None:
    """The samples are the steps, one by one, whatever they took."""
    took = [MS * (10 + i % 7) for i in range(40)]
    machine = Machine(lambda i: took[i])
    on, samples = bench(machine, asked=Protocol(iterations=40)), Samples()

    phases.latency(on, samples)

    assert took == list(samples.latency_ns)
    assert 40 == len(samples.labels)


def test_measuring_stops_at_a_look_once_the_median_is_known() -> None:
    """With `auto` the first power-of-two look with a narrow interval and 500 ms ends the pass."""
    machine = Machine(lambda i: 10 * MS + i % 3)
    on, samples = bench(machine), Samples()

    result = phases.latency(on, samples)

    assert 64 == len(samples.latency_ns)
    assert [] == result.flags
    assert result.half_width_ppm is not None
    assert result.half_width_ppm < 5_000


def test_the_budget_ends_a_pass_that_stays_vague() -> None:
    """At the budget the pass stops and says how well the median is known."""
    rng = random.Random(2)
    machine = Machine(lambda _i: int(MS * 100 * rng.uniform(0.5, 1.5)))
    on, samples = bench(machine), Samples()

    result = phases.latency(on, samples)

    assert ["precision_not_met"] == result.flags
    assert 10.0 <= machine.now / 1e9 <= 10.2


def test_a_very_slow_step_is_measured_six_times() -> None:
    """However slow the step, six iterations are taken and the pass ends (rule 6)."""
    machine = Machine(lambda _i: 8_000 * MS)
    on, samples = bench(machine), Samples()

    phases.latency(on, samples)

    assert [8_000 * MS] * 6 == list(samples.latency_ns)


def test_a_step_near_the_clock_is_timed_in_blocks() -> None:
    """Below 100 timer floors a sample is the mean of k steps, and the record says k."""
    machine = Machine(lambda _i: 500, read_ns=50)
    on, samples = bench(machine), Samples()
    on.typical_ns = 500.0

    result = phases.latency(on, samples)

    assert 50 == result.timer_floor_ns
    assert 10 == result.of_blocks
    assert "timer_limited" in result.flags
    assert 505 == samples.latency_ns[0]


def test_waiting_for_a_core_is_labelled_and_kept() -> None:
    """Iterations during which the thread waited carry the label; none is dropped."""
    machine = Machine(lambda _i: 10 * MS)

    def step() -> object:
        if 7 == machine.steps:
            machine.waited += 30 * MS
            machine.now += 30 * MS
        return machine.step()

    on, samples = bench(machine, asked=Protocol(iterations=20)), Samples()
    on.step = step

    phases.latency(on, samples)

    assert [7] == [i for i, bits in enumerate(samples.labels) if bits == LABEL_PREEMPTED]
    assert 40 * MS == samples.latency_ns[7]


def test_an_outlier_without_a_cause_is_labelled_unexplained() -> None:
    """Beyond ten robust deviations and nobody to blame: `unexplained`."""
    machine = Machine(lambda i: 10 * MS + (i % 5) * 1000 + (500 * MS if i == 11 else 0))
    on, samples = bench(machine, asked=Protocol(iterations=32)), Samples()

    phases.latency(on, samples)

    assert [11] == [i for i, bits in enumerate(samples.labels) if bits == LABEL_UNEXPLAINED]


@pytest.mark.parametrize(("step_ms", "intervals"), [(1, 999), (100, 29), (500, 19), (4_000, 4)])
def test_throughput_runs_a_second_or_long_enough_for_slow_steps(
    step_ms: int, intervals: int
) -> None:
    """At least 1 s and 30 iterations; slow steps up to the budget of 10 s, then at least 5."""
    machine = Machine(lambda _i: step_ms * MS)

    flow = phases.throughput(bench(machine), Samples())

    assert intervals == flow.intervals
    assert flow.seconds == pytest.approx(intervals * step_ms / 1000)
    assert flow.seconds <= (flow.edges[1].at_ns - flow.edges[0].at_ns) / 1e9


def test_the_peak_is_reset_before_the_memory_pass() -> None:
    """Memory is that of five iterations, not of loading (B34)."""
    machine = Machine(lambda _i: MS)

    reading = phases.memory(bench(machine))

    assert (["reset"], 5) == (machine.phases, machine.steps)
    assert 2 == reading.rss_peak_bytes


@pytest.mark.parametrize(("policy", "inside"), [("off", False), ("on", True)])
def test_the_collector_is_restored_after_a_timed_loop(policy: str, inside: bool) -> None:
    """`gc: off` holds inside the loop and nowhere else."""
    seen: list[bool] = []
    machine = Machine(lambda _i: MS)
    on = bench(machine, asked=Protocol(iterations=8, gc=policy))  # type: ignore[arg-type]
    on.step = lambda: seen.append(gc.isenabled()) or machine.step()  # type: ignore[func-returns-value]

    phases.latency(on, Samples())

    assert {inside} == set(seen)
    assert gc.isenabled()
    assert 0 == gc.get_freeze_count()


def test_the_output_is_released_after_the_clock_stopped() -> None:
    """A finaliser that takes time is not part of the step (pitfall 20)."""
    machine = Machine(lambda _i: MS)

    class Slow:
        def __del__(self) -> None:
            machine.now += 50 * MS

    def step() -> object:
        machine.step()
        return Slow()

    on, samples = bench(machine, asked=Protocol(iterations=10)), Samples()
    on.step = step

    phases.latency(on, samples)

    assert [MS] * 10 == list(samples.latency_ns)


def test_an_iteration_during_a_collection_is_labelled() -> None:
    """`gc: on` lets the collector run, and says in which iterations it did."""
    machine = Machine(lambda _i: MS)
    on, samples = bench(machine, asked=Protocol(gc="on", iterations=10)), Samples()

    def step() -> object:
        if machine.steps == 4:
            gc.collect()
        return machine.step()

    on.step = step
    was = gc.isenabled()
    gc.disable()
    try:
        phases.latency(on, samples)
    finally:
        (gc.enable if was else gc.disable)()

    assert [4] == [index for index, bits in enumerate(samples.labels) if bits & LABEL_GC]


def test_a_compile_inside_the_pass_is_labelled_and_flagged() -> None:
    """A model that compiles again at iteration 50 was not measured as it will run."""
    machine = Machine(lambda _i: MS)
    on, samples = bench(machine, asked=Protocol(iterations=80)), Samples()

    class Counted:
        def events(self) -> int:
            return 1 + (machine.steps > 50)

        def recompiles(self) -> int:
            return 0

    on.compiles = Counted()

    found = phases.latency(on, samples)

    assert "recompiling" in found.flags
    assert [50] == [index for index, bits in enumerate(samples.labels) if bits & LABEL_COMPILE]


def test_a_growing_allocator_is_flagged() -> None:
    """Memory that the device's allocator reserves during the pass is time that it took."""
    machine = Machine(lambda _i: MS)
    on, samples = bench(machine, asked=Protocol(iterations=20)), Samples()
    on.accelerator = FakeDevice(lambda: 1 << (20 + (machine.steps > 7)))

    found = phases.latency(on, samples)

    assert "allocator_growth" in found.flags
    assert [7] == [index for index, bits in enumerate(samples.labels) if bits & LABEL_ALLOC]


# ── a device with a queue of its own ─────────────────────────────────────────────────────────────


def device_bench(*, host_ns: int, device_ns: int, **more: Any) -> tuple[Bench, FakeDevice]:
    """A bench whose steps queue one kernel of a length."""
    device = FakeDevice()
    step = FakeKernels(device, host_ns=host_ns, device_ns=device_ns)
    machine = Machine(lambda _i: 0)
    on = bench(machine, **more)
    on.step, on.sync, on.accelerator = step, device.synchronize, device
    on.clock = device.clock
    return on, device


def test_the_latency_of_a_device_waits_for_it_and_its_own_time_does_not() -> None:
    """Three metrics, never mixed: host clock with waiting, device clock, queueing (§4)."""
    on, device = device_bench(host_ns=100_000, device_ns=5 * MS, asked=Protocol(iterations=20))
    samples = Samples()

    phases.latency(on, samples)
    on.typical_ns = 5.1 * MS
    reading = phases.device_time(on, device, samples)

    assert 5.1 * MS == pytest.approx(samples.latency_ns[0], rel=0.01)
    assert 5.0 * MS == pytest.approx(samples.gpu_time_ns[-1], rel=0.01)
    assert 0.1 * MS == pytest.approx(samples.enqueue_ns[0], rel=0.01)
    assert (False, True, "") == (reading.enqueue_bound, reading.reliable, reading.reason)


def test_a_loop_that_forgets_to_wait_measures_the_queueing() -> None:
    """The pitfall that the synchronised loop avoids (pitfall 1)."""
    on, _ = device_bench(host_ns=100_000, device_ns=5 * MS, asked=Protocol(iterations=20))
    on.sync = None
    samples = Samples()

    phases.latency(on, samples)

    assert max(samples.latency_ns) < MS


def test_a_device_works_through_its_queue_in_the_throughput_pass() -> None:
    """At most four in flight, no stop per iteration: the device's pace is the pace (§9)."""
    on, device = device_bench(host_ns=MS, device_ns=5 * MS)
    device.most_queued = 0
    samples = Samples()

    found = phases.throughput(on, samples)

    assert 5.0 * MS == pytest.approx(1e9 * found.seconds / found.intervals, rel=0.01)
    assert device.most_queued <= 5
    assert found.intervals >= 29


def test_the_peaks_of_a_device_are_reset_with_those_of_the_host() -> None:
    on, device = device_bench(host_ns=MS, device_ns=MS)

    reading = phases.memory(on)

    assert 1 == device.resets
    assert reading.cuda is not None
    assert 1 << 20 == reading.cuda[0].allocated_peak_bytes


def test_energy_lengthens_the_pass_to_its_window() -> None:
    """The window is the throughput pass: 5 s at least, and one reading of it (§11)."""
    clock = FakeClock()
    curve = PowerCurve()
    counter = FakeCounter(clock, curve, period_ns=20 * MS)
    period = update_period(counter.read, clock=clock, sleep=clock.sleep)
    machine = Machine(lambda _i: 0)
    on, samples = bench(machine), Samples()

    def step() -> object:
        clock.advance(10 * MS)
        return None

    on.step, on.clock = step, clock
    on.meter = Meter(
        gauge=CounterGauge(counter, period, clock=clock, sleep=clock.sleep),
        period=period,
        clock=clock,
        sleep=clock.sleep,
        rng=random.Random(1),
        others=lambda: False,
        temperature_c=lambda: 40.0,
    )

    found = phases.throughput(on, samples)

    assert found.seconds >= 5.0
    assert found.energy is not None
    assert 100.0 == pytest.approx(found.energy.power_mean_w, rel=0.01)


def test_a_flushed_cache_is_flushed_outside_the_clock() -> None:
    """`l2: flushed`: the preparation costs wall time and no sample."""
    machine = Machine(lambda _i: MS)
    on, samples = bench(machine, asked=Protocol(iterations=10)), Samples()
    flushed = []

    def prepare() -> None:
        flushed.append(machine.now)
        machine.now += 7 * MS

    on.prepare = prepare

    phases.latency(on, samples)

    assert [MS] * 10 == list(samples.latency_ns)
    assert 10 == len(flushed)


def test_a_preset_counts_calls_and_makes_no_blocks_of_them() -> None:
    """1000 calls of a function are 1000 calls, however short one is (S1.22)."""
    machine = Machine(lambda _i: 10, read_ns=30)
    on, samples = bench(machine, asked=Protocol(compat="rpx", iterations=40)), Samples()
    on.typical_ns = 10

    found = phases.latency(on, samples)

    assert (40, 40, 1) == (machine.steps, len(samples.latency_ns), found.of_blocks)
    assert ["timer_limited"] == found.flags
