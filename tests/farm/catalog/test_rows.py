"""Reading the inbox: what is good is read, what is bad is named."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest

from farm import identity, schema
from farm.catalog import rows
from farm.errors import NoResult, Unreachable
from farm.store import LocalStore
from tests.farm import make


class Listed(NamedTuple):
    key: str


class Shelf:
    """A store for reading: a dict, and a note of what was fetched."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.fetched: list[str] = []

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[Listed]:
        yield from (
            Listed(key) for key in sorted(self.objects) if key.startswith(prefix) and key > after
        )

    def get(self, key: str) -> bytes:
        self.fetched.append(key)
        return self.objects[key]


def shelf(*given: rows.Row) -> Shelf:
    return Shelf({each.key: schema.encode(each.profile) for each in given})


def test_read_returns_every_profile_with_the_id_of_its_bytes():
    """What was put comes back, under the id that its bytes give."""
    first, second = make.row(fence=1), make.row(make.profile(make.job(batch=8)))
    store = shelf(first, second)

    found = rows.read(store)

    assert {first.profile_id: first.profile, second.profile_id: second.profile} == {
        row.profile_id: row.profile for row in found.rows
    }
    assert [] == found.unreadable


def test_read_works_on_a_folder(tmp_path):
    """The store that a laptop has is read like any other."""
    good = make.row()
    store = LocalStore(tmp_path, fsync=False)
    store.put_new(good.key, schema.encode(good.profile))
    (tmp_path / "inbox/v1/date=2026-11-30/notes.txt").write_text("hello")

    found = rows.read(store)

    assert [good] == found.rows
    assert ["inbox/v1/date=2026-11-30/notes.txt"] == [each.key for each in found.unreadable]


def test_a_filter_by_job_fetches_nothing_else():
    """The job id is in the key: other jobs cost a listing, no transfer."""
    wanted, other = make.row(), make.row(make.profile(make.job(batch=8)))
    store = shelf(wanted, other)

    found = rows.read(store, job_ids=[wanted.profile.job_id])

    assert [wanted.profile_id] == [row.profile_id for row in found.rows]
    assert [wanted.key] == store.fetched


def test_a_profile_sent_on_two_days_is_one_row():
    """A spool that sent a profile again after midnight made no second measurement."""
    document = make.profile()
    store = shelf(make.row(document, day="2026-11-29"), make.row(document, day="2026-11-30"))

    assert 1 == len(rows.read(store).rows)


