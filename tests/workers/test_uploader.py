"""Nothing that was measured is lost on its way, nothing arrives twice, and entries end once."""

import errno
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from farm import identity, schema
from farm.catalog import rows
from farm.errors import Unreachable
from farm.ledger import Claim, Entry, Ledger
from farm.store import Conflict, Denied, LocalStore, StoreError, blob_key, profile_key
from farm.store import Unreachable as Away
from tests.farm import make
from tests.workers.test_tasks import SLOT
from workers.spool import Parcel, Spool, goods
from workers.uploader import MOST_PROFILES, Uploader

pytestmark = pytest.mark.redis

TODAY = "2026-11-30"


class Flaky:
    """A store that can be told to fail; it counts what it was asked to put."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.trouble: Callable[[str], None] = lambda _key: None
        self.puts: list[str] = []

    def put_new(self, key: str, source: Any, *, media_type: str = "") -> bool:
        self.trouble(key)
        self.puts.append(key)
        return self.store.put_new(key, source)

    def get(self, key: str, **more: Any) -> bytes:
        return self.store.get(key, **more)


class Place:
    """A ledger, a store, a spool, and what sends from one to the other."""

    def __init__(self, folder: Path, url: str, store: LocalStore) -> None:
        store.probe()
        self.folder, self.store, self.flaky = folder, store, Flaky(store)
        self.ledger = Ledger(url, ttl_s=2.0)
        self.ledger.setup()
        self.server = redis.Redis.from_url(url, decode_responses=True)
        self.day = TODAY
        self.made: list[Uploader] = []
        self.uploader = self.another()

    def another(self) -> Uploader:
        """An uploader of the same spool, as the next agent has it."""
        for each in self.made:
            each.end(seconds=0)
        self.spool = Spool(self.folder / "spool", place="here")
        self.made.append(
            Uploader(
                self.spool,
                store=self.flaky,  # type: ignore[arg-type]
                ledger=self.ledger,
                rng=random.Random(1),
                today=lambda: self.day,
            )
        )
        return self.made[-1]

    def measured(self, batch: int = 1, *, end: str = "DONE", evidence: bool = False) -> Claim:
        """Claim a job, and leave its profile in the spool as a slot worker does."""
        job = make.job(batch=batch)
        key = f"{job.job_id}.base"
        self.ledger.submit("r-1", [Entry(key=key, class_="any", spec="{}", again=True)])
        claim = self.ledger.claim(SLOT, owner="n1/cpu:0#a")
        assert isinstance(claim, Claim)
        data = schema.encode(make.profile(job, fence=int(claim.fence)))
        log, card = b"log %d" % batch, b"{}"
        at = profile_key(self.day, job.job_id, identity.content_id(data))
        page = Parcel(
            entry="" if evidence else key,
            run="r-1",
            fence=claim.fence,
            effort="e",
            end=end,  # type: ignore[arg-type]
            cause="ok",
            job_id=job.job_id,
            goods=[
                goods(blob_key("log", identity.content_id(log), "txt.gz"), log, file="log.txt.gz"),
                goods(f"cards/v1/{identity.content_id(card)}.json", card, file="card.json"),
                goods("", data, file="profile.json"),
            ],
            sent_as=at,
        )
        self.spool.write(page, [log, card, data])
        if not evidence:
            self.ledger.finish(
                claim, state="UPLOADING", cause="ok", profile_key=at, owner="n1/spool"
            )
        return claim

    def states(self) -> list[str]:
        return [each.state for each in self.ledger.entries("r-1")]

    def stored(self) -> list[str]:
        return [each.key for each in rows.read(self.store).rows]

    def beat(self) -> list[str]:
        held = self.uploader.held()
        answers = self.ledger.beat(held)
        self.uploader.told(held, answers)
        return answers


@pytest.fixture
def place(tmp_path: Path, redis_url: str, store: LocalStore) -> Iterator[Place]:
    made = Place(tmp_path, redis_url, store)
    yield made
    for each in made.made:
        each.end(seconds=5)
    made.ledger.close()
    made.server.close()


def fail(error: type[StoreError], where: str = "", *, times: int = 10**6) -> Callable[[str], None]:
    """What raises so many times when a key begins with `where`."""
    left = [times]

    def trouble(key: str) -> None:
        if key.startswith(where) and left[0]:
            left[0] -= 1
            raise error("no", key=key, store="the store")

    return trouble


# ── sending ──────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_is_sent_with_the_profile_last_and_ends_its_entry(place: Place) -> None:
    """So a profile that is listed has its artefacts and its card."""
    place.measured()

    place.uploader.step()

    assert ["blobs", "cards", "inbox"] == [key.partition("/")[0] for key in place.flaky.puts]
    assert (["DONE"], []) == (place.states(), place.spool.names())
    (record,) = place.ledger.entries("r-1")
    assert [record.profile_key] == place.stored()


@pytest.mark.parametrize("end", ["DONE", "FAILED"])
def test_an_entry_ends_as_its_profile_says(place: Place, end: str) -> None:
    place.measured(end=end)

    place.uploader.step()

    assert [end] == place.states()


def test_evidence_is_sent_and_ends_nothing(place: Place) -> None:
    """The profile of an attempt that broke for us: its entry is tried again meanwhile."""
    place.measured(evidence=True)

    place.uploader.step()

    assert (["RUNNING"], 1) == (place.states(), len(place.stored()))


def test_nothing_ends_before_the_store_has_it(place: Place) -> None:
    """A device goes on meanwhile; when the store is back everything goes out, the oldest first."""
    place.flaky.trouble = fail(Away)
    for batch in range(1, 6):
        place.measured(batch)
        place.uploader.step()

    assert (["UPLOADING"] * 5, [], 5) == (
        place.states(),
        place.stored(),
        place.uploader.depth().profiles,
    )

    place.flaky.trouble = lambda _key: None
    place.uploader.step()

    assert (["DONE"] * 5, 5, []) == (place.states(), len(place.stored()), place.spool.names())
    assert "" == place.uploader.depth().trouble


def test_the_lease_of_what_waits_is_kept_while_the_store_is_away(place: Place) -> None:
    """Also of what was measured after it went: nobody measures that again."""
    place.flaky.trouble = fail(Away)
    place.uploader.step()
    place.measured(1)
    place.uploader.step()
    place.measured(2)

    assert ["OK", "OK"] == place.beat()


def test_waits_get_longer_and_a_refusal_is_waited_out_too(place: Place) -> None:
    """From a second to a minute, spread so that nodes do not come back all at once."""
    place.measured()
    place.flaky.trouble = fail(Away)

    waits = [place.uploader.step() for _ in range(12)]

    assert 0.75 <= waits[0] <= 1.25
    assert waits[2] > waits[0]
    assert 45 <= max(waits) <= 75
    place.flaky.trouble = fail(Denied)
    assert 60 == place.uploader.step()
    assert "no" in place.uploader.depth().trouble
    assert ["UPLOADING"] == place.states()


def test_a_store_that_lost_its_mark_takes_nothing(place: Place) -> None:
    """A folder that is not mounted would take everything, and hide it later."""
    place.measured()
    away = place.store.root.with_name("away")
    place.store.root.rename(away)

    place.uploader.step()

    assert (False, ["UPLOADING"]) == (place.store.root.exists(), place.states())
    away.rename(place.store.root)
    place.uploader.step()
    assert ["DONE"] == place.states()


# ── the same profile, tried more than once ───────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["blobs", "cards", "inbox"])
def test_a_try_that_broke_anywhere_is_completed_by_the_next(place: Place, where: str) -> None:
    place.measured()
    place.flaky.trouble = fail(Away, where, times=1)

    place.uploader.step()
    assert ["UPLOADING"] == place.states()
    place.another().step()

    assert (["DONE"], 1) == (place.states(), len(place.stored()))


def test_a_profile_goes_to_the_day_of_its_sending(place: Place) -> None:
    """So that a reader of today's folder finds it; the entry names the new place."""
    place.measured()
    place.flaky.trouble = fail(Away)
    place.uploader.step()
    place.flaky.trouble, place.day = (lambda _key: None), "2026-12-01"

    place.another().step()

    (key,) = place.stored()
    assert "date=2026-12-01" in key
    assert key == place.ledger.entries("r-1")[0].profile_key


