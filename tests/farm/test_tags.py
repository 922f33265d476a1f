"""Tags: names that point at runs, set by anyone at any time, and read by everyone."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import schema, tags
from farm.errors import Bad, Refused
from farm.schema import Tag
from farm.store import Conflict, LocalStore, tag_key

GOOD = ["a", "0", "base", "release-2", "v1_2", "r", "rr-1", "a" * 64]
BAD = ["", "A", "-a", "_a", "a.b", "a/b", "a=b", "@last", "r-", "r-7f3a91", "ä", "a\n", "a" * 65]


def test_a_tag_points_where_it_was_last_told_to(store):
    """And each time it says where it pointed before."""
    assert None is tags.pointed(store, "base")
    assert "" == tags.point(store, "base", "r-1")
    assert "r-1" == tags.point(store, "base", "r-2")
    assert "r-2" == tags.point(store, "base", "r-2")

    assert "r-2" == tags.pointed(store, "base")
    assert b'{"schema":"farm.tag/v1","run_id":"r-2"}' == store.get("tags/base.json")


@pytest.mark.parametrize("name", GOOD)
def test_a_name_of_letters_digits_and_dashes_is_a_tag(store, name):
    tags.point(store, name, "r-1")

    assert "r-1" == tags.pointed(store, name)


@pytest.mark.parametrize("name", BAD)
def test_what_could_be_a_run_or_no_key_is_no_tag(store, name):
    with pytest.raises(Refused, match="is no name of a tag"):
        tags.point(store, name, "r-1")

    assert None is tags.pointed(store, name)
    assert [] == list(store.list())


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=70))
def test_a_name_that_is_allowed_is_a_key_and_any_other_is_refused(store, name):
    """Whatever a person pastes."""
    if tags.is_name(name):
        assert f"tags/{name}.json" == tag_key(name)
    else:
        with pytest.raises(Refused):
            tags.point(store, name, "r-1")


def test_every_tag_is_listed_and_a_damaged_one_hides_no_other(store):
    for name, run_id in (("b", "r-1"), ("a", "r-2")):
        tags.point(store, name, run_id)
    store.put_new(tag_key("c"), b"[]")

    found = tags.read(store)

    assert [("a", "r-2"), ("b", "r-1")] == list(found.run_ids.items())
    assert ["c"] == list(found.damaged)
    with pytest.raises(Bad, match="tag 'c' is damaged"):
        tags.pointed(store, "c")


def test_a_damaged_tag_is_mended_by_setting_it(store):
    store.put_new(tag_key("base"), b"{")

    assert "" == tags.point(store, "base", "r-1")
    assert "r-1" == tags.pointed(store, "base")


class Raced(LocalStore):
    """A store in which others set the tag between our reading and our writing, so many times."""

    def __init__(self, root, times):
        super().__init__(root, fsync=False)
        self.times = times

    def swap(self, key, data, *, expect):
        if self.times:
            self.times -= 1
            other = schema.encode(Tag(run_id=f"r-other{self.times}"))
            super().swap(key, other, expect=expect)
        return super().swap(key, data, expect=expect)


def test_a_lost_race_is_run_once_more_and_tells_what_was_overwritten(tmp_path):
    store = Raced(tmp_path / "store", 1)

    assert "r-other0" == tags.point(store, "base", "r-1")
    assert "r-1" == tags.pointed(store, "base")


def test_a_race_that_is_lost_twice_is_a_conflict_and_writes_nothing(tmp_path):
    store = Raced(tmp_path / "store", 2)

    with pytest.raises(Conflict):
        tags.point(store, "base", "r-1")
    assert "r-other0" == tags.pointed(store, "base")
