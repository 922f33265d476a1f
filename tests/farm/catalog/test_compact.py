"""Compacting: parts hold every profile of the inbox once, whatever came when, whatever broke."""

import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import identity, schema
from farm.catalog import chain, rows, winners
from farm.errors import Refused
from farm.store import (
    HEAD_KEY,
    Conflict,
    Corrupt,
    LocalStore,
    Unreachable,
    catalog_key,
    profile_key,
)
from tests.farm import make
from tests.farm.catalog.taking import (
    LONG_AGO,
    TODAY,
    YESTERDAY,
    assert_once,
    assert_whole,
    compacted,
    flipped,
    live,
    newest,
    overwrite,
    readable,
    rebuilt,
    remove,
)

TOMORROW = "2026-12-01"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def put(store, *days: str, fence=1, began=TODAY, **more) -> str:
    """Send one profile on these days; return its id."""
    document = make.profile(fence=fence, **more)
    ran = msgspec.structs.replace(document.execution, started_at=f"{began}T10:15:00Z")
    document = msgspec.structs.replace(document, execution=ran)
    ids = {make.put(store, document, day=each)[0] for each in days or (TODAY,)}
    (found,) = ids
    return found


def key_of(store, profile_id: str, day=TODAY) -> str:
    (found,) = (each.key for each in store.list(f"inbox/v1/date={day}/") if profile_id in each.key)
    return found


class Around(LocalStore):
    """The same folder, with something that happens before a call, by the words it begins with."""

    def __init__(self, store, happens) -> None:
        super().__init__(store.root, fsync=False)
        self.happens = happens
        self.calls: list[tuple[str, str]] = []

    def put_new(self, key, source, *, media_type="application/json"):
        self.calls.append(("put_new", key))
        self.happens("put_new", key)
        return super().put_new(key, source, media_type=media_type)

    def get(self, key, *, to=None, sha256=None):
        self.calls.append(("get", key))
        self.happens("get", key)
        return super().get(key, to=to, sha256=sha256)


def nothing(call: str, key: str) -> None:
    pass


# ── what is taken ────────────────────────────────────────────────────────────────────────────────


def test_every_profile_is_in_a_part_once(store, cache):
    ids = {put(store, fence=each) for each in range(5)}

    made = compacted(store, cache)

    assert (1, 5, 0, 1, 0) == made[:5]
    assert_whole(store, ids)


def test_a_store_without_profiles_gets_no_manifest(store, cache):
    assert (0, 0, 0, 0, 0) == compacted(store, cache)[:5]
    assert chain.newest(store) is None


def test_compacting_again_changes_nothing(store, cache):
    put(store)
    first = compacted(store, cache)

    again = compacted(store, cache, every_day=True)

    assert (first.number, 0, 0, 0, 1) == again[:5]


def test_a_hint_that_was_lost_is_given_again(store, cache):
    """By the next pass, though it has nothing to commit."""
    put(store)
    compacted(store, cache)
    remove(store, HEAD_KEY)

    compacted(store, cache)

    assert 1 == chain.hinted(store)


def test_what_came_since_is_a_part_of_its_own_where_there_is_no_room(store, cache):
    """Parts are never changed; the next manifest names them all."""
    first = put(store, fence=1)
    compacted(store, cache)
    (before,) = newest(store).parts

    second = put(store, fence=2)
    made = compacted(store, cache, batch=1)

    assert (2, 1, 0, 1, 1) == made[:5]
    assert before == newest(store).parts[0]
    assert_whole(store, {first, second})


def test_small_parts_of_a_month_grow_together(store, cache):
    """Each is a file that every reader opens; a long one is not written anew for a few rows."""
    ids, counts, written = set(), [], 0
    for fence in range(60):
        ids.add(put(store, fence=fence))
        made = compacted(store, cache)
        counts.append(len(newest(store).parts))
        written += sum(each.rows for each in newest(store).parts[-made.parts :])

    assert max(counts) <= 4
    assert written <= 60 * 12
    assert_whole(store, ids)


