"""`farm profile cost` without a process: what is asked is answered by a stand-in."""

from pathlib import Path

import msgspec
import pytest

from farm.cli.profile import costing
from farm.errors import Bad, NoResult, Refused
from farm.once import Measured
from tests.farm import make
from tests.farm.cli.profile.test_cost_job import asking
from tests.farm.costs.modelled import profile


class Standing:
    """In place of a measurement: keeps what was asked, and hands out what it was given."""

    def __init__(self, found=None):
        self.found, self.asked = found or profile(), []

    def __call__(self, asked, *, say):
        self.asked.append(asked)
        say("instruments: flops")
        return Measured(profile=self.found, card=make.card(), folder=Path(asked.folder))


def reported(words, root, measure=None):
    said: list[str] = []
    found = costing.reported(
        words, root=root, level="quick", measure=measure or Standing(), say=said.append
    )
    return found, said


@pytest.mark.seed("S2.1")
def test_a_model_is_measured_once_and_reported(tmp_path: Path) -> None:
    measure = Standing(profile(latency=True))

    found, said = reported(asking(latency=True, specs=("L4",)), tmp_path, measure)

    assert 1 == len(measure.asked)
    assert ["instruments: flops"] == said
    assert ["L4"] == [each.spec for each in found.estimates]
    assert found.taken is not msgspec.UNSET


@pytest.mark.seed("S1.47")
def test_counting_is_asked_for_apart_from_timing(tmp_path: Path) -> None:
    """Passes run in clean children, instruments in one of their own that yields no latency."""
    measure = Standing(profile(latency=True))

    reported(asking(latency=True), tmp_path, measure)

    assert ("latency", "memory") == measure.asked[0].passes
    assert "flops" in measure.asked[0].instruments
    assert not set(measure.asked[0].passes) & set(measure.asked[0].instruments)


@pytest.mark.parametrize(
    "more",
    [
        {"latency": True, "given_ms": 1.0},
        {"specs": ("L5",)},
        {"shape": "3x3"},
        {"model": "mpl"},
        {"given": "missing.npz"},
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(more, tmp_path: Path) -> None:
    measure = Standing()

    with pytest.raises(Refused):
        reported(asking(**more), tmp_path, measure)

    assert [] == measure.asked


@pytest.mark.seed("S1.7")
def test_a_function_has_no_cost_and_the_reason_is_told(tmp_path: Path) -> None:
    """It may call a server: nobody here knows what it needs."""
    hidden = msgspec.structs.replace(
        profile(), cost=None, null_reasons={"cost": "not_applicable: a function has no layers"}
    )

    with pytest.raises(NoResult, match="no cost of 'mlp'") as caught:
        reported(asking(), tmp_path, Standing(hidden))

    assert "not_applicable: a function has no layers" == caught.value.why
    assert "`farm profile callable` times a function" == caught.value.hint


def test_a_count_that_broke_is_a_bad_answer(tmp_path: Path) -> None:
    broken = msgspec.structs.replace(
        profile(), cost=None, null_reasons={"cost": "phase_failed: RuntimeError: no"}
    )

    with pytest.raises(Bad, match="no cost of 'mlp'"):
        reported(asking(), tmp_path, Standing(broken))


def test_a_shape_that_the_model_does_not_take_is_a_mistake_in_the_words(tmp_path: Path) -> None:
    """As arrays that do not fit are; a model that fails in its own way is a bad answer."""
    misfit = make.fault("model_error", phase="first", message="mat1 and mat2 shapes differ")
    failed = make.profile(status="failed", failure=misfit)

    with pytest.raises(Refused, match="does not take items of shape 3,2") as caught:
        reported(asking(shape="3,2"), tmp_path, Standing(failed))

    assert "mat1 and mat2 shapes differ" == caught.value.why
    with pytest.raises(Bad, match="model_error in phase first"):
        reported(asking(), tmp_path, Standing(failed))


def test_a_model_that_fails_is_told_in_its_words(tmp_path: Path) -> None:
    failed = make.profile(status="failed", failure=make.fault("model_error", message="it broke"))

    with pytest.raises(Bad, match="model_error in phase warmup"):
        reported(asking(), tmp_path, Standing(failed))


@pytest.mark.seed("S2.17")
@pytest.mark.parametrize(
    ("more", "step"),
    [
        ({}, "farm profile cost mlp --latency"),
        ({"shape": "3,2"}, "farm profile cost mlp --input-shape 3,2 --latency"),
        ({"latency": True}, "farm profile layers mlp --benchmark"),
        ({"given_ms": 2.0}, "farm profile layers mlp --benchmark"),
        ({"latency": True, "shape": "3,2"}, ""),
        (
            {"latency": True, "given": "x.npz", "batch": 8, "precision": "bf16"},
            "farm profile layers mlp --input x.npz --precision bf16 --batch 8 --benchmark",
        ),
        (
            {"batch": 8, "specs": ("L4", "T4")},
            "farm profile cost mlp --batch 8 --spec L4 --spec T4 --latency",
        ),
    ],
)
def test_the_next_step_leads_to_what_a_cost_leaves_out(more, step: str) -> None:
    """Counts have no time: the next step measures a latency, and the one after it the layers."""
    assert step == costing.next_step(asking(**more))
