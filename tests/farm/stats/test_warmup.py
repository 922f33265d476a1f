"""The steady-state rule and the stopping rule, on synthetic series."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.stats.percentiles import interval, published_n
from farm.stats.warmup import (
    WINDOW,
    Block,
    block_is_full,
    converged,
    half_width,
    layer_warmup,
    steady,
    warmup_cap_ns,
)

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


def test_noise_widens_the_tolerance_by_one_standard_error() -> None:
    """Of alternating ± 2 % it is 2.14 %: a step of 1.9 % is within, of 2.4 % beyond."""
    noise = np.resize([0.02, -0.02], WINDOW)

    assert steady(1.0 + noise + np.repeat([0.0, 0.019], 6))
    assert not steady(1.0 + noise + np.repeat([0.0, 0.024], 6))


def test_the_halves_of_the_window_are_compared() -> None:
    """A third of blocks that were slow, wherever they lie, leave both medians where they are."""
    for slow in (slice(2, 4), slice(4, 8), slice(8, 10)):
        medians = np.ones(WINDOW)
        medians[slow] = 1.02
        assert steady(medians)


def test_medians_of_zero_are_not_steady() -> None:
    """Below the clock's tick there is nothing to judge."""
    assert not steady([0.0] * WINDOW)
    assert not steady([0.0] * 6 + [5.0] * 6)


@given(st.lists(st.floats(0.5, 2.0), min_size=WINDOW, max_size=30), st.floats(0.001, 1e6))
def test_the_verdict_does_not_depend_on_the_unit(medians: list[float], unit: float) -> None:
    """Scaling every block by one factor changes no verdict, unless it hangs on the last digit."""
    exact = [float(np.float32(each)) for each in medians]
    scaled = [2.0 ** round(np.log2(unit)) * each for each in exact]

    assert steady(exact) == steady(scaled)


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


# ── all conditions together ──────────────────────────────────────────────────────────────────────


def test_a_level_window_after_the_least_time_is_warm() -> None:
    """0.3 s on a CPU, 1 s on a GPU whose clock must come up."""
    level = [Block(5.0)] * WINDOW

    assert converged(level, elapsed_ns=300 * MS)
    assert not converged(level, elapsed_ns=300 * MS - 1)
    assert converged(level, elapsed_ns=1000 * MS, gpu=True)
    assert not converged(level, elapsed_ns=1000 * MS - 1, gpu=True)


def test_medians_that_move_or_are_few_are_not_warm() -> None:
    """The rule of the medians is one of the conditions."""
    assert not converged([Block(5.0)] * (WINDOW - 1), elapsed_ns=10**10)
    assert not converged([Block(5.0)] * 6 + [Block(6.0)] * 6, elapsed_ns=10**10)


@pytest.mark.parametrize(
    "odd",
    [
        Block(5.0, compiles=1),
        Block(5.0, reserved_bytes=512),
        Block(5.0, reserved_bytes=-512),
        Block(5.0, retries=1),
    ],
)
@pytest.mark.parametrize("gpu", [False, True])
def test_compiling_and_allocating_keep_the_warm_up_going(odd: Block, gpu: bool) -> None:
    """Any such event in the window does, and twelve blocks later it does no more."""
    quiet = Block(5.0, compiles=0, reserved_bytes=0, retries=0)

    for after in range(WINDOW):
        blocks = [quiet] * WINDOW + [odd] + [quiet] * after
        assert not converged(blocks, elapsed_ns=10**10, gpu=gpu)
    assert converged([quiet, odd] + [quiet] * WINDOW, elapsed_ns=10**10, gpu=gpu)
    assert not odd.is_undisturbed
    assert quiet.is_undisturbed


@pytest.mark.parametrize(
    ("late", "expected"), [(1500.0, True), (1514.9, True), (1485.1, True), (1515.1, False),
                           (1484.9, False)],
)  # fmt: skip
def test_a_clock_that_moves_by_a_hundredth_is_not_level(late: float, expected: bool) -> None:
    """Median against median of the window's halves, on a GPU alone."""
    early, after = [1500.0, 1500.0, 10.0, 10.0, 9999.0, 9999.0], [late, late, 10.0, 10.0]
    clocks = [*early, *after, 9999.0, 9999.0]
    blocks = [Block(5.0, sm_clock=each) for each in clocks]

    assert expected == converged(blocks, elapsed_ns=10**10, gpu=True)
    assert converged(blocks, elapsed_ns=10**10)


@pytest.mark.parametrize("half", [0, 1])
def test_a_clock_that_nobody_can_read_stands_in_no_ones_way(half: int) -> None:
    """Without a single reading in one of the halves there is nothing to compare."""
    read, unread = [Block(5.0, sm_clock=1500.0)] * 6, [Block(5.0)] * 6
    blocks = read + unread if half else unread + read

    assert converged(blocks, elapsed_ns=10**10, gpu=True)
    assert not converged([Block(5.0, sm_clock=0.0)] * WINDOW, elapsed_ns=10**10, gpu=True)


def test_a_thermal_reason_keeps_the_warm_up_going() -> None:
    """On a GPU, anywhere in the window; `None` is a reading that nobody could take."""
    cool, hot = Block(5.0, thermal=False), Block(5.0, thermal=True)

    assert converged([hot] + [cool] * WINDOW, elapsed_ns=10**10, gpu=True)
    assert not converged([hot] + [cool] * (WINDOW - 1), elapsed_ns=10**10, gpu=True)
    assert not converged([cool] * (WINDOW - 1) + [hot], elapsed_ns=10**10, gpu=True)
    assert converged([Block(5.0)] * WINDOW, elapsed_ns=10**10, gpu=True)


@pytest.mark.parametrize(
    ("typical_ms", "timeout_s", "expected_s"),
    [
        (0.0, 1800.0, 10.0),
        (1.0, 1800.0, 10.0),
        (666.0, 1800.0, 10.0),
        (1000.0, 1800.0, 15.0),
        (4000.0, 1800.0, 60.0),
        (9000.0, 1800.0, 60.0),
        (1.0, 20.0, 6.0),
        (9000.0, 100.0, 30.0),
    ],
)
def test_a_warm_up_ends_in_time(typical_ms: float, timeout_s: float, expected_s: float) -> None:
    """10 s, or 15 slow steps, never beyond 60 s or 30 % of the job's time limit."""
    assert round(expected_s * 1e9) == warmup_cap_ns(typical_ms * MS, timeout_s=timeout_s)


@pytest.mark.seed("S0.5", "S0.6")
@pytest.mark.parametrize(
    ("iterations", "expected"),
    [(1, 5), (20, 5), (99, 5), (100, 5), (101, 6), (110, 6), (120, 6), (200, 10), (1000, 50)],
)
def test_a_layer_pass_is_warmed_by_a_twentieth_and_at_least_five(
    iterations: int, expected: int
) -> None:
    """Golden numbers G1: 5 % rounded up, in integers."""
    assert expected == layer_warmup(iterations)


def test_a_layer_pass_has_an_iteration() -> None:
    """None at all is no pass."""
    with pytest.raises(Refused, match="0 iterations"):
        layer_warmup(0)


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
