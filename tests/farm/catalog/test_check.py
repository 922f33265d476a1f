"""Checking: damage of every kind is found and named, nothing is changed, nothing crashes."""

import msgspec
import pytest

from farm import identity, schema
from farm.catalog import chain, parts
from farm.catalog.check import Checked, check
from farm.errors import Unreachable
from farm.schema import Artifact
from farm.store import (
    HEAD_KEY,
    LocalStore,
    blob_key,
    card_key,
    catalog_key,
    job_key,
    manifest_key,
    profile_ids,
    profile_key,
)
from tests.farm import make
from tests.farm.catalog.taking import (
    TODAY,
    YESTERDAY,
    at,
    compacted,
    flipped,
    newest,
    overwrite,
    rebuilt,
    remove,
)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def full(store, cache):
    """Three profiles with their card and a log each, in two parts."""
    for fence in range(3):
        put(store, fence=fence)
        compacted(store, cache, batch=1)
    rebuilt(store, cache)
    put(store, fence=3)
    compacted(store, cache, batch=3)
    return store


def put(store, *, fence: int, day=TODAY, kind="log") -> str:
    data = b"log %d" % fence
    digest = identity.content_id(data)
    key = blob_key(kind, digest, "txt.gz")
    store.put_new(key, data)
    card = make.put(store, make.card())[0]
    held = {kind: Artifact(key=key, sha256=digest, bytes=len(data), media_type="x/y")}
    document = make.profile(fence=fence)
    document = msgspec.structs.replace(document, card_id=card, artifacts=held)
    return make.put(store, document, day=day)[0]


def keys(store, prefix: str) -> list[str]:
    return [each.key for each in store.list(prefix)]


def checked(store, *, day=TODAY, deep=False) -> Checked:
    return check(store, now=lambda: at(day), deep=deep)


def named(store, *, deep=True) -> dict[str, str]:
    return dict(checked(store, deep=deep).problems)


# ── what is whole ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("deep", [False, True])
def test_an_empty_store_has_no_problems(store, deep):
    found = checked(store, deep=deep)

    assert (0, 0, 0, [], [], []) == found[:6]


def test_what_is_whole_is_counted(full):
    found = checked(full, deep=True)

    assert [] == found.problems
    assert (5, 2, 4) == (found.number, found.parts, found.profiles)
    assert (4, 0, 4, 0, []) == found.audited


def test_a_quick_check_reads_no_profile(full):
    """It costs a listing of the parts and the newest manifest, so it may run often."""

    class Seen(LocalStore):
        asked: list[str]

        def get(self, key, *, to=None, sha256=None):
            self.asked.append(key)
            return super().get(key, to=to, sha256=sha256)

    store = Seen(full.root, fsync=False)
    store.asked = []

    found = checked(store)

    assert (5, 2, 4, []) == (found.number, found.parts, found.profiles, found.problems)
    assert found.audited is None
    assert all("manifest" in each or each == HEAD_KEY for each in store.asked)


def test_profiles_on_their_way_into_a_part_are_no_damage(full):
    """One that was sent on two days waits once."""
    put(full, fence=8)
    put(full, fence=9)
    put(full, fence=9, day=YESTERDAY)

    found = checked(full, deep=True)

    assert [] == found.problems
    assert (7, 2) == (found.audited.objects, found.audited.waiting)


def test_parts_that_no_longer_count_are_orphans(full):
    """They are named, and do no harm."""
    live = {each.key for each in newest(full).parts}

    for deep in (False, True):
        found = checked(full, deep=deep)
        assert [] == found.problems
        assert 3 == len(found.orphans)
        assert live | set(found.orphans) == set(keys(full, "tables/profiles/v1/month="))


