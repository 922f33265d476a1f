"""The warm-up against a simulated clock: when it ends, and what it counts."""

import random
from typing import Any

import pytest

from farm.schema import Effort, Protocol
from tests.workers import make
from tests.workers.clockwork import MS, Machine, bench
from workers import warming
from workers.bench import Samples
from workers.record import Assignment
from workers.running import Run


def test_a_fixed_warm_up_counts_the_first_iteration() -> None:
    """`warmup: 5` runs five steps before measuring, the first call among them (C1)."""
    machine = Machine(lambda _i: MS)
    on = bench(machine, asked=Protocol(warmup=5))

    warming.first(on)
    warm = warming.warm_up(on, Samples(), done=1)

    assert (5, "fixed", 5) == (warm.iterations, warm.stop, machine.steps)


def test_each_iteration_of_a_fixed_warm_up_is_told() -> None:
    """A child that says nothing for two minutes is taken for one that hangs, and shot."""
    machine, heard = Machine(lambda _i: 30_000 * MS), []
    on = bench(machine, asked=Protocol(warmup=6))
    on.progress = lambda phase, n: heard.append((phase, n))

    warming.first(on)
    warming.warm_up(on, Samples(), done=1)

    assert [("warmup", n) for n in range(1, 6)] == heard


def test_a_warm_up_ends_when_the_step_is_steady() -> None:
    """A step that gets faster for 40 iterations is not measured while it does."""
    machine = Machine(lambda i: MS * (60 - i if i < 40 else 20))
    on, samples = bench(machine), Samples()

    warming.first(on)
    warm = warming.warm_up(on, samples, done=1)

    assert "converged" == warm.stop
    assert machine.steps > 40
    assert [20 * MS] * 20 == list(samples.warmup_ns[-20:])


def test_a_slow_step_converges_within_the_cap() -> None:
    """A steady 500 ms step is warm after twelve blocks of one iteration, 6 s (rule 6)."""
    machine = Machine(lambda _i: 500 * MS)
    on = bench(machine)

    warming.first(on)
    warm = warming.warm_up(on, Samples(), done=1)

    assert ("converged", 13) == (warm.stop, warm.iterations)


@pytest.mark.parametrize(("step_s", "cap_s"), [(0.01, 10.0), (2.0, 30.0), (10.0, 60.0)])
def test_a_step_that_never_settles_is_capped(step_s: float, cap_s: float) -> None:
    """The cap is 10 s, 15 iterations of a slow step, and never above a minute."""
    rng = random.Random(1)
    machine = Machine(lambda i: int(step_s * 1e9 * (1 + i / 20 + rng.random() / 100)))
    on = bench(machine)
    first_ms, _ = warming.first(on)

    warm = warming.warm_up(on, Samples(), done=1)

    assert "cap" == warm.stop
    longest = step_s * (1 + machine.steps / 20) + 1
    assert min(cap_s, 15 * first_ms / 1000) <= warm.seconds <= cap_s + longest


def test_a_short_time_limit_caps_the_warm_up() -> None:
    """A warm-up takes at most 30 % of the job's time limit."""
    machine = Machine(lambda i: MS * (5 + i))
    on = bench(machine, effort=Effort(timeout_s=10))
    warming.first(on)

    warm = warming.warm_up(on, Samples(), done=1)

    assert 3.0 <= warm.seconds <= 3.5


# ── compiling ────────────────────────────────────────────────────────────────────────────────────


class Counted:
    """Compile events as a script says, by how many steps have run; None for an eager model."""

    def __init__(self, machine: Machine, *at: int, eager: bool = False) -> None:
        self._machine, self._at, self._eager = machine, at, eager

    def events(self) -> int | None:
        return None if self._eager else sum(self._machine.steps > each for each in self._at)

    def recompiles(self) -> int | None:
        return None if self._eager else max(0, (self.events() or 0) - 1)


def started(machine: Machine, compiles: Counted, heard: list[str] | None = None) -> Run:
    on = bench(machine)
    on.compiles = compiles
    if heard is not None:
        on.progress = lambda phase, _n: heard.append(phase)
    assignment = Assignment(
        job=make.job(), effort=Effort(), index=0, cores=[0], threads=1, folder="."
    )
    found: dict[str, Any] = {"flags": [], "reasons": {}}
    run = Run(assignment, FakeStep(machine), on, found, [])
    warming.start(run)
    return run


class FakeStep:
    """What a warm-up asks of a step."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def enter(self, phase: str) -> None:
        self._machine.phases.append(phase)

    def check_output(self, output: object) -> list[str]:
        return []


def test_compiling_ends_after_three_iterations_without_an_event() -> None:
    """Events at the first, second and fifth call: the phase runs to the eighth."""
    machine = Machine(lambda _i: MS)

    run = started(machine, Counted(machine, 0, 1, 4))

    assert (7, 2) == (run.found["compiling"].iterations, run.found["compiling"].recompiles)
    assert ["first", "compile", "warmup"] == machine.phases
    assert [] == run.found["flags"]


def test_a_model_that_never_stops_compiling_is_told() -> None:
    machine = Machine(lambda _i: MS)

    run = started(machine, Counted(machine, *range(0, 4000, 2)))

    assert 20 == run.found["compiling"].iterations
    assert "warmup_not_converged" in run.found["flags"]


def test_each_iteration_that_compiles_is_told() -> None:
    machine, heard = Machine(lambda _i: MS), []

    started(machine, Counted(machine, 0, 1, 4), heard)

    assert 1 + 7 == heard.count("compile")  # that it begins, and each of its iterations


def test_an_eager_model_has_no_compile_phase() -> None:
    machine = Machine(lambda _i: MS)

    run = started(machine, Counted(machine, eager=True))

    assert "compiling" not in run.found
    assert ["first", "warmup"] == machine.phases


def test_a_step_is_not_warm_while_it_compiles() -> None:
    """Level times are not enough: condition 4 of the rule looks at the counters as well."""
    machine = Machine(lambda _i: 10 * MS)
    on, samples = bench(machine), Samples()
    on.compiles = Counted(machine, *range(0, 300, 20))

    warm = warming.warm_up(on, samples, done=0)

    assert "converged" == warm.stop
    assert machine.steps > 280
