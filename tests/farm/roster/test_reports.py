"""The laws of what is held against a roster: everything that is there, as it was written."""

import json
import math

import pytest

from farm import schema
from farm.errors import Refused
from farm.interchange import encode
from farm.roster import Report, in_files, in_store
from tests.farm import make
from tests.farm.interchange import calls
from tests.farm.roster import held


def test_files_and_folders_are_read_and_other_json_is_passed_over(tmp_path):
    inside = tmp_path / "deep/er"
    inside.mkdir(parents=True)
    (tmp_path / "b.json").write_bytes(encode(calls.document()))
    (inside / "a.json").write_bytes(schema.encode(make.profile()))
    (tmp_path / "verdict.json").write_text('{"schema": "farm.roster_validation/v1"}')
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "table.csv").write_text("")

    found = in_files([tmp_path])

    assert [
        ("b.json", "predict.py:predict", True),
        ("a.json", "mlp", False),
    ] == [(each.where.rpartition("/")[2], each.identity, each.is_callable) for each in found]


def test_a_file_that_is_named_and_is_none_has_its_trouble(tmp_path):
    for name, text in (("a.json", "{"), ("b.json", "[]"), ("c.json", '{"schema": "x"}')):
        (tmp_path / name).write_text(text)

    found = in_files([tmp_path / name for name in ("a.json", "b.json", "c.json")])

    assert found[0].trouble.startswith("cannot be read: Expecting property name")
    assert ["is no profile"] * 2 == [each.trouble for each in found[1:]]
    assert ["a.json"] == [each.where.rpartition("/")[2] for each in in_files([tmp_path])]


def test_nan_comes_through_so_that_it_can_be_named(tmp_path):
    plain = calls.FOREIGN | {"latency": {"p50_ms": float("nan")}}
    (tmp_path / "a.json").write_text(json.dumps(plain))

    (found,) = in_files([tmp_path / "a.json"])

    assert ("", True) == (found.trouble, math.isnan(found.plain["latency"]["p50_ms"]))


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="no file or folder"):
        in_files([tmp_path / "gone"])


def test_the_store_gives_every_profile_that_counts(store):
    """Of every night; attempts that lost are none of the roster's business."""
    old = make.profile(p50_ms=10.0, repeat_set="n-1", started_at="2026-11-01T00:00:00Z")
    new = make.profile(p50_ms=20.0, repeat_set="n-2", started_at="2026-11-02T00:00:00Z")
    lost = make.profile(status="infra", repeat_set="n-2", started_at="2026-11-03T00:00:00Z")
    other = make.profile(make.job("cnn"))
    make.put(store, old, new, lost, other)

    found = in_store(store)

    assert [("cnn", 10.0), ("mlp", 10.0), ("mlp", 20.0)] == sorted(
        (each.identity, each.plain["latency"]["p50_ms"]) for each in found
    )
    assert {False} == {each.is_callable for each in found}


def test_both_kinds_say_when_they_began_and_for_what():
    ours = held.profile(started_at="2026-11-01T00:00:00Z")
    theirs = held.callable_json()

    assert ("2026-11-01T00:00:00Z", "fp32", 1) == (
        ours.began,
        ours.said["precision"],
        ours.said["batch"],
    )
    assert (make.STARTED, "unspecified", None) == (
        theirs.began,
        theirs.said["precision"],
        theirs.said["batch"],
    )
    assert "" == Report("a.json", calls.FOREIGN).began
