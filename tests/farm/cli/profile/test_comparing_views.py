"""A comparison for a person: signs, units, and what a change is worth in a word."""

from typing import Any

import pytest

from farm.cli.profile import comparing_views
from farm.report.table import Table
from farm.trace.analysis.quality import Quality
from farm.trace.analysis.record import Analysis
from farm.trace.comparing.kernels import CUT
from farm.trace.comparing.record import TraceComparison
from tests.farm.trace.comparing.sides import compared, made, side


def told(found: TraceComparison) -> tuple[list[str], list[Table]]:
    """The lines and the tables."""
    blocks = comparing_views.compared(found)
    return (
        [each for each in blocks if isinstance(each, str)],
        [each for each in blocks if isinstance(each, Table)],
    )


def cells(table: Table) -> dict[str, list[str]]:
    return {row[0].text: [each.text for each in row[1:]] for row in table.rows}


@pytest.mark.parametrize(
    ("before", "after", "worth", "tone"),
    [
        ([10.0], [20.0], "single run", ""),
        ([10.0, 10.2], [20.0, 20.2], "worse, > 2 SE 0.2828", "bad"),
        ([20.0, 20.2], [10.0, 10.2], "better, > 2 SE 0.2828", "good"),
        ([10.0, 10.2], [10.1, 10.2], "≤ 2 SE 0.2236", ""),
    ],
)
def test_a_change_says_what_it_is_worth(
    before: list[float], after: list[float], worth: str, tone: str
) -> None:
    """And colour only where something supports it."""
    table = told(compared(side(before), side(after)))[1][0]

    row = next(each for each in table.rows if each[0].text == "step ms")
    assert (worth, tone) == (row[-1].text, row[-1].tone)


def test_shares_are_in_percent_and_their_two_errors_too() -> None:
    from tests.farm.trace.comparing.sides import spread

    before = side(gpu_util=0.5, spread={"gpu_util": spread([0.49, 0.51])})
    after = side(gpu_util=0.9, spread={"gpu_util": spread([0.89, 0.91])})

    found = cells(told(compared(before, after))[1][0])["GPU utilisation %"]

    assert ["50.00", "90.00", "+40.00", "", "> 2 SE 2.828"] == found


def test_a_change_too_small_to_be_shown_has_no_sign() -> None:
    tables = told(
        compared(side([10.0], config={"batch": 1}), side([10.0001], config={"batch": 1}))
    )[1]

    assert ["10.00", "10.00", "0.00", "0.0", "single run"] == cells(tables[0])["step ms"]
    assert ["1.500", "1.500", "0.000", "0.0"] == cells(tables[1])["gemm"]


def test_what_neither_side_tells_is_no_row_and_what_one_does_is() -> None:
    one = told(compared(made(), side(img_per_s=5.0)))[1][0]
    none = told(compared(made(), made()))[1][0]

    assert ["–", "5.000", "–", "", "–"] == cells(one)["throughput items/s"]
    assert "throughput items/s" not in cells(none)
    assert "told by neither: throughput, time per item, peak memory" in none.notes


def test_a_side_says_what_it_is_and_what_is_to_be_doubted() -> None:
    doubtful = Quality(flags=["few_steps", "unsteady"], repaired={}, dropped={})
    before = side([1.0, 2.0], model="net", mode="training", quality=doubtful)

    lines = told(compared(before, made()))[0]

    assert "before   before.json" == lines[0]
    assert "         net, training, batch 10, 2 trials" == lines[1]
    doubts = "fewer than three steps; the steps differ by more than 10 %"
    assert f"         doubts: {doubts}" == lines[3]
    assert "         1 trial, its step with the profiler beside it" == lines[5]


def test_an_invalid_side_says_so_in_words() -> None:
    """A flag is a name for programs, also one that no trace has."""
    invalid = side(quality=Quality(flags=["contended", "cut"], repaired={}, dropped={}))

    found = compared(invalid, side())

    expected = ["before is invalid: other work ran on its cores"]
    assert expected == comparing_views.reasons(found)
    assert f"verdict  incomparable: {expected[0]}" in told(found)[0]


def test_latencies_and_phases_are_rows_of_their_own() -> None:
    both = side(mode="inference", metrics=made().metrics | {"latency_p50_ms": 4.0})

    found = cells(told(compared(both, both))[1][0])

    assert ["4.000", "4.000", "0.000", "0.0", "single run"] == found["latency p50 ms"]
    assert ["2.500", "2.500", "0.000", "0.0", "single run"] == found["forward wall ms"]


def test_a_profile_of_several_repeats_is_no_single_trial() -> None:
    lines = told(compared(side(config={"repeats": 3}), side([1.0, 2.0], config={"repeats": 3})))[0]

    assert ("         batch 10, one profile", "         batch 10, 2 trials") == (lines[1], lines[4])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("net", "other"), "differs  model: net before, other after"),
        (("net", "net"), f"differs  model: {'0' * 12} before, {'1' * 12} after"),
        ((None, "net"), f"differs  model: {'0' * 12} before, {'1' * 12} after"),
    ],
)
def test_models_are_told_by_their_names_and_then_by_twelve_digits(
    names: tuple[str | None, str], expected: str
) -> None:
    before, after = (
        side(model=name, config={"model_digest": digit * 64})
        for name, digit in zip(names, "01", strict=True)
    )

    assert expected in told(compared(before, after))[0]
    silent = told(compared(before, side()))[0]
    assert "unknown  model: one side does not tell" in silent


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"imgsz": [640, 480]}, "differs  imgsz: 640 before, 640 × 480 after"),
        ({"imgsz": 640, "driver": "570"}, "unknown  driver: one side does not tell"),
    ],
)
def test_settings_are_told_where_they_differ_or_one_side_is_silent(
    config: dict[str, Any], expected: str
) -> None:
    assert expected in told(compared(side(config={"imgsz": 640}), side(config=config)))[0]


def test_a_side_without_any_time_says_so() -> None:
    lines = told(compared(side(step_ms=None), made()))[0]

    assert "rule     no time is known of both sides" in lines


def test_kernels_of_a_list_that_was_cut_are_unknown_and_not_gone() -> None:
    cut = Quality(flags=[CUT], repaired={}, dropped={})
    after = side(kernels=made().kernels[:1], quality=cut)

    table = told(compared(side(), after))[1][-1]

    gone = next(row for row in table.rows if row[4].text == "only before")
    assert ("–", "–") == (gone[0].text, gone[2].text)


def test_only_the_largest_changes_are_shown_and_the_rest_is_counted() -> None:
    from msgspec import structs

    def many(ms: float) -> Analysis:
        kernel = made().kernels[0]
        names = [f"{letter}_kernel" for letter in "abcdefghijklm"]
        rows = [structs.replace(kernel, raw_name=each, ms_per_step=ms) for each in names]
        return side(kernels=rows, categories=made().categories)

    table = told(compared(many(1.0), many(2.0)))[1][-1]

    assert 10 == len(table.rows)
    assert "10 of 13 kernels that differ; --json has all" in table.notes


def test_of_several_trials_the_kernels_are_those_of_one() -> None:
    note = "of several trials, the kernels are those of one"

    assert note in told(compared(side([1.0, 2.0]), side([1.0, 2.0])))[1][-1].notes
    assert note not in told(compared(made(), made()))[1][-1].notes
