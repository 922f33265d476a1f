"""The laws of one process of a profile: its calls alone, and the doubts that are about it."""

import msgspec
import numpy as np
import pytest

from farm.errors import Bad
from farm.interchange import that_counts
from farm.stats import spread
from tests.farm import make


def samples(*ms):
    return {f"latency_ns_{at}": np.array([each * 1e6] * 8) for at, each in enumerate(ms)}


@pytest.mark.parametrize(
    ("flags", "ms"),
    [
        ([[]], 1.0),
        ([["contended"], []], 2.0),
        ([["contended"], ["contended"]], 2.0),
        ([["paging"], ["contended"]], 1.0),
    ],
)
def test_the_last_process_that_is_not_invalid_stands_for_a_profile(flags, ms):
    """Of invalid ones the last; a doubt that degrades excludes nothing."""
    profile = make.profile(repeats=len(flags), repeat_flags=flags)

    found = that_counts(profile, samples(1.0, 2.0))

    assert [ms] * 8 == found.samples_ms.tolist()
    assert profile.repeats[int(ms) - 1] == found.repeat


def test_a_process_has_its_own_doubts_and_those_of_its_slot():
    """That processes disagree is no doubt about one of them."""
    profile = make.profile(
        repeats=2,
        flags=["bimodal", "no_housekeeping_core", "processes_disagree", "repeats_missing"],
        repeat_flags=[["contended", "paging"], ["bimodal"]],
        stability="noisy",
    )

    found = that_counts(profile, samples(1.0, 2.0)).quality

    assert (["bimodal", "no_housekeeping_core"], "degraded", "acceptable") == (
        found.flags,
        found.validity,
        found.stability,
    )


def test_the_drift_of_a_process_is_what_its_scatter_does_not_explain(seed):
    """As in a profile: 15 level calls with 1 % of noise may move by more than 2 % of themselves."""
    rng = np.random.default_rng(seed)
    level = next(
        each
        for each in 1e6 * (1 + 0.01 * rng.standard_normal((10_000, 15)))
        if 0.02 < abs(spread.drift_rel(each) or 0) < (spread.drift_noise(each) or 0)
    )
    made = make.profile(repeats=2, repeat_flags=[[], []])
    last = msgspec.structs.replace(made.repeats[1], drift_rel=spread.drift_rel(level))
    profile = msgspec.structs.replace(made, repeats=[made.repeats[0], last])

    found = that_counts(profile, samples(1.0) | {"latency_ns_1": level}).quality

    assert "acceptable" == found.stability


def test_a_profile_of_one_process_keeps_its_judgement():
    profile = make.profile(repeats=1, flags=["repeats_missing"], stability="noisy")

    assert profile.quality == that_counts(profile, samples(1.0)).quality


def test_a_disturbed_process_names_its_neighbours():
    profile = make.profile(
        repeats=2,
        flags=["contended"],
        repeat_flags=[["contended"], ["contended"]],
        neighbours=["python (pid 1), 97 % of a core"],
    )

    found = that_counts(profile, samples(1.0, 2.0)).quality

    assert ("invalid", "false", 1) == (found.validity, found.quiet, len(found.neighbours))


@pytest.mark.parametrize("profile", [make.profile(repeats=1), make.profile(status="failed")])
def test_a_profile_without_samples_has_none(profile):
    with pytest.raises(Bad, match="no sample is left"):
        that_counts(profile, {})
