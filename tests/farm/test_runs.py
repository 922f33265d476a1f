"""A run is found by any of its names; a damaged one is said to be damaged."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from farm import tags
from farm.errors import Bad, NoResult, Refused
from farm.runs import find_run, manifests, moment, stamp
from farm.store import manifest_key, tag_key
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def add(store, run_id, jobs=(), *, hour, **more):
    """A run that was submitted at this hour."""
    at = stamp(NOW + timedelta(hours=hour))
    make.put(store, make.manifest(jobs, run_id=run_id, submitted_at=at, **more))


@pytest.fixture
def runs(store):
    add(store, "r-aaa111", name="night", hour=1, tags={"branch": "main"})
    add(store, "r-aaa222", name="night", hour=3, tags={"branch": "x=y", "night": "2"})
    add(store, "r-bbb333", name="day", hour=2, tags={"branch": "main"})
    tags.point(store, "base", "r-aaa111")
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
        ("base", "r-aaa111"),
        ("branch=main", "r-bbb333"),
        ("branch=x=y", "r-aaa222"),
        ("night=2", "r-aaa222"),
    ],
)
def test_a_run_is_known_by_id_beginning_name_tag_mark_or_as_the_last(runs, wanted, run_id):
    """Of equal names and equal marks the newest is meant."""
    assert run_id == find_run(runs, wanted).run_id


@pytest.mark.parametrize(
    ("wanted", "kind", "words"),
    [
        ("r-aaa", Refused, "2 runs match: r-aaa111, r-aaa222"),
        ("r-", Refused, "3 runs match"),
        ("", Refused, "without a name"),
        ("nigh", NoResult, "no run 'nigh'"),
        ("branch=", NoResult, "no run 'branch='"),
        ("=main", NoResult, "no run '=main'"),
        ("@", NoResult, "no run '@'"),
        ("r-aaa1111", NoResult, "no run 'r-aaa1111'"),
        ("../../etc", NoResult, "no run"),
        ("r-AAA111", NoResult, "no run"),
    ],
)
def test_an_ambiguous_run_is_refused_and_an_unknown_one_is_no_result(runs, wanted, kind, words):
    """2 with the candidates, 3 without any."""
    with pytest.raises(kind) as caught:
        find_run(runs, wanted)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("nigth", "night"),
        ("bsae", "base"),
        ("@lst", "@last"),
        ("@last-god", "@last-good"),
        ("branch=mian", "branch=main"),
        ("r-bbb334", "r-bbb333"),
    ],
)
def test_an_unknown_run_names_the_nearest_of_any_kind(runs, wanted, near):
    with pytest.raises(NoResult) as caught:
        find_run(runs, wanted)

    assert f"did you mean `{near}`?" == caught.value.hint


@pytest.mark.parametrize("wanted", ["@last", "@last-good", "", "base", "r-aaa111", "x=y"])
def test_an_empty_store_says_how_to_begin(store, wanted):
    with pytest.raises(NoResult) as caught:
        find_run(store, wanted)

    assert "farm run" in caught.value.hint


def test_what_a_word_is_in_full_counts_before_what_it_begins(runs):
    """An id beats a name, a tag beats a name, and either beats the beginning of an id."""
    add(runs, "r-ccc444", name="r-aaa111", hour=4)
    add(runs, "r-ccc555", name="base", hour=5)
    add(runs, "r-ccc666", name="r-aaa", hour=6)

    assert "r-aaa111" == find_run(runs, "r-aaa111").run_id
    assert "r-aaa111" == find_run(runs, "base").run_id
    assert "r-ccc666" == find_run(runs, "r-aaa").run_id


def test_a_whole_id_is_found_without_reading_the_other_runs(runs):
    """A store keeps the runs of years."""
    reads = Reads(runs)

    find_run(reads, "r-aaa111")

    assert [manifest_key("r-aaa111")] == reads.keys


def test_a_tag_that_points_at_no_run_says_so(runs):
    """Not `no such run`: the tag is there, and how to set it is the next step."""
    tags.point(runs, "gone", "r-000000")
    tags.point(runs, "odd", "../x")

    for name, run_id in (("gone", "r-000000"), ("odd", "../x")):
        with pytest.raises(NoResult, match=f"no run '{run_id}', which tag '{name}' names") as no:
            find_run(runs, name)
        assert f"`farm tag {name} RUN` sets it anew" == no.value.hint


def test_a_damaged_tag_is_said_to_be_damaged(runs):
    runs.put_new(tag_key("bad"), b"{}")

    with pytest.raises(Bad, match="tag 'bad' is damaged"):
        find_run(runs, "bad")


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
    with pytest.raises(Bad, match="r-ccc444 is damaged"):
        find_run(runs, "r-ccc444")


def test_the_last_of_damaged_runs_alone_is_damaged(store):
    store.put_new(manifest_key("r-ccc444"), b"{}")

    with pytest.raises(Bad, match="r-ccc444 is damaged"):
        find_run(store, "@last")


def test_a_manifest_under_a_foreign_key_is_damage(runs):
    """A copied folder is no second run."""
    data = runs.get(manifest_key("r-aaa111"))
    runs.put_new(manifest_key("r-ddd555"), data)

    with pytest.raises(Bad, match="r-aaa111"):
        find_run(runs, "r-ddd555")


# ── the last good one ────────────────────────────────────────────────────────────────────────────

MLP, CNN, LSTM = (make.job(each) for each in ("mlp", "cnn", "lstm"))


class Reads:
    """A store that notes every key that is read."""

    def __init__(self, store):
        self.keys = []
        self._store = store

    def get(self, key, **more):
        self.keys.append(key)
        return self._store.get(key, **more)

    def list(self, prefix="", *, after=""):
        return self._store.list(prefix, after=after)


@pytest.mark.parametrize(
    "flawed",
    [
        [],
        [make.profile(MLP, flags=["contended"], run_id="r-2")],
        [make.profile(MLP, status="failed", failure=make.fault("crashed"), run_id="r-2")],
        [make.profile(MLP, status="infra", failure=make.fault("worker_lost"), run_id="r-2")],
        [make.profile(MLP, status="cancelled", run_id="r-2")],
    ],
    ids=["missing", "invalid", "crashed", "lost", "cancelled"],
)
def test_the_last_good_run_is_complete_and_nothing_in_it_is_bad_or_invalid(store, flawed):
    make.put(store, make.profile(MLP, run_id="r-1", system_id=make.OTHER_SYSTEM), *flawed)
    add(store, "r-1", [MLP], hour=1)
    add(store, "r-2", [MLP], hour=2, repeat_set="other")

    assert "r-1" == find_run(store, "@last-good").run_id
    assert "r-2" == find_run(store, "@last").run_id


@pytest.mark.parametrize(
    "fine",
    [
        make.profile(MLP, flags=["drifting"], run_id="r-2"),
        make.profile(MLP, status="failed", failure=make.fault("oom"), run_id="r-2"),
        make.profile(MLP, status="pruned", run_id="r-2"),
    ],
    ids=["degraded", "oom", "pruned"],
)
def test_an_answer_or_a_doubt_keeps_no_run_from_being_good(store, fine):
    """The cells that end a command with 1 do, and those that nothing can be said of."""
    make.put(store, make.profile(MLP, run_id="r-1", system_id=make.OTHER_SYSTEM), fine)
    add(store, "r-1", [MLP], hour=1)
    add(store, "r-2", [MLP], hour=2)

    assert "r-2" == find_run(store, "@last-good").run_id


def test_without_a_good_run_the_newest_says_why(store):
    add(store, "r-1", [MLP], hour=1)
    add(store, "r-2", [MLP, CNN], hour=2)
    make.put(store, make.profile(MLP, flags=["contended"], run_id="r-2"))

    with pytest.raises(NoResult, match="no run of this store is good") as caught:
        find_run(store, "@last-good")

    assert "in the newest, r-2, 1 of 2 missing, 1 of 2 invalid" == caught.value.why


def test_the_walk_to_the_last_good_run_reads_no_profile_twice_and_stops_there(store):
    """Nights of one sweep share their jobs; older runs are not looked at."""
    good = make.profile(MLP, run_id="r-2")
    bad = [make.profile(CNN, flags=["contended"], run_id=each) for each in ("r-3", "r-4")]
    make.put(store, good, *bad, make.profile(LSTM, run_id="r-1"))
    add(store, "r-1", [LSTM], hour=1)
    add(store, "r-2", [MLP], hour=2)
    add(store, "r-3", [CNN], hour=3)
    add(store, "r-4", [MLP, CNN], hour=4)
    reads = Reads(store)

    found = find_run(reads, "@last-good")

    read = [each.split(".")[0][-32:] for each in reads.keys if each.startswith("inbox/")]
    assert "r-2" == found.run_id
    assert sorted([MLP.job_id, *(each.job_id for each in bad)]) == sorted(read)


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
