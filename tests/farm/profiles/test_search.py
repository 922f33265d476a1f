"""Which profiles match a search, and which one is meant by a name."""

import itertools
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import identity, profiles, schema
from farm.errors import Bad, FarmError, NoResult, Refused
from farm.schema import Reused
from farm.store import profile_key
from tests.farm import make

NOW = datetime(2026, 11, 30, 12, 15, tzinfo=UTC)


def search(store, *wheres, since=None, all_attempts=False):
    found = profiles.listed(store, wheres, since=since, all_attempts=all_attempts, now=NOW)
    return [each.profile for each in found.rows]


def at(document, started_at):
    execution = msgspec.structs.replace(document.execution, started_at=started_at)
    return msgspec.structs.replace(document, execution=execution)


# ── list ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shelf(store):
    """Four profiles: two models, two ends, two tags."""
    make.put(
        store,
        make.profile(make.job("mlp"), tags={"night": "1"}, node="a"),
        make.profile(make.job("mlp", precision="bf16", batch=8), tags={"night": "2"}, node="b"),
        make.profile(make.job("cnn"), status="failed", run_id="r-2", node="a"),
        make.profile(make.job("cnn", device="any"), flags=["contended"], node="a"),
    )
    return store


@pytest.mark.parametrize(
    ("wheres", "count"),
    [
        ([], 4),
        (["model=mlp"], 2),
        (["model=mlp", "batch=8"], 1),
        (["model=mlp", "batch=2"], 0),
        (["precision=bf16"], 1),
        (["backend=torch"], 4),
        (["device=cpu"], 3),
        (["device=any"], 1),
        (["status=failed"], 1),
        (["validity=invalid"], 1),
        (["validity="], 1),
        (["run=r-2"], 1),
        (["node=a"], 3),
        (["system_class=epyc-7b13-2c"], 4),
        (["night=1"], 1),
        (["night=1", "night=2"], 0),
        (["night="], 0),
        (["night=1=2"], 0),
    ],
)
def test_every_pair_must_hold_and_an_unknown_key_is_a_tag(shelf, wheres, count):
    assert count == len(search(shelf, *wheres))


@pytest.mark.parametrize(
    ("where", "hint"),
    [
        ("modle=mlp", "did you mean `model`?"),
        ("nigth=1", "did you mean `night`?"),
        ("zzz=1", ""),
    ],
)
def test_a_key_that_no_profile_has_is_a_slip_and_not_a_search_without_a_match(shelf, where, hint):
    """The nearest of our keys and of the tags in this store."""
    with pytest.raises(Refused) as caught:
        search(shelf, "model=mlp", where)

    assert hint == caught.value.hint
    assert caught.value.why.endswith("node, system_class; tags: night")


def test_a_tag_of_an_attempt_that_did_not_win_is_known(store):
    make.put(store, make.profile(fence=1, tags={"old": "1"}), make.profile(fence=2))

    assert [] == search(store, "old=1")
    assert 1 == len(search(store, "old=1", all_attempts=True))


def test_an_empty_store_knows_no_tag_and_blames_none(store):
    assert [] == search(store, "night=1")


@pytest.mark.parametrize("where", ["", "model", "=mlp", "="])
def test_a_word_that_is_no_pair_is_refused_with_the_keys(shelf, where):
    with pytest.raises(Refused) as caught:
        search(shelf, where)

    assert "model, precision, batch, device" in caught.value.why


@pytest.mark.parametrize(
    ("since", "count"), [("1h", 0), ("2h", 1), ("3h", 2), ("1d", 2), ("2d", 3), ("999999999d", 3)]
)
def test_since_counts_from_now(store, since, count):
    """Two hours old, just under three, thirty; and further back than the calendar reaches."""
    for hours, batch in (("10:15", 1), ("09:16", 2)):
        make.put(store, at(make.profile(make.job(batch=batch)), f"2026-11-30T{hours}:00Z"))
    make.put(store, at(make.profile(make.job(batch=4)), "2026-11-29T06:00:00Z"))

    assert count == len(search(store, since=since))


@pytest.mark.parametrize("since", ["", "1w", "yesterday", "0d", "-1d"])
def test_since_takes_durations_alone(store, since):
    with pytest.raises(Refused, match="no duration"):
        search(store, since=since)


def test_the_newest_comes_first(store):
    for batch, stamp in ((1, "2026-11-30T10:00:00Z"), (2, "2026-11-30T12:00:00+01:00")):
        make.put(store, at(make.profile(make.job(batch=batch)), stamp))

    assert [2, 1] == [each.job.workload.batch for each in search(store)]


def test_losers_are_shown_only_when_asked_for(store):
    """One winner per job, system and repeat set."""
    make.put(store, make.profile(fence=1), make.profile(fence=2), make.profile(repeat_set="n"))

    assert 2 == len(search(store))
    assert 3 == len(search(store, all_attempts=True))


def test_an_odd_time_hides_no_other_profile(store):
    """What another writer put there is listed last."""
    make.put(store, make.profile(), at(make.profile(make.job(batch=8)), "around noon"))

    assert [1, 8] == [each.job.workload.batch for each in search(store)]
    assert [1] == [each.job.workload.batch for each in search(store, since="1d")]