def test_parts_grow_together_within_their_month_and_no_longer_than_a_batch(store, cache):
    ids = {put(store, LONG_AGO, fence=1)}
    compacted(store, cache)
    for fence in (2, 3, 4, 5):
        ids.add(put(store, fence=fence))
        compacted(store, cache, batch=3)

    assert [1, 1, 3] == sorted(each.rows for each in newest(store).parts)
    assert ["2026-10", "2026-11"] == sorted(
        {each.key.partition("month=")[2][:7] for each in newest(store).parts}
    )
    assert_whole(store, ids)


def test_a_part_covers_the_days_of_all_that_it_took_along(store, cache):
    put(store, YESTERDAY, fence=1, began=LONG_AGO)
    compacted(store, cache)
    put(store, TODAY, fence=2, began=YESTERDAY)

    compacted(store, cache)

    (part,) = newest(store).parts
    assert (YESTERDAY, TODAY) == (part.received_min, part.received_max)
    assert (LONG_AGO, YESTERDAY) == (part.started_min[:10], part.started_max[:10])


def test_a_small_part_that_is_damaged_is_taken_from_the_inbox(store, cache, tmp_path):
    ids = {put(store, fence=1)}
    compacted(store, cache)
    (before,) = newest(store).parts
    remove(store, before.key)
    ids.add(put(store, fence=2))

    compacted(store, tmp_path / "another cache")

    assert before not in newest(store).parts
    assert_whole(store, ids)


def test_a_part_with_columns_of_a_newer_farm_is_left_as_it_is(store, cache, monkeypatch):
    """To write it anew would lose them."""
    ids = {put(store, fence=1)}
    compacted(store, cache)
    (newer,) = newest(store).parts
    ids.add(put(store, fence=2))
    monkeypatch.setattr("farm.catalog.compact.is_ours", lambda path: False)

    compacted(store, cache)

    assert newer in newest(store).parts
    assert 2 == len(newest(store).parts)
    assert_whole(store, ids)


def test_a_manifest_says_what_each_part_holds(store, cache):
    put(store, YESTERDAY, fence=1, began=LONG_AGO)
    put(store, TODAY, fence=2, began=YESTERDAY)

    compacted(store, cache)

    (part,) = newest(store).parts
    data = store.get(part.key)
    assert f"tables/profiles/v1/month=2026-11/{part.sha256}.parquet" == part.key
    assert (identity.content_id(data), len(data), 2) == (part.sha256, part.bytes, part.rows)
    assert (YESTERDAY, TODAY) == (part.received_min, part.received_max)
    assert f"{LONG_AGO}T10:15:00Z" == part.started_min
    assert f"{YESTERDAY}T10:15:00Z" == part.started_max


def test_each_month_has_a_part_of_its_own(store, cache):
    ids = {put(store, LONG_AGO, fence=1), put(store, TODAY, fence=2)}

    compacted(store, cache)

    months = [each.key.split("/")[3] for each in newest(store).parts]
    assert ["month=2026-10", "month=2026-11"] == months
    assert_whole(store, ids)


def test_a_profile_that_was_sent_twice_is_one_row(store, cache):
    ids = {put(store, YESTERDAY, TODAY), put(store, LONG_AGO, TODAY, fence=2)}

    compacted(store, cache)

    assert_whole(store, ids)


def test_sixteen_profiles_are_fetched_at_a_time(store, cache):
    """A store far away answers late; so many questions are under way at once."""
    ids = {put(store, fence=each) for each in range(16)}
    together = threading.Barrier(16, timeout=30)

    def wait(call: str, key: str) -> None:
        if call == "get" and key.startswith("inbox/"):
            together.wait()

    compacted(Around(store, wait), cache)

    assert_whole(store, ids)


