"""Two analyses as one document: a verdict that they cannot give, and a reason for every null."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, structs

from farm import schema
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.record import TraceComparison
from farm.trace.opening import opened
from tests.farm.trace import g8
from tests.farm.trace.analysis.expected import ABSENT, DATA
from tests.farm.trace.comparing.sides import compared, made, row, side

TRIALS = [10.0, 10.1, 10.3]


def test_two_stored_sides_are_inconclusive_because_they_are_no_pairs() -> None:
    found = compared(side(TRIALS), side([each * 2 for each in TRIALS]))

    assert ("inconclusive", ["unpaired"], "worse") == (found.verdict, found.reasons, found.leaning)
    assert "step_ms" == found.headline
    assert found.lean is not UNSET
    assert 2.0 == pytest.approx(found.lean.ratio)


def test_what_is_incomparable_leans_nowhere_and_has_its_numbers_all_the_same() -> None:
    found = compared(side(TRIALS, mode="training"), side([1.0, 1.1], mode="inference"))

    assert ("incomparable", "none") == (found.verdict, found.leaning)
    assert ["different modes: training and inference"] == found.reasons
    assert found.lean is not UNSET
    assert found.rows


def test_one_setting_that_differs_is_what_was_changed_and_two_are_confounded() -> None:
    one = compared(side(), side(config={"precision": "bf16"} | {"driver": "570"}))
    two = compared(
        side(config={"precision": "fp32", "driver": "550"}),
        side(config={"precision": "bf16", "driver": "570"}),
    )
    changed = compared(side(config={"driver": "550"}), side(config={"driver": "570"}))

    assert ([], ["precision", "driver"], False) == (one.differs, one.unknown, one.confounded)
    assert (["precision", "driver"], True) == ([each.key for each in two.differs], two.confounded)
    expected = "precision and driver differ at once: no change can be put down to one of them"
    assert [expected] == two.warnings
    assert (False, []) == (changed.confounded, changed.warnings)


def test_a_warning_calls_a_model_by_what_a_person_calls_it() -> None:
    before, after = (side(config={"model_digest": each, "driver": each}) for each in "ab")

    assert compared(before, after).warnings[0].startswith("model and driver differ at once")


def test_where_the_batches_differ_the_time_per_item_leads() -> None:
    found = compared(side(TRIALS), side([each * 1.5 for each in TRIALS], config={"batch": 20}))

    assert ("ms_per_item", "ms_per_item", "better") == (
        found.rows[0].metric,
        found.headline,
        found.leaning,
    )
    assert 0.75 == pytest.approx(found.rows[0].ratio)
    assert ["the batch is 10 before and 20 after: compare per item"] == found.warnings
    same = compared(side(TRIALS), side(TRIALS))
    assert "img_per_s" == same.rows[0].metric


def test_throughput_and_time_per_item_are_of_the_same_trials() -> None:
    """B15: +24 % images/s and −73 % ms/image at once."""
    foreign = side(step_ms=3743.992, img_per_s=0.83, bound_reported="compute", config={"batch": 4})
    before = structs.replace(foreign, img_per_s_trials=[0.6, 0.65, 0.76], step_ms=13_800.0)
    after = structs.replace(foreign, img_per_s_trials=[0.7, 0.73, 1.07])

    found = compared(before, after)

    rate, time = row(found, "img_per_s"), row(found, "ms_per_item")
    assert 1.244 == pytest.approx(rate.ratio, abs=1e-3)
    assert 0.82 == pytest.approx(time.ratio, abs=0.02)
    assert row(found, "step_ms").change is None


def test_a_side_whose_step_is_the_whole_file_is_warned_of() -> None:
    whole = structs.replace(made().quality, flags=["few_steps", "no_steps"])

    expected = ["before has no step marked: its step is all that was recorded"]
    assert expected == compared(side(quality=whole), side()).warnings


def test_a_side_under_memory_pressure_is_warned_of() -> None:
    found = compared(side(), side(memory_pressure=True))

    assert ["after ran under memory pressure: no time is that of the work itself"] == found.warnings


SIDES = st.builds(
    side,
    st.lists(st.sampled_from([0.0, 1.0, 2.5]), max_size=3),
    mode=st.sampled_from([None, "training", "inference"]),
    model=st.sampled_from([None, "m"]),
    config=st.dictionaries(st.sampled_from(["batch", "driver", "step"]), st.sampled_from([1, "x"])),
    img_per_s=st.sampled_from([None, 0.0, 5.0]),
    img_per_s_trials=st.sampled_from([UNSET, [0.0, 1.0], [2.0, 2.5]]),
    bound_reported=st.sampled_from([UNSET, "compute"]),
    kernels=st.sampled_from([[], made().kernels, made().kernels[:2]]),
    quality=st.sampled_from([made().quality, structs.replace(made().quality, flags=["cut"])]),
    launches_per_step=st.sampled_from([None, 0.0, 3.0]),
)


@given(SIDES, SIDES)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_whatever_a_side_lacks_each_null_has_its_reason(before: Analysis, after: Analysis) -> None:
    """`encode` refuses a null without one, and a reason without a null."""
    data = schema.encode(compared(before, after))

    again = schema.decode(data, TraceComparison)
    assert compared(before, after) == again
    assert b"NaN" not in data


def test_a_cpu_and_a_trace_without_kernels_are_compared_by_their_steps() -> None:
    host = g8.analysis(g8.host())

    found = compared(host, host)

    assert ([], [], 0.0) == (found.kernels, found.categories, row(found, "step_ms").change)
    assert row(found, "gpu_util").before is None
    plain = msgspec.to_builtins(found)
    assert set(found.null_reasons) == set(
        schema.null_paths({key: each for key, each in plain.items() if key != "null_reasons"})
    )


def test_a_file_beside_itself_shows_no_difference() -> None:
    found = compared(made(), made())

    assert {0.0, None} == {each.change for each in found.rows}
    assert {0.0} == {each.change_ms for each in found.kernels}
    assert {"both"} == {each.listed for each in found.kernels}
    assert ("none", []) == (found.leaning, found.differs)


@pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)
def test_a_foreign_repeat_file_tells_one_story() -> None:
    """B15 on a real one: its throughput is a mean, its step that of the last trial, 3744 ms."""
    found = opened(DATA / "import" / "libreyolo_infer_repeat.json").analysis

    told = compared(found, found)

    rate, time = row(told, "img_per_s"), row(told, "ms_per_item")
    assert (2.5 / 3, None) == (pytest.approx(rate.before), row(told, "step_ms").before)
    assert sum(1000 / each for each in (0.7, 0.73, 1.07)) / 3 == pytest.approx(time.before)
    assert ("img_per_s", 3) == (told.headline, told.before.trials)
