"""From keys of the inbox to a part: what was put is what the part holds, or nothing is said."""

import msgspec
import pytest

from farm.catalog import parts
from farm.catalog.intake import Known, Lost, take
from farm.errors import Bad
from farm.schema import CatalogPart
from tests.farm import make
from tests.farm.catalog.taking import TODAY, overwrite


@pytest.fixture
def known(store, tmp_path):
    return Known(store, [], cache=tmp_path / "cache")


def put(store, *fences: int) -> list[str]:
    """The keys of so many profiles."""
    for each in fences:
        make.put(store, make.profile(fence=each), day=TODAY)
    return [each.key for each in store.list("inbox/")]


def taken(store, known, *fences: int) -> CatalogPart:
    found = take(store, put(store, *fences), month="2026-11", known=known).part
    assert found is not None
    return found


def test_what_was_taken_is_known(store, known):
    """So the same keys give nothing more."""
    part = taken(store, known, 1, 2)

    assert all(each in known for each in parts.ids(store.get(part.key)))
    assert (None, 0, []) == take(store, put(store), month="2026-11", known=known)


def test_a_part_that_lacks_a_profile_is_not_handed_out(store, known, monkeypatch):
    """Were the encoder to drop a row, it would be lost to every table, for ever."""
    whole = parts.encode
    monkeypatch.setattr(parts, "encode", lambda rows, **more: whole(list(rows)[1:], **more))

    with pytest.raises(Bad, match="does not hold the profiles"):
        take(store, put(store, 1, 2), month="2026-11", known=known)


def test_the_same_profiles_make_the_same_part(store, tmp_path):
    """What a crash left is found and used by who comes next."""
    made = [taken(store, Known(store, [], cache=tmp_path / "cache"), 1, 2) for _ in range(2)]

    assert made[0] == made[1]


def test_parts_are_known_only_as_far_back_as_asked(store, known, tmp_path):
    """A part that nobody asked for is not even fetched."""
    part = taken(store, known, 1)
    (profile_id,) = parts.ids(store.get(part.key))
    late = Known(store, [part], cache=tmp_path / "cache")

    late.reach("2026-12-01")
    before = profile_id in late
    late.reach(TODAY)

    assert (False, True) == (before, profile_id in late)


def test_all_lost_parts_are_named_at_once(store, known, tmp_path):
    """Damaged, gone, no Parquet at all, or a copy of another."""
    good = taken(store, known, 1)
    damaged = taken(store, known, 2)
    overwrite(store, damaged.key, b"")
    copy = msgspec.structs.replace(good, key=good.key.replace("2026-11", "2026-10"))
    store.put_new(copy.key, store.get(good.key))
    gone = msgspec.structs.replace(good, key="tables/x.parquet", sha256="0" * 64)

    with pytest.raises(Lost) as caught:
        Known(store, [copy, good, damaged, gone], cache=tmp_path / "cold").reach("")

    assert {damaged.key, gone.key} < caught.value.keys
    assert 1 == len(caught.value.keys & {copy.key, good.key})
