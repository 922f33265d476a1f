"""What a warm-up leaves behind: T7 of the acceptance table, by simulation.

Every trace runs through the product's own rule. A mean is compared with its bound less five
standard errors of its own, so that no seed fails by chance.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest

from tests.simulation.traces import Trace, bias, is_drifting, warm_up

MEAN, TAIL = 0.001, 0.005
FAMILIES = ["flat", "decay", "step", "compile", "clock"]
STEPS_S = [0.0004, 0.005, 0.12]


class Outcome(NamedTuple):
    bias: float
    flagged: bool
    warm_s: float
    stop: str


@pytest.mark.parametrize("step_s", STEPS_S)
@pytest.mark.parametrize("family", FAMILIES)
def test_stopping_leaves_little_bias(family: str, step_s: float, rng: np.random.Generator) -> None:
    """T7, the quick part: 0.1 % in the mean and 0.5 % in 95 of a hundred, where nothing warns."""
    _assert_small_bias(rng, family, step_s, count=30)


@pytest.mark.long
@pytest.mark.parametrize("step_s", [*STEPS_S, 0.0001, 0.03, 0.5])
@pytest.mark.parametrize("family", FAMILIES)
def test_bias_at_length(family: str, step_s: float, rng: np.random.Generator) -> None:
    """T7 over the whole grid, 400 traces to a cell."""
    _assert_small_bias(rng, family, step_s, count=400)


def test_a_compilation_is_over_before_a_pass_begins(rng: np.random.Generator) -> None:
    """The rule waits until twelve blocks are free of it, whatever their medians say."""
    for _ in range(20):
        late = int(rng.integers(5, 60))
        trace = Trace(0.005, np.ones_like, compiles=(0, late))

        found = warm_up(trace, rng)

        assert "converged" == found.stop
        assert late < found.iterations - 12 * 4


def test_a_fixed_number_leaves_much_where_the_rule_leaves_little(rng: np.random.Generator) -> None:
    """Ten steps of 0.4 ms are over before a decay of a tenth of a second has begun to end."""
    trace = Trace(0.0004, lambda t: 1.0 + 0.3 * np.exp(-t / 0.1))

    assert bias(trace, 10 * trace.step_s, seconds=0.1) > 0.1
    assert abs(bias(trace, warm_up(trace, rng).at_s, seconds=0.1)) <= TAIL


@pytest.mark.parametrize("step_s", [0.0004, 0.005])
def test_a_slow_heating_is_flagged(step_s: float, rng: np.random.Generator) -> None:
    """What takes longer than the rule looks back is no warm-up; the pass says that it drifts."""
    for _ in range(10):
        constant = float(rng.uniform(3.0, 15.0))
        trace = Trace(step_s, lambda t, c=constant: 1.0 - 0.1 * np.exp(-t / c))  # type: ignore[misc]

        assert _outcome(trace, rng, seconds=10.0).flagged


@pytest.mark.parametrize("step_s", [0.0004, 0.005, 0.12])
def test_a_thermal_reason_keeps_the_warm_up_going(step_s: float, rng: np.random.Generator) -> None:
    """The cap ends it, and is told: no figure of a throttled GPU passes for a warm one."""
    trace = Trace(step_s, np.ones_like, clock=lambda _: 1500.0, hot=(0.5, np.inf))

    found = warm_up(trace, rng)

    assert "cap" == found.stop
    assert 10.0 < found.at_s < 11.0


def test_a_thermal_reason_that_passes_only_delays(rng: np.random.Generator) -> None:
    """Twelve blocks after it the rule may stop."""
    trace = Trace(0.005, np.ones_like, clock=lambda _: 1500.0, hot=(0.5, 2.0))

    found = warm_up(trace, rng)

    assert "converged" == found.stop
    assert 2.2 < found.at_s < 5.0


@pytest.mark.parametrize("step_s", [0.0004, 0.005])
def test_what_never_settles_is_always_flagged(step_s: float, rng: np.random.Generator) -> None:
    """A climb of 1 % to 5 % per window, for ever: the cap ends it, or the pass says it drifts."""
    for _ in range(6):
        per_s = float(rng.uniform(0.01, 0.05)) / 0.24
        trace = Trace(step_s, lambda t, c=per_s: np.exp(c * t))  # type: ignore[misc]

        assert _outcome(trace, rng, seconds=2.0).flagged


@pytest.mark.parametrize(("step_s", "most_s"), [(0.0004, 0.5), (0.005, 0.5), (0.12, 6.0)])
def test_a_warm_step_is_not_kept_waiting(
    step_s: float, most_s: float, rng: np.random.Generator
) -> None:
    """From a level start the rule takes little more than its twelve blocks, in the median."""
    taken = [warm_up(Trace(step_s, np.ones_like), rng) for _ in range(20)]

    assert all("converged" == each.stop for each in taken)
    assert float(np.median([each.at_s for each in taken])) <= most_s


def _assert_small_bias(rng: np.random.Generator, family: str, step_s: float, *, count: int) -> None:
    found = [
        _outcome(trace, rng, seconds=max(2.0, min(10.0, 40 * step_s)))
        for trace in _traces(rng, family, step_s, count)
    ]
    silent = np.array([each.bias for each in found if not each.flagged])

    assert silent.size >= count // 4, f"only {silent.size} of {count} {family} without a flag"
    slack = 5.0 * float(silent.std(ddof=1)) / np.sqrt(silent.size)
    beyond = int(np.sum(np.abs(silent) > TAIL))
    assert abs(float(silent.mean())) <= MEAN + slack
    assert beyond <= 0.05 * silent.size + 5.0 * np.sqrt(0.0475 * silent.size)


def _outcome(trace: Trace, rng: np.random.Generator, *, seconds: float) -> Outcome:
    warm = warm_up(trace, rng)
    drifting = is_drifting(trace, rng, warm.at_s, seconds=seconds)
    left = bias(trace, warm.at_s, seconds=seconds)
    return Outcome(left, warm.stop == "cap" or drifting, warm.at_s, warm.stop)


def _traces(rng: np.random.Generator, family: str, step_s: float, count: int) -> Iterator[Trace]:
    """Starts of one family, each of its own size and pace, all over within two seconds or so.

    A slow step gets twenty of its own at least: what lasts a minute is no warm-up but a drift.
    """
    make: Callable[[float, float], Trace] = {
        "flat": lambda size, pace: Trace(step_s, np.ones_like),
        "decay": lambda size, pace: Trace(
            step_s, lambda t: 1.0 + size * np.exp(-t / (0.03 * 60.0**pace))
        ),
        "step": lambda size, pace: Trace(step_s, lambda t: np.where(t < pace, 1.0 + size, 1.0)),
        "compile": lambda size, pace: Trace(step_s, np.ones_like, compiles=(0, 1 + int(8 * pace))),
        "clock": lambda size, pace: Trace(
            step_s,
            lambda t: 1.0 / _clock(t, size, pace),
            clock=lambda t: 1500.0 * float(_clock(np.array(t), size, pace)),
        ),
    }[family]
    for _ in range(count):
        yield make(float(rng.uniform(0.1, 0.6)), float(rng.random()))


def _clock(t: np.ndarray, size: float, pace: float) -> np.ndarray:
    return 1.0 - size * np.exp(-t / (0.1 + 0.3 * pace))
