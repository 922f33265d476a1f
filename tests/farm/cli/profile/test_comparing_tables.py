"""`farm profile compare` on layer tables and callable JSONs."""

import json

import pytest

from farm import interchange, schema
from farm.trace import blocks
from tests.farm.cli.profile.layer_worker import Worker, taken, words
from tests.farm.cli.profile.piped import through_a_pipe
from tests.farm.interchange import calls

TRT = [
    {"count": 100},
    {"name": "conv + relu", "timeMs": 30.0, "averageMs": 0.3, "medianMs": 0.29},
    {"name": "fc", "timeMs": 10.0, "averageMs": 0.1, "medianMs": 0.1},
]


@pytest.fixture
def trt(here) -> str:
    (here / "trt.json").write_text(json.dumps(TRT))
    return "trt.json"


@pytest.mark.seed("S0.24", "S0.39")
def test_two_blocks_are_set_side_by_side(here, farm) -> None:
    taken(here, Worker("conv", "relu", "fc"))
    taken(here, Worker("conv+relu", "fc"), words(precision="bf16"))

    said = farm("profile", "compare", "profile_layers.csv#1", "profile_layers.csv#2")

    assert (0, "") == (said.code, said.err)
    assert "base  profile_layers.csv#1: mlp, fp32" in said.out
    rows = {line.split("  ")[0]: line.split()[1:] for line in said.out.splitlines()}
    assert ["33.3", "50.0", "+16.7", "0.0498", "0.0498", "1.00"] == rows["fc"]
    assert ["33.3", "–", "–", "0.0498", "–", "–"] == rows["conv"]
    assert ["–", "50.0", "–", "–", "0.0498", "–"] == rows["conv+relu"]
    assert "only in base 2 with 66.6 %, only in head 1 with 50.0 %" in said.out
    assert "only shares compare" in said.out


def test_shares_of_different_work_are_warned_of_in_one_line(here, farm) -> None:
    taken(here, Worker("fc"), words(batch=1))
    taken(here, Worker("fc"), words(batch=8))

    said = farm("profile", "compare", "profile_layers.csv#1", "profile_layers.csv#2")

    assert "warning: these are shares of different work: batch 1 and 8\n" == said.err
    assert "base  profile_layers.csv#1: mlp, fp32, batch 1, AMD EPYC 7B13, 1 layer" in said.out
    assert "head  profile_layers.csv#2: mlp, fp32, batch 8, AMD EPYC 7B13, 1 layer" in said.out


def test_a_comparison_as_json_is_one_document(here, farm, trt) -> None:
    taken(here, Worker())

    said = farm("profile", "compare", "profile_layers.csv", trt, "--json")

    found = json.loads(said.out)
    assert (0, "", "farm.layer_comparison/v1") == (said.code, said.err, found["schema"])
    assert ("inconclusive", "trt.json") == (found["verdict"], found["head"]["model"])
    reasons = found.pop("null_reasons")
    assert set(schema.null_paths(found)) == set(reasons)


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("worse", 0), ("incomparable", 5)])
def test_two_stored_tables_are_no_verdict(here, farm, trt, fail_on, code) -> None:
    """Only pairs can show that something got worse."""
    said = farm("profile", "compare", trt, trt, "--fail-on", fail_on)

    assert code == said.code
    assert "inconclusive" in said.out


def test_what_cannot_be_compared_says_what_can_be_read(here, farm, trt) -> None:
    (here / "notes.txt").write_text("hello")
    (here / "some.json").write_text("{}")

    for word in ("notes.txt", "some.json"):
        said = farm("profile", "compare", word, trt)

        assert (2, "", True) == (said.code, said.out, "readable now: layer CSVs" in said.err)


def test_pipes_are_compared_as_files_are(here, farm, trt) -> None:
    """`<(…)` of a shell: each gives its bytes once, and its name says nothing."""
    (here / "a.csv").write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")
    document = interchange.encode(calls.document([10.0, 10.0, 10.0]))
    (here / "one.json").write_bytes(document)

    def compared(data: bytes, other: str):
        return through_a_pipe(here, data, lambda: farm("profile", "compare", "63", other))

    table = compared((here / "a.csv").read_bytes(), "a.csv")
    foreign = compared((here / trt).read_bytes(), "a.csv")
    callables = compared(document, "one.json")
    mixed = compared((here / "a.csv").read_bytes(), "one.json")

    assert (0, True) == (table.code, "1 layer in both" in table.out), table.err
    assert (0, True) == (foreign.code, "conv + relu" in foreign.out), foreign.err
    assert (0, True) == (callables.code, "ratio    1.000" in callables.out), callables.err
    assert (2, True) == (mixed.code, "'63' is a layer CSV" in mixed.err)


def test_two_callable_jsons_are_compared_as_such(here, farm) -> None:
    """A callable and a layer table are no pair."""
    for name, ms in (("one.json", 10.0), ("two.json", 20.0)):
        (here / name).write_bytes(interchange.encode(calls.document([ms, ms, ms])))

    said = farm("profile", "compare", "one.json", "two.json")
    as_json = farm("profile", "compare", "one.json", "two.json", "--json")
    (here / "two.csv").write_text(f"{blocks.HEADER}\na,100,1,1,1,1\n")
    mixed = farm("profile", "compare", "one.json", "two.csv")
    asked = farm("profile", "compare", "one.json", "two.json", "--fail-on", "incomparable")

    assert (0, "") == (said.code, said.err)
    assert "ratio    2.000" in said.out
    assert "verdict  inconclusive: a single run cannot support the call" in said.out
    assert "farm.callable_comparison/v1" == json.loads(as_json.out)["schema"]
    assert (2, True) == (mixed.code, "is a callable JSON" in mixed.err)
    assert 5 == asked.code
