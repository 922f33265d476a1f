"""Several trials as one document: every number is the mean of all, or is said to be of the last."""

import json
import math
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, to_builtins

from farm import schema
from farm.trace import trials
from farm.trace.analysis.record import Analysis
from farm.trace.comparing import comparison
from farm.trace.comparing.comparison import Named
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken

STAGES = ("preprocess", "forward", "postprocess")
# The original's names of what `metrics` holds under another.
TWINS = {
    "host_overhead_ms_per_step": "host_overhead_ms",
    "gpu_busy_ms_per_step": "gpu_busy_ms",
    "memcpy_ms_per_step": "memcpy_ms",
}
# What is of the last trial, as the note says, is no number of the document itself.
LISTS = ("kernels", "categories", "ops", "counts", "quality", "timings")


def stages(*times_ms: float) -> dict[str, list[float]]:
    return {name: [each] for name, each in zip(STAGES, times_ms, strict=True)}


def taken(scale: float = 1.0, *, busy: float = 0.5, **more: Any) -> Taken:
    """A capture on a GPU, its clean times scaled."""
    plain = [scale * each for each in (9.0, 10.0, 12.0)]
    fields = {"plain_ms": plain, "rate": 100 / scale, "p50_ms": 20 * scale, "on_gpu": True}
    times = stages(scale, 5 * scale, scale / 2)
    made = Taken(events=g8.events(steps=4, busy=busy), stages_ms=times, **fields)
    return made._replace(**more)


def together(*takens: Taken, mode: str = "inference") -> tuple[Analysis, list[Analysis]]:
    every = [captures.analysis(each, mode) for each in takens]
    files = [f"infer_{at}/profile.json" for at in range(len(every))]
    return trials.together(every, files=files), every


def numbers(found: Analysis) -> dict[str, float]:
    """Every number of a document that is not in one of the lists, by its dotted path."""
    plain = to_builtins(found)
    skipped = (*LISTS, "spread", "aggregation", "card", "config", "intervals", "null_reasons")
    more = ("kernels_by_phase", "ops_by_phase", "top_kernels", "img_per_s_trials")
    kept = {name: each for name, each in plain.items() if name not in (*skipped, *more)}
    return dict(_flat(kept, ""))


def _flat(value: object, path: str) -> list[tuple[str, float]]:
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return [(path, float(value))] if is_number else []
    return [
        one for key, each in items for one in _flat(each, f"{path}.{key}" if path else str(key))
    ]


SCALES = st.floats(0.5, 2.0)
TRIAL = st.builds(
    taken,
    SCALES,
    busy=st.sampled_from([0.3, 0.5, 0.6]),
    peak=st.integers(2**20, 2**33),
    traced_ms=st.lists(SCALES.map(lambda each: 10 * each), min_size=1, max_size=3),
)


@pytest.mark.seed("S4.28")
@settings(max_examples=25, deadline=None)
@given(st.lists(TRIAL, min_size=1, max_size=4))
def test_every_number_is_the_mean_of_all_trials(made: list[Taken]) -> None:
    """B15: one key held the last trial beside a twin with the mean."""
    found, every = together(*made)

    of_each = [numbers(each) for each in every]
    for path, value in numbers(found).items():
        if path in ("img_per_s_std", "img_per_s_n"):
            continue
        mean = fmean(each[path] for each in of_each)
        if path.endswith("unique_kernels") and not path.startswith("metrics."):
            mean = round(mean)  # a count of names
        assert math.isclose(mean, value, rel_tol=1e-9, abs_tol=1e-12), path


@given(st.lists(TRIAL, min_size=2, max_size=3))
@settings(max_examples=10, deadline=None)
def test_twins_say_the_same(made: list[Taken]) -> None:
    """A number in the document, in its metrics and in its spread."""
    found, _ = together(*made)

    for name, value in found.metrics.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert math.isclose(fmean(found.spread[name].trials), value, rel_tol=1e-9)
    for field in Analysis.__struct_fields__:
        twin = found.metrics.get(TWINS.get(field, field), UNSET)
        if twin is not UNSET and field not in ("unique_kernels", "intervals"):
            assert getattr(found, field) == twin, field
    assert found.latency.p50_ms == found.metrics["latency_p50_ms"]
    assert found.stages_ms["postprocess"] == found.metrics["nms_ms"]


@pytest.mark.seed("S4.28")
def test_the_spread_is_the_sample_deviation_with_its_n() -> None:
    """ddof 1, of a value per trial; B27."""
    found, _ = together(taken(1.0), taken(1.1), taken(1.3))

    rates = [100 / 1.0, 100 / 1.1, 100 / 1.3]
    spread = found.spread["img_per_s"]
    assert (pytest.approx(stdev(rates)), 3) == (spread.std, spread.n)
    assert pytest.approx(rates) == spread.trials == found.img_per_s_trials
    assert (spread.std, 3) == (found.img_per_s_std, found.img_per_s_n)
    assert pytest.approx(stdev([10.0, 11.0, 13.0])) == found.spread["step_ms"].std


def test_one_trial_has_no_spread_and_says_why() -> None:
    found, _ = together(taken())

    assert (None, None) == (found.img_per_s_std, found.spread["step_ms"].std)
    assert {"single_sample"} == {
        found.null_reasons[each] for each in ("img_per_s_std", "spread.step_ms.std")
    }