def test_a_profile_whose_answer_was_lost_yesterday_is_not_sent_again(place: Place) -> None:
    place.measured()
    put = place.flaky.put_new

    def lose(key: str, source: Any, **more: Any) -> bool:
        put(key, source)
        if key.startswith("inbox"):
            raise Away("the answer was lost", key=key, store="x")
        return True

    place.flaky.put_new = lose  # type: ignore[method-assign]
    place.uploader.step()
    place.flaky.put_new, place.day = put, "2026-12-01"  # type: ignore[method-assign]

    place.another().step()

    (key,) = place.stored()
    assert f"date={TODAY}" in key
    assert ["DONE"] == place.states()


def test_an_entry_that_is_somebody_elses_by_now_is_left_to_them(place: Place) -> None:
    """The profile cost device time and is kept; the other attempt ends the entry."""
    claim = place.measured()
    (lease,) = place.server.zrange("farm:lease", 0, -1)
    place.server.zadd("farm:lease", {lease: 0})
    place.ledger.tick()
    other = place.ledger.claim(replace(SLOT, node="n2"), owner="n2/cpu:0#b")
    assert isinstance(other, Claim)
    assert other.fence != claim.fence

    assert ["LOST taken"] == place.beat()
    place.uploader.step()

    assert (["RUNNING"], 1, []) == (place.states(), len(place.stored()), place.spool.names())
    assert other.profile_key == place.stored()[0]


