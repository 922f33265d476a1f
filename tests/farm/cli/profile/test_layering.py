"""`farm profile layers`: what the verb says of files, and in its help."""

import json

import pytest

from farm import schema
from farm.trace import blocks, files
from tests.farm.cli.profile.layer_worker import Worker, taken

TRT = [
    {"count": 100},
    {"name": "conv + relu", "timeMs": 30.0, "averageMs": 0.3, "medianMs": 0.29},
    {"name": "fc", "timeMs": 10.0, "averageMs": 0.1, "medianMs": 0.1},
]


@pytest.mark.seed("S0.36")
def test_a_warning_against_production_is_given_and_stands_in_the_help(here, farm) -> None:
    heard: list[str] = []

    taken(here, Worker(), warn=heard.append)

    assert ["never profile in production"] == [each.split(": ")[-1] for each in heard]
    assert "never profile in production" in " ".join(farm("profile", "layers", "-h").out.split())


# ── files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def trt(here) -> str:
    (here / "trt.json").write_text(json.dumps(TRT))
    return "trt.json"


def test_a_tensorrt_profile_is_shown_and_appended(here, farm, trt) -> None:
    said = farm("profile", "layers", trt)

    assert (0, True) == (said.code, "conv + relu    75.0" in said.out)
    assert "appended to profile_layers.csv#1\n" == said.err
    assert "conv + relu,75.0,0.3000,0.2900,,30.0000" in (here / "profile_layers.csv").read_text()
    about = files.read(files.address("profile_layers.csv")).about
    assert about is not None
    assert ("imported", None, "trt.json") == (about.method, about.job_id, about.model)


def test_an_import_as_json_has_a_reason_for_each_null(farm, trt) -> None:
    said = farm("profile", "layers", trt, "--json")

    found = json.loads(said.out)
    assert (0, "", "farm.layers_read/v1") == (said.code, said.err, found["schema"])
    reasons = found.pop("null_reasons")
    assert set(schema.null_paths(found)) == set(reasons)


def test_a_block_is_shown_and_nothing_is_appended(here, farm, trt) -> None:
    farm("profile", "layers", trt)
    before = (here / "profile_layers.csv").read_bytes()

    said = farm("profile", "layers", "profile_layers.csv#1")

    assert (0, "") == (said.code, said.err)
    assert said.out.startswith("profile_layers.csv#1, trt.json\n")
    assert before == (here / "profile_layers.csv").read_bytes()


@pytest.mark.parametrize(
    "flags",
    [("--benchmark",), ("--iterations", "5"), ("--precision", "fp32"), ("--input", "x.npz")],
)
def test_a_flag_that_means_nothing_for_a_file_is_refused(farm, trt, flags) -> None:
    said = farm("profile", "layers", trt, *flags)

    assert (2, "") == (said.code, said.out)
    assert f"{flags[0]} means nothing for 'trt.json'" in said.err


def test_where_to_append_means_nothing_for_a_block_that_is_shown(here, farm, trt) -> None:
    farm("profile", "layers", trt)

    said = farm("profile", "layers", "profile_layers.csv", "--profile-output", "other.csv")

    assert (2, True) == (said.code, "--profile-output means nothing" in said.err)
    assert not (here / "other.csv").exists()


@pytest.mark.parametrize(
    ("word", "code", "holds"),
    [
        ("gone.json", 2, "no file 'gone.json'"),
        ("gone.csv", 2, "no file 'gone.csv'"),
        ("odd.json", 2, "no layer profile"),
        ("torn.json", 1, "no JSON"),
        ("torn.csv", 1, "line 2 has 2 cells"),
        ("odd.csv", 2, "no layer CSV"),
        ("good.csv#2", 3, "no block 2"),
        ("good.csv#0", 2, "names no block"),
        (f"good.csv#{'9' * 5000}", 2, "names no block"),
    ],
)
def test_a_file_that_cannot_be_shown_says_why(here, farm, word, code, holds) -> None:
    (here / "odd.json").write_text("{}")
    (here / "torn.json").write_text("[")
    (here / "torn.csv").write_text(f"{blocks.HEADER}\na,b\n")
    (here / "odd.csv").write_text("a,b\n")
    (here / "good.csv").write_text(f"{blocks.HEADER}\na,100,1,1,1,1\n")

    said = farm("profile", "layers", word)

    assert (code, "", True) == (said.code, said.out, holds in said.err), said.err


def test_shares_that_are_none_are_told_and_blamed_on_no_iteration(here, farm) -> None:
    """A block of another tool whose shares add up to 180 %, where every iteration is like the
    others; as JSON, the warning stands beside the document."""
    row = "{},90.0,1.0,1.0,0.0,10.0\n"
    (here / "f.csv").write_text(f"{blocks.HEADER}\n" + row.format("a") + row.format("b"))
    wrong = "its shares add up to 180.0 %, and not to 100"

    shown = farm("profile", "layers", "f.csv")
    as_json = farm("profile", "layers", "f.csv", "--json")
    compared = farm("profile", "compare", "f.csv", "f.csv")

    assert (0, "") == (shown.code, shown.err)
    assert wrong in shown.out.splitlines()
    assert ("~" in shown.out, "slow iterations" in shown.out) == (False, False)
    assert (0, f"warning: f.csv#1: {wrong}\n") == (as_json.code, as_json.err)
    assert (0, f"warning: f.csv#1: {wrong}\n" * 2) == (compared.code, compared.err)


def test_an_import_that_cannot_be_read_again_leaves_the_csv_alone(here, farm, trt) -> None:
    farm("profile", "layers", trt)
    before = (here / "profile_layers.csv").read_bytes()
    (here / "long.json").write_text(json.dumps([TRT[0], {**TRT[1], "name": "x" * 200_000}]))

    said = farm("profile", "layers", "long.json")

    assert (1, "", True) == (said.code, said.out, "it could not be read again" in said.err)
    assert before == (here / "profile_layers.csv").read_bytes()
