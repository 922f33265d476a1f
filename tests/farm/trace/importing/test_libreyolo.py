"""A profile of LibreYOLO keeps its numbers, and loses what its tool cannot know."""

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import schema
from farm.errors import Bad
from farm.trace.analysis.record import Analysis
from farm.trace.importing import libreyolo
from farm.trace.importing.names import NAMES
from tests.farm.trace.analysis.expected import ABSENT, DATA, is_near, listed
from tests.farm.trace.importing.made import INFERENCE, REPEATS, TRAINING, changed


def imported(told: dict[str, Any]) -> Analysis:
    """Return what is made of a file; that can be written and read again."""
    found = libreyolo.imported(json.dumps(told).encode())
    assert found == schema.decode(schema.encode(found), Analysis)
    return found


REAL = {
    "libreyolo_infer_profile.json": "latency.n",
    "libreyolo_train_profile.json": "",
    "libreyolo_infer_repeat.json": "",
}


@pytest.mark.parametrize("name", REAL)
def test_a_real_profile_gives_the_numbers_that_it_should(name: str) -> None:
    path = DATA / "import" / name
    if not path.is_file():
        pytest.skip(ABSENT)
    expected = listed()["import"][name]

    found = imported(json.loads(path.read_text("utf-8")))

    told = msgspec.to_builtins(found) | {
        "latency_p50_ms": found.metrics["latency_p50_ms"],
        "latency_n": found.latency.n if isinstance(found.latency, libreyolo.Percentiles) else None,
    }
    for key in expected.keys() - {"kind", "kernels_from", "stages_ms"}:
        assert is_near(told[key], expected[key], 1e-6), key
    assert expected.get("stages_ms", told.get("stages_ms")) == told.get("stages_ms")
    assert ("last_trial" in found.quality.flags) is ("kernels_from" in expected)


@pytest.mark.seed("S4.55")
@pytest.mark.parametrize("told", [TRAINING, INFERENCE, REPEATS])
def test_every_name_of_get_is_there_and_every_null_has_its_reason(told: dict[str, Any]) -> None:
    found = imported(told)

    assert {*NAMES, "forward_gpu_ms", "gpu_util_source"} <= found.metrics.keys()
    assert "sum" == found.metrics["gpu_util_source"]


@pytest.mark.parametrize("word", ["host / launch", "memory-pressure", "memcpy", "mixed"])
def test_a_run_on_a_cpu_is_never_limited_by_a_gpu(word: str) -> None:
    """B16: "because the GPU is 0 % busy"; what the tool said stays beside it."""
    found = imported(TRAINING | {"bound": word, "memory_pressure": "memory" in word})

    assert ("cpu", word, False) == (found.bound, found.bound_reported, found.memory_pressure)
    assert "cpu" == found.metrics["bound"]
    assert "not_applicable: it ran on a CPU" == found.null_reasons["gpu_util"]
    assert found.gpu_util is found.launches_per_step is found.metrics["forward_gpu_ms"] is None


def test_a_cpu_that_waits_for_data_is_limited_by_that() -> None:
    found = imported(TRAINING | {"dataload_frac": 0.3})

    assert "dataloader" == found.bound
    assert [("dataload_frac", 0.3, 0.2)] == [
        (each.metric, each.value, each.threshold) for each in found.reasons
    ]


def test_an_inference_may_be_limited_by_a_stage_that_takes_longer_than_the_model() -> None:
    stages = {"preprocess": 1.0, "forward": 4.0, "postprocess": 60.0}

    found = imported(INFERENCE | {"bound": "host / launch", "stages_ms": stages, "step_ms": 65.0})

    assert "postprocess" == found.bound


GPU = {
    "config": {"device": "0"},
    "kernels_per_step": 100,
    "gpu_util": 1.0,
    "gpu_util_raw": 1.08,
    "launches_per_step": 90,
}


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"cuda_mallocs_per_step": 0}, "compute"),
        ({"cuda_mallocs_per_step": 4.9, "gpu_util": 0.5}, "mixed"),
        ({"cuda_mallocs_per_step": 5}, "memory-pressure"),
    ],
)
def test_pressure_is_never_read_from_utilisation(more: dict[str, Any], word: str) -> None:
    """B20: a sum over streams of 108 % was called memory thrash."""
    said = {"bound": "memory-pressure", "memory_pressure": True}

    found = imported(TRAINING | GPU | said | more)

    assert (word, word == "memory-pressure") == (found.bound, found.memory_pressure)


