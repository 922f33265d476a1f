"""The chain of manifests: no gap, no fork, and damage is named and passed over."""

import hashlib

import msgspec
import pytest

from farm import schema
from farm.catalog import chain
from farm.errors import Bad
from farm.store import HEAD_KEY, Conflict, LocalStore, Unreachable, catalog_key
from tests.farm import golden, make
from tests.farm.catalog.taking import flipped, overwrite, remove


def document(number: int, parent: str | None = None, **more) -> schema.Catalog:
    fields = {"written_at": make.STARTED, "writer": "w", "parts": []} | more
    if parent is not None:
        fields["parent_sha256"] = parent
    return schema.Catalog(number=number, **fields)


def committed(store, count: int) -> list[chain.Pinned]:
    made: list[chain.Pinned] = []
    for number in range(1, count + 1):
        parent = made[-1].sha256 if made else None
        made.append(chain.commit(store, document(number, parent, writer=f"w{number}")))
    return made


# ── the newest ───────────────────────────────────────────────────────────────────────────────────


def test_a_store_without_a_manifest_has_no_catalogue(store):
    assert chain.newest(store) is None


def test_the_newest_is_the_last_that_was_committed(store):
    made = committed(store, 3)

    found = chain.newest(store)

    assert made[-1] == found
    assert 3 == found.number
    assert hashlib.sha256(store.get(catalog_key(3))).hexdigest() == found.sha256


def test_what_was_committed_is_what_is_read(store):
    """The seal is in the bytes; whoever committed need not read them again."""
    sent = msgspec.structs.replace(golden.DOCUMENTS["catalog"](), number=1)

    made = chain.commit(store, sent)

    assert made == chain.newest(store)
    assert sent == msgspec.structs.replace(made.document, seal=sent.seal)
    assert sent.seal != made.document.seal


@pytest.mark.parametrize(
    "hint",
    [
        b"",
        b"\xff\x00",
        b'{"number":3}',
        b'{"schema":"farm.catalog_head/v2","number":3}',
        schema.encode(schema.CatalogHead(number=0)),
        schema.encode(schema.CatalogHead(number=-1)),
        schema.encode(schema.CatalogHead(number=1)),
        schema.encode(schema.CatalogHead(number=4)),
        schema.encode(schema.CatalogHead(number=10**300)),
    ],
)
def test_a_hint_is_only_a_hint(store, hint):
    """Damaged, foreign, behind, ahead or impossible: the newest manifest is found all the same."""
    made = committed(store, 3)
    overwrite(store, HEAD_KEY, hint)

    assert made[-1] == chain.newest(store)


def test_without_a_hint_the_manifests_are_listed(store):
    made = committed(store, 3)
    remove(store, HEAD_KEY)

    assert made[-1] == chain.newest(store)


def test_a_wrong_hint_is_put_right_by_the_next_commit(store):
    made = committed(store, 2)
    overwrite(store, HEAD_KEY, b"rubbish")

    chain.commit(store, document(3, made[-1].sha256))

    assert 3 == chain.hinted(store)


@pytest.mark.parametrize("hint", [b"rubbish", schema.encode(schema.CatalogHead(number=1))])
def test_a_wrong_hint_can_be_put_right_without_a_commit(store, hint):
    committed(store, 2)
    overwrite(store, HEAD_KEY, hint)

    chain.remind(store, 2)

    assert 2 == chain.hinted(store)


def test_names_that_are_no_manifests_are_passed_over(store):
    """Only eight digits that one would write are a number."""
    committed(store, 1)
    remove(store, HEAD_KEY)
    for name in ("notes.txt", "2.json", "000000002.json", "00000000.json", "0000000a.json"):
        store.put_new(f"tables/profiles/v1/manifest/{name}", b"{}")

    assert 1 == chain.newest(store).number


# ── commits ──────────────────────────────────────────────────────────────────────────────────────


def test_of_two_commits_of_one_number_one_wins(store):
    """The other one is told, and the first stays."""
    first = chain.commit(store, document(1, writer="a"))

    with pytest.raises(Conflict):
        chain.commit(store, document(1, writer="b"))

    assert first == chain.newest(store)


