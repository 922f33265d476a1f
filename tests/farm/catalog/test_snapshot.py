"""One look at the store: what the parts hold is not read again, and nothing else is left out."""

import pytest

from farm.catalog import chain, engine, snapshot
from farm.catalog.sql import LONGEST_LINE
from tests.farm import make
from tests.farm.catalog import shelved


class Watched:
    """A store that notes what is fetched and where a listing begins."""

    def __init__(self, store) -> None:
        self.store = store
        self.fetched: list[str] = []
        self.listed: list[str] = []

    def get(self, key, **more):
        self.fetched.append(key)
        return self.store.get(key, **more)

    def list(self, prefix="", *, after=""):
        self.listed.append(after)
        return self.store.list(prefix, after=after)


@pytest.fixture
def look(store, tmp_path):
    """Take the tail of the store; returns it and the store that watched."""

    def taken(*, limit=5_000, told=()):
        watched = Watched(store)
        pinned = chain.newest(store)
        held = pinned.document.parts if pinned else []
        got = snapshot.fetched(store, held, cache=tmp_path / "cache")
        files = {file: part.received_max for file, part in zip(got, held, strict=True)}
        parts = snapshot.Parts(files, list(told), 0, [])
        found = snapshot.tail(watched, pinned, parts, limit=limit, ids_since=engine.ids_since)
        return found, watched

    return taken


def row(fence, *, day="2026-11-30", **more):
    return make.row(make.profile(fence=fence, **more), day=day)


def test_what_a_part_holds_is_not_fetched(store, look):
    old, new = [row(1), row(2)], [row(3)]
    shelved.compacted(store, old)
    shelved.put(store, new)

    found, watched = look()

    assert [new[0].key] == watched.fetched
    assert (1, 0) == (len(found.lines), found.left_out)


@pytest.mark.parametrize(
    ("written_at", "received", "since"),
    [
        ("2026-11-30T23:59:59Z", ["2026-11-28", "2026-11-30"], "2026-11-29"),
        ("2026-12-02T00:00:01Z", ["2026-11-30"], "2026-11-29"),
        ("2026-11-30T12:00:00Z", ["2026-11-30", "2099-01-01"], "2026-11-29"),
        ("2099-01-01T12:00:00Z", ["2026-11-30"], "2026-11-29"),
        ("no time", ["2026-11-30"], "2026-11-29"),
        ("0001-01-01T00:00:00Z", ["2026-11-30"], ""),
    ],
)
def test_days_that_were_compacted_are_not_listed(store, look, written_at, received, since):
    """Those before the last pass and the last arrival; of two clocks the earlier one counts."""
    rows = [row(at, day=day) for at, day in enumerate(received, 1)]
    shelved.put(store, rows)
    shelved.commit(store, [shelved.part(store, [each]) for each in rows], written_at=written_at)

    found, watched = look()

    assert [f"inbox/v1/date={since}" if since else ""] == watched.listed
    assert ([], 0) == (found.lines, found.left_out)


def test_a_profile_that_was_sent_twice_is_one(store, look):
    shelved.put(store, [row(1), row(1, day="2026-12-01")])

    found, watched = look(limit=1)

    assert (1, 0, 1) == (len(found.lines), found.left_out, len(watched.fetched))


def test_a_document_that_no_row_holds_is_named(store, look):
    """A row is a thousand times shorter; one such would cost every reader its memory."""
    good, long = row(1), row(2, node="n" * LONGEST_LINE)
    shelved.put(store, [good, long])

    found, _ = look()

    assert 1 == len(found.lines)
    assert [long.key] == [each.key for each in found.unreadable]


@pytest.mark.parametrize(("limit", "read"), [(-1, 0), (0, 0), (2, 2), (3, 3), (4, 3)])
def test_what_is_not_read_is_counted(store, look, limit, read):
    shelved.put(store, [row(1), row(2), row(3)])

    found, watched = look(limit=limit)

    assert (read, 3 - read) == (len(found.lines), found.left_out)
    assert read == len(watched.fetched)