def test_a_run_on_a_gpu_keeps_its_word_and_its_numbers() -> None:
    found = imported(TRAINING | GPU | {"bound": "compute"})

    assert ("compute", 1.0, 1.08, 90.0) == (
        *(found.bound, found.gpu_util, found.gpu_util_raw, found.launches_per_step),
    )
    assert found.metrics["gpu_util"] == found.gpu_util


def test_kernels_that_were_expected_and_not_recorded_are_no_answer() -> None:
    """B18. A run without a trace is not blamed for having none."""
    device = {"config": {"device": "cuda:0"}}

    assert "no-gpu-data" == imported(TRAINING | device).bound
    assert "compute" == imported(INFERENCE | device | {"trace": None}).bound


def test_repeats_are_the_mean_of_their_trials_under_every_name() -> None:
    """B15: one key held the last trial, its twin the mean. B27: the deviation is a sample's."""
    found = imported(REPEATS)

    mean = pytest.approx(2.5 / 3)
    assert (mean, mean, mean) == (
        *(found.img_per_s, found.metrics["img_per_s"], found.metrics["throughput_img_s"]),
    )
    assert (pytest.approx(0.2055075), 3) == (found.img_per_s_std, found.img_per_s_n)
    assert isinstance(found.spread, dict)
    assert [0.7, 0.73, 1.07] == found.spread["img_per_s"].trials


def test_one_trial_has_no_deviation() -> None:
    found = imported(REPEATS | {"img_per_s_trials": [0.7], "img_per_s_n": 1})

    assert (None, 1, "single_sample") == (
        *(found.img_per_s_std, found.img_per_s_n, found.null_reasons["img_per_s_std"]),
    )


@pytest.mark.parametrize(("rows", "flags"), [(39, []), (40, ["cut"]), (41, [])])
def test_a_list_of_forty_rows_was_cut(rows: int, flags: list[str]) -> None:
    """B29."""
    op = {"op": "aten::add", "ms_per_step": 1.0, "pct_of_cpu_ops": 2.0, "count_per_step": 3}

    found = imported(TRAINING | {"ops_by_phase": {"forward": [op] * rows}})

    assert flags == found.quality.flags
    assert ("medium" if flags else "high") == found.confidence


def test_an_op_is_known_with_those_inside_it_alone() -> None:
    """B14: so its own time is not told."""
    (row,) = imported(TRAINING).ops

    assert (None, 7.0, None) == (row.ms_per_step, row.total_ms_per_step, row.pct_of_cpu_ops)


def test_a_stage_gives_its_phase_the_wall_time_that_the_tool_lost() -> None:
    """B13."""
    walls = {each.phase: each.wall_ms_per_step for each in imported(INFERENCE).phases}

    assert {"forward": 4.0, "postprocess": 0.5, "preprocess": 1.5} == walls


@pytest.mark.parametrize("key", sorted(TRAINING))
def test_a_key_that_is_missing_or_of_another_type_is_told(key: str) -> None:
    without = {name: each for name, each in TRAINING.items() if name != key}
    wrong = TRAINING | {key: [{}]}

    for told in (without, wrong):
        with pytest.raises(Bad) as caught:
            libreyolo.imported(json.dumps(told).encode())
        assert key in str(caught.value) or key in ("schema", "phases")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside),
    max_leaves=6,
)


@settings(max_examples=200)
@given(st.sampled_from([TRAINING, INFERENCE, REPEATS]), st.randoms(use_true_random=False), JSON)
def test_no_value_in_place_of_any_other_makes_anything_but_a_message(
    told: dict[str, Any], random: Any, value: Any
) -> None:
    """The whole answer can be written, or there is none."""
    with contextlib.suppress(Bad):
        imported(changed(told, random, value))