def test_an_entry_that_the_ledger_forgot_needs_no_end(place: Place) -> None:
    """Redis came back empty: a resume finds the profile in the store."""
    place.measured()
    place.ledger.forget()

    assert ["LOST unknown"] == place.beat()
    place.uploader.step()

    assert (1, []) == (len(place.stored()), place.spool.names())


def test_a_ledger_that_is_away_is_waited_for(place: Place) -> None:
    """The profile is in the store; the parcel stays until its entry has ended."""
    place.measured()
    finish = place.ledger.finish

    def away(*_words: Any, **_more: Any) -> str:
        raise Unreachable("the broker cannot be reached")

    place.ledger.finish = away  # type: ignore[method-assign]
    place.uploader.step()
    assert (1, 1) == (len(place.stored()), len(place.spool.names()))

    place.ledger.finish = finish  # type: ignore[method-assign]
    place.uploader.step()
    assert (["DONE"], 1, []) == (place.states(), len(place.stored()), place.spool.names())


# ── what cannot arrive ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "damage",
    ["store", "spool", "page", "bit", "goods", "order", "sent_as", "key", "gone", "folder"],
)
def test_one_that_cannot_arrive_holds_up_no_other(place: Place, damage: str) -> None:
    """It is set aside with its reason, and its job is measured again."""
    place.measured(1)
    (name,) = place.spool.names()
    folder = place.spool.folder / name
    page = place.spool.read(name).parcel
    changed = {
        "goods": replace(page, goods=[]),
        "order": replace(page, goods=page.goods[::-1]),
        "sent_as": replace(page, sent_as="Inbox/x"),
        "key": replace(page, goods=[replace(page.goods[0], key="A B"), *page.goods[1:]]),
    }
    if damage in changed:
        place.spool.rewrite(name, changed[damage])
    if damage == "sent_as":
        place.day = "2026-12-01"
    if damage == "store":
        place.flaky.trouble = fail(Conflict, "blobs", times=1)
    elif damage == "spool":
        (folder / "profile.json").write_bytes(b"{}")
    elif damage == "page":
        (folder / "parcel.json").write_bytes(b"{")
    elif damage == "bit":  # another job, and everything else right
        data = (folder / "parcel.json").read_bytes()
        (folder / "parcel.json").write_bytes(data.replace(b'"job_id":"', b'"job_id":"0', 1))
    elif damage == "gone":
        place.uploader.held()
        (folder / "parcel.json").unlink()
    elif damage == "folder":
        (folder / "profile.json").unlink()
        (folder / "profile.json").mkdir()
    place.measured(2)

    place.uploader.step()
    place.uploader.held()

    assert (1, 1, []) == (place.spool.aside(), len(place.stored()), place.spool.names())
    assert 1 == place.states().count("DONE")
    assert (name, 1) == (
        next((place.spool.folder / "aside").iterdir()).name,
        place.uploader.depth().aside,
    )


