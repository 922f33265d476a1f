"""The published schemas: documents fit them, and version 1 only grows.

The files under tests/golden/answers are never rewritten silently: `python -m
tests.farm.published_files NAME…` takes growth, and nothing else.
"""

import copy
import json
import re

import jsonschema
import msgspec
import pytest

from farm import answers, published
from farm.errors import Refused
from farm.report import model
from farm.runs import moment
from tests.farm import golden, make, published_files
from tests.farm.published_files import FOLDER, breaks, shape

THINGS = list(published.things())
# What is no answer of `farm.answers` and not kept in a store.
BY_HAND = (
    *("callable", "callable_comparison", "cost_report", "layer_comparison", "layers"),
    *("layers_read", "layers_taken", "report", "roster_validation", "verified"),
    *("layer_ops", "layer_profile", "layer_times", "trace_compare"),
    *("analysis", "trace_kernels", "trace_metrics", "trace_ops", "trace_phases", "what_if"),
)


def fits(document, thing=None):
    """Raise what is wrong with the document, as one of its kind."""
    plain = json.loads(msgspec.json.encode(document))
    thing = thing or plain["schema"].removeprefix("farm.").partition("/")[0]
    jsonschema.Draft202012Validator(published.json_schema(thing)).validate(plain)
    return plain


# ── what is published ────────────────────────────────────────────────────────────────────────────


def test_every_answer_and_every_stored_document_is_published():
    """By the middle of its tag; two of one name would hide each other."""
    kinds = published.things()

    assert {*answers.ANSWERS} < {*kinds.values()}
    assert {"profile", "job", "manifest", "system_card", "order", "report", "tag"} <= {*kinds}
    assert len(answers.ANSWERS) + len(published.stored()) + len(BY_HAND) == len(kinds)
    assert {*BY_HAND} < {*kinds}
    for name, kind in kinds.items():
        assert re.fullmatch("[a-z_]+", name)
        assert f"farm.{name}/v1" == kind.__struct_config__.tag


@pytest.mark.parametrize("thing", THINGS)
def test_a_schema_is_one_of_2020_12_and_fixes_its_tag(thing):
    """A document without `schema`, or with that of another kind, fits none."""
    found = published.json_schema(thing)

    jsonschema.Draft202012Validator.check_schema(found)
    assert "https://json-schema.org/draft/2020-12/schema" == found["$schema"]
    assert f"farm.{thing}/v1" == found["title"]
    assert {"const": f"farm.{thing}/v1"} == found["properties"]["schema"]
    assert "schema" in found["required"]


@pytest.mark.parametrize("thing", THINGS)
def test_no_schema_is_closed(thing):
    """Version 1 grows, and a reader that knows an older one must read the newer document."""
    text = json.dumps(published.json_schema(thing))

    assert '"additionalProperties": false' not in text


@pytest.mark.parametrize("name", sorted(golden.DOCUMENTS))
def test_stored_documents_fit_their_schema(name):
    plain = fits(golden.DOCUMENTS[name]())

    plain["new_in_a_later_version"] = {"x": None}
    fits(plain)


def test_a_report_fits_its_schema():
    report = model.build(make.manifest([make.job()]), [], cards={}, now=moment(make.STARTED))

    assert "farm.report/v1" == fits(report)["schema"]


def test_answers_fit_their_schemas_absent_fields_and_nulls_included():
    for each in (
        answers.Error(code=2, what="x", why="", hint=""),
        answers.Watched(event="counts", run_id="r-1", at=make.STARTED, counts={"done": 1}),
        answers.Watched(
            event="job", run_id="r-1", at=make.STARTED, counts={}, job_id="a", p50_ms=None
        ),
        answers.Value(field="noise", value=None, why="single_repeat"),
        answers.Value(field="job", value={"a": [1, "x", None]}, why=""),
        answers.Config(settings=[answers.Setting(key="a", value="b", origin="c")], files=[]),
    ):
        fits(each)


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": "farm.value/v2"},
        {"field": None},
        {"why": 1},
    ],
)
def test_a_document_that_is_wrong_does_not_fit(wrong):
    plain = {"schema": "farm.value/v1", "field": "noise", "value": None, "why": ""}
    fits(plain, "value")

    with pytest.raises(jsonschema.ValidationError):
        fits(plain | wrong, "value")
    for key in plain:
        with pytest.raises(jsonschema.ValidationError):
            fits({name: plain[name] for name in plain if name != key}, "value")


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(Refused) as caught:
        published.json_schema("profil")

    assert ("no document 'profil'", "did you mean `profile`?") == (
        caught.value.what,
        caught.value.hint,
    )
    assert "profile_row" in caught.value.why


# ── version 1 only grows ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("thing", THINGS)
def test_a_published_shape_is_that_of_its_golden_file(thing):
    """A change is never an accident; `python -m tests.farm.published_files NAME` takes growth."""
    expected = json.loads((FOLDER / f"{thing}.json").read_text())

    assert expected == shape(published.json_schema(thing))


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda each: each.stem)
def test_version_1_only_grows(file):
    """Whoever reads the documents of an older farm reads those of this one."""
    old = json.loads(file.read_text())
    kept = file.stem in published.stored()

    assert [] == breaks(old, shape(published.json_schema(file.stem)), kept=kept)


