"""A run is found by any of its names; a damaged one is said to be damaged."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from farm.errors import Bad, NoResult, Refused
from farm.runs import find_run, manifests, moment, stamp
from farm.store import manifest_key
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def runs(store):
    for run_id, name, hour in (
        ("r-aaa111", "night", 1),
        ("r-aaa222", "night", 3),
        ("r-bbb333", "day", 2),
    ):
        at = stamp(NOW + timedelta(hours=hour))
        make.put(store, make.manifest(run_id=run_id, name=name, submitted_at=at))
    return store


@pytest.mark.parametrize(
    ("wanted", "run_id"),
    [
        ("r-aaa111", "r-aaa111"),
        ("r-b", "r-bbb333"),
        ("r-aaa1", "r-aaa111"),
        ("night", "r-aaa222"),
        ("day", "r-bbb333"),
        ("@last", "r-aaa222"),
    ],
)
def test_a_run_is_known_by_id_beginning_name_or_as_the_last(runs, wanted, run_id):
    """Of equal names the newest is meant."""
    assert run_id == find_run(runs, wanted).run_id


@pytest.mark.parametrize(
    ("wanted", "kind", "words"),
    [
        ("r-aaa", Refused, "2 runs match: r-aaa111, r-aaa222"),
        ("r-", Refused, "3 runs match"),
        ("", Refused, "without a name"),
        ("nigh", NoResult, "no run 'nigh'"),
        ("@last-good", NoResult, "no run '@last-good'"),
        ("../../etc", NoResult, "no run"),
        ("r-AAA111", NoResult, "no run"),
    ],
)
def test_an_ambiguous_run_is_refused_and_an_unknown_one_is_no_result(runs, wanted, kind, words):
    """2 with the candidates, 3 without any."""
    with pytest.raises(kind) as caught:
        find_run(runs, wanted)

    assert words in str(caught.value)


def test_an_empty_store_says_how_to_begin(store):
    with pytest.raises(NoResult) as caught:
        find_run(store, "@last")

    assert "farm run" in caught.value.hint


def test_runs_come_newest_first(runs):
    assert ["r-aaa222", "r-bbb333", "r-aaa111"] == [each.run_id for each in manifests(runs)]


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\xff", b'{"schema": "farm.manifest/v2"}', b"[" * 100_000]
)
def test_a_damaged_manifest_hides_no_other_run_and_says_that_it_is_damaged(runs, data):
    """`no such run` would be a lie about a run that is there."""
    runs.put_new(manifest_key("r-ccc444"), data)

    assert 3 == len(manifests(runs))
    assert "r-aaa222" == find_run(runs, "@last").run_id
    with pytest.raises(Bad, match="r-ccc444 is damaged"):
        find_run(runs, "r-c")


def test_a_manifest_under_a_foreign_key_is_damage(runs):
    """A copied folder is no second run."""
    data = runs.get(manifest_key("r-aaa111"))
    runs.put_new(manifest_key("r-ddd555"), data)

    with pytest.raises(Bad, match="r-aaa111"):
        find_run(runs, "r-ddd555")


# ── times ────────────────────────────────────────────────────────────────────────────────────────


def test_a_stamp_is_read_back_as_the_moment_it_names():
    """Milliseconds of UTC, whatever the zone it was taken in."""
    at = datetime(2026, 11, 30, 13, 0, 0, 123_000, tzinfo=UTC)

    assert "2026-11-30T13:00:00.123Z" == stamp(at.astimezone())
    assert at == moment(stamp(at))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", json.dumps({})])
def test_a_word_that_is_no_time_is_very_old(text):
    """One odd document hides no other."""
    assert moment(text) < datetime(2000, 1, 1, tzinfo=UTC)


def test_a_time_without_a_zone_is_utc():
    assert moment("2026-11-30T12:00:00") == NOW
