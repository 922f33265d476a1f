"""Documents: what is written is read back, what is not a document is refused by name, and a null
without a reason or a number that is none never gets into the store.

The files under tests/golden/schema were written by the version that introduced them and are never
rewritten: `python -m tests.farm.golden NAME` adds a new one.
"""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.errors import Bad
from farm.hardware import Roofs
from farm.schema import (
    Catalog,
    CatalogHead,
    Job,
    LayerTable,
    Manifest,
    Order,
    Profile,
    SystemCard,
    Tag,
)
from tests.farm import golden

KINDS = {
    "catalog": Catalog,
    "catalog_head": CatalogHead,
    "job": Job,
    "layer_table": LayerTable,
    "manifest": Manifest,
    "order": Order,
    "profile": Profile,
    "roofs": Roofs,
    "system_card": SystemCard,
    "tag": Tag,
}
FILES = sorted(golden.FOLDER.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.stem)
def test_documents_of_every_version_are_read_for_ever(file: Path) -> None:
    """A golden document decodes and encodes to the same facts; newer ones may stand beside."""
    data = file.read_bytes()
    kind = KINDS[json.loads(data)["schema"].split(".")[1].split("/")[0]]

    document = schema.decode(data, kind)

    assert json.loads(data) == _only(json.loads(schema.encode(document)), json.loads(data))


def _only(new: object, old: object) -> object:
    """What of the new document the old one could say."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: _only(each, old[key]) for key, each in new.items() if key in old}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_only(*pair) for pair in zip(new, old, strict=True)]
    return new


@pytest.mark.parametrize("name", sorted(golden.DOCUMENTS))
def test_this_version_writes_what_its_golden_file_says(name: str) -> None:
    """Bytes do not change by accident: ids are hashes of them."""
    expected = (golden.FOLDER / f"{name}.json").read_bytes()

    assert expected == schema.encode(golden.DOCUMENTS[name]()) + b"\n"


def test_there_is_a_golden_file_for_every_kind_and_status() -> None:
    """No document leaves the golden set."""
    kinds = {json.loads(each.read_bytes())["schema"] for each in FILES}
    profiles = [json.loads(each.read_bytes()) for each in FILES if "profile" in each.stem]

    assert {f"farm.{name}/v1" for name in KINDS} == kinds
    assert {"ok", "failed", "infra"} <= {each["status"] for each in profiles}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "got None"),
        (b"{}", "got None"),
        (b'{"schema": "farm.profile/v1"}', "expected a document of schema 'farm.job/v1'"),
        (b'{"schema": "farm.job/v2"}', "got 'farm.job/v2'"),
        (b'{"schema": "farm.job/v1"}', "not a valid farm.job/v1"),
        (b'{"schema": "farm.job/v1", "batch": NaN}', "not JSON"),
        (b'{"schema": "farm.job/v1", "batch": 1e999}', "not"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_what_is_no_such_document_is_refused_by_name(data: bytes, words: str) -> None:
    """Missing, foreign, newer, damaged: one sentence, never a traceback."""
    with pytest.raises(Bad, match=words):
        schema.decode(data, Job)


def test_what_a_submitter_writes_knows_no_unknown_field() -> None:
    """A typo in a job is an error; a field that a newer version stored is not."""
    job = json.loads(schema.encode(golden.DOCUMENTS["job"]()))
    profile = json.loads(schema.encode(golden.DOCUMENTS["profile-ok-3"]()))

    with pytest.raises(Bad, match="unknown field"):
        schema.decode(json.dumps({**job, "bacth": 1}).encode(), Job)
    schema.decode(json.dumps({**profile, "later": {"new": 1}}).encode(), Profile)


def floats(plain: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The path of every float of a plain document."""
    if isinstance(plain, float):
        return [path]
    items = plain.items() if isinstance(plain, dict) else ()
    items = enumerate(plain) if isinstance(plain, list) else items
    return [found for key, each in items for found in floats(each, (*path, key))]


PLAIN_PROFILE = msgspec.to_builtins(golden.DOCUMENTS["profile-ok-3"]())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("path", floats(PLAIN_PROFILE), ids=lambda p: ".".join(map(str, p)))
def test_a_number_that_is_none_is_refused_wherever_it_stands(
    path: tuple[object, ...], bad: float
) -> None:
    """NaN would be written as null, and a null without a reason is a zero in disguise (S1.43)."""
    plain = json.loads(json.dumps(PLAIN_PROFILE))
    inside = plain
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = bad
    document = msgspec.convert(plain, Profile)

    with pytest.raises(Bad, match="finite"):
        schema.encode(document)


def test_a_null_needs_its_reason_and_a_reason_its_null() -> None:
    """The null paths are the keys of `null_reasons`, both ways, with a code of the closed list."""
    card = golden.DOCUMENTS["system-card"]()
    assert isinstance(card, SystemCard)

    for reasons, words in (
        ({}, "null without a reason"),
        ({**card.null_reasons, "stable.simulated": "error"}, "which is not null"),
        (dict.fromkeys(card.null_reasons, "because"), "unknown reason 'because'"),
    ):
        with pytest.raises(Bad, match=words):
            schema.encode(msgspec.structs.replace(card, null_reasons=reasons))
    schema.encode(
        msgspec.structs.replace(
            card, null_reasons={path: "error: why" for path in card.null_reasons}
        )
    )


def test_a_field_that_cannot_exist_is_absent_and_one_without_a_number_is_null() -> None:
    """A good profile has no `failure` at all; a single repeat has an interval that is null."""
    plain = json.loads(schema.encode(golden.DOCUMENTS["profile-ok-3"]()))

    assert "failure" not in plain
    assert "digest" not in plain["job"]["workload"]["inputs"]


@given(st.binary(max_size=200))
def test_no_bytes_make_a_reader_crash(data: bytes) -> None:
    """Whatever lies in a store, reading it ends in a document or in Bad."""
    for kind in KINDS.values():
        with pytest.raises(Bad):
            schema.decode(data, kind)


def test_null_paths_are_dotted_with_list_indices() -> None:
    """`repeats.2.p99_ms` names the third repeat."""
    plain = {"a": None, "b": [{"c": 1}, {"c": None}], "d": {"e": {}}}

    assert ["a", "b.1.c"] == schema.null_paths(plain)


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ([], "valid"),
        (["a note", "no_housekeeping_core"], "valid"),
        (["paging"], "degraded"),
        (["paging", "contended", "a note"], "invalid"),
        (iter(["contended", "paging"]), "invalid"),
    ],
)
def test_the_validity_of_a_profile_is_the_worst_effect_of_its_flags(flags, word) -> None:
    assert word == schema.validity(flags)