def test_since_passes_over_earlier_days():
    """A day bounds the listing from below, that day included."""
    old = make.row(make.profile(fence=1), day="2026-11-28")
    new = make.row(make.profile(fence=2), day="2026-11-29")
    store = shelf(old, new)

    assert [new.profile_id] == [row.profile_id for row in rows.read(store, since="2026-11-29").rows]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data + b" ", "not those of its name"),
        (lambda data: b"", "not those of its name"),
    ],
)
def test_bytes_that_do_not_match_their_name_are_unreadable(damage, reason):
    """A key promises a hash; other bytes are damage, never a profile."""
    good, bad = make.row(fence=1), make.row(fence=2)
    store = shelf(good, bad)
    store.objects[bad.key] = damage(store.objects[bad.key])

    found = rows.read(store)

    assert [good.profile_id] == [row.profile_id for row in found.rows]
    assert [bad.key] == [each.key for each in found.unreadable]
    assert reason in found.unreadable[0].reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not json", "not JSON"),
        (b'{"job_id":"x"}', "schema"),
        (b'{"schema":"farm.profile/v2"}', "farm.profile/v2"),
        (b'{"schema":"farm.profile/v1"}', "not a valid farm.profile/v1"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_document_that_is_no_profile_is_named_and_stops_nothing(data, reason):
    """Bad JSON, a foreign schema and a newer one are counted, and the rest is read."""
    good = make.row()
    store = shelf(good)
    key = f"inbox/v1/date=2026-11-30/{good.profile.job_id}.{identity.content_id(data)}.json"
    store.objects[key] = data

    found = rows.read(store)

    assert [good.profile_id] == [row.profile_id for row in found.rows]
    assert [key] == [each.key for each in found.unreadable]
    assert reason in found.unreadable[0].reason


def test_a_key_of_another_job_is_unreadable():
    """A profile under the key of another job would answer a question it was not asked."""
    good = make.row()
    data = schema.encode(good.profile)
    other = make.job(batch=64).job_id
    key = f"inbox/v1/date=2026-11-30/{other}.{good.profile_id}.json"

    found = rows.read(Shelf({key: data}))

    assert [key] == [each.key for each in found.unreadable]


def test_a_misnamed_object_is_unreadable_even_under_a_filter():
    """Nobody can say whose it is, so nobody may keep quiet about it."""
    store = Shelf({"inbox/v1/date=2026-11-30/notes.txt": b"hello"})

    found = rows.read(store, job_ids=["0" * 32])

    assert ["inbox/v1/date=2026-11-30/notes.txt"] == [each.key for each in found.unreadable]
    assert [] == store.fetched


def test_an_object_that_went_away_is_unreadable():
    """Listed and then gone is a fact to tell, not a reason to stop."""

    class Leaky(Shelf):
        def get(self, key: str) -> bytes:
            raise NoResult(f"no object {key!r}")

    store = Leaky(shelf(make.row()).objects)

    assert 1 == len(rows.read(store).unreadable)


def test_a_store_that_is_away_is_an_error():
    """An empty answer from a dead store would look like nothing measured."""

    class Dead(Shelf):
        def get(self, key: str) -> bytes:
            raise Unreachable("the store does not answer")

    with pytest.raises(Unreachable):
        rows.read(Dead(shelf(make.row()).objects))


def test_unknown_fields_of_a_newer_writer_are_tolerated():
    """Within v1 fields are only added, so an older reader still reads."""
    good = make.row()
    plain = msgspec.json.decode(schema.encode(good.profile)) | {"colour": "green"}
    data = msgspec.json.encode(plain)
    key = f"inbox/v1/date=2026-11-30/{good.profile.job_id}.{identity.content_id(data)}.json"

    assert 1 == len(rows.read(Shelf({key: data})).rows)


# ── keys and places ──────────────────────────────────────────────────────────────────────────────


def test_a_key_says_day_job_and_profile():
    good = make.row()

    assert ("2026-11-30", good.profile.job_id, good.profile_id) == rows.place(good.key)


@pytest.mark.parametrize("day", ["2026-13-01", "2026-02-30", "----------", "0000-00-00"])
def test_a_folder_of_no_day_holds_no_profile(day):
    """Text that is no day would be one that no listing ever reaches, or always."""
    good = make.row(day=day)

    assert rows.place(good.key) is None
    assert [good.key] == [each.key for each in rows.read(shelf(good)).unreadable]


def test_keys_are_all_keys_of_the_inbox_in_their_order(store):
    """Whatever folders there are, and whatever lies in none."""
    given = sorted(
        [
            "inbox/v1/0.json",
            *(f"inbox/v1/date=2026-11-{each:02}/{at}.json" for each in range(25) for at in (1, 2)),
            "inbox/v1/date=2026-11-24-x/y.json",
            "inbox/v1/notes.txt",
        ]
    )
    for each in [*given, "inbox/v0/x.json", "inbox/v2/x.json"]:
        store.put_new(each, b"")

    assert given == list(rows.keys(store))
    assert [each for each in given if each > "inbox/v1/date=2026-11-23"] == list(
        rows.keys(store, since="2026-11-23")
    )


def test_a_day_of_more_than_a_page_is_listed_whole():
    job = make.job().job_id
    many = [f"inbox/v1/date=2026-11-30/{job}.{at:064x}.json" for at in range(12_345)]

    assert many == list(rows.keys(Shelf(dict.fromkeys(many, b""))))


def test_fetch_keeps_the_order_of_the_keys(store):
    """More than are fetched at a time, good and bad."""
    made = [make.row(make.profile(fence=at)) for at in range(600)]
    for each in made[::2]:
        store.put_new(each.key, schema.encode(each.profile))

    found = list(rows.fetch(store, [each.key for each in made]))

    assert [each.key for each in made] == [each.key for each in found]
    assert [True, False] * 300 == [isinstance(each, rows.Row) for each in found]


def test_fetch_tells_the_hash_of_what_it_found():
    good = make.row()

    (found,) = rows.fetch(Shelf({good.key: b"other"}), [good.key])

    assert identity.content_id(b"other") == found.sha256


def test_what_came_damaged_over_a_wire_is_fetched_once_more():
    good = make.row()
    data = schema.encode(good.profile)

    class Noisy(Shelf):
        def get(self, key: str) -> bytes:
            return super().get(key)[:: 1 if len(self.fetched) > 1 else -1]

    store = Noisy({good.key: data})

    assert [good] == rows.read(store).rows
    assert 2 == len(store.fetched)
