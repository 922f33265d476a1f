"""`farm aggregate`: a table, a verdict, and 1 for any problem."""

import csv
import json

import pytest

from farm import models
from farm.interchange import encode
from tests.farm import make
from tests.farm.interchange import calls

ROSTER = """
schema: farm.roster/v1
name: two
models:
  - {task: t, model: a, identity: "predict.py:predict", cost: none}
  - {task: t, model: b, identity: "predict.py:predict", cost: none}
"""


@pytest.fixture
def there(here):
    (here / "roster.yaml").write_text(ROSTER)
    (here / "out").mkdir()
    for name in ("a", "b"):
        (here / f"out/{name}.json").write_bytes(encode(calls.document([1.0, 2.0, 3.0])))
    return here


ASK = ("aggregate", "--roster", "roster.yaml")


@pytest.mark.seed("S1.40")
def test_a_complete_roster_is_joined_in_a_table_with_a_verdict(farm, there):
    said = farm(*ASK, "out", "-o", "new/t.csv", "--validation", "new/v.json")

    assert (0, True) == (said.code, "two: PASS" in said.out)
    assert "2 of 2 models found; 2 rows into new/t.csv\n" == said.err
    rows = list(csv.DictReader((there / "new/t.csv").read_text().splitlines()))
    assert [("t", "a", "2.0"), ("t", "b", "2.0")] == [
        (row["task"], row["model"], row["p50_ms"]) for row in rows
    ]
    verdict = json.loads((there / "new/v.json").read_text())
    assert ("farm.roster_validation/v1", 2, 2, [], "PASS") == (
        verdict["schema"],
        verdict["expected_models"],
        verdict["profiles_found"],
        verdict["errors"],
        verdict["status"],
    )
    assert list(rows[0]) == verdict["headline_fields"]


@pytest.mark.seed("S1.53")
def test_any_problem_ends_it_with_1_and_is_named(farm, there):
    """The sound rows are there all the same, and the verdict says that they are not all."""
    (there / "out/b.json").write_text("{")

    said = farm(*ASK, "out", "-o", "t.csv", "--validation", "v.json")

    assert 1 == said.code
    assert "✗ out/b.json: cannot be read: " in said.out
    assert "✗ b: no profile of 'predict.py:predict', and no file b.json" in said.out
    assert "two: FAIL" in said.out
    assert 2 == len((there / "t.csv").read_text().splitlines())
    assert "FAIL" == json.loads((there / "v.json").read_text())["status"]


def test_files_that_are_named_are_enough(farm, there):
    said = farm(*ASK, "out/a.json", "out/b.json", "--json")

    told = json.loads(said.out)
    assert (0, "", "PASS", "farm.roster_validation/v1") == (
        said.code,
        said.err,
        told["status"],
        told["schema"],
    )


def test_without_a_path_the_store_is_looked_into(farm, there, shelf):
    shelf.probe()
    make.put(shelf, make.profile(make.job("predict.py:predict")))
    (there / "roster.yaml").write_text(ROSTER.rsplit("\n", 2)[0])

    assert "two: PASS" in farm(*ASK).out
    gone = farm(*ASK, "--store", str(there / "gone"))
    assert (4, True) == (gone.code, "the store is not there" in gone.err)


def test_incomplete_flops_are_allowed_if_so_asked(farm, there, shelf):
    (there / "roster.yaml").write_text(
        "schema: farm.roster/v1\nname: x\nmodels: [{task: t, model: mlp}]"
    )
    shelf.probe()
    make.put(shelf, make.profile())

    said = farm(*ASK)

    assert 1 == said.code
    assert "✗ mlp: FLOPs unknown (not counted)" in said.out
    lenient = farm(*ASK, "--allow-incomplete-flops")
    assert "✗ mlp: cost.params_total is missing" in lenient.out
    assert "! mlp: FLOPs unknown (not counted)" in lenient.out


def test_invalid_figures_end_it_with_1_unless_they_are_allowed(farm, there):
    (there / "out/b.json").write_bytes(encode(calls.document([1.0, 2.0, 3.0], flags=["contended"])))

    strict = farm(*ASK, "out")
    lenient = farm(*ASK, "out", "--allow-invalid")

    assert (1, True) == (strict.code, "✗ b: invalid: contended" in strict.out)
    assert (0, True) == (lenient.code, "! b: invalid: contended" in lenient.out)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["aggregate"], 2, "error: missing option '--roster'"),
        (["aggregate", "--roster", "gone.yaml"], 2, "error: no file 'gone.yaml'"),
        ([*ASK, "gone"], 2, "error: no file or folder 'gone'"),
        ([*ASK, "out", "-o", "out"], 2, "error: cannot write 'out'"),
        ([*ASK, "out", "--validation", "roster.yaml/x"], 2, "error: cannot write"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(farm, there, words, code, message):
    said = farm(*words)

    assert (code, "") == (said.code, said.out)
    assert said.err.startswith(message)


@pytest.mark.seed("S1.39")
def test_the_roster_that_is_shipped_expects_what_the_sweep_of_its_name_measures():
    """Each required model is a row of the sweep."""
    from farm.roster import load
    from farm.sweep import expand
    from farm.sweep import load as sweeps

    roster = load(models.configs() / "rosters/depth.yaml")
    asked = expand(sweeps([models.configs() / "sweeps/depth.yaml"], root=models.configs()))

    required = {each.known_as for each in roster.models if not each.optional}
    assert required == {each.job.workload.model.name for each in asked.jobs}
    ids = {each.job.workload.inputs.samples for each in asked.jobs}
    assert {("noise-1", "noise-2", "noise-3", "noise-4")} == ids
    assert [next(iter(asked.npz))] == [*{each.job.workload.inputs.digest for each in asked.jobs}]
