"""The instrumented child: which instruments run on a warm step, and what a failed one costs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from farm.schema import Capture, Data, Effort, Protocol, WeightSpread
from tests.workers import make
from tests.workers.clockwork import MS, Machine, bench
from workers import instruments
from workers.backends import LayerAsk, LayerPass, NotOffered, StageAsk, StepFacts, TraceAsk
from workers.record import TRACE, Assignment, CostReading, TraceReading
from workers.running import Run


class Step:
    """Notes what is asked of it; says: what an instrument does in place of answering."""

    layer_iterations = 100

    def __init__(self, **says: Exception) -> None:
        self.says, self.heard, self.asked, self.traced = says, [], [], []

    def _answer(self, name: str) -> None:
        self.heard.append(name)
        if name in self.says:
            raise self.says[name]

    def enter(self, phase: str) -> None:
        self.heard.append(f"enter {phase}")

    def check_output(self, output: object) -> list[str]:
        return []

    def arrays(self, output: object) -> Mapping[str, Any]:
        self._answer("arrays")
        return {}

    def layers(self, asked: LayerAsk) -> LayerPass:
        self._answer("layers")
        self.asked.append(asked)
        reading = make.instrumented().layers
        assert reading is not None
        return LayerPass(reading=reading, **make.layer_arrays())  # type: ignore[arg-type]

    def trace(self, asked: TraceAsk) -> TraceReading:
        self._answer("trace")
        self.traced.append(asked)
        return TraceReading(
            wanted=asked.iterations,
            iterations=asked.iterations,
            traced_ns=[],
            trace_bytes=1,
        )

    def stages(self, asked: StageAsk) -> dict[str, list[int]]:
        self._answer("stages")
        return {"forward": [1] * asked.iterations}

    def facts(self) -> StepFacts:
        self._answer("facts")
        return StepFacts(
            precision_observed={"matmul_fp32": "tf32"},
            effective_threads={"intra": 1},
            resolved={"cuda_device": "a GPU"},
            subnormal_share=None,
            kinds={},
        )

    def inputs_mutated(self) -> bool:
        return False

    def weights(self) -> WeightSpread:
        self._answer("weights")
        return WeightSpread(n=1, used=1, percentiles={}, shares_below={})

    def cost(self) -> CostReading:
        self._answer("cost")
        return CostReading(flops_status="measured")


def ran(
    step: Step, *wanted: str, effort: Effort | None = None, warmup: int = 2, **asked: Any
) -> dict[str, Any]:
    machine = Machine(lambda _i: MS)
    on = bench(machine, asked=Protocol(warmup=warmup), effort=effort)
    fields = {"folder": ".", "passes": (), "instruments": wanted, **asked}
    assignment = Assignment(
        job=make.job(), effort=on.effort, index=-1, cores=[], threads=1, **fields
    )
    run = Run(assignment, step, on, {"flags": [], "reasons": {}}, [])  # type: ignore[arg-type]
    instruments.run(run)
    return run.found | {"phases": run.done}


def test_the_model_is_spoilt_last() -> None:
    """Counting may move it to where it cannot run: layers, trace and weights come before."""
    step = Step()

    found = ran(step, "flops", "weights", "trace", "layers")

    heard = [each for each in step.heard if not each.startswith("enter")]
    assert ["layers", "trace", "stages", "weights", "facts", "cost"] == heard
    assert all(each.instrumented for each in found["phases"])


@pytest.mark.seed("S0.4", "S0.5", "S0.7")
@pytest.mark.parametrize(("asked", "iterations", "warmup"), [(0, 100, 5), (101, 101, 6), (1, 1, 5)])
def test_a_layer_pass_has_the_iterations_asked_for_after_its_own_warm_up(
    asked: int, iterations: int, warmup: int
) -> None:
    """A hundred where nobody says; 5 or a twentieth, rounded up, before them (G1)."""
    step = Step()

    ran(step, "layers", effort=Effort(layer_iterations=asked))

    assert [(iterations, warmup)] == [(each.iterations, each.warmup) for each in step.asked]


def test_a_layer_pass_of_a_job_has_a_budget_and_one_by_hand_has_none() -> None:
    step = Step()

    ran(step, "layers", effort=Effort(layer_budget_ms=1500))
    ran(step, "layers", effort=Effort(layer_budget_ms=0))

    assert [1_500_000_000, None] == [each.budget_ns for each in step.asked]


def test_an_instrument_that_fails_costs_its_own_fields() -> None:
    found = ran(Step(layers=RuntimeError("no")), "layers", "flops")

    assert "layers" not in found
    assert "phase_failed: RuntimeError: no" == found["reasons"]["layers"]
    assert "measured" == found["cost"].flops_status
    assert ["pass_failed"] == found["flags"]


def test_an_instrument_that_is_not_offered_is_no_failure() -> None:
    why = NotOffered("not_applicable", "a function has no layers")

    found = ran(Step(layers=why), "layers", "flops")

    assert "not_applicable: a function has no layers" == found["reasons"]["layers"]
    assert [] == found["flags"]


@pytest.mark.parametrize("wanted", [("flops",), ("layers", "flops"), ("layers",)])
def test_what_the_step_ran_as_is_known_also_where_its_cost_was_counted(
    wanted: tuple[str, ...],
) -> None:
    """By hand this child may be the only one: precision, threads and device stand in its record."""
    found = ran(Step(), *wanted)

    assert ({"matmul_fp32": "tf32"}, {"intra": 1}, {"cuda_device": "a GPU"}) == (
        found["precision_observed"],
        found["effective_threads"],
        found["resolved"],
    )


def test_an_output_that_breaks_costs_no_instrument(tmp_path: Path) -> None:
    step = Step(arrays=RuntimeError("no"))

    found = ran(step, "layers", "flops", folder=str(tmp_path), output=True)

    assert "error: RuntimeError: no" == found["reasons"]["output"]
    assert {"layers", "cost"} <= set(found)


DATA = Data(kind="synthetic", word="synthetic")


@pytest.mark.seed("S4.25", "S4.46")
@pytest.mark.parametrize(
    ("asked", "iterations", "warmup", "limit"),
    [
        ({}, 10, 1, 128_000_000),
        ({"capture": Capture(warmup=20, steps=100)}, 10, 1, 1_000_000_000),
        ({"capture": Capture(data=DATA, warmup=5, steps=20)}, 20, 5, 1_000_000_000),
        ({"capture": Capture(data=DATA, warmup=0, steps=7)}, 7, 0, 1_000_000_000),
    ],
    ids=["sweep", "infer", "run", "run without warm-up"],
)
def test_a_trace_has_the_iterations_of_its_kind(
    asked: dict[str, Any], iterations: int, warmup: int, limit: int, tmp_path: Path
) -> None:
    """A second window of a training, and ten of everything else.

    A sweep makes many traces, so that each of them has less room.
    """
    step = Step()

    ran(step, "trace", folder=str(tmp_path), **asked)

    (told,) = step.traced
    assert (iterations, warmup, limit) == (told.iterations, told.warmup, told.limit_bytes)
    assert tmp_path / TRACE == told.file


@pytest.mark.seed("S4.46")
@pytest.mark.parametrize("data", [DATA, UNSET], ids=["run", "infer"])
def test_without_a_trace_no_profiler_runs_and_phases_are_timed(data: Data | UnsetType) -> None:
    step = Step()

    found = ran(step, "trace", capture=Capture(data=data, warmup=5, steps=20, trace=False))

    assert [] == step.traced
    assert {"forward": [1] * 10} == found["stages_ns"]
    assert "stages" in {each.name for each in found["phases"]}


def test_a_trace_that_could_not_be_taken_leaves_the_phases_timed() -> None:
    found = ran(Step(trace=RuntimeError("no")), "trace")

    assert "phase_failed: RuntimeError: no" == found["reasons"]["trace"]
    assert {"forward": [1] * 10} == found["stages_ns"]


def test_phases_that_could_not_be_timed_leave_the_trace() -> None:
    found = ran(Step(stages=NotOffered("not_applicable", "it has one phase")), "trace")

    assert "not_applicable: it has one phase" == found["reasons"]["stages"]
    assert 10 == found["trace"].iterations


@pytest.mark.parametrize(
    ("why", "reason", "flags"),
    [
        (NotOffered("not_supported", "too large"), "not_supported: too large", []),
        (RuntimeError("no"), "phase_failed: RuntimeError: no", ["pass_failed"]),
    ],
)
def test_a_trace_that_could_not_be_taken_costs_nothing_else(
    why: Exception, reason: str, flags: list[str]
) -> None:
    found = ran(Step(trace=why), "layers", "trace", "flops")

    assert (reason, flags) == (found["reasons"]["trace"], found["flags"])
    assert {"layers", "cost"} == {"layers", "cost", "trace"} & set(found)


@pytest.mark.seed("S4.9")
def test_an_instrumented_child_yields_no_latency() -> None:
    """What a profiler slowed down becomes no figure of the model."""
    found = ran(Step(), "layers", "trace", "flops")

    told = {"latency_edges", "throughput_edges", "memory", "device", "energy"}
    assert set() == told & set(found)
    own = {"layers", "trace", "stages", "flops"}
    assert {"first", "warmup"} >= {p.name for p in found["phases"]} - own


def test_only_what_was_asked_for_runs() -> None:
    step = Step()

    found = ran(step, "flops")

    assert ("layers" in found, "cost" in found) == (False, True)
