"""TRACE may be a file, an id, a job, or an object of a store; what is none of them is told."""

import json
from pathlib import Path

import pytest

from farm.store import profile_key
from tests.farm import make
from tests.farm.profiles.kept import with_trace
from tests.farm.trace import g8

TENSORRT = [{"count": 10}, {"name": "a + b", "timeMs": 30, "averageMs": 3}]


@pytest.fixture
def kept(shelf):
    """Its profile, id and job."""
    profile = with_trace(shelf, make.profile())
    (profile_id,) = make.put(shelf, profile)
    return profile, profile_id, profile.job_id


def metrics(said):
    assert (0, "") == (said.code, said.err)
    return json.loads(said.out)["metrics"]


def test_an_id_a_job_and_a_url_say_what_the_trace_itself_says(here, farm, kept):
    profile, profile_id, job_id = kept
    g8.file(here / "trace.json")
    store = (here / ".farm/store").as_uri()
    key = profile_key("2026-11-30", job_id, profile_id)

    expected = metrics(farm("profile", "get", "trace.json", "--json"))

    for word in (
        *(profile_id, profile_id[:9], job_id, f"{store}#{profile_id[:7]}", f"{store}/{key}"),
        f"{store}/{profile.artifacts['trace'].key}",
        (here / "trace.json").as_uri(),
    ):
        assert expected == metrics(farm("profile", "get", word, "--json"))


@pytest.mark.parametrize(
    "verb",
    [["summary"], ["phases"], ["kernels"], ["ops"], ["what-if", "--remove-category", "gemm"]],
)
def test_every_verb_takes_an_id(farm, kept, verb):
    said = farm("profile", *verb, kept[1][:8], "--json")

    assert (0, kept[1][:8]) == (said.code, json.loads(said.out)["trace"])


def test_the_next_step_of_a_stored_trace_can_be_pasted(farm, kept):
    word = kept[1][:8]

    assert f"next: farm profile kernels {word}\n" == farm("profile", "summary", word).err


def test_a_file_that_is_there_wins(here, farm, kept):
    word = kept[1][:8]
    g8.file(here / word, g8.host())

    assert (0, "null\n") == farm("profile", "get", word, "gpu_util")[:2]


def test_what_nothing_matches_is_no_result_with_the_nearest(farm, kept):
    word = kept[1][:8] + ("0" if kept[1][8] != "0" else "1")

    said = farm("profile", "summary", word)

    assert (3, "") == said[:2]
    assert f"no profile starts with '{word}'" in said.err
    assert f"did you mean `{kept[1][:9]}`?" in said.err


def test_a_profile_without_a_trace_says_what_was_not_asked(farm, shelf):
    (profile_id,) = make.put(shelf, make.profile())

    said = farm("profile", "phases", profile_id)

    assert (3, "") == said[:2]
    assert "it was taken without `measure.trace: true`" in said.err


