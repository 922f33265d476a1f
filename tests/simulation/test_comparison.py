"""How often a comparison errs: T4 and T5 of the acceptance table, by simulation.

A bound is the promised rate plus what chance adds once in ten million runs.
"""

import numpy as np
import pytest
from scipy import stats as reference

from farm.stats.compare import LOOKS
from farm.stats.power import detectable_change, pairs_needed
from farm.stats.unpaired import moments, two_se, two_se_false_alarm, welch_log
from tests.simulation.sides import PAIRS, Tally, compared, pairs, slots

CHANCE = 1e-7
SHAPES = ["plain", "drift", "sticky", "outliers", "all", "measured"]


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_sides_are_called_different_in_five_of_a_hundred(
    shape: str, rng: np.random.Generator
) -> None:
    """T4 at alpha 0.05: drift, neighbours that stick together and outliers notwithstanding.

    A spread of 5 % keeps the 1 % threshold out of it: these are the limits' own false alarms.
    """
    values = slots(rng, 4000, spread=0.05, shape=shape)

    _assert_rate(compared(pairs(rng, values)), alpha=0.05)


@pytest.mark.long
def test_equal_sides_are_called_different_in_one_of_a_hundred(rng: np.random.Generator) -> None:
    """T4 at alpha 0.01."""
    values = slots(rng, 20_000, spread=0.05, shape="plain")

    _assert_rate(compared(pairs(rng, values), alpha=0.01), alpha=0.01)


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("spread", [0.01, 0.02, 0.05])
@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_at_length(
    shape: str, spread: float, alpha: float, rng: np.random.Generator
) -> None:
    """T4 over the whole grid."""
    values = slots(rng, 20_000, spread=spread, shape=shape)

    _assert_rate(compared(pairs(rng, values), alpha=alpha), alpha=alpha)


@pytest.mark.parametrize(("spread", "change", "power"), [
    (0.01, 0.02, 0.85),
    (0.02, 0.02, 0.85),
    (0.02, -0.02, 0.85),
    (0.02, 0.05, 0.99),
    (0.02, -0.05, 0.99),
])  # fmt: skip
def test_a_change_is_found(
    spread: float, change: float, power: float, rng: np.random.Generator
) -> None:
    """T5: a change of 2 % in 85 of a hundred comparisons, of 5 % in 99, and never the wrong way."""
    count = 2000
    found = compared(pairs(rng, slots(rng, count, spread=spread, shape="plain"), change=change))
    right, wrong = ("worse", "better") if change > 0 else ("better", "worse")

    assert found.verdicts[right] >= power * count
    assert found.verdicts[wrong] <= reference.binom.ppf(1 - CHANCE, count, 0.001)


def test_a_true_change_of_two_percent_is_seldom_called_the_same(rng: np.random.Generator) -> None:
    """Spent limits keep the promise of 5 %; a 90 % interval at each look breaks it."""
    count = 4000
    rows = pairs(rng, slots(rng, count, spread=0.02, shape="plain"), change=0.02)

    found = compared(rows)
    unspent = _called_same_without_spending(rows)

    assert found.verdicts["same"] <= reference.binom.ppf(1 - CHANCE, count, 0.05)
    assert unspent >= reference.binom.ppf(CHANCE, count, 0.08)


@pytest.mark.parametrize("change", [0.0, 0.03])
def test_the_interval_of_a_look_holds_at_all_looks(change: float, rng: np.random.Generator) -> None:
    """With probability 0.95 the truth lies in the interval of every look that was taken."""
    count = 3000
    rows = pairs(rng, slots(rng, count, spread=0.05, shape="plain"), change=change)

    assert compared(rows, change=change).covered >= reference.binom.ppf(CHANCE, count, 0.95)


def test_a_detectable_change_is_found_in_nine_of_ten(rng: np.random.Generator) -> None:
    """At the last look, with its limit, and at the spread that the differences have."""
    count, limit, spread = 4000, 0.0249, 0.03
    change = detectable_change(spread, pairs=PAIRS, limit=limit)
    rows = np.log1p(change) + spread * rng.standard_normal((count, PAIRS))

    found = reference.ttest_1samp(rows, 0.0, axis=1).pvalue <= limit

    margin = 5.0 * np.sqrt(0.09 / count)
    assert pytest.approx(0.9, abs=0.01 + margin) == np.mean(found)


