"""The phases of a child against a simulated clock: what is recorded, and when they stop."""

import gc
import random
from collections.abc import Callable

import pytest

from farm.schema import Effort, Phase, Protocol
from workers import phases
from workers.bench import LABEL_PREEMPTED, LABEL_UNEXPLAINED, Bench, Samples
from workers.record import Edge, MemoryReading

MS = 1_000_000


class Machine:
    """A machine whose time passes only in steps and in clock reads, as a script says."""

    def __init__(self, step_ns: Callable[[int], int], *, read_ns: int = 0) -> None:
        self.now = 0
        self.steps = 0
        self.waited = 0
        self.phases: list[str] = []
        self._step_ns, self._read_ns = step_ns, read_ns

    def clock(self) -> int:
        self.now += self._read_ns
        return self.now

    def step(self) -> object:
        self.now += self._step_ns(self.steps)
        self.steps += 1
        return None

    def edge(self) -> Edge:
        return Edge(
            at_ns=self.now,
            run_ns=self.now,
            wait_ns=self.waited,
            steal_ticks=0,
            total_ticks=0,
            psi_some_us=0,
            nr_throttled=0,
            major_faults=0,
            involuntary_switches=0,
            suspended_ns=0,
        )

    def waited_ns(self) -> int | None:
        return self.waited

    def reset_peak(self) -> None:
        self.phases.append("reset")

    def memory(self) -> MemoryReading:
        return MemoryReading(
            rss_after_load_bytes=1, rss_peak_bytes=2, rss_peak_lifetime_bytes=3, pss_bytes=None
        )


def bench(
    machine: Machine, *, asked: Protocol | None = None, effort: Effort | None = None
) -> Bench:
    return Bench(
        step=machine.step,
        sync=None,
        asked=asked or Protocol(),
        effort=effort or Effort(),
        batch=1,
        clock=machine.clock,
        probe=machine,
        progress=lambda _phase, _n: None,
    )


def test_a_fixed_warm_up_counts_the_first_iteration() -> None:
    """`warmup: 5` runs five steps before measuring, the first call among them (C1)."""
    machine = Machine(lambda _i: MS)
    on = bench(machine, asked=Protocol(warmup=5))

    phases.first(on)
    warm = phases.warm_up(on, Samples(), done=1)

    assert (5, "fixed", 5) == (warm.iterations, warm.stop, machine.steps)


def test_a_warm_up_ends_when_the_step_is_steady() -> None:
    """A step that gets faster for 40 iterations is not measured while it does."""
    machine = Machine(lambda i: MS * (60 - i if i < 40 else 20))
    on, samples = bench(machine), Samples()

    phases.first(on)
    warm = phases.warm_up(on, samples, done=1)

    assert "converged" == warm.stop
    assert machine.steps > 40
    assert [20 * MS] * 20 == list(samples.warmup_ns[-20:])


def test_a_slow_step_converges_within_the_cap() -> None:
    """A steady 500 ms step is warm after twelve blocks of one iteration, 6 s (rule 6)."""
    machine = Machine(lambda _i: 500 * MS)
    on = bench(machine)

    phases.first(on)
    warm = phases.warm_up(on, Samples(), done=1)

    assert ("converged", 13) == (warm.stop, warm.iterations)


@pytest.mark.parametrize(("step_s", "cap_s"), [(0.01, 10.0), (2.0, 30.0), (10.0, 60.0)])
def test_a_step_that_never_settles_is_capped(step_s: float, cap_s: float) -> None:
    """The cap is 10 s, 15 iterations of a slow step, and never above a minute."""
    rng = random.Random(1)
    machine = Machine(lambda i: int(step_s * 1e9 * (1 + i / 20 + rng.random() / 100)))
    on = bench(machine)
    first_ms, _ = phases.first(on)

    warm = phases.warm_up(on, Samples(), done=1)

    assert "cap" == warm.stop
    longest = step_s * (1 + machine.steps / 20) + 1
    assert min(cap_s, 15 * first_ms / 1000) <= warm.seconds <= cap_s + longest


def test_a_short_time_limit_caps_the_warm_up() -> None:
    """A warm-up takes at most 30 % of the job's time limit."""
    machine = Machine(lambda i: MS * (5 + i))
    on = bench(machine, effort=Effort(timeout_s=10))
    phases.first(on)

    warm = phases.warm_up(on, Samples(), done=1)

    assert 3.0 <= warm.seconds <= 3.5


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


def test_a_phase_says_how_it_ended() -> None:
    """A phase that raises is recorded as failed and the error goes on."""
    machine = Machine(lambda _i: MS)
    done: list[Phase] = []

    with phases.phase(done, "load", machine.clock):
        machine.step()
    with pytest.raises(ValueError, match="no"), phases.phase(done, "first", machine.clock):
        raise ValueError("no")

    assert [("load", "done", 0.001), ("first", "failed", 0.0)] == [
        (each.name, each.status, each.duration_s) for each in done
    ]
