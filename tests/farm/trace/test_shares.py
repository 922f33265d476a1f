"""How far a row is believed: its share by totals beside its share by medians."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.trace import blocks, shares
from farm.trace.blocks import BlockRow
from tests.farm.trace.passes import PASSES, ns, table


@dataclass
class Row:
    share_pct: float
    average_ms: float
    median_ms: float | None


@pytest.mark.parametrize(
    ("share", "marked"), [(52.0, False), (52.1, True), (48.0, False), (47.9, True)]
)
def test_shares_that_are_more_than_two_points_apart_are_marked(share: float, marked: bool) -> None:
    rows = [Row(share, 1.0, 1.0), Row(100.0 - share, 1.0, 1.0)]

    assert [marked, marked] == shares.carried(rows)


@pytest.mark.parametrize(
    ("share", "mean", "marked"), [(5.0, 1.51, True), (5.0, 1.5, False), (4.9, 9.0, False)]
)
def test_a_mean_far_above_the_median_marks_a_row_that_counts(
    share: float, mean: float, marked: bool
) -> None:
    """Above 1.5 times, from 5 % on."""
    rows = [Row(share, mean, 1.0), Row(100.0 - share, 19.0, 19.0)]

    assert [marked, False] == shares.carried(rows)


def test_without_medians_nothing_is_marked() -> None:
    """Another tool's file may lack one, and a clock may be too coarse for all."""
    for medians in ((1.0, None), (0.0, 0.0)):
        rows = [Row(50.0, 9.0, each) for each in medians]

        assert [None, None] == shares.median_shares(rows)
        assert [False, False] == shares.carried(rows)


def test_rows_are_ranked_by_medians_and_one_iteration_moves_none() -> None:
    made = table(["a", "b"], ns([90] * 20, [10] * 19 + [5000]))

    ranked = shares.by_median(made)

    assert [("a", 90.0), ("b", 10.0)] == [(row.layer, round(pct, 6)) for row, pct in ranked]


def test_where_all_medians_are_zero_totals_rank() -> None:
    made = table(["a", "b"], ns([0, 0, 1], [0, 0, 3]))

    assert [("b", 75.0), ("a", 25.0)] == [(row.layer, pct) for row, pct in shares.by_median(made)]


@given(PASSES)
def test_shares_by_medians_add_up(times: list[list[int]]) -> None:
    made = table([f"l{at}" for at in range(len(times))], ns(*times))

    assert 100.0 == pytest.approx(sum(pct for _, pct in shares.by_median(made)))


@pytest.mark.parametrize(
    ("method", "clock", "ms", "short"),
    [
        ("imported", "wall", 0.0099, True),
        ("imported", "device", 0.0099, False),
        ("wrapped", "wall", 0.001, False),
        (None, None, 1e-9, False),
        ("wrapped", "wall", None, False),
    ],
)
def test_a_clock_is_judged_where_it_is_known(method, clock, ms, short) -> None:
    assert short == shares.is_short(ms, method=method, clock=clock)


def test_a_row_is_doubted_for_its_clock_or_for_what_carries_it() -> None:
    odd = table(["a", "b"], ns([100] * 20, [10] * 19 + [5000]))
    short = table(["a", "b"], ns([100, 100], [0, 0]))

    assert (shares.CARRIED, shares.CARRIED) == (shares.doubt(odd, 0), shares.doubt(odd, 1))
    assert ("", shares.SHORT) == (shares.doubt(short, 0), shares.doubt(short, 1))


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9), st.floats(0, 1e3), st.floats(1e-3, 1e3)
)
def test_rows_and_rest_add_up_to_a_clean_iteration(
    rows: list[float], rest: float, clean: float
) -> None:
    part = shares.attributed(sum(rows), rest)

    scaled = [shares.of_clean(ms / sum(rows), clean, 0.1, attributed=part)[0] for ms in rows]

    of_rest = clean * rest / (sum(rows) + rest)
    assert clean == pytest.approx(sum(each or math.nan for each in scaled) + of_rest)


@pytest.mark.parametrize("rest", [None, 0.0, -1.0])
def test_a_rest_that_is_unknown_or_none_leaves_all_to_the_rows(rest: float | None) -> None:
    """Rows that ran side by side may take more than the iteration did."""
    assert 1.0 == shares.attributed(5.0, rest)


# ── shares that are none ─────────────────────────────────────────────────────────────────────────


def printed(*rows: tuple[float, float]) -> list[BlockRow]:
    """Return rows of a file, each with its share and its total."""
    return [
        BlockRow(
            layer=f"l{at}",
            share_pct=share,
            average_ms=total,
            median_ms=total,
            std_ms=None,
            total_ms=total,
        )
        for at, (share, total) in enumerate(rows)
    ]


@pytest.mark.seed("S0.16")
@pytest.mark.parametrize(
    ("shares_pct", "said"),
    [
        ((60.0, 40.0), ""),
        ((60.0, 40.1), ""),
        ((60.0, 40.2), "its shares add up to 100.2 %, and not to 100"),
        ((60.0, 39.8), "its shares add up to 99.8 %, and not to 100"),
        ((90.0, 90.0), "its shares add up to 180.0 %, and not to 100"),
        ((0.0, 0.0), "its shares add up to 0.0 %, and not to 100"),
    ],
)
def test_shares_that_do_not_add_up_are_odd(shares_pct: tuple[float, float], said: str) -> None:
    """To 100, within half a tenth for each row."""
    first, second = shares_pct

    assert said == shares.odd(printed((first, 6.0), (second, 4.0)))


@pytest.mark.seed("S0.15")
def test_shares_of_something_else_than_the_totals_are_odd() -> None:
    """They add up, and yet each is the part of something else; two points mislead nobody."""
    assert "" == shares.odd(printed((62.0, 6.0), (38.0, 4.0)))
    assert "its shares are not those of its totals" == shares.odd(printed((75.0, 5.0), (25.0, 5.0)))
    assert "" == shares.odd(printed((75.0, 0.0), (25.0, 0.0)))


@pytest.mark.seed("S0.15", "S0.16")
@given(PASSES)
@example([[140], [160]])  # of 46.7 and 53.3 %, and yet 0.0001 and 0.0002 ms where they are printed
def test_no_table_that_is_printed_here_is_odd(times: list[list[int]]) -> None:
    """Whatever its times are: nor as it was measured, nor as it is read from the file."""
    made = table([f"l{at}" for at in range(len(times))], np.array(times, dtype=np.int64))
    text = blocks.text(blocks.rows_of(made), iterations=made.iterations)

    (block,) = blocks.split(text, name="f.csv")

    assert ("", "") == (shares.odd(made.rows), shares.odd(block.rows))