def test_a_store_that_is_away_ends_with_four(farm, monkeypatch):
    """Nobody listens there."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    url = "s3://bucket/farm?endpoint_url=http%3A%2F%2F127.0.0.1%3A9"

    assert 4 == farm("profile", "summary", f"{url}#abcdef12").code


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("", 2, "no file ''"),
        ("trase.json", 2, "did you mean `trace.json`?"),
        ("abcde", 2, "no file 'abcde'"),
        ("file:///nowhere/trace.json", 2, "no file '/nowhere/trace.json'"),
        ("file:///", 2, "names no profile"),
        ("file:///%00", 2, "names no profile"),
        ("file://[bad/trace.json", 2, "names no profile"),
        ("http://[::1/trace.json", 2, "names no profile"),
        ("file:///%00#abcdef12", 2, "is neither a folder nor"),
        ("file://[bad#abcdef12", 2, "is neither a folder nor"),
        ("s3://bucket/prefix", 2, "names no profile"),
        ("http://host/blobs/v1/trace/ab/x.json.gz", 2, "is neither a folder nor"),
        ("s3://bucket/../blobs/v1/trace/ab/x.json.gz", 2, "is no prefix"),
        ("s3://a:secret@bucket#abcdef12", 2, "takes no user and no password"),
        ("file:///nowhere#abcdef12", 3, "no profile starts with 'abcdef12'"),
        ("file:///nowhere#zzz", 2, "'zzz' is no profile"),
        ("@last/mlp-fp32-b1-cpu", 3, ""),
        ("r-20261130/mlp", 3, ""),
        ("trace.json#2", 2, "names no block"),
    ],
)
def test_what_names_nothing_is_told_without_a_traceback(here, farm, word, code, said):
    g8.file(here / "trace.json")

    found = farm("profile", "summary", word)

    assert (code, "") == found[:2]
    assert said in found.err
    assert "secret" not in found.err


@pytest.mark.parametrize("held", ["profile.json", "infer_repeat.json"])
def test_a_folder_stands_for_the_profile_that_a_capture_left_in_it(here, farm, held):
    """Of both the one trial; and what is said to come next takes the folder too."""
    (here / "runs").mkdir()
    g8.file(here / "trace.json")
    (here / "runs" / held).write_text(farm("profile", "summary", "trace.json", "--json").out)
    if held == "profile.json":
        (here / "runs/infer_repeat.json").write_text("not read")

    assert metrics(farm("profile", "get", "trace.json", "--json")) == metrics(
        farm("profile", "get", "runs", "--json")
    )
    assert "next: farm profile kernels runs\n" == farm("profile", "summary", "runs").err


@pytest.mark.parametrize(
    ("held", "has", "hint"),
    [
        ([], "it has no profile.json and no *_repeat.json", ""),
        (["a_repeat.json", "b_repeat.json"], "it has a_repeat.json, b_repeat.json", "a_repeat"),
        (["prof/profile.json"], "it has no profile.json", "'runs/prof/profile.json'"),
    ],
)
def test_a_folder_without_one_profile_says_what_would_be_read(here, farm, held, has, hint):
    (here / "runs/prof").mkdir(parents=True)
    for each in held:
        (here / "runs" / each).write_text("{}")

    said = farm("profile", "summary", "runs")

    assert (2, "") == said[:2]
    assert "'runs' is a folder" in said.err
    assert "of a folder its profile.json or its one *_repeat.json is read" in said.err
    assert has in said.err
    assert hint in said.err
    assert bool(hint) == ("hint: " in said.err)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("abcde", "the id of a profile or job needs 6 digits or more"),
        ("@last", "a run holds several profiles: @last/LABEL"),
        ("r-82a4b2", "a run holds several profiles: r-82a4b2/LABEL"),
    ],
)
def test_what_is_nearly_a_reference_says_what_lacks(farm, word, hint):
    said = farm("profile", "phases", word)

    assert (2, "") == said[:2]
    assert f"no file '{word}'" in said.err
    assert f"hint: {hint}\n" in said.err


# ── layers ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def layers(here: Path) -> str:
    (here / "trt.json").write_text(json.dumps(TENSORRT))
    return "trt.json"


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (["phases"], "the phases of a step"),
        (["what-if", "--remove-launches", "1"], "kernels and their launches"),
        (["summary", "--html"], "the events of a timeline"),
        (["ops"], "what kind of work a layer is"),
        (["ops", "--phase", "forward"], "the phases of a step"),
        (["kernels", "--category", "gemm"], "the category of a layer"),
        (["kernels", "--tensorcore"], "which layers use matrix units"),
        (["kernels", "--phase", "forward"], "the phases of a step"),
    ],
)
def test_what_a_layer_profile_lacks_is_said(farm, layers, words, lacks):
    said = farm("profile", *words, layers)

    assert (2, "") == said[:2]
    assert f"it does not tell {lacks}" in said.err


def test_a_layer_profile_answers_what_it_can(farm, layers):
    """With --json one document each."""
    for words, schema in (
        (["summary"], "farm.layer_profile/v1"),
        (["kernels", "--top", "1"], "farm.layer_times/v1"),
        (["get"], "farm.trace_metrics/v1"),
    ):
        plain, asked = farm("profile", *words, layers), farm("profile", *words, layers, "--json")
        assert (0, 0, "") == (plain.code, asked.code, plain.err)
        assert schema == json.loads(asked.out)["schema"]
    assert (0, "3.0\n", "") == farm("profile", "get", layers, "layer_sum_ms")
    assert (0, "null\n") == farm("profile", "get", layers, "gpu_util")[:2]