def test_one_that_came_back_from_aside_is_set_aside_again(place: Place) -> None:
    """Somebody copied it; what lies aside already is not touched."""
    place.measured(1)
    (name,) = place.spool.names()
    (place.spool.folder / name / "profile.json").write_bytes(b"{}")
    place.uploader.step()
    shutil.copytree(place.spool.folder / "aside" / name, place.spool.folder / name)

    place.uploader.step()

    assert (2, []) == (place.spool.aside(), place.spool.names())


def test_one_that_cannot_even_be_moved_is_gone_past(place: Place) -> None:
    """And counted among what the store could not take, so that somebody looks."""
    place.measured(1)
    (name,) = place.spool.names()
    (place.spool.folder / name / "profile.json").write_bytes(b"{}")
    (place.spool.folder / "aside").write_text("a file")
    place.measured(2)

    place.uploader.step()
    place.uploader.step()

    assert (1, [name], 1) == (
        len(place.stored()),
        place.spool.names(),
        place.uploader.depth().aside,
    )


def test_what_is_no_parcel_is_let_lie(place: Place) -> None:
    for name in ("1backup", "²x", "0" * 20 + "-x-y"):
        (place.spool.folder / name).mkdir(parents=True)
    place.measured()

    place.uploader.step()

    assert ["DONE"] == place.states()