def test_a_commit_stands_without_its_hint(store):
    """A hint that cannot be written takes nothing back."""

    class Hintless(LocalStore):
        def swap(self, key, data, *, expect):
            raise Unreachable("no hint today", key=key, store="s")

    found = chain.commit(Hintless(store.root, fsync=False), document(1))

    assert found == chain.newest(store)
    assert 0 == chain.hinted(store)


# ── damage ───────────────────────────────────────────────────────────────────────────────────────

WHOLE = chain.sealed(document(2, "0" * 64))


def newer() -> bytes:
    """A whole manifest of a farm of the future."""
    body = WHOLE.rpartition(b',"seal":"')[0].replace(b"farm.catalog/v1", b"farm.catalog/v2")
    return body + b',"seal":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'


@pytest.mark.parametrize("at", range(0, len(WHOLE), 3))
def test_a_flipped_bit_is_damage_wherever_it_is(at):
    """A digit of a size, a letter of a day: nothing is believed that was not written."""
    with pytest.raises(Bad):
        chain.opened(flipped(WHOLE, at), 2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        WHOLE[:-1],
        WHOLE[: len(WHOLE) // 2],
        WHOLE + b" ",
        b'{"hello":"world"}',
        b"\x00" * 100,
        chain.sealed(document(7)),
        newer(),
    ],
)
def test_a_damaged_manifest_is_named_and_the_one_before_it_is_read(store, data):
    """Truncated, foreign, of another number, of a newer farm: never a crash, never silence."""
    first, _, last = committed(store, 3)
    overwrite(store, catalog_key(2), data)
    overwrite(store, catalog_key(3), data)

    found = chain.newest(store)

    assert first.document == found.document
    assert [catalog_key(3), catalog_key(2)] == [each.key for each in found.damaged]
    assert all(each.reason for each in found.damaged)
    assert 3 == found.number
    assert hashlib.sha256(data).hexdigest() == found.sha256 != last.sha256


def test_a_damaged_manifest_that_is_superseded_hides_nothing(store):
    *_, last = committed(store, 3)
    overwrite(store, catalog_key(2), b"")

    assert last == chain.newest(store)


def test_where_no_manifest_is_whole_the_catalogue_is_empty_and_says_why(store):
    committed(store, 2)
    for number in (1, 2):
        overwrite(store, catalog_key(number), b"{}")

    found = chain.newest(store)

    assert (2, 0, []) == (found.number, found.document.number, found.document.parts)
    assert 2 == len(found.damaged)


def test_a_manifest_of_a_newer_farm_is_told_from_a_damaged_one(store):
    """An older farm must not write its own over it."""
    committed(store, 1)
    store.put_new(catalog_key(2), newer())
    store.put_new(catalog_key(3), newer()[:-5])

    assert [False, True] == [each.newer for each in chain.newest(store).damaged]


def test_fields_of_a_newer_farm_are_tolerated():
    """Within version 1 fields are only added; the seal stays last."""
    body = WHOLE.rpartition(b',"seal":"')[0] + b',"colour":"green"'
    data = body + b',"seal":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'

    assert 2 == chain.opened(data, 2).number


def test_a_store_that_is_away_is_an_error(store):
    class Dead(LocalStore):
        def get(self, key, *, to=None, sha256=None):
            raise Unreachable("no answer", key=key, store="s")

    with pytest.raises(Unreachable):
        chain.newest(Dead(store.root))


@pytest.mark.parametrize("number", [20_000, 99_999_999])
def test_a_foreign_manifest_far_away_does_not_move_the_end(store, number):
    """Nor is every number up to it asked for."""
    made = committed(store, 3)
    overwrite(store, catalog_key(number), b"{}")
    remove(store, HEAD_KEY)

    found = chain.newest(store)

    assert made[-1].document == found.document
    assert (3, ()) == (found.number, found.damaged)


def test_a_hint_that_is_a_folder_is_only_a_hint(store):
    made = committed(store, 2)
    remove(store, HEAD_KEY)
    (store.root / HEAD_KEY).mkdir()

    assert made[-1] == chain.newest(store)