def test_planned_pairs_find_the_change_in_nine_of_ten(rng: np.random.Generator) -> None:
    """One test with the planned number of pairs, far from the first look's least."""
    count, spread, change = 4000, 0.02, 0.015
    planned = pairs_needed(spread, change=change)
    rows = np.log1p(change) + np.sqrt(2.0) * spread * rng.standard_normal((count, planned))

    found = reference.ttest_1samp(rows, 0.0, axis=1).pvalue <= 0.05

    assert pytest.approx(0.9, abs=0.02 + 5.0 * np.sqrt(0.09 / count)) == np.mean(found)


def test_one_side_after_the_other_alarms_falsely(rng: np.random.Generator) -> None:
    """What the pairs are for: all of A and then all of B sees the drift and calls it B's."""
    values = slots(rng, 500, spread=0.02, shape="drift")
    split = values[:, PAIRS:] - values[:, :PAIRS]

    assert compared(split).changes >= 400
    assert compared(pairs(rng, values)).changes <= reference.binom.ppf(1 - CHANCE, 500, 0.05)


def test_five_unspent_looks_alarm_falsely(rng: np.random.Generator) -> None:
    """What the limits are for: 5 % at each of five looks is more than 10 % at all of them."""
    rows = pairs(rng, slots(rng, 4000, spread=0.05, shape="plain"))
    looks = [reference.ttest_1samp(rows[:, :count], 0.0, axis=1).pvalue <= 0.05 for count in LOOKS]

    assert np.mean(np.any(looks, axis=0)) > 0.10


@pytest.mark.parametrize(("n_a", "n_b"), [(2, 2), (3, 3), (10, 10), (3, 5)])
def test_the_seeds_rule_alarms_as_often_as_it_says(
    n_a: int, n_b: int, rng: np.random.Generator
) -> None:
    """Equal normal sides beyond two standard errors; the rate of unequal n is close, not exact."""
    count = 4000
    sides = [(rng.standard_normal(n_a), rng.standard_normal(n_b)) for _ in range(count)]

    found = np.mean([two_se(moments(a), moments(b)).exceeds for a, b in sides])

    rate = two_se_false_alarm(n_a, n_b)
    slack = 0.0 if n_a == n_b else 0.03
    assert pytest.approx(rate, abs=slack + 5.0 * np.sqrt(rate * (1.0 - rate) / count)) == found


def test_an_unpaired_ratio_covers_the_truth(rng: np.random.Generator) -> None:
    """Three processes against five, of unequal spread: the interval holds in 93 of a hundred."""
    count, truth = 2000, 1.1
    covered = 0
    for _ in range(count):
        a, b = 0.01 * rng.standard_normal(3), np.log(truth) + 0.02 * rng.standard_normal(5)
        found = welch_log(moments(a), moments(b))
        assert found.lo is not None
        assert found.hi is not None
        covered += found.lo <= truth <= found.hi

    assert covered >= reference.binom.ppf(CHANCE, count, 0.93)


def _assert_rate(found: Tally, *, alpha: float) -> None:
    """No more changes than alpha, and an upper 95 % bound of their rate below 1.5 alpha."""
    count = len(found.pairs)
    upper = reference.beta.ppf(0.95, found.changes + 1, count - found.changes)

    assert found.changes <= reference.binom.ppf(1 - CHANCE, count, alpha)
    assert upper <= 1.5 * alpha


def _called_same_without_spending(rows: np.ndarray) -> int:
    """How many rows a 90 % interval within 2 % would call the same at some look."""
    bound = np.log(1.02)
    called = np.zeros(len(rows), dtype=bool)
    for count in LOOKS:
        part = rows[:, :count]
        error = part.std(axis=1, ddof=1) / np.sqrt(count)
        reach = reference.t.ppf(0.95, count - 1) * error
        called |= np.abs(part.mean(axis=1)) + reach <= bound
    return int(called.sum())