def test_foreign_files_are_named_and_are_no_damage(full, cache):
    """Names that no listing shows are found in a folder; what a killed writer left is not named."""
    given = [
        f"inbox/v1/date={TODAY}/notes.txt",
        "inbox/v1/date=2026-99-99/x.json",
        "tables/profiles/v1/manifest/copy.json",
        "tables/readme.md",
    ]
    for each in given:
        full.put_new(each, b"hello")
    hidden = ["inbox/v1/Notes", "tables/Copy of parts/a.parquet", "tables/profiles/v1/.DS_Store"]
    for each in [*hidden, "tables/profiles/v1/.tmp-1-ab"]:
        (full.root / each).parent.mkdir(parents=True, exist_ok=True)
        (full.root / each).write_bytes(b"hello")

    found = checked(full, deep=True)

    assert [] == found.problems
    shown = ["inbox/v1/Notes", "tables/Copy of parts/", "tables/profiles/v1/.DS_Store"]
    assert sorted([*given, *shown]) == sorted(found.foreign)


def test_a_quick_check_tells_what_compacting_could_not_read(store, cache):
    """Foreign names apart from damage."""
    damaged = profile_key(TODAY, make.job().job_id, identity.content_id(b"x"))
    store.put_new(damaged, b"y")
    store.put_new(f"inbox/v1/date={TODAY}/notes.txt", b"hello")
    compacted(store, cache)

    found = checked(store)

    assert [damaged] == [each.key for each in found.problems]
    assert [f"inbox/v1/date={TODAY}/notes.txt"] == found.foreign


# ── what is not ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("deep", [False, True])
def test_a_part_that_is_gone_or_cut_is_named(full, deep):
    cut, gone = (each.key for each in newest(full).parts)
    overwrite(full, cut, full.get(cut)[:-1])
    remove(full, gone)

    assert {cut, gone} == set(named(full, deep=deep))


DEEP = {
    "part": lambda store: newest(store).parts[0].key,
    "profile": lambda store: keys(store, "inbox/")[0],
    "card": lambda store: keys(store, "cards/")[0],
    "artefact": lambda store: keys(store, "blobs/")[0],
    "manifest": lambda store: catalog_key(2),
    "newest manifest": lambda store: catalog_key(5),
    "hint": lambda store: HEAD_KEY,
}