def test_a_full_disk_lets_out_what_makes_room_on_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing can be written down about a new day."""
    place.measured()
    place.day = "2026-12-01"

    def full(*_words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(place.spool, "rewrite", full)
    place.uploader.step()

    assert (["DONE"], 1) == (place.states(), len(place.stored()))
    assert TODAY in place.stored()[0]


def test_one_that_was_handed_over_anew_ends_under_its_new_fence(place: Place) -> None:
    """Its lease ran out and this node claimed it again, while we looked elsewhere."""
    place.measured()
    (name,) = place.spool.names()
    place.uploader.held()
    (lease,) = place.server.zrange("farm:lease", 0, -1)
    place.server.zadd("farm:lease", {lease: 0})
    place.ledger.tick()
    claim = place.ledger.claim(SLOT, owner="n1/cpu:0#b")
    assert isinstance(claim, Claim)
    page = replace(place.spool.read(name).parcel, fence=claim.fence)
    place.spool.rewrite(name, page)
    place.ledger.finish(
        claim, state="UPLOADING", cause="ok", profile_key=page.sent_as, owner="n1/spool"
    )
    place.day = "2026-12-01"

    place.uploader.step()

    assert (["DONE"], []) == (place.states(), place.spool.names())


# ── depth ────────────────────────────────────────────────────────────────────────────────────────


def test_the_depth_says_how_much_waits_and_for_how_long(place: Place) -> None:
    place.flaky.trouble = fail(Away)
    place.measured(1)
    place.measured(2)
    place.uploader.step()

    depth = place.uploader.depth()

    assert (2, False) == (depth.profiles, depth.is_full)
    assert depth.bytes > 2000
    assert 0 <= depth.age_s < 60


def test_a_full_spool_stops_claims_on_its_node_until_it_empties(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.flaky.trouble = fail(Away)
    place.measured(1)
    place.uploader.step()
    monkeypatch.setattr("workers.uploader.MOST_PROFILES", 1)
    place.ledger.node("n1", state="up", slots=[SLOT], spool=place.uploader.depth())
    place.ledger.submit("r-1", [Entry(key="b.base", class_="any", spec="{}")])

    assert not isinstance(place.ledger.claim(SLOT, owner="n1/cpu:0#b"), Claim)

    place.flaky.trouble = lambda _key: None
    place.uploader.step()
    place.ledger.node("n1", state="up", slots=[SLOT], spool=place.uploader.depth())
    assert isinstance(place.ledger.claim(SLOT, owner="n1/cpu:0#b"), Claim)
    assert MOST_PROFILES == 10_000


def test_a_spool_that_cannot_be_read_is_full_and_says_why(place: Place, tmp_path: Path) -> None:
    """Nobody knows what waits there, so nothing is added to it."""
    (tmp_path / "file").write_text("")
    lame = Uploader(Spool(tmp_path / "file", place="x"), store=place.store, ledger=place.ledger)

    assert ([], 60.0) == (lame.held(), lame.step())

    assert (True, True) == (lame.depth().is_full, "spool cannot be read" in lame.depth().trouble)


def test_of_two_agents_in_one_folder_one_sends(place: Place) -> None:
    """The other holds nothing, and takes over when the first has gone."""
    second = Uploader(
        Spool(place.folder / "spool", place="here"), store=place.store, ledger=place.ledger
    )
    place.measured()
    assert 1 == len(place.uploader.held())

    second.step()
    assert (["UPLOADING"], []) == (place.states(), second.held())

    place.uploader.end(seconds=5)
    second.step()
    assert ["DONE"] == place.states()
    second.end(seconds=5)


def test_the_thread_sends_what_it_is_woken_for_and_ends_when_told(place: Place) -> None:
    place.uploader.start()
    place.measured()

    place.uploader.wake()
    deadline = time.monotonic() + 20
    while place.states() != ["DONE"] and time.monotonic() < deadline:
        pass
    place.uploader.end(seconds=5)
    assert ["DONE"] == place.states()

    assert place.uploader.is_idle


def test_a_bug_ends_no_thread_and_is_told(place: Place) -> None:
    """What waits stays, its lease is kept, and everybody can see that something is wrong."""

    def bug(_key: str) -> None:
        raise ZeroDivisionError

    place.measured()
    place.flaky.trouble = bug
    place.uploader.start()
    deadline = time.monotonic() + 20
    while not place.uploader.depth().trouble and time.monotonic() < deadline:
        pass

    assert "ZeroDivisionError" in place.uploader.depth().trouble
    assert ["OK"] == place.beat()
    place.uploader.end(seconds=5)


# ── kills ────────────────────────────────────────────────────────────────────────────────────────

KILLED = """if True:
    import os, signal, sys
    from pathlib import Path
    from farm.ledger import Ledger
    from farm.store import LocalStore
    from workers.spool import Spool
    from workers.uploader import Uploader

    step = int(sys.argv[4])

    def at_step(call):
        def counted(*words, **more):
            global step
            step -= 1
            if step == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            found = call(*words, **more)
            step -= 1
            if step == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return found
        return counted

    store, ledger = LocalStore(Path(sys.argv[1])), Ledger(sys.argv[2])
    spool = Spool(Path(sys.argv[3]), place="here")
    for thing, names in (
        (store, ("put_new", "get")), (ledger, ("beat", "finish")),
        (spool, ("rewrite", "remove", "path")),
    ):
        for name in names:
            setattr(thing, name, at_step(getattr(thing, name)))
    sender = Uploader(spool, store=store, ledger=ledger, today=lambda: "2026-12-01")
    sender.step()
    print("arrived", flush=True)
"""


def test_a_kill_at_any_step_loses_nothing_and_publishes_nothing_twice(
    place: Place, redis_url: str
) -> None:
    """Before and after every call, for a profile that waited over midnight: the next completes."""
    place.made[0].end(seconds=0)
    for step in range(1, 100):
        claim = place.measured(step)
        told = subprocess.run(
            [
                *(sys.executable, "-c", KILLED, str(place.store.root), redis_url),
                *(str(place.folder / "spool"), str(step)),
            ],
            capture_output=True,
            cwd=Path(__file__).parents[2],
            check=False,
        )
        place.day = "2026-12-02"
        place.another().step()
        place.day = TODAY
        place.made[-1].end(seconds=0)

        job_id = claim.key.partition(".")[0]
        assert 1 == sum(job_id in key for key in place.stored()), step
        if b"arrived" in told.stdout:
            break
    else:
        pytest.fail("the walk never came to an end")

    assert step > 20
    assert {"DONE"} == set(place.states())
    assert [] == place.spool.names()
