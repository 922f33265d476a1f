"""With --json stdout is pure data that fits the published schema, whatever else is asked."""

import json

import pytest

from farm import published
from farm.cli import cli
from tests.cli import world as place
from tests.cli.published import checked
from tests.cli.world import Said, World, with_json
from tests.test_cli_contract import _verbs

RUN = "r-aaa111"
GOOD = f"{RUN}/mlp/fp32/b1/cpu"

# What can be asked without a farm, and the documents that answer it.
ASKED: list[tuple[list[str], str]] = [
    (["status"], "runs"),
    (["status", RUN], "jobs"),
    (["status", RUN, "--state", "failed"], "jobs"),
    (["report", RUN], "report"),
    (["plan", "sweep.yaml"], "plan"),
    (["plan", "sweep.yaml", "-S", "device=h300", "--force"], "plan"),
    (["resume", "r-aaa222", "--dry-run"], "missing"),
    (["logs", f"{RUN}/cnn/fp32/b1/cpu"], "log"),
    (["profiles", "list"], "profile_row"),
    (["profiles", "list", "--all-attempts", "--sort", "latency.p50"], "profile_row"),
    (["profiles", "show", GOOD], "profile"),
    (["profiles", "get", GOOD], "fields"),
    (["profiles", "get", GOOD, "latency.p50"], "value"),
    (["profiles", "get", GOOD, "memory.cpu_pss_bytes"], "value"),
    (["profiles", "get", GOOD, "job"], "value"),
    (["profiles", "pull", "-o", "pulled"], "pulled"),
    (["query", "SELECT profile_id, flags, started_at FROM winners"], "rows"),
    (["export", "--as", "rows", "-o", "rows.csv"], "exported"),
    (["verify", GOOD], "verified"),
    (["profile", "layers", "trt.json"], "layers_read"),
    (["profile", "compare", "layers.csv#1", "layers.csv#2"], "layer_comparison"),
    (["profile", "compare", "callable.json", "callable.json"], "callable_comparison"),
    (["profile", "compare", "trace.json.gz", "trace.json.gz"], "trace_compare"),
    (["profile", "compare", "trace.json.gz", "cpu.json"], "trace_compare"),
    (["profile", "compare", "cpu.json", "analysis.json"], "trace_compare"),
    (["profile", "summary", "trace.json.gz"], "analysis"),
    (["profile", "summary", "analysis.json"], "analysis"),
    (["profile", "summary", "libreyolo.json"], "analysis"),
    (["profile", "summary", "trt.json"], "layer_profile"),
    (["profile", "get", "layers.csv#1"], "trace_metrics"),
    (["profile", "kernels", "runs.json", "--top", "1"], "layer_times"),
    (["profile", "ops", "runs.json"], "layer_ops"),
    (["profile", "get", "trace.json.gz"], "trace_metrics"),
    (["profile", "get", "trace.json.gz", "gpu_util"], "value"),
    (["profile", "get", "trace.json.gz", "img_per_s"], "value"),
    (["profile", "phases", "trace.json.gz"], "trace_phases"),
    (["profile", "phases", "cpu.json"], "trace_phases"),
    (["profile", "kernels", "trace.json.gz", "--phase", "forward", "--top", "2"], "trace_kernels"),
    (["profile", "kernels", "cpu.json"], "trace_kernels"),
    (["profile", "ops", "cpu.json"], "trace_ops"),
    (["profile", "what-if", "trace.json.gz", "--remove-category", "gemm"], "what_if"),
    (["profile", "what-if", "trace.json.gz", "--remove-launches", "30"], "what_if"),
    (["profile", "what-if", "analysis.json", "--remove-category", "GEMM"], "what_if"),
    (
        ["aggregate", "--roster", "roster.yaml", "callable.json", "-o", "out/all.csv"],
        "roster_validation",
    ),
    (["store", "compact"], "compacted"),
    (["store", "rebuild"], "compacted"),
    (["store", "check"], "checked"),
    (["store", "check", "--deep"], "checked"),
    (["tag", "base", RUN], "tagged"),
    (["tag"], "tags"),
    (["cards", "diff", "card.json", "card.json"], "cards_diff"),
    (["config"], "config"),
    (["config", "store"], "config"),
    (["config", "--path"], "config"),
    (["config", "schema"], "schemas"),
    (["completion", "bash"], "completion"),
    (["doctor"], "doctor"),
]
# These need a farm that runs; the tests of the farm check every document that they print.
FARM = {"run", "submit", "watch", "cancel", "retry", "up", "down", "scheduler", "nodes"}
# These measure here; the tests of each check what it prints.
MEASURING = {"profile callable", "profile cost", "profile run", "profile infer"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = place.built(tmp_path_factory.mktemp("world"))
    place.furnish(made)
    return made


@pytest.fixture
def farm(world, capsys, monkeypatch):
    place.enter(world, monkeypatch)

    def run(*words: str) -> Said:
        return place.run(list(words), given={}, capsys=capsys, monkeypatch=monkeypatch)

    return run


@pytest.mark.parametrize(("words", "thing"), ASKED, ids=[" ".join(each) for each, _ in ASKED])
def test_what_json_prints_fits_its_published_schema(farm, words, thing):
    """Every line one document; nothing on stderr but warnings."""
    said = farm(*with_json(words))

    documents = checked(said.out)
    assert {f"farm.{thing}/v1"} == {each["schema"] for each in documents}
    assert [] == [line for line in said.err.splitlines() if not line.startswith("warning: ")]


@pytest.mark.parametrize("flags", [["-q"], ["-v"], ["--color", "always"], ["-q", "-v"]])
@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["report", RUN], ["profiles", "list"], ["config"], ["verify", GOOD]),
        ["profile", "compare", "layers.csv#1", "layers.csv#2"],
        ["profile", "summary", "trace.json.gz"],
        ["profile", "get", "trace.json.gz", "img_per_s"],
        ["aggregate", "--roster", "roster.yaml", "callable.json"],
    ],
)
def test_no_option_puts_anything_but_data_on_stdout(farm, words, flags):
    plain, other = farm(*with_json(words)), farm(*flags, *with_json(words))

    assert plain.code == other.code
    assert [each.keys() for each in checked(plain.out)] == [
        each.keys() for each in checked(other.out)
    ]
    assert "\x1b" not in other.out


def test_quiet_and_json_may_stand_before_or_behind_the_verb(farm):
    """Nobody remembers which."""
    assert farm("-q", "status").out == farm("status", "-q").out
    assert "farm.runs/v1" == json.loads(farm("status", "-q", "--json").out)["schema"]


def test_every_verb_is_asked_for_json_somewhere():
    asked = {" ".join(words) for words, _ in ASKED}
    verbs = {" ".join(verb) for verb in _verbs() if verb[0] not in FARM}
    left = {verb for verb in verbs if not any(f"{each} ".startswith(f"{verb} ") for each in asked)}

    assert left == MEASURING
    assert set(cli.commands) >= FARM


def test_every_document_that_a_verb_prints_is_published(farm):
    """And its schema is printed as what it is."""
    things = json.loads(farm("config", "schema", "--json").out)["things"]

    assert sorted(published.things()) == things
    for each in things:
        schema = json.loads(farm("config", "schema", each).out)
        assert "https://json-schema.org/draft/2020-12/schema" == schema["$schema"]
