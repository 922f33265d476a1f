"""The passes of a clean child in their order: what a failed one costs, and what it says."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farm.schema import Effort, Pass, Protocol
from tests.workers import make
from tests.workers.clockwork import MS, FakeDevice, Machine, bench
from workers import repeat
from workers.backends import StepFacts
from workers.energy import CounterGauge, Meter, update_period
from workers.fakes import FakeClock, FakeCounter, PowerCurve
from workers.record import OUTPUT, Assignment
from workers.running import Run

PASSES: tuple[Pass, ...] = ("latency", "throughput", "memory")


class Step:
    """What the passes ask of a step besides calling it; output: its arrays."""

    def __init__(self, output: Any) -> None:
        self.output, self.phase = output, ""

    def enter(self, phase: str) -> None:
        self.phase = phase

    def check_output(self, output: object) -> list[str]:
        return []

    def arrays(self, output: object) -> Any:
        return self.output

    def facts(self) -> StepFacts:
        return StepFacts(
            precision_observed={},
            effective_threads={},
            resolved={},
            subnormal_share=None,
            kinds={},
        )


def clean(
    folder: Path,
    *,
    returns: Any = None,
    breaks: str = "",
    device: FakeDevice | None = None,
    meter: Meter | None = None,
    **asked: Any,
) -> dict[str, Any]:
    """Run the passes. returns: the arrays of an output; breaks: the phase in which it raises."""
    machine = Machine(lambda _i: 20 * MS)
    step = Step({"output_0": np.ones(3)} if returns is None else returns)
    on = bench(machine, asked=Protocol(warmup=2, iterations=5))
    on.meter, on.accelerator = meter, device

    def call() -> object:
        if step.phase == breaks:
            raise RuntimeError("no")
        return machine.step()

    on.step = call
    assignment = Assignment(
        **{
            "job": make.job(),
            "effort": on.effort,
            "index": 0,
            "cores": [0],
            "threads": 1,
            "folder": str(folder),
            "passes": PASSES,
            **asked,
        }
    )
    run = Run(assignment, step, on, {"flags": [], "reasons": {}}, [])  # type: ignore[arg-type]
    repeat._clean(run)
    return run.found | {"phases": [(each.name, each.status) for each in run.done]}


# ── the output ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("index", [0, 1])
def test_a_small_output_is_kept_by_whichever_repeat_ends_well(tmp_path: Path, index: int) -> None:
    """Nobody knows before which one that is."""
    clean(tmp_path, returns={"file": np.arange(3)}, index=index)

    with np.load(tmp_path / OUTPUT) as found:
        assert [0, 1, 2] == found["file"].tolist()


def test_an_output_that_nobody_asked_for_costs_nothing_where_it_cannot_be_kept(
    tmp_path: Path,
) -> None:
    """No pass failed, no doubt is left, and the reason is told."""
    found = clean(tmp_path, returns={"x": np.array([{}])})

    assert {"done"} == {status for _, status in found["phases"]}
    assert [] == found["flags"]
    assert "not_supported: array 'x' holds objects, not numbers" == found["reasons"]["output"]
    assert not list(tmp_path.iterdir())


def test_an_output_that_was_asked_for_says_why_it_is_not_there(tmp_path: Path) -> None:
    """The model breaks in that very call, or there is nothing to keep; a latency stands."""
    broke = clean(tmp_path, breaks="output", output=True)
    empty = clean(tmp_path, returns={}, output=True)

    assert "phase_failed: RuntimeError: no" == broke["reasons"]["output"]
    assert ["pass_failed"] == broke["flags"]
    assert "not_applicable: the step returned no array" == empty["reasons"]["output"]
    assert [] == empty["flags"]
    assert ("done", "done") == (
        dict(broke["phases"])["latency"],
        dict(empty["phases"])["output"],
    )


# ── throughput and energy ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("breaks", ["", "throughput"])
def test_how_a_throughput_pass_ran_is_noted_where_it_runs(tmp_path: Path, breaks: str) -> None:
    """Also of one that failed: then nothing else says it."""
    on_cpu = clean(tmp_path, breaks=breaks)
    on_gpu = clean(tmp_path, breaks=breaks, device=FakeDevice())

    assert ("back_to_back", "pipelined") == (
        on_cpu["throughput_method"],
        on_gpu["throughput_method"],
    )


def meter() -> Meter:
    clock = FakeClock()
    counter = FakeCounter(clock, PowerCurve([(0, 60.0)]), period_ns=20 * MS)
    period = update_period(counter.read, clock=clock, sleep=clock.sleep)
    return Meter(
        gauge=CounterGauge(counter, period, clock=clock, sleep=clock.sleep),
        period=period,
        clock=clock,
        sleep=clock.sleep,
        rng=random.Random(1),
        others=lambda: False,
        temperature_c=lambda: 50.0,
    )


def test_energy_of_a_pass_that_failed_was_asked_for_all_the_same(tmp_path: Path) -> None:
    found = clean(tmp_path, breaks="throughput", meter=meter())

    assert "phase_failed: RuntimeError: no" == found["reasons"]["energy"]
    assert found["reasons"]["throughput"] == found["reasons"]["energy"]


def test_energy_without_its_pass_says_that_none_ran() -> None:
    found: dict[str, Any] = {"reasons": {}}
    asked = Assignment(
        job=make.job(),
        effort=Effort(energy=True),
        index=0,
        cores=[0],
        threads=1,
        folder=".",
        passes=("latency",),
    )

    assert repeat._meter(asked, found, on_gpu=False) is None
    assert {"energy": "not_requested: it is read in a throughput pass, and none ran"} == (
        found["reasons"]
    )
