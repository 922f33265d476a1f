"""Whether a figure taken on a busy machine holds, or says that it does not.

A bound is the promised rate, with what chance adds or takes once in ten million runs.
"""

import numpy as np
import pytest
from scipy import stats as reference

from tests.simulation.machines import Run, run

CHANCE = 1e-7


def test_what_is_not_flagged_holds_on_a_loaded_machine(rng: np.random.Generator) -> None:
    """Of runs under any load that carry no flag, 93 % hold the quiet median in their interval."""
    _assert_held(rng, count=300)


def test_a_quiet_machine_is_seldom_flagged(rng: np.random.Generator) -> None:
    """At most 2 % of the runs on a machine that takes the core once in ten thousand iterations."""
    _assert_quiet(rng, count=200)


@pytest.mark.long
def test_loaded_and_quiet_at_length(rng: np.random.Generator) -> None:
    """The same over some thousand runs."""
    _assert_held(rng, count=3000)
    _assert_quiet(rng, count=3000)


def test_a_neighbour_on_every_core_is_always_flagged(rng: np.random.Generator) -> None:
    """Most iterations lose their core: the median itself is the neighbour's."""
    found = [run(rng, load=0.7) for _ in range(50)]

    assert all("contended" in each.flags for each in found)
    assert all(each.headline.value > 1.1 for each in found)


def test_the_clean_median_comes_closer_than_the_plain_one(rng: np.random.Generator) -> None:
    """Leaving out the iterations that waited takes most of the neighbour out of the figure."""
    found = [run(rng, load=0.4) for _ in range(50)]

    plain = np.mean([abs(each.headline.value - 1.0) for each in found])
    cleaned = np.mean([abs(each.clean.value - 1.0) for each in found])

    assert cleaned < plain / 2


def _assert_held(rng: np.random.Generator, *, count: int) -> None:
    loads = 10.0 ** rng.uniform(-4.0, -0.5, count)
    found = [run(rng, load=load) for load in loads]
    silent = [each for each in found if not each.flags]

    assert len(silent) >= count // 5
    assert sum(map(_holds, silent)) >= reference.binom.ppf(CHANCE, len(silent), 0.93)


def _assert_quiet(rng: np.random.Generator, *, count: int) -> None:
    flagged = sum(bool(run(rng, load=1e-4).flags) for _ in range(count))

    assert flagged <= reference.binom.ppf(1 - CHANCE, count, 0.02)


def _holds(found: Run) -> bool:
    head = found.headline
    return head.lo is not None and head.hi is not None and head.lo <= 1.0 <= head.hi