def test_what_cannot_be_read_is_named_beside_the_rows(store):
    make.put(store, make.profile())
    store.put_new(profile_key("2026-11-30", "a" * 32, "b" * 64), b"{}")

    found = profiles.listed(store, (), since=None, all_attempts=False, now=NOW)

    assert (1, 1) == (len(found.rows), len(found.unreadable))
    assert "b" * 64 in found.unreadable[0].key


# ── find ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_profile_is_known_by_its_id_or_a_unique_beginning(store):
    first, second = make.profile(fence=1), make.profile(make.job(batch=8))
    ids = make.put(store, first, second)
    unique = next(n for n in range(6, 64) if ids[0][:n] != ids[1][:n])

    assert first == profiles.find(store, ids[0]).profile
    assert second == profiles.find(store, ids[1][:unique]).profile


def test_a_job_id_or_its_beginning_means_its_winner(store):
    """Of several attempts the one that counts."""
    lost, won = make.profile(flags=["contended"], fence=9), make.profile(fence=1)
    make.put(store, lost, won)

    assert won == profiles.find(store, won.job_id).profile
    assert won == profiles.find(store, won.job_id[:10]).profile


def test_an_ambiguous_beginning_is_refused_with_the_candidates(store):
    """Also where a profile and a job begin alike."""
    shared = _colliding(store)

    with pytest.raises(Refused, match="2 profiles match"):
        profiles.find(store, shared)


def _colliding(store) -> str:
    """Put two profiles whose ids begin with the same six digits; return these."""
    seen: dict[str, bytes] = {}
    written = schema.encode(make.profile(fence=1))
    for fence in itertools.count():
        data = written.replace(b'"fence":1,', b'"fence":%d,' % fence)
        start = identity.content_id(data)[:6]
        if start in seen:
            make.put(store, *(schema.decode(each, schema.Profile) for each in (data, seen[start])))
            return start
        seen[start] = data


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        ("0000000", NoResult),
        ("f" * 64, NoResult),
        ("f" * 65, Refused),
        ("12345", Refused),
        ("", Refused),
        ("ABCDEF12", Refused),
        ("mlp", Refused),
        ("../../etc/passwd", NoResult),
        ("@last", Refused),
        ("@last/mlp/fp32/b2/cpu", NoResult),
        ("@last/", NoResult),
        ("r-nope/mlp/fp32/b1/cpu", NoResult),
        ("/mlp/fp32/b1/cpu", Refused),
        ("\x1b[31m", Refused),
    ],
)
def test_what_is_no_reference_is_refused_and_what_names_nothing_is_no_result(store, wanted, kind):
    make.put(store, make.profile(), make.manifest([make.job()]))

    with pytest.raises(kind) as caught:
        profiles.find(store, wanted)

    assert kind is type(caught.value)


@pytest.mark.parametrize("run", [make.RUN, make.RUN[:8], "quickstart", "@last"])
@pytest.mark.parametrize("label", ["mlp/fp32/b1/cpu", "mlp-fp32-b1-cpu"])
def test_a_profile_is_known_by_its_run_and_label(store, run, label):
    """The run by any of its names, the label as written or as it stands in file names."""
    other = make.profile(run_id="r-other", fence=9)
    mine = make.profile()
    make.put(store, mine, make.manifest([mine.job]), other)

    assert mine.job_id == profiles.find(store, f"{run}/{label}").profile.job_id


def test_a_run_and_label_mean_what_answered_the_run(store):
    """Its own figure, not a newer one of another system; what it reused, where it measured none."""
    mine, reused_job = make.profile(fence=1), make.job(batch=8)
    later = make.profile(run_id="r-later", fence=9, system_id=make.OTHER_SYSTEM)
    old = make.profile(reused_job, run_id="r-old", system_id=make.OTHER_SYSTEM)
    ids = make.put(store, mine, later, old)
    reused = Reused(job_id=old.job_id, profile_id=ids[2], system_id="", taken_at="", environment="")
    make.put(store, make.manifest([mine.job, reused_job], reused=[reused]))

    assert mine == profiles.find(store, f"{make.RUN}/mlp/fp32/b1/cpu").profile
    assert old == profiles.find(store, f"{make.RUN}/mlp/fp32/b8/cpu").profile


def test_a_label_without_a_profile_says_how_to_get_one(store):
    make.put(store, make.manifest([make.job()]))

    with pytest.raises(NoResult) as caught:
        profiles.find(store, f"{make.RUN}/mlp/fp32/b1/cpu")

    assert f"farm resume {make.RUN}" == caught.value.hint


def test_an_unknown_label_names_the_nearest(store):
    make.put(store, make.manifest([make.job()]))

    with pytest.raises(NoResult) as caught:
        profiles.find(store, f"{make.RUN}/mpl/fp32/b1/cpu")

    assert f"did you mean `{make.RUN}/mlp/fp32/b1/cpu`?" == caught.value.hint


def test_a_damaged_profile_says_that_it_is_damaged(store):
    """`no such profile` would send its owner to look in the wrong place."""
    store.put_new(profile_key("2026-11-30", "a" * 32, "b" * 64), b"{}")
    store.put_new("inbox/v1/notes.txt", b"hello")

    with pytest.raises(Bad, match="cannot be read"):
        profiles.find(store, "bbbbbb")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=80))
def test_no_reference_ends_in_anything_but_one_of_our_errors(store, wanted):
    """Whatever a person pastes."""
    with pytest.raises(FarmError):
        profiles.find(store, wanted)
