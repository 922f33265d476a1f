"""Causes of slow iterations, and the figures without those that have one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.stats.labels import Clean, clean, unexplained
from farm.stats.spread import outlier_share

QUIET = [9.0, 10.0, 11.0] * 10
labelled = st.lists(
    st.tuples(st.floats(0.1, 1e6), st.booleans()), min_size=1, max_size=60
)  # fmt: skip


def test_an_outlier_without_a_cause_is_unexplained() -> None:
    """Beyond the bound, ten robust deviations, and nobody knows why."""
    samples = [*QUIET, 30.0, 30.0, 24.0]
    caused = np.zeros(33, dtype=bool)
    caused[31] = True

    assert [30] == list(np.flatnonzero(unexplained(samples, caused)))


@given(labelled)
def test_what_is_labelled_twice_is_not_unexplained(pairs: list[tuple[float, bool]]) -> None:
    """Unexplained and caused exclude each other; without causes all outliers are unexplained."""
    samples, caused = [each for each, _ in pairs], np.array([each for _, each in pairs])
    none = np.zeros(len(samples), dtype=bool)

    assert not np.any(unexplained(samples, caused) & caused)
    assert pytest.approx(outlier_share(samples)) == np.mean(unexplained(samples, none))


def test_clean_figures_leave_out_what_has_a_cause() -> None:
    """The median of the others, and how many they are; an outlier without a cause stays in."""
    caused = np.array([False, True, False, True])

    assert Clean(5.0, 0.5) == clean([1.0, 100.0, 9.0, 100.0], caused)
    assert Clean(None, 0.0) == clean([1.0, 2.0], np.ones(2, dtype=bool))


@given(labelled)
def test_a_clean_share_counts_what_is_left(pairs: list[tuple[float, bool]]) -> None:
    """The median exists exactly where something is left, and lies among it."""
    samples, caused = [each for each, _ in pairs], np.array([each for _, each in pairs])
    left = [each for each, has_cause in pairs if not has_cause]
    found = clean(samples, caused)

    assert pytest.approx(len(left) / len(pairs)) == found.share
    assert (found.p50 is None) == (not left)
    assert found.p50 is None or min(left) <= found.p50 <= max(left)


def test_each_sample_has_one_label() -> None:
    """Other numbers of labels are refused, by both."""
    for call in (unexplained, clean):
        with pytest.raises(Refused, match="1 labels of 2 samples"):
            call([1.0, 2.0], np.zeros(1, dtype=bool))
