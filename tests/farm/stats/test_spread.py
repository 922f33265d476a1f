"""Spread, drift, outliers and modes of a sample series."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.stats.spread import (
    DRIFT_LIMIT,
    bimodal,
    drift,
    drift_noise,
    drift_rel,
    iqr_rel,
    is_drifting,
    lag1,
    mad,
    outlier_bound,
    outlier_share,
    std,
    theil_sen,
)

durations = st.floats(min_value=0.1, max_value=1e6)
series = st.lists(durations, min_size=2, max_size=50)


def test_std_is_that_of_a_sample() -> None:
    """The divisor is n - 1, and a single sample has none."""
    assert 1.0 == std([1.0, 2.0, 3.0])
    assert std([5.0]) is None


def test_mad_and_iqr_are_those_of_the_definition() -> None:
    """MAD is unscaled; the quartile range is relative to the median."""
    samples = [1.0, 2.0, 3.0, 4.0, 100.0]

    assert 1.0 == mad(samples)
    assert pytest.approx(2.0 / 3.0) == iqr_rel(samples)


@given(series, st.floats(min_value=0.01, max_value=100.0))
def test_spread_follows_the_unit(samples: list[float], factor: float) -> None:
    """Absolute spreads scale with the unit, relative ones do not change."""
    scaled = [factor * each for each in samples]
    slack = 1e-9 * factor * max(samples)

    assert std(scaled) == pytest.approx(factor * (std(samples) or 0.0), rel=1e-6, abs=slack)
    assert mad(scaled) == pytest.approx(factor * mad(samples), rel=1e-6, abs=slack)
    assert iqr_rel(scaled) == pytest.approx(iqr_rel(samples), rel=1e-6, abs=1e-6)


def test_a_ratio_to_a_zero_median_is_refused() -> None:
    """Samples below the clock's tick have no relative spread."""
    with pytest.raises(Refused, match="median"):
        iqr_rel([0.0, 0.0, 1.0])


@given(
    st.floats(-100.0, 100.0),
    st.integers(5, 40),
    st.integers(0, 1_000_000),
)
def test_theil_sen_finds_the_slope_behind_a_few_wild_values(
    slope: float, n: int, where: int
) -> None:
    """One value of any size does not move the slope of an exact line."""
    line = slope * np.arange(n)
    line[where % n] += 1e6

    assert pytest.approx(slope, abs=1e-6) == theil_sen(line)


def test_no_slope_through_a_single_value() -> None:
    """A slope needs two points."""
    with pytest.raises(Refused):
        theil_sen([1.0])
    assert 2.0 == theil_sen([1.0, 3.0])
    assert drift_noise([1.0]) is None


@pytest.mark.parametrize("n", [40, 200, 5000])
def test_drift_is_the_change_over_the_whole_series(n: int, rng: np.random.Generator) -> None:
    """A series that grows by 5 % of its median drifts by 0.05, however long it is."""
    samples = np.linspace(0.975, 1.025, n) * (1.0 + 1e-4 * rng.standard_normal(n))

    assert pytest.approx(0.05, rel=0.06) == drift_rel(samples)
    assert drift_rel([3.0]) is None


@pytest.mark.parametrize("n", [2, 3, 199, 200, 201, 399, 500, 1001])
def test_drift_is_that_of_its_definition(n: int, rng: np.random.Generator) -> None:
    """Slope over the medians of 200 almost equal parts, and what their scatter explains."""
    samples = 1.0 + rng.random(n)
    medians = [float(np.median(part)) for part in np.array_split(samples, min(n, 200))]
    slope, count = theil_sen(medians), len(medians)
    rest = np.array(medians) - slope * np.arange(count)
    centre = float(np.median(samples))

    assert pytest.approx(slope * count / centre) == drift_rel(samples)
    assert pytest.approx(3 * 1.4826 * mad(rest) / centre * np.sqrt(12 / count)) == drift_noise(
        samples
    )


def test_drift_does_not_see_outliers(rng: np.random.Generator) -> None:
    """A few stalls at the end are outliers and no drift."""
    samples = 1.0 + 0.001 * rng.standard_normal(1000)
    samples[-20:] *= 5.0

    drift = drift_rel(samples)

    assert drift is not None
    assert abs(drift) < 0.002


def test_lag1_is_the_biased_autocorrelation() -> None:
    """Alternation is close to -1, a constant or a single value has none."""
    assert pytest.approx(-0.99) == lag1([1.0, 2.0] * 50)
    assert pytest.approx(0.25) == lag1([1.0, 1.0, 2.0, 2.0])
    assert lag1([2.0] * 9) is None
    assert lag1([2.0]) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=2, max_size=60))
def test_lag1_is_a_correlation(samples: list[float]) -> None:
    """It lies between -1 and 1."""
    found = lag1(samples)

    assert found is None or -1.0 <= found <= 1.0