# ── days ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_old_day_is_read_with_the_first_pass_of_a_day(store, cache):
    """A wrong clock put a profile where nobody looks until tomorrow."""
    first = put(store)
    compacted(store, cache)
    late = put(store, LONG_AGO, fence=2)

    same_day = compacted(store, cache)
    next_day = compacted(store, cache, day=TOMORROW)

    assert (0, 1) == (same_day.added, next_day.added)
    assert TOMORROW == newest(store).swept
    assert_whole(store, {first, late})


def test_an_old_day_is_read_at_once_when_asked_for(store, cache):
    put(store)
    compacted(store, cache)
    put(store, LONG_AGO, fence=2)

    assert 1 == compacted(store, cache, every_day=True).added


def test_a_late_spool_is_taken_at_once(store, cache):
    """It lies in the folder of the day on which it was sent."""
    put(store)
    compacted(store, cache)
    put(store, TODAY, fence=2, began=LONG_AGO)

    assert 1 == compacted(store, cache).added


def test_a_clock_that_is_ahead_delays_nothing(store, cache):
    put(store)
    compacted(store, cache)
    put(store, "2031-01-01", fence=2)

    assert 1 == compacted(store, cache).added


def test_a_pass_over_every_day_is_noted_though_it_found_nothing(store, cache):
    """Else every pass of the day would be one."""
    put(store)
    compacted(store, cache)
    seen = Around(store, nothing)

    compacted(store, cache, day=TOMORROW)
    compacted(seen, cache, day=TOMORROW)

    assert TOMORROW == newest(store).swept
    assert 2 == newest(store).number


def test_what_was_sent_long_ago_and_is_sent_again_stays_one_row(store, cache):
    """A spool that never heard that its profile had arrived."""
    first = put(store, LONG_AGO, began=LONG_AGO)
    compacted(store, cache)
    assert first == put(store, TODAY, began=LONG_AGO)

    made = compacted(store, cache)

    assert 0 == made.added
    assert_whole(store, {first})


def test_a_row_that_wrong_clocks_doubled_is_one_again_after_the_daily_pass(store, cache):
    """Sent, by its clock, before it was measured: only a look at all parts can tell."""
    ids = {put(store, LONG_AGO, fence=1), put(store, LONG_AGO, fence=2)}
    compacted(store, cache)
    put(store, TODAY, fence=1)
    compacted(store, cache)
    assert 3 == len(live(store))

    compacted(store, cache, day=TOMORROW)

    assert_whole(store, ids)


def test_a_row_that_wrong_clocks_doubled_does_not_stop_parts_from_growing_together(store, cache):
    """Sent, by its clock, days before it was measured, and again: in one month, so in one part."""
    ids = {put(store, "2026-11-02", fence=1), put(store, "2026-11-02", fence=2)}
    compacted(store, cache)
    put(store, TODAY, fence=1)
    ids.add(put(store, TODAY, fence=3))
    compacted(store, cache)
    ids.add(put(store, TODAY, fence=4))

    compacted(store, cache)

    assert_whole(store, ids)


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_read_is_named_once_and_stops_nothing(store, cache):
    """Damaged, foreign, misnamed, of another job, in a folder of no day."""
    good = put(store, fence=1)
    damaged = key_of(store, put(store, fence=2))
    overwrite(store, damaged, b"{}")
    job = make.job().job_id
    foreign = profile_key(TODAY, job, identity.content_id(b"not json"))
    store.put_new(foreign, b"not json")
    newer = profile_key(TODAY, job, identity.content_id(b'{"schema":"farm.profile/v2"}'))
    store.put_new(newer, b'{"schema":"farm.profile/v2"}')
    astray = schema.encode(make.profile(fence=7))
    other = profile_key(TODAY, "0" * 32, identity.content_id(astray))
    store.put_new(other, astray)
    no_day = f"inbox/v1/date=2026-13-45/{job}.{'2' * 64}.json"
    store.put_new(no_day, b"{}")
    notes = f"inbox/v1/date={TODAY}/notes.txt"
    store.put_new(notes, b"hello")

    made = compacted(store, cache)

    assert (1, 6) == (made.added, made.unreadable)
    told = {each.key: each for each in newest(store).unreadable}
    assert {damaged, foreign, newer, other, no_day, notes} == set(told)
    assert identity.content_id(b"{}") == told[damaged].sha256
    assert "not those of its name" in told[damaged].reason
    assert "farm.profile/v2" in told[newer].reason
    assert msgspec.UNSET is told[notes].sha256
    assert_whole(store, {good})


