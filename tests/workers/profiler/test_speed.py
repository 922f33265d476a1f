import copy
import pickle

import numpy as np
import pytest

from workers.profiler.speed import Milliseconds, speedup


def test_a_latency_is_its_median_and_knows_its_interval():
    """Ranks 40 and 61 bound the median of 100; of five calls nothing bounds it."""
    many, few = Milliseconds(range(1, 101)), Milliseconds([3.0, 1.0, 2.0, 5.0, 4.0])

    assert 3.0 == few
    assert (None, None) == (few.lo, few.hi)
    assert (3.0, 1.0, 2.0, 5.0, 4.0) == few.samples_ms
    assert 50.5 == many


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, *(lambda x, n=n: pickle.loads(pickle.dumps(x, n)) for n in (2, 5))],
)
@pytest.mark.parametrize("calls", [100, 5])
def test_a_latency_can_be_copied_and_kept(copied, calls):
    """It is made of its calls, not of its value as other numbers are."""
    latency = Milliseconds(range(1, calls + 1))

    again = copied(latency)

    assert isinstance(again, Milliseconds)
    assert (latency, latency.samples_ms) == (again, again.samples_ms)
    assert (latency.lo, latency.hi) == (again.lo, again.hi)


@pytest.mark.seed("S2.13")
def test_a_speed_up_has_an_interval_and_is_said(seed):
    """Half the time is twice as fast, and no chance is left that it is not."""
    random = np.random.default_rng(seed)
    before = Milliseconds(random.normal(10.0, 0.1, 100))
    after = Milliseconds(random.normal(5.0, 0.1, 100))

    found, back = speedup(before, after), speedup(after, before)

    assert pytest.approx(2.0, rel=0.05) == found.ratio
    assert 1.9 < found.lo < found.ratio < found.hi < 2.1
    assert ("faster", "slower") == (found.said, back.said)


@pytest.mark.seed("S2.13")
def test_noise_is_no_speed_up_nearly_always(seed):
    """Equal sides: the interval misses 1 in at most 5 %; 60 tries, limit seven sigma above."""
    random = np.random.default_rng(seed)
    missed = sum(
        speedup(*(Milliseconds(random.normal(10.0, 1.0, 100)) for _ in range(2))).said
        != "no difference shown"
        for _ in range(60)
    )

    assert missed <= 60 * 0.05 + 7 * (60 * 0.05 * 0.95) ** 0.5


def test_too_few_calls_support_nothing():
    found = speedup(Milliseconds([2.0] * 5), Milliseconds([1.0] * 100))

    assert (2.0, None, None, "too few calls to tell") == (
        found.ratio,
        found.lo,
        found.hi,
        found.said,
    )