@pytest.mark.parametrize("what", DEEP)
@pytest.mark.parametrize("damage", [lambda data: flipped(data, len(data) // 2), lambda _: b""])
def test_damage_is_found_wherever_it_is(full, what, damage):
    """A flipped bit, a truncated object: it is named, and read over."""
    key = DEEP[what](full)
    overwrite(full, key, damage(full.get(key)))

    assert key in named(full)


@pytest.mark.parametrize("what", ["part", "card", "artefact", "manifest"])
def test_what_is_gone_is_found_wherever_it_was(full, what):
    key = DEEP[what](full)
    remove(full, key)

    assert {key} == set(named(full))


def test_a_newest_manifest_that_is_gone_leaves_a_hint_at_it(full):
    remove(full, catalog_key(5))

    assert {HEAD_KEY} == set(named(full))


def test_a_hint_that_is_gone_is_no_damage(full):
    """The next pass gives it again."""
    remove(full, HEAD_KEY)

    assert {} == named(full)


def test_profiles_that_left_the_inbox_are_named_with_their_part(full):
    """As many as lack are counted, and one is named."""
    part = newest(full).parts[0]
    held = parts.ids(full.get(part.key))
    for each in keys(full, "inbox/"):
        if profile_ids(each)[1] in held[:2]:
            remove(full, each)

    found = named(full)

    assert {part.key} == set(found)
    assert found[part.key].startswith("2 of its profiles")
    assert any(each in found[part.key] for each in held[:2])


def test_a_profile_in_two_parts_is_named(store, cache):
    put(store, fence=1)
    compacted(store, cache)
    held = newest(store)
    (part,) = held.parts
    copy = part.key.replace("month=2026-11", "month=2026-10")
    store.put_new(copy, store.get(part.key))
    both = [part, msgspec.structs.replace(part, key=copy)]
    chain.commit(store, msgspec.structs.replace(held, number=2, parts=both, parent_sha256="0"))

    found = named(store)

    assert {copy, catalog_key(2)} == set(found)
    assert "again, after" in found[copy]
    assert "does not name" in found[catalog_key(2)]


def test_a_manifest_that_counts_wrong_is_named(store, cache):
    put(store, fence=1)
    compacted(store, cache)
    held = newest(store)
    seven = [msgspec.structs.replace(held.parts[0], rows=7)]
    parent = identity.content_id(store.get(catalog_key(1)))
    chain.commit(store, msgspec.structs.replace(held, number=2, parts=seven, parent_sha256=parent))

    assert {held.parts[0].key: "holds 1 profiles, and the manifest says 7"} == named(store)


def test_manifests_after_a_gap_are_named(full):
    """The hint leads to the end before the gap, and what lies beyond it is not silently lost."""
    remove(full, catalog_key(4))
    overwrite(full, HEAD_KEY, schema.encode(schema.CatalogHead(number=3)))

    assert {catalog_key(5)} == set(named(full))


def test_a_gap_before_the_newest_is_named(full):
    remove(full, catalog_key(3))

    assert {catalog_key(3)} == set(named(full))


def test_a_hint_at_a_manifest_that_is_not_there_is_named(full):
    overwrite(full, HEAD_KEY, schema.encode(schema.CatalogHead(number=77)))

    assert {HEAD_KEY} == set(named(full, deep=False))


def test_damage_that_was_made_good_is_named_by_a_deep_check_alone(full, cache):
    """The history is damaged, and nothing that counts is."""
    overwrite(full, catalog_key(5), b"")
    compacted(full, cache)

    assert {} == named(full, deep=False)
    assert {catalog_key(5)} == set(named(full))


@pytest.mark.parametrize(
    "profile",
    [
        {"card_id": "../../etc/passwd"},
        {"card_id": ""},
        {"artifacts": {"log": Artifact(key="/x", sha256="", bytes=0, media_type="")}},
    ],
)
def test_a_profile_that_names_what_can_be_no_key_is_a_problem_and_no_crash(store, profile):
    make.put(store, msgspec.structs.replace(make.profile(), **profile))

    assert named(store)


def test_a_card_that_is_none_is_named(store):
    data = b'{"hello":"world"}'
    key = card_key(identity.content_id(data))
    store.put_new(key, data)
    make.put(store, msgspec.structs.replace(make.profile(), card_id=identity.content_id(data)))

    assert {key} == set(named(store))


@pytest.mark.parametrize(
    ("kind", "day", "over"),
    [
        ("trace", "2027-02-28", False),
        ("trace", "2027-03-01", True),
        ("samples", "2028-01-04", False),
        ("samples", "2028-01-05", True),
        ("log", "2099-01-01", False),
    ],
)
def test_what_a_lifecycle_rule_removed_is_no_damage(store, cache, kind, day, over):
    """Traces are kept for 90 days, samples for 400, the rest for ever."""
    put(store, fence=1, kind=kind)
    (blob,) = keys(store, "blobs/")
    remove(store, blob)

    found = checked(store, day=day, deep=True)

    assert ([] if over else [blob]) == [each.key for each in found.problems]
    assert int(over) == found.audited.expired


def test_a_check_writes_nothing(full):
    overwrite(full, HEAD_KEY, b"")
    before = {each: each.read_bytes() for each in full.root.rglob("*") if each.is_file()}

    checked(full, deep=True)

    assert before == {each: each.read_bytes() for each in full.root.rglob("*") if each.is_file()}


def test_a_store_that_is_away_is_an_error_and_no_clean_bill(full):
    class Dead(LocalStore):
        def get(self, key, *, to=None, sha256=None):
            if key.startswith("inbox/"):
                raise Unreachable("no answer")
            return super().get(key, to=to, sha256=sha256)

    with pytest.raises(Unreachable):
        checked(Dead(full.root), deep=True)


# ── runs and jobs ────────────────────────────────────────────────────────────────────────────────


def test_runs_and_jobs_are_read_by_a_deep_check(full):
    """What a run expects is said nowhere else."""
    job, other = make.job(), make.job(batch=8)
    expected = make.manifest([job, other])
    make.put(full, expected)
    full.put_new(job_key(job.job_id), schema.encode(job))
    full.put_new(job_key(other.job_id), schema.encode(other))
    assert set() == set(named(full))

    overwrite(full, job_key(job.job_id), schema.encode(other))
    remove(full, job_key(other.job_id))
    assert {job_key(job.job_id), job_key(other.job_id)} == set(named(full))

    overwrite(full, manifest_key(expected.run_id), schema.encode(expected)[:100])
    assert manifest_key(expected.run_id) in set(named(full))
