"""The steady-state rule and the stopping rule, on synthetic series."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.stats.percentiles import interval, published_n
from farm.stats.warmup import WINDOW, block_is_full, half_width, steady

MS = 1_000_000
Series = npt.NDArray[np.int64]


@pytest.mark.parametrize(
    ("step_ms", "expected"),
    [
        (0.1, 200),
        (1, 20),
        (4, 5),
        (30, 5),
        (50, 5),
        (60, 5),
        (70, 4),
        (100, 3),
        (250, 1),
        (2000, 1),
    ],
)
def test_a_block_has_20_ms_and_five_iterations_or_250_ms(step_ms: float, expected: int) -> None:
    """Fast steps fill the time, slower ones the count; no step is too slow for the rule."""
    step_ns = round(step_ms * MS)
    full = [block_is_full(count, count * step_ns) for count in range(1, expected + 1)]

    assert [False] * (expected - 1) + [True] == full


def test_below_twelve_blocks_nothing_is_steady() -> None:
    """Even equal medians need twelve blocks, and only the last twelve count."""
    assert not steady([5.0] * (WINDOW - 1))
    assert steady([5.0] * WINDOW)
    assert steady([900.0] * 5 + [5.0] * WINDOW)


def test_a_level_that_moved_keeps_the_warm_up_going() -> None:
    """Half a per cent between the halves' medians is the limit, without noise."""
    assert not steady([1.0] * 6 + [1.006] * 6)
    assert steady([1.0] * 6 + [1.004] * 6)


def test_a_slope_alone_keeps_the_warm_up_going() -> None:
    """Two equal ramps have equal medians; their common slope counts from 1 % a window on."""
    ramp = np.arange(6.0)

    assert not steady(np.tile(1.0 + 0.003 * ramp, 2))
    assert steady(np.tile(1.0 + 0.0018 * ramp, 2))


def test_noise_widens_the_tolerance() -> None:
    """The same 1 % step is movement in a quiet series and chance in a noisy one."""
    noise = np.resize([0.06, -0.06, 0.04, -0.04, 0.05, -0.05], WINDOW)
    step = np.repeat([0.0, 0.01], 6)

    assert not steady(1.0 + step)
    assert steady(1.0 + noise + step)


def test_medians_of_zero_are_not_steady() -> None:
    """Below the clock's tick there is nothing to judge."""
    assert not steady([0.0] * WINDOW)


@given(st.lists(st.floats(0.5, 2.0), min_size=WINDOW, max_size=30), st.floats(0.001, 1e6))
def test_the_verdict_does_not_depend_on_the_unit(medians: list[float], unit: float) -> None:
    """Scaling every block by one factor changes no verdict, unless it hangs on the last digit."""
    exact = [float(np.float32(each)) for each in medians]
    scaled = [2.0 ** round(np.log2(unit)) * each for each in exact]

    assert steady(exact) == steady(scaled)


@pytest.mark.parametrize("step_ms", [0.4, 5.0, 120.0])
@pytest.mark.parametrize("shape", ["flat", "decay", "step", "long decay"])
def test_stopping_leaves_little_bias(step_ms: float, shape: str, rng: np.random.Generator) -> None:
    """Over 20 series the mean bias of what follows is at most 0.1 %, whatever came before."""
    biases = [_bias_after_stop(rng, step_ms, shape) for _ in range(20)]

    assert abs(float(np.mean(biases))) <= 0.001


def test_a_series_that_keeps_growing_does_not_stop_early(rng: np.random.Generator) -> None:
    """A slow climb of 2 % per window is never steady."""
    n = 4000
    series = MS * (1.0 + 0.02 * np.arange(n) / 240) * (1.0 + 0.002 * rng.standard_normal(n))

    assert _first_steady(series.astype(np.int64)) is None


def test_half_width_follows_the_spread(rng: np.random.Generator) -> None:
    """Half the spread, half the half-width; a sixteenth of the samples, about four times."""
    noise = rng.standard_normal(4096)
    wide = half_width(MS * (1.0 + 0.02 * noise))
    narrow = half_width(MS * (1.0 + 0.01 * noise))
    short = half_width(MS * (1.0 + 0.02 * noise[:256]))

    assert wide is not None
    assert narrow is not None
    assert short is not None
    assert pytest.approx(wide / 2, abs=wide * 0.05) == narrow
    assert 1.2 < short / wide < 16.0


@given(st.lists(st.integers(900_000, 1_100_000), min_size=1, max_size=400))
def test_half_width_is_known_exactly_where_an_interval_is(samples: list[int]) -> None:
    """The quick ranks have a bound wherever the exact ones have: from six effective samples on."""
    reached = half_width(samples)
    m = published_n(samples, 50.0)
    exact = interval(samples, 50.0, m=m)

    assert (reached is None) == (exact is None)
    assert (reached is None) == (m < 6)


@pytest.mark.parametrize("n", [6, 7, 20, 100, 1000, 8192])
def test_the_quick_ranks_are_within_one_of_the_exact_ones(n: int, rng: np.random.Generator) -> None:
    """On evenly spread samples each rank is a step of known width."""
    samples = 1_000_000.0 + rng.permutation(n)
    m = published_n(samples, 50.0)
    reached, exact = half_width(samples), interval(samples, 50.0, m=m)

    if exact is None:  # a permutation of six may be worth fewer
        assert reached is None
        return
    assert reached is not None
    assert abs(reached - (exact[1] - exact[0]) / 2) <= n / m + 2


def test_six_slow_steps_have_a_half_width() -> None:
    """It spans all of them: wide, and honest."""
    samples = np.array([510, 500, 495, 505, 500, 490]) * MS

    assert 20_000 == half_width(samples)


def _first_steady(series: Series) -> int | None:
    """How many iterations the rule takes, or None."""
    medians: list[float] = []
    start = 0
    for count in range(1, series.size + 1):
        block = series[start:count]
        if block_is_full(block.size, int(block.sum())):
            medians.append(float(np.median(block)))
            start = count
            if steady(medians):
                return count
    return None


def _bias_after_stop(rng: np.random.Generator, step_ms: float, shape: str) -> float:
    """Median of the true curve just after the stop against the level it settles at, minus 1."""
    per_block = max(5.0, 20.0 / step_ms) if step_ms < 50 else 3.0
    blocks_of = np.arange(int(60 * per_block)) / per_block
    curve = {
        "flat": np.ones_like(blocks_of),
        "decay": 1.0 + 0.5 * np.exp(-blocks_of / 2.0),
        "long decay": 1.0 + 0.3 * np.exp(-blocks_of / 6.0),
        "step": np.where(blocks_of < 9.5, 1.3, 1.0),
    }[shape]
    noisy = curve * (1.0 + 0.01 * rng.standard_normal(curve.size))
    stop = _first_steady((noisy * step_ms * MS).astype(np.int64))
    assert stop is not None
    return float(np.median(curve[stop:])) - 1.0
