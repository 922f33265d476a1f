"""The laws of the times: linear percentiles, what they rest on, and processes kept apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.interchange.figures import figures
from farm.stats import percentiles


def test_percentiles_are_linear_and_their_interval_is_null_where_samples_are_too_few():
    """G2: 10 and 20 ms; nearest rank would make the median 10."""
    found = figures([[10.0, 20.0]])

    assert (15.0, 19.5, 19.9, 15.0) == tuple(
        round(each, 9)
        for each in (
            found.latency.p50_ms,
            found.latency.p95_ms,
            found.latency.p99_ms,
            found.latency.mean_ms,
        )
    )
    assert {"p50": False, "p90": False, "p95": False, "p99": False} == found.detail.reliable
    assert "single_repeat" == found.reasons["intervals.p50"]
    assert found.reasons["intervals.p99"].startswith("below_resolution: needs 368 effective")


def test_one_sample_has_no_deviation():
    assert None is figures([[5.0]]).detail.std_ms
    assert "single_sample" == figures([[5.0]]).reasons["std_ms"]
    assert pytest.approx(7.0710678) == figures([[10.0, 20.0]]).detail.std_ms


@given(st.lists(st.floats(1e-3, 1e5), min_size=1, max_size=40))
def test_the_times_are_those_of_the_samples(samples):
    """Within their range, in order, and the mean is arithmetic."""
    found = figures([samples])

    times = found.latency
    slack = 1 + 1e-9
    assert min(samples) <= times.p50_ms * slack
    assert times.p50_ms <= times.p95_ms * slack <= times.p99_ms * slack**2
    assert times.p99_ms <= max(samples) * slack
    assert pytest.approx(np.mean(samples)) == times.mean_ms
    assert (len(samples), min(samples), max(samples)) == (
        found.detail.n,
        found.detail.min_ms,
        found.detail.max_ms,
    )
    assert {name for name, each in found.detail.intervals.items() if each is None} == {
        path.removeprefix("intervals.") for path in found.reasons if "intervals." in path
    }


def test_many_samples_of_one_process_bound_its_tails(seed):
    """The median has no interval: the unit is the process, and there is one."""
    samples = np.random.default_rng(seed).normal(10, 0.1, 1000)

    found = figures([samples])

    assert None is found.detail.intervals["p50"]
    between = found.detail.intervals["p95"]
    assert between.low_ms <= found.latency.p95_ms <= between.high_ms
    assert (0.95, percentiles.published_n(samples, 95)) == (between.confidence, between.n_eff)


def test_processes_are_the_unit_of_the_median():
    found = figures([[1.0, 1.0, 1.0], [3.0, 3.0, 3.0], [2.0, 2.0, 2.0]])

    assert ([1.0, 3.0, 2.0], 2.0, 9) == (
        found.detail.process_p50_ms,
        found.latency.p50_ms,
        found.detail.n,
    )
    assert found.reasons["intervals.p95"] == "processes_disagree"


def test_no_sample_is_an_error():
    with pytest.raises(Refused):
        figures([])
    with pytest.raises(Refused):
        figures([[]])