def test_outliers_lie_ten_robust_deviations_above_the_median() -> None:
    """Bound and share; what is below the median is none."""
    samples = [9.0, 10.0, 11.0] * 10 + [24.0, 25.0, 0.001]

    assert pytest.approx(10.0 + 10 * 1.4826) == outlier_bound(samples)
    assert pytest.approx(1 / 33) == outlier_share(samples)


@given(series)
def test_at_most_half_are_outliers(samples: list[float]) -> None:
    """The bound is never below the median."""
    assert 0.0 <= outlier_share(samples) <= 0.5


@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
def test_two_modes_are_found(share: float, rng: np.random.Generator) -> None:
    """Two classes ten standard deviations apart, whatever their sizes."""
    slow = rng.random(1000) < share
    samples = np.where(slow, 1.1, 1.0) * (1.0 + 0.01 * rng.standard_normal(1000))

    assert bimodal(samples)


@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential", "constant", "outliers"])
def test_one_mode_is_not_called_two(shape: str, rng: np.random.Generator) -> None:
    """Wide, skewed, flat and spiked series have one mode."""
    n = 1000
    samples = {
        "normal": 1.0 + 0.05 * rng.standard_normal(n),
        "uniform": 1.0 + 0.2 * rng.random(n),
        "exponential": 1.0 + 0.1 * rng.exponential(size=n),
        "constant": np.full(n, 3.0),
        "outliers": np.where(np.arange(n) % 20 == 0, 5.0, 1.0),
    }[shape]

    assert not bimodal(samples)


def test_a_class_has_a_tenth_of_the_samples() -> None:
    """Nine of a hundred far away are outliers, eleven are a mode, on either side."""
    for low, high in ((1.0, 2.0), (2.0, 1.0)):
        assert not bimodal([low] * 91 + [high] * 9)
        assert bimodal([low] * 89 + [high] * 11)


def test_modes_less_than_two_percent_apart_are_one() -> None:
    """A difference that nobody cares about is no second mode."""
    assert not bimodal([1.0] * 50 + [1.019] * 50)
    assert bimodal([1.0] * 50 + [1.021] * 50)


def test_too_few_or_zero_samples_show_no_modes() -> None:
    """Below 64 samples, and without a logarithm, there is no verdict."""
    assert not bimodal([1.0] * 31 + [2.0] * 32)
    assert bimodal([1.0] * 32 + [2.0] * 32)
    assert not bimodal([0.0] * 50 + [2.0] * 50)


def test_the_child_side_statistics_import_no_scipy() -> None:
    """What the child imports is memory it measures: warm-up and spread stay with numpy."""
    program = (
        "import sys, farm.stats.labels, farm.stats.stopping, farm.stats.warmup as w;"
        "import farm.stats.spread as s; s.bimodal([1.0] * 99); w.half_width([1.0, 2.0] * 50);"
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode


def test_scatter_alone_is_no_drift(seed: int) -> None:
    """Of level series of 15 noisy samples at most 1 in 10 drifts more than its noise explains."""
    rng = np.random.default_rng(seed)
    series = 500.0 * (1 + 0.01 * rng.standard_normal((400, 15)))

    beyond = [abs(drift_rel(each) or 0) > (drift_noise(each) or 0) for each in series]

    assert sum(beyond) <= 40


def test_a_drift_is_none_where_scatter_explains_it(seed: int) -> None:
    """It is either the whole movement or 0, and a pass drifts from 2 % on."""
    rng = np.random.default_rng(seed)
    for rise in (0.0, 0.005, 0.015, 0.03, 0.2):
        series = np.linspace(1.0, 1.0 + rise, 200) * (1 + 0.01 * rng.standard_normal(200))
        moved, noise = drift_rel(series), drift_noise(series)
        assert moved is not None
        assert noise is not None

        assert (moved if abs(moved) > noise else 0.0) == drift(series)
        assert (abs(moved) > max(DRIFT_LIMIT, noise)) is is_drifting(series)


@pytest.mark.parametrize(
    ("rise", "is_told"), [(-0.03, True), (0.0, False), (0.019, False), (0.021, True)]
)
def test_a_series_that_moves_by_more_than_2_percent_is_drifting(rise: float, is_told: bool) -> None:
    """Up or down; of a straight line the slope over 200 blocks is what it rises by."""
    line = 1.0 + rise * (np.arange(2_001) / 2_000 - 0.5)

    assert rise == pytest.approx(drift(line), rel=0.01)
    assert is_told is is_drifting(line)


def test_a_single_sample_moves_nowhere() -> None:
    assert drift([1.0]) is None
    assert not is_drifting([1.0])


def test_a_ramp_is_more_than_its_noise(seed: int) -> None:
    """A rise of 10 % over 15 samples with 1 % noise is a drift, every time."""
    rng = np.random.default_rng(seed)
    ramp = 500.0 * np.linspace(1.0, 1.1, 15)

    for _ in range(50):
        found = ramp * (1 + 0.01 * rng.standard_normal(15))
        assert (drift_rel(found) or 0) > (drift_noise(found) or 0)