@pytest.mark.seed("S4.29")
def test_the_lists_are_those_of_the_last_trial_and_that_is_said() -> None:
    found, every = together(taken(busy=0.6), taken(busy=0.3))

    last = every[-1]
    for name in ("kernels", "top_kernels", "kernels_by_phase", "ops", "categories", "timings"):
        assert getattr(last, name) == getattr(found, name)
    assert every[0].kernels != found.kernels
    assert "infer_1/profile.json" == found.aggregation.representative_profile
    assert "kernels, categories, ops, counts" in found.aggregation.note
    assert "those of the last trial" in found.aggregation.note


@pytest.mark.seed("S4.31")
def test_trials_that_differ_in_their_bound_are_mixed_with_each_and_its_file() -> None:
    busy = taken(busy=0.95)

    found, every = together(busy, taken(busy=0.3))

    assert ["compute", "host / launch"] == [each.bound for each in every]
    assert ("mixed", "mixed", []) == (found.bound, found.metrics["bound"], found.reasons)
    assert ["compute", "host / launch"] == found.aggregation.bounds
    told = "infer_0/profile.json: compute; infer_1/profile.json: host / launch"
    assert f"the trials differ: {told}" == found.bound_why


def test_what_decided_in_all_trials_is_told_with_its_mean() -> None:
    found, every = together(taken(busy=0.95), taken(busy=0.85))

    values = [each.reasons[0].value for each in every]
    assert ("compute", fmean(values)) == (found.bound, found.reasons[0].value)
    assert values[1] != found.reasons[0].value


def test_a_number_that_one_trial_lacks_is_the_mean_of_the_others() -> None:
    """Its n says so."""
    lost = taken(2.0, events=None, untraced="phase_failed: RuntimeError")

    found, every = together(taken(busy=0.6), lost)

    assert every[0].gpu_util == found.gpu_util == found.metrics["gpu_util"]
    assert 1 == found.spread["gpu_util"].n
    assert "gpu_util" not in found.null_reasons
    assert ("single_sample", 2) == (
        found.null_reasons["spread.gpu_util.std"],
        found.spread["step_ms"].n,
    )


def test_the_window_is_as_long_as_the_mean_of_all() -> None:
    """Without a trace it is of the plain steps, of 31 and 62 ms."""
    found, _ = together(taken(1.0, events=None), taken(2.0, events=None))

    assert (46.5, 3) == (found.window.wall_ms, found.window.real_steps)


def test_a_doubt_about_one_trial_is_one_about_all() -> None:
    found, _ = together(taken(flags=["contended"]), taken(), taken())

    assert ("low", True) == (found.confidence, "contended" in found.quality.flags)


@pytest.mark.seed("S4.67")
def test_one_trial_under_memory_pressure_marks_all() -> None:
    found, _ = together(taken(retries=1), taken())

    assert (True, True) == (found.memory_pressure, found.metrics["memory_pressure"])


@pytest.mark.parametrize("mode", ["inference", "train"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_document_is_whole_and_each_null_in_it_has_its_reason(count: int, mode: str) -> None:
    made = [taken(1 + 0.1 * at, events=None if at % 2 else ()) for at in range(count)]

    found, _ = together(*made, mode=mode)

    data = schema.encode(found)
    assert found == schema.decode(data, Analysis)
    assert {"img_per_s_std", "img_per_s_n", "img_per_s_trials", "aggregation"} <= set(
        json.loads(data)
    )


@pytest.mark.seed("S4.30", "S4.87")
@pytest.mark.parametrize(("scale", "call"), [(1.0, "none"), (1.01, "none"), (1.02, "worse")])
def test_two_such_documents_are_compared_by_the_rule_of_two_standard_errors(scale, call) -> None:
    """Trials of 9.9, 10.0 and 10.1 ms: twice the combined standard error is 0.163 and a little."""
    sides = [together(*(taken(by * each) for each in (0.99, 1.0, 1.01)))[0] for by in (1, scale)]

    found = comparison.compare(*(Named(str(at), each) for at, each in enumerate(sides)))

    (row,) = [each for each in found.rows if each.metric == "step_ms"]
    combined = 2 * math.sqrt((0.1**2 + (0.1 * scale) ** 2) / 3)
    assert (pytest.approx(combined), 3, 3) == (row.rule.two_se, row.rule.before_n, row.rule.after_n)
    assert call == row.call


def test_the_lists_are_of_the_last_trial_that_has_its_trace() -> None:
    """One that lost it, for being too large or for a profiler that broke, has none to show."""
    found, every = together(taken(), taken(1.1), taken(1.2, events=None))
    none, last = together(taken(events=None), taken(1.1, events=None))

    assert ("infer_1/profile.json", every[1].kernels) == (
        found.aggregation.representative_profile,
        found.kernels,
    )
    assert every[1].trace == found.trace is not None
    assert "its trace" in found.aggregation.note
    assert ("infer_1/profile.json", last[1].bound) == (
        none.aggregation.representative_profile,
        none.bound,
    )


def test_a_trial_without_its_trace_has_no_say_in_what_only_a_trace_tells() -> None:
    """And each is told, with how many of them had part in what."""
    lost = taken(events=None, notes=["no trace was kept: it broke"])
    found, (_, traced, other) = together(lost, taken(1.1), taken(1.2))

    assert traced.bound == other.bound == found.bound
    assert "is of 2 of the 3 trials" in found.aggregation.note
    assert ["no trace was kept: it broke"] == found.config["notes"]
    assert 3 == found.spread["step_ms"].n
    assert 2 == found.spread["step_ms_mean"].n
