"""The reduction: samples of a layer pass in, one row a layer out, and what cannot be said."""

import itertools
import math
import random
import statistics
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.errors import Bad
from farm.trace import layers
from tests.farm.counted import lines_run
from tests.farm.trace.passes import PASSES, Reading, ns, table


@pytest.mark.seed("S0.10", "S0.8")
def test_every_layer_becomes_one_row_of_all_its_iterations() -> None:
    made = table(["a", "b", "c"], ns([1, 2], [3, 4], [5, 6]))

    assert ["a", "b", "c"] == [row.layer for row in made.rows]
    assert 2 == made.iterations
    assert [0.003, 0.007, 0.011] == pytest.approx([row.total_ms for row in made.rows])


@pytest.mark.seed("S0.17", "S0.18", "S0.19")
def test_mean_median_and_sample_deviation_are_named_as_they_are() -> None:
    """Even N: the mean of the middle two; ddof 1."""
    (row,) = table(["a"], ns([10, 40, 20, 70])).rows

    assert 0.035 == pytest.approx(row.average_ms)
    assert 0.030 == pytest.approx(row.median_ms)
    assert statistics.stdev([0.010, 0.040, 0.020, 0.070]) == pytest.approx(row.std_ms)


@pytest.mark.seed("S0.19")
def test_a_single_iteration_has_no_deviation() -> None:
    made = table(["a"], ns([10]))

    assert made.rows[0].std_ms is None
    assert "single_sample" == made.null_reasons["rows.0.std_ms"]


@pytest.mark.seed("S0.15")
def test_a_share_is_the_total_of_a_layer_over_the_sum_of_all_totals() -> None:
    made = table(["a", "b"], ns([10, 20], [30, 60]))

    assert [25.0, 75.0] == pytest.approx([row.share_pct for row in made.rows])