def test_what_was_named_is_not_fetched_again(store, cache):
    """Nor told again, nor is there a new manifest for it."""
    put(store, fence=1)
    damaged = key_of(store, put(store, fence=2))
    overwrite(store, damaged, b"{}")
    first = compacted(store, cache)
    seen = Around(store, nothing)

    again = compacted(seen, cache, every_day=True)

    assert (first.number, 0) == (again.number, again.unreadable)
    assert ("get", damaged) not in seen.calls


def test_a_profile_with_a_whole_copy_is_not_unreadable(store, cache):
    """Whichever of two days holds the damaged one."""
    one, two = put(store, YESTERDAY, TODAY, fence=1), put(store, YESTERDAY, TODAY, fence=2)
    overwrite(store, key_of(store, one, TODAY), b"")
    overwrite(store, key_of(store, two, YESTERDAY), b"")

    compacted(store, cache)

    assert [] == newest(store).unreadable
    assert_whole(store, {one, two})


def test_bytes_that_a_wire_damaged_are_fetched_once_more(store, cache):
    """A name that promises a hash is proof enough that the first answer was wrong."""
    good = put(store)

    class Noisy(Around):
        def get(self, key, *, to=None, sha256=None):
            data = super().get(key, to=to, sha256=sha256)
            first = 1 == self.calls.count(("get", key))
            return flipped(data, 9) if first and key.startswith("inbox/") else data

    made = compacted(Noisy(store, nothing), cache)

    assert 0 == made.unreadable
    assert_whole(store, {good})


def test_a_long_reason_is_cut(store, cache):
    """A manifest is copied with every commit."""
    data = b'{"schema":"' + b"x" * 10_000 + b'"}'
    store.put_new(profile_key(TODAY, make.job().job_id, identity.content_id(data)), data)

    compacted(store, cache)

    (told,) = newest(store).unreadable
    assert len(told.reason) <= 300


# ── many ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_batch_is_committed_by_itself(store, cache):
    """Memory is bounded by a batch, and an interrupt loses no more than one."""
    ids = {put(store, fence=each) for each in range(8)}

    made = compacted(store, cache, batch=3)

    assert (3, 8, 0, 3, 0) == made[:5]
    assert [3, 3, 2] == [each.rows for each in newest(store).parts]
    assert_whole(store, ids)


def test_only_the_last_batch_says_that_every_day_was_read(store, cache):
    """What comes after a crash in between begins with all days again."""
    ids = {put(store, LONG_AGO, fence=each) for each in range(4)}

    def crash(call: str, key: str) -> None:
        if (call, key) == ("put_new", catalog_key(2)):
            raise Unreachable("gone", key=key, store="s")

    with pytest.raises(Unreachable):
        compacted(Around(store, crash), cache, batch=3)
    assert msgspec.UNSET is newest(store).swept
    compacted(store, cache, batch=3)

    assert TODAY == newest(store).swept
    assert_whole(store, ids)


