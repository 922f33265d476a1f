"""The names that people give to runs, from the command line."""

import json

import pytest

from farm.store import tag_key
from tests.farm import make


@pytest.fixture(autouse=True)
def runs(shelf):
    """Two runs of one job; the newer one lacks its profile."""
    good = make.profile(run_id="r-aaa111")
    make.put(
        shelf,
        good,
        make.manifest([good.job], run_id="r-aaa111", submitted_at="2026-11-29T09:00:00Z"),
        make.manifest([make.job("cnn")], run_id="r-aaa222", name="night"),
    )


def test_a_tag_says_what_changed(farm):
    """What it named before, or that nothing has changed."""
    assert (0, "", "tag base now names r-aaa111\n") == farm("tag", "base", "@last-good")
    assert (0, "", "tag base now names r-aaa222; before: r-aaa111\n") == farm(
        "tag", "base", "night"
    )
    assert (0, "", "tag base already names r-aaa222\n") == farm("tag", "base", "r-aaa2")


def test_a_tag_with_json_is_one_document(farm):
    farm("tag", "base", "r-aaa111")

    said = farm("tag", "base", "@last", "--json")

    assert (0, "") == (said.code, said.err)
    assert {
        "schema": "farm.tagged/v1",
        "tag": "base",
        "run_id": "r-aaa222",
        "before": "r-aaa111",
    } == json.loads(said.out)


def test_a_tag_is_a_run_to_every_verb(farm):
    """Also as the run of another tag."""
    farm("tag", "base", "r-aaa111")
    farm("tag", "again", "base")

    assert "r-aaa111" == json.loads(farm("status", "again", "--json").out)["run_id"]
    assert "r-aaa111" == json.loads(farm("report", "base", "--json").out)["run_id"]
    assert 0 == farm("profiles", "show", "base/mlp-fp32-b1-cpu").code


def test_tags_are_listed_with_their_runs(farm, shelf):
    """One that names no run of this store too; a damaged one is a warning."""
    farm("tag", "base", "r-aaa111")
    shelf.put_new(tag_key("gone"), b'{"schema":"farm.tag/v1","run_id":"r-000000"}')
    shelf.put_new(tag_key("odd"), b"{")

    said, told = farm("tag"), farm("tag", "--json")

    assert (0, 0) == (said.code, told.code)
    assert [
        "tag   run       sweep       submitted",
        "base  r-aaa111  quickstart  2026-11-29 09:00",
        "gone  r-000000  –           not in this store",
    ] == said.out.splitlines()
    assert "warning: tag 'odd' is damaged" in said.err
    assert [
        {
            "tag": "base",
            "run_id": "r-aaa111",
            "name": "quickstart",
            "submitted_at": "2026-11-29T09:00:00Z",
        },
        {"tag": "gone", "run_id": "r-000000", "name": None, "submitted_at": None},
    ] == json.loads(told.out)["tags"]


def test_a_tag_that_is_refused_writes_nothing(farm, shelf):
    before = sorted(each.key for each in shelf.list())

    assert 2 == farm("tag", "r-base", "r-aaa111").code
    assert 3 == farm("tag", "base", "r-zzz").code

    assert before == sorted(each.key for each in shelf.list())