OLD = {
    "title": "farm.plan/v1",
    "type": "object",
    "properties": {
        "schema": {"const": "farm.plan/v1"},
        "name": {"type": "string"},
        "note": {"type": "string", "default": ""},
        "state": {"enum": ["a", "b"]},
        "p50_ms": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "jobs": {"type": "array", "items": {"$ref": "#/$defs/Job"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "value": {},
    },
    "required": ["schema", "name", "jobs"],
    "$defs": {
        "Job": {
            "title": "Job",
            "type": "object",
            "properties": {
                "job_id": {"type": "string"},
                "after": {"$ref": "#/$defs/Job"},
            },
            "required": ["job_id"],
        }
    },
}
JOB = ("$defs", "Job")
GONE = object()


def changed(path, value):
    """The schema with another value at this path, or without it."""
    made = copy.deepcopy(OLD)
    inside = made
    for key in path[:-1]:
        inside = inside[key]
    if value is GONE:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("properties", "note"), GONE, ".note is gone"),
        (("properties", "name"), {"type": "integer"}, ".name: type 'string' became 'integer'"),
        (("properties", "name"), {}, ".name: type 'string' became None"),
        (("properties", "value"), {"type": "string"}, ".value: type None became 'string'"),
        (("properties", "schema"), {"const": "farm.plan/v2"}, ".schema: const 'farm.plan/v1' bec"),
        (("properties", "note", "default"), "x", ".note: default '' became 'x'"),
        (("properties", "state"), {"enum": ["a"]}, ".state: the values ['b'] are gone"),
        (("properties", "state"), {}, ".state: the list of values came or went"),
        (("properties", "p50_ms"), {"type": "number"}, ".p50_ms: type None became 'number'"),
        (("properties", "p50_ms", "anyOf", 0, "type"), "string", ".p50_ms: type 'number' became"),
        (("properties", "jobs", "items"), {"type": "string"}, ".jobs[]: type 'object' became"),
        (("properties", "jobs", "items"), GONE, ".jobs: items changed"),
        (
            ("properties", "counts", "additionalProperties", "type"),
            "number",
            ".counts[]: type 'integer' became 'number'",
        ),
        (("properties", "counts", "additionalProperties"), GONE, ".counts: additionalProperties"),
        (("required",), ["schema", "jobs"], ".name may be absent now"),
        ((*JOB, "properties", "job_id"), GONE, ".jobs[].job_id is gone"),
        ((*JOB, "required"), [], ".jobs[].job_id may be absent now"),
        (("additionalProperties",), False, ".: additionalProperties changed"),
        (("type",), "array", ".: type 'object' became 'array'"),
        (("properties", "name", "pattern"), "x", ".name: pattern None became 'x'"),
    ],
)
def test_every_kind_of_break_is_caught(path, value, told):
    """With its place, whether the document is kept or not."""
    for kept in (False, True):
        found = breaks(OLD, changed(path, value), kept=kept)

        assert [] != found
        assert [] != [each for each in found if each.startswith(told)], found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), "another title"),
        (("description",), "better words"),
        (("properties", "new"), {"type": "string"}),
        (("properties", "state", "enum"), ["a", "b", "c"]),
        ((*JOB, "properties", "new"), {"type": "string"}),
        (("$defs", "New"), {"type": "object"}),
        (("properties", "jobs", "items"), OLD["$defs"]["Job"]),
    ],
)
def test_growth_is_no_break(path, value):
    """A field more, a value more, a definition written out."""
    assert [] == breaks(OLD, changed(path, value), kept=True)
    assert [] == breaks(OLD, OLD, kept=True)


def test_a_field_that_is_required_anew_breaks_only_what_is_kept():
    """Who reads an answer gains by it; an old document in a store would not decode."""
    new = changed(("required",), ["schema", "name", "jobs", "note"])

    assert [] == breaks(OLD, new)
    assert [".note is required now"] == breaks(OLD, new, kept=True)


def test_a_shape_has_no_descriptions_but_a_field_of_that_name():
    described = {
        "description": "words",
        "properties": {"description": {"type": "string", "description": "words"}},
        "anyOf": [{"description": "words", "type": "null"}],
    }

    assert {
        "properties": {"description": {"type": "string"}},
        "anyOf": [{"type": "null"}],
    } == shape(described)


def test_a_golden_file_takes_growth_when_it_is_asked_to_and_nothing_else(tmp_path, capsys):
    """The writer is how the law is kept, so it has one too."""
    path, today = tmp_path / "tagged.json", shape(published.json_schema("tagged"))
    older = json.loads(json.dumps(today))
    del older["properties"]["before"]
    older["required"].remove("before")

    path.write_text(json.dumps(older))
    assert 0 == published_files.main([], folder=tmp_path)
    assert older == json.loads(path.read_text())
    assert 0 == published_files.main(["tagged"], folder=tmp_path)
    assert today == json.loads(path.read_text())

    path.write_text(json.dumps(today | {"properties": today["properties"] | {"gone": {}}}))
    before = path.read_bytes()
    assert 1 == published_files.main(["tagged"], folder=tmp_path)
    assert before == path.read_bytes()
    assert "tagged is refused: .gone is gone" == capsys.readouterr().out.splitlines()[-1]