@pytest.mark.long
def test_twenty_thousand_profiles_fit_into_a_small_machine(store, cache):
    """Decoded all at once they would not: measured 260 MB and 5 s of CPU, against 490 MB."""
    model = make.profile()
    for fence in range(20_000):
        make.put(store, msgspec.structs.replace(model, fence=fence))
    code = f"""if True:
        import resource, time
        from pathlib import Path
        from farm.store import LocalStore
        from tests.farm.catalog.taking import compacted
        made = compacted(LocalStore(Path({str(store.root)!r}), fsync=False), Path({str(cache)!r}))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(made.added, peak, time.process_time())
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    added, peak_kib, cpu_s = map(float, said.stdout.split())
    assert 20_000 == added
    assert peak_kib < 350 << 10
    assert cpu_s < 15  # the target is 5; a busy machine may take longer


# ── other writers ────────────────────────────────────────────────────────────────────────────────


def test_who_loses_a_commit_starts_again(store, cache):
    """Another compactor was faster: its profiles are subtracted, and each counts once."""
    ids = {put(store, fence=1)}

    def overtaken(call: str, key: str) -> None:
        if call == "put_new" and key == catalog_key(1) and not seen.lost:
            seen.lost = True
            compacted(store, cache, writer="another")
            ids.add(put(store, fence=2))

    seen = Around(store, overtaken)
    seen.lost = False

    made = compacted(seen, cache)

    assert (2, 1) == (made.number, made.added)
    assert_whole(store, ids)


def test_ten_lost_commits_are_enough(store, cache):
    """It waits between them, a little longer each time, and never longer than two seconds."""
    put(store)
    pauses: list[float] = []

    def overtaken(call: str, key: str) -> None:
        if call == "put_new" and (number := chain.number_of(key)) is not None:
            chain.commit(
                store, schema.Catalog(number=number, written_at="", writer="rival", parts=[])
            )

    with pytest.raises(Conflict, match="faster 10 times"):
        compacted(Around(store, overtaken), cache, sleep=pauses.append, rng=random.Random(1))

    assert 9 == len(pauses)
    assert all(0 <= each <= 2 for each in pauses)
    assert len(set(pauses)) > 1


def test_a_part_whose_commit_was_lost_is_harmless(store, cache):
    """It stays in the store, and nobody reads it."""
    ids = {put(store)}

    def crash(call: str, key: str) -> None:
        if call == "put_new" and key == catalog_key(1):
            raise Unreachable("gone", key=key, store="s")

    with pytest.raises(Unreachable):
        compacted(Around(store, crash), cache)
    ids.add(put(store, fence=2))
    compacted(store, cache)

    assert 2 == sum(1 for each in store.list("tables/profiles/v1/month="))
    assert_whole(store, ids)


def test_a_commit_that_a_store_lost_is_made_good(store, cache):
    """Its profiles are in no part that counts, so they are taken again."""
    ids = {put(store, fence=1)}
    compacted(store, cache)
    ids.add(put(store, fence=2))
    compacted(store, cache)
    remove(store, catalog_key(2))
    remove(store, HEAD_KEY)

    compacted(store, cache)

    assert_whole(store, ids)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("gone", [True, False])
def test_a_part_that_is_damaged_or_gone_is_made_anew(store, cache, tmp_path, count, gone):
    """Its profiles are in the inbox; its name, if damaged bytes hold it, is not used again."""
    ids = {put(store, LONG_AGO, fence=each) for each in range(count)}
    compacted(store, cache)
    ids.add(put(store, fence=9))
    compacted(store, cache)
    (part, _) = newest(store).parts
    if gone:
        remove(store, part.key)
    else:
        overwrite(store, part.key, flipped(store.get(part.key), 100))

    compacted(store, tmp_path / "cold", day=TOMORROW)

    assert gone == (part.key in [each.key for each in newest(store).parts])
    assert_whole(store, ids)


def test_a_damaged_part_is_made_anew_with_the_old_days_in_it(store, cache, tmp_path):
    """A pass that would look at two days looks at all of them then."""
    ids = {put(store, "2026-11-10", fence=1), put(store, TODAY, fence=2)}
    compacted(store, cache)
    (part,) = newest(store).parts
    remove(store, part.key)

    compacted(store, tmp_path / "cold")

    assert_whole(store, ids)


def test_a_damaged_manifest_is_followed_by_one_with_everything(store, cache):
    """Old days too: nobody knows what the damaged one said."""
    ids = {put(store, TODAY, fence=1)}
    compacted(store, cache)
    ids.add(put(store, LONG_AGO, fence=2))
    compacted(store, cache, every_day=True)
    damaged = store.get(catalog_key(2))[:-9]
    overwrite(store, catalog_key(2), damaged)

    made = compacted(store, cache)

    assert 3 == made.number
    assert identity.content_id(damaged) == newest(store).parent_sha256
    assert_once(store, ids)


def test_a_chain_without_a_whole_manifest_begins_anew(store, cache):
    ids = {put(store, LONG_AGO, fence=1), put(store, fence=2)}
    compacted(store, cache)
    overwrite(store, catalog_key(1), b"")

    compacted(store, cache)

    assert_once(store, ids)


def test_the_catalogue_of_a_newer_farm_is_left_alone(store, cache):
    put(store)
    compacted(store, cache)
    body = b'{"schema":"farm.catalog/v2","number":2'
    seal = identity.content_id(body).encode()
    store.put_new(catalog_key(2), body + b',"seal":"' + seal + b'"}')
    put(store, fence=2)

    for act in (compacted, rebuilt):
        with pytest.raises(Refused, match="newer farm"):
            act(store, cache)

    assert 1 == sum(1 for each in store.list("tables/profiles/v1/month="))


def test_a_part_that_does_not_come_back_whole_is_never_committed(store, cache):
    class Lossy(Around):
        def get(self, key, *, to=None, sha256=None):
            if key.endswith(".parquet"):
                raise Corrupt("other bytes", key=key, store="s")
            return super().get(key, to=to, sha256=sha256)

    put(store)

    with pytest.raises(Corrupt):
        compacted(Lossy(store, nothing), cache)

    assert chain.newest(store) is None


# ── rebuild ──────────────────────────────────────────────────────────────────────────────────────


def test_rebuilding_everything_makes_one_part_of_many(store, cache):
    ids = set()
    for fence in range(4):
        ids.add(put(store, fence=fence))
        compacted(store, cache, batch=1)

    made = rebuilt(store, cache)

    assert (5, 4, 0, 1, 0) == made[:5]
    assert_whole(store, ids)


def test_a_rebuild_names_what_the_inbox_has_no_longer(store, cache):
    """The loss is said once more, and not made to look as if it had never been."""
    kept, gone = put(store, fence=1), put(store, fence=2)
    compacted(store, cache)
    (key,) = [each.key for each in store.list("inbox/") if gone in each.key]
    remove(store, key)

    made = rebuilt(store, cache)

    assert (1, (gone,)) == (made.added, made.lost)
    assert_whole(store, {kept})
    assert () == rebuilt(store, cache).lost


def test_rebuilding_leaves_the_parts_of_earlier_days(store, cache):
    ids = {put(store, LONG_AGO, fence=1)}
    compacted(store, cache)
    (old,) = newest(store).parts
    for fence in (2, 3):
        ids.add(put(store, fence=fence))
        compacted(store, cache)

    made = rebuilt(store, cache, since=YESTERDAY)

    assert (2, 1) == (made.added, made.parts)
    assert old == newest(store).parts[0]
    assert 2 == len(newest(store).parts)
    assert_whole(store, ids)


def test_rebuilding_leaves_a_small_part_of_the_same_month(store, cache):
    """Nobody asked for it to be written anew."""
    ids = {put(store, "2026-11-02", fence=1)}
    compacted(store, cache)
    (old,) = newest(store).parts
    ids.add(put(store, fence=2))
    compacted(store, cache, batch=1)

    rebuilt(store, cache, since=YESTERDAY)

    assert old == newest(store).parts[0]
    assert_whole(store, ids)


def test_a_part_that_began_earlier_is_made_anew_whole(store, cache):
    """It holds days before the one that was named, and they must not get lost with it."""
    ids = {put(store, "2026-11-10", fence=1), put(store, TODAY, fence=2)}
    compacted(store, cache)

    made = rebuilt(store, cache, since=TODAY)

    assert 2 == made.added
    assert_whole(store, ids)


def test_rebuilding_makes_a_damaged_part_of_earlier_days_anew_as_well(store, cache, tmp_path):
    ids = {put(store, "2026-11-15", fence=1)}
    compacted(store, cache)
    (old,) = newest(store).parts
    ids |= {put(store, "2026-11-10", fence=2), put(store, TODAY, fence=3)}
    compacted(store, cache, every_day=True)
    remove(store, old.key)

    made = rebuilt(store, tmp_path / "cold", since=TODAY)

    assert (3, 1) == (made.added, made.parts)
    assert_whole(store, ids)


def test_rebuilding_holds_exactly_what_can_be_read(store, cache):
    """What left the inbox leaves the parts, what was damaged and is whole again comes back."""
    gone, restored, stays = (put(store, fence=each) for each in range(3))
    place = key_of(store, restored)
    data = store.get(place)
    overwrite(store, place, b"")
    compacted(store, cache)
    remove(store, key_of(store, gone))
    overwrite(store, place, data)
    assert 0 == compacted(store, cache).added

    rebuilt(store, cache, since=TODAY)

    assert {restored, stays} == readable(store)
    assert [] == newest(store).unreadable
    assert_whole(store, {restored, stays})


def test_rebuilding_names_what_still_cannot_be_read(store, cache):
    """And keeps what was named of earlier days."""
    old, new = put(store, LONG_AGO, fence=1), put(store, TODAY, fence=2)
    put(store, fence=3)
    keys = [key_of(store, old, LONG_AGO), key_of(store, new)]
    for each in keys:
        overwrite(store, each, b"")
    compacted(store, cache)

    made = rebuilt(store, cache, since=TODAY)

    assert 1 == made.unreadable
    assert keys == [each.key for each in newest(store).unreadable]


def test_a_rebuild_of_many_batches_is_one_commit(store, cache):
    """Nobody reads a table that is half of the old and half of the new."""
    ids = {put(store, fence=each) for each in range(7)}
    compacted(store, cache)

    made = rebuilt(store, cache, batch=3)

    assert (2, 7, 3) == (made.number, made.added, made.parts)
    assert_whole(store, ids)


@pytest.mark.parametrize("since", ["yesterday", "2026-11", "20261130", "2026-13-01", "2026-11-3"])
def test_rebuilding_since_no_day_is_refused(store, cache, since):
    with pytest.raises(Refused, match=since):
        rebuilt(store, cache, since=since)


# ── whatever the order ───────────────────────────────────────────────────────────────────────────

DAYS = ["2026-10-30", "2026-11-28", YESTERDAY, TODAY]
arrivals = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(DAYS), st.booleans()), min_size=1, max_size=12
)


@settings(max_examples=25)
@given(arrivals, st.sampled_from(["", *DAYS, None]))
def test_ids_and_winners_depend_on_nothing_but_what_arrived(sent, since):
    """Not on the order of arrival, on how often one compacts, nor on a rebuild."""
    with tempfile.TemporaryDirectory() as folder:
        store, cache = LocalStore(Path(folder) / "store", fsync=False), Path(folder) / "cache"
        ids = set()
        for fence, day, then in sent:
            ids.add(put(store, day, fence=fence, began=_began(fence), status=_status(fence)))
            if then:
                compacted(store, cache)
        if since is not None:
            rebuilt(store, cache, since=since)

        compacted(store, cache, every_day=True)

        assert_whole(store, ids)
        all_rows = rows.read(store).rows
        held = set(live(store))
        in_parts = [each for each in all_rows if each.profile_id in held]
        assert winners.winners(all_rows) == winners.winners(reversed(in_parts))


def _began(fence: int) -> str:
    """Every third clock is wrong: what it sends was measured later, it says."""
    return DAYS[0] if fence % 3 else TODAY


def _status(fence: int) -> str:
    return "ok" if fence % 2 else "failed"