@pytest.mark.seed("S0.15")
def test_the_golden_totals_give_the_golden_shares() -> None:
    """G7: 0.0524 and 0.0550 ms of 0.2157, in ten iterations."""
    made = table(["a", "b", "c"], ns(*([each] * 10 for each in (524, 550, 1083))) // 100)

    assert ["24.3", "25.5"] == [f"{row.share_pct:.1f}" for row in made.rows[:2]]
    assert ["0.0052", "0.0055"] == [f"{row.average_ms:.4f}" for row in made.rows[:2]]


@given(PASSES)
def test_shares_add_up_and_averages_stand_for_their_totals(times: list[list[int]]) -> None:
    made = table([f"l{at}" for at in range(len(times))], np.array(times, dtype=np.int64))

    assert 100.0 == pytest.approx(sum(row.share_pct for row in made.rows))
    for row, samples in zip(made.rows, times, strict=True):
        assert sum(samples) / 1e6 == pytest.approx(row.total_ms)
        assert row.total_ms == pytest.approx(row.average_ms * made.iterations)
        assert min(samples) / 1e6 <= row.median_ms <= max(samples) / 1e6
    schema.encode(made)


@pytest.mark.seed("S0.13")
def test_a_name_that_comes_again_is_numbered_in_call_order() -> None:
    """The first keeps its own name, slashes and all."""
    made = table(["/net/Conv", "b", "/net/Conv", "/net/Conv"], ns([1], [2], [3], [4]))

    names = [row.layer for row in made.rows]

    assert ["/net/Conv", "b", "/net/Conv#2", "/net/Conv#3"] == names


def test_a_number_never_makes_two_names_of_one() -> None:
    assert ["a", "a#2", "a#3"] == layers.numbered(["a", "a#2", "a"])


@pytest.mark.seed("S0.13")
@given(st.lists(st.sampled_from(["a", "a#2", "a#3", "a#2#2", "b"]), max_size=20))
def test_numbered_names_are_all_different_and_each_is_the_first_that_is_free(
    names: list[str],
) -> None:
    found = layers.numbered(names)

    assert len(names) == len(set(found))
    for at, (name, unique) in enumerate(zip(names, found, strict=True)):
        numbers = (f"{name}#{count}" for count in itertools.count(2))
        assert unique == next(
            each for each in itertools.chain([name], numbers) if each not in found[:at]
        )


def test_many_layers_of_one_name_are_numbered_in_one_go() -> None:
    """20,000 of them took 48 s: each began to count anew. Twice as many are twice the work."""
    once, twice = (
        lines_run(partial(layers.numbered, ["fc", "fc#7"] * count)) for count in (200, 400)
    )

    assert twice < 2.5 * once


@pytest.mark.seed("S0.14")
def test_rows_stay_in_the_order_of_execution_and_are_sorted_for_people() -> None:
    made = table(["first", "big", "last"], ns([2], [9], [1]))

    assert ["first", "big", "last"] == [row.layer for row in made.rows]
    assert ["big", "first", "last"] == [row.layer for row in layers.by_share(made)]


def test_a_container_is_a_row_of_its_own_work_from_one_percent_on() -> None:
    """Below it, its time is in no row, and the rest says so."""
    made = table(
        ["Net (self)", "head (self)", "a"], ns([10, 10], [9, 9], [981, 981]), clean=ns([1000])[0]
    )

    assert ["Net (self)", "a"] == [row.layer for row in made.rows]
    assert 0.009 == pytest.approx(made.unattributed_ms)
    assert 100.0 == pytest.approx(sum(row.share_pct for row in made.rows))


def test_a_leaf_is_a_row_however_small() -> None:
    made = table(["a", "b"], ns([0, 0], [1000, 1000]))

    assert ["a", "b"] == [row.layer for row in made.rows]
    assert 0.0 == made.rows[0].share_pct


def test_what_an_iteration_does_outside_of_all_layers_is_the_rest() -> None:
    made = layers.reduce(
        Reading(["a"]),
        ns([70, 90]),
        profiled_ns=ns([100, 120])[0],
        clean_ns=ns([100])[0],
        precision="fp32",
        device="cpu:0",
    )

    assert 0.030 == pytest.approx(made.unattributed_ms)
    assert (100 + 120) / 2e3 == pytest.approx(made.rows[0].average_ms + made.unattributed_ms)


def test_there_is_no_rest_where_rows_are_not_all() -> None:
    made = table(["a"], ns([70]), reading=Reading(["a"], attributed=False))

    assert made.unattributed_ms is None
    assert "not_probed" == made.null_reasons["unattributed_ms"]


def test_a_device_s_layers_are_not_taken_from_the_host_s_iteration() -> None:
    """The device may be busy for less than the host waits; only what was left out is the rest."""
    times = ns([5], [995])
    reading = Reading(["Net (self)", "a"], clock="device")
    made = layers.reduce(
        reading,
        times,
        profiled_ns=ns([9000])[0],
        clean_ns=ns([9000])[0],
        precision="fp16",
        device="cuda:0",
    )

    assert 0.005 == pytest.approx(made.unattributed_ms)


# ── against clean iterations ─────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S0.32")
def test_the_instrument_s_cost_is_the_ratio_of_medians() -> None:
    made = table(["a"], ns([110, 110, 900]), clean=ns([100, 100, 500])[0])

    assert 0.110 == made.profiled_ms
    assert 0.100 == made.clean_ms
    assert 0.10 == pytest.approx(made.perturbation)


def test_a_layer_is_scaled_to_its_share_of_a_clean_iteration() -> None:
    made = table(["a", "b"], ns([30, 30], [90, 90]), clean=ns([100, 100])[0])

    assert [0.025, 0.075] == pytest.approx([row.scaled_ms for row in made.rows])
    assert made.clean_ms == pytest.approx(sum(row.scaled_ms or math.nan for row in made.rows))


def test_what_is_in_no_row_takes_its_part_of_a_clean_iteration() -> None:
    """Rows and rest, scaled alike, are a clean iteration: nothing is spread over the rows."""
    made = layers.reduce(
        Reading(["a", "b"]),
        ns([20, 20], [60, 60]),
        profiled_ns=ns([100, 100])[0],
        clean_ns=ns([90, 90])[0],
        precision="fp32",
        device="cpu:0",
    )

    scaled = [row.scaled_ms or math.nan for row in made.rows]

    assert [0.018, 0.054] == pytest.approx(scaled)
    assert made.clean_ms == pytest.approx(sum(scaled) + 0.020 * 0.9)


def test_where_the_rest_is_not_known_rows_are_all_of_a_clean_iteration() -> None:
    made = table(["a"], ns([70]), reading=Reading(["a"], attributed=False), clean=ns([60])[0])

    assert 0.060 == pytest.approx(made.rows[0].scaled_ms)


def test_too_much_perturbation_scales_nothing() -> None:
    """Above 20 %, and not at it."""
    at, above = (
        table(["a"], ns([each, each]), clean=ns([100])[0], reading=None) for each in (120, 121)
    )

    assert 0.100 == pytest.approx(at.rows[0].scaled_ms)
    assert above.rows[0].scaled_ms is None
    assert above.null_reasons["rows.0.scaled_ms"].startswith("perturbation_too_high: 21 %")


def test_without_clean_iterations_nothing_is_known_of_the_cost() -> None:
    made = table(["a"], ns([10, 10]), clean=np.zeros(0, dtype=np.int64))

    assert (None, None, None) == (made.clean_ms, made.perturbation, made.rows[0].scaled_ms)
    assert {"not_probed"} == {
        made.null_reasons[path] for path in ("clean_ms", "perturbation", "rows.0.scaled_ms")
    }
    schema.encode(made)


@pytest.mark.seed("S2.26")
@pytest.mark.parametrize(
    ("perturbation", "factor", "word"),
    [(0.0, 1.0, "low"), (0.999, 1.999, "low"), (1.0, 2.0, "moderate"), (9.0, 10.0, "high")],
)
def test_the_overhead_factor_has_a_word(perturbation: float, factor: float, word: str) -> None:
    """Below 2 low, below 10 moderate."""
    assert (factor, word) == pytest.approx(layers.overhead(perturbation), abs=1e-12)


# ── FLOPs and peak ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.10")
def test_a_layer_reaches_a_part_of_the_peak_in_its_clean_time() -> None:
    """2 MFLOP in 0.1 ms are 20 GFLOP/s: a fifth of 100."""
    made = table(
        ["a", "b"],
        ns([100, 100], [100, 100]),
        flops_by_layer={"a": 2_000_000},
        peak_flops_per_s=100e9,
    )

    assert (50.0, 2_000_000, 20.0) == pytest.approx(
        (made.rows[0].share_pct, made.rows[0].flops_per_batch, made.rows[0].pct_of_peak)
    )
    assert (None, None) == (made.rows[1].flops_per_batch, made.rows[1].pct_of_peak)
    assert made.null_reasons["rows.1.flops_per_batch"].startswith("not_supported")


def test_what_is_counted_below_a_row_counts_for_it() -> None:
    """A fused layer calls none of its parts; a container keeps what only it does."""
    counted = {"": 1, "block": 10, "block.linear": 100, "block.attention.out_proj": 1000}
    made = table(
        ["Net (self)", "block (self)", "block.attention"],
        ns([100], [100], [100]),
        flops_by_layer=counted,
    )

    assert [1, 110, 1000] == [row.flops_per_batch for row in made.rows]


def test_flops_that_nobody_asked_for_and_a_peak_that_nobody_knows_are_null() -> None:
    asked_not = table(["a"], ns([100]))
    no_peak = table(["a"], ns([100]), flops_by_layer={"a": 7})

    assert "not_requested" == asked_not.null_reasons["rows.0.flops_per_batch"]
    assert 7 == no_peak.rows[0].flops_per_batch
    assert no_peak.null_reasons["rows.0.pct_of_peak"].startswith("not_probed")


def test_more_than_the_peak_is_an_error_and_no_share() -> None:
    made = table(["a"], ns([100]), flops_by_layer={"a": 10**9}, peak_flops_per_s=1e12)

    assert made.rows[0].pct_of_peak is None
    assert made.null_reasons["rows.0.pct_of_peak"].startswith("error: 1000 % of the peak")


# ── what is not to be believed ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "clock", "least_ns"),
    [
        ("wrapped", "wall", 1_000),
        ("hooks", "wall", 10_000),
        ("profiler", "wall", 10_000),
        ("wrapped", "device", 5_000),
    ],
)
def test_a_layer_below_ten_steps_of_its_clock_is_not_reliable(method, clock, least_ns) -> None:
    """ONNX Runtime counts whole microseconds: rows below 10 µs are marked."""
    reading = Reading(["a", "b"], method=method, clock=clock)
    times = np.array([[least_ns] * 3, [least_ns - 1] * 3], dtype=np.int64)

    made = table([], times, reading=reading)

    assert [True, False] == [row.reliable for row in made.rows]


def test_a_layer_that_one_iteration_carries_is_not_reliable() -> None:
    """Its share stays that of totals (S0.15); those it takes shares from are marked too."""
    made = table(["a", "b"], ns([100] * 20, [10] * 19 + [5000]))

    assert [True, True] == [row.share_pct > 20 for row in made.rows]
    assert "b" == layers.by_share(made)[0].layer
    assert [False, False] == [row.reliable for row in made.rows]


def test_a_pass_that_took_no_time_is_refused() -> None:
    with pytest.raises(Bad, match="no layer took any time"):
        table(["a"], ns([0, 0]))


def test_the_sum_of_scaled_layers_is_a_clean_iteration(seed: int) -> None:
    """T8: within 5 %; exactly, because the shares are of the same pass."""
    rng = random.Random(seed)
    times = np.array(
        [[rng.randint(5_000, 900_000) for _ in range(100)] for _ in range(40)], dtype=np.int64
    )
    made = table([f"l{at}" for at in range(40)], times, clean=times.sum(axis=0) * 9 // 10)

    scaled = sum(row.scaled_ms or math.nan for row in made.rows)

    assert made.clean_ms == pytest.approx(scaled, rel=1e-9)
