"""`farm run` as a person sees it: real broker, agent, slot worker and children."""

import json
from pathlib import Path

import pytest

from tests.integration.farm_here import Place, complete

pytestmark = pytest.mark.redis


def test_a_sweep_ends_as_a_table_and_a_page(place: Place) -> None:
    """Every cell has a profile, the table is on stdout, and its last line is the page's path."""
    said = place.farm("run", place.sweep("two", batches=[1, 2]))

    assert complete(said.out, 2), said.out
    assert (place.folder / said.page).read_text().startswith("<!doctype html>")
    assert ["ok", "ok"] == [each["status"] for each in place.profiles()]
    assert "2 done" in said.err


def test_nothing_is_measured_twice_and_it_says_why(place: Place) -> None:
    """The same sweep again measures nothing; --force does, beside the old profiles."""
    sweep = place.sweep("again", batches=[1, 2])
    for _ in range(6):  # what other work here disturbed does not count as measured
        place.farm("run", sweep)
        before = place.profiles()
        if 2 == sum(each["quality"]["validity"] != "invalid" for each in before):
            break

    second = place.farm("run", sweep)
    assert len(before) == len(place.profiles())
    assert "2 jobs not measured again" in second.err
    assert "on this system (torch 2.13" in second.err
    assert "2 ok" in second.out

    third = place.farm("run", sweep, "--force")
    assert len(before) + 2 == len(place.profiles())
    assert "whether measured before or not" in third.err
    sets = {each["repeat_set"] for each in place.profiles()}
    assert {"base", place.manifest()["run_id"]} == sets


@pytest.mark.long
def test_another_torch_measures_again(place: Place) -> None:
    """A changed torch is another system: what was measured under the old one does not count."""
    sweep = place.sweep("torch")
    place.farm("run", sweep)
    info = place.folder / "lib" / "torch-9.9.9.dist-info" / "METADATA"
    info.parent.mkdir(parents=True)
    info.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")

    said = place.farm("run", sweep, environ={"PYTHONPATH": str(place.folder / "lib")})

    assert (
        "1 job measured again: its profile was taken under another system (torch 2.13" in said.err
    )
    first, second = sorted(place.profiles(), key=lambda each: int(each["fence"]))
    assert first["system_id"] != second["system_id"]
    assert first["system_class"] == second["system_class"]


MODEL = """
import helper

def build(batch):
    return lambda x: helper.twice(x)
"""
OWN = """
name: own
matrix: {model: "model.py:build", batch: 2, device: cpu}
inputs: {x: {shape: [batch, 8], dtype: float32}}
measure: {repeats: 1, warmup: 2, iterations: 20}
"""


@pytest.mark.long
def test_a_changed_model_or_local_import_measures_again(place: Place) -> None:
    """The digest of user code covers its local imports (rule 2)."""
    place.write("model.py", MODEL)
    place.write("helper.py", "import numpy\ndef twice(x): return x + x\n")
    sweep = place.write("own.yaml", OWN)
    place.farm("run", sweep)
    assert "not measured again" in place.farm("run", sweep).err

    place.write("helper.py", "import numpy\ndef twice(x): return 2 * x\n")
    place.farm("run", sweep)
    place.write("model.py", MODEL + "# another\n")
    place.farm("run", sweep)

    assert 3 == len(place.profiles())
    assert 3 == len({each["workload_id"] for each in place.profiles()})
    assert 1 == len({each["cell_id"] for each in place.profiles()})


def test_a_folder_called_workers_beside_the_model_works(place: Place) -> None:
    """User code may have packages with our names (rule 15), imported early or late."""
    place.write("workers/__init__.py", "")
    place.write("workers/ours.py", "def twice(x): return x + x\n")
    place.write("farm/__init__.py", "FACTOR = 2\n")
    place.write("configs/models.yaml", "nonsense: [")
    place.write(
        "model.py",
        "import numpy\nfrom workers import ours\n"
        "def step(x):\n    import farm\n    return ours.twice(x) * farm.FACTOR\n",
    )
    sweep = place.write("own.yaml", OWN.replace("model.py:build", "model.py:step"))

    said = place.farm("run", sweep)

    assert "1 ok" in said.out


@pytest.mark.parametrize(
    ("options", "code", "kind", "words", "counted"),
    [
        pytest.param(
            *({"fail": "raise", "fail_at": "latency"}, 1, "model_error", "told to raise", "failed"),
            marks=pytest.mark.long,  # test_tricks has others of its kind
        ),
        ({"fail": "allocate"}, 0, "host_oom", "MemoryError", "out of memory"),
        ({"fail": "hang"}, 0, "timeout", "still in phase first after 3 s", "failed"),
        (
            {"fail": "kill", "fail_at": "warmup"},
            1,
            "crashed",
            "died of SIGKILL in phase warmup",
            "failed",
        ),
        (
            {"fail": "unsupported", "fail_at": "load"},
            0,
            "unsupported",
            "unsupported",
            "not supported there",
        ),
    ],
)
def test_what_goes_wrong_becomes_a_cell_with_its_cause(
    place: Place, options: dict[str, str], code: int, kind: str, words: str, counted: str
) -> None:
    """A model that fails is a stored answer with its phase and its last output; the code fits."""
    limit = "3s" if kind == "timeout" else "30s"  # a busy machine must not end the others by it
    sweep = place.sweep("bad", timeout=limit, **options)

    said = place.farm("run", sweep, "-S", "measure.memory_limit=1GiB", code=code)

    assert f"1 cell: 1 {counted}   COMPLETE" in said.out

    (profile,) = place.profiles()
    assert ("failed", kind) == (profile["status"], profile["failure"]["kind"])
    assert words in profile["failure"]["message"]
    if kind == "model_error":
        assert "Traceback" in profile["failure"]["log_tail"]


def test_a_model_that_prints_10_mb_is_measured_and_its_log_is_short(place: Place) -> None:
    """Output never blocks a child nor fills the store."""
    place.farm("run", place.sweep("loud", fail="print"))

    (profile,) = place.profiles()
    assert "ok" == profile["status"]
    assert profile["artifacts"]["log"]["bytes"] < 100_000
    log = place.told("profiles", "get", "@last/mlp-fp32-b1-cpu", "log").out
    assert "bytes left out" in log


@pytest.mark.long
def test_a_time_out_of_a_model_that_others_completed_is_a_failure(place: Place) -> None:
    """Rule 11: one batch ended, so the other's time-out makes exit 1."""
    good = place.sweep("ok", batches=[1], timeout="3s")
    bad = place.sweep("slow", batches=[2], timeout="3s", fail="hang")

    said = place.farm("run", good, bad, code=1)

    assert "1 ok · 1 failed" in said.out


@pytest.mark.long
def test_reports_and_profiles_are_read_back(place: Place) -> None:
    """What a run showed, the reading verbs show again, in every form."""
    place.farm("run", place.sweep("read"))

    assert complete(place.farm("report").out, 1)
    document = json.loads(place.told("report", "@last", "--json").out)
    assert ("farm.report/v1", True) == (document["schema"], document["complete"])
    assert "| model |" in place.told("report", "--format", "md").out
    page = place.farm("report", "-o", "page.html")
    assert "" == page.out
    assert (place.folder / "page.html").exists()
    row = json.loads(place.told("profiles", "list", "--json").out)
    shown = place.told("profiles", "show", row["profile_id"][:12]).out
    assert "latency p50" in shown
    p50 = place.told("profiles", "get", row["profile_id"], "latency.p50").out
    assert row["p50_ms"] == float(p50)
    status = json.loads(place.told("status", "--json").out)
    assert 1 == status["runs"][0]["counts"]["ok"]


def test_a_job_by_hand_is_the_same_job(place: Place, tmp_path: Path) -> None:
    """`profiles get JOB job | farm-worker run -` measures the same identity."""
    place.farm("run", place.sweep("hand"))
    (profile,) = place.profiles()
    job = place.told("profiles", "get", "@last/mlp-fp32-b1-cpu", "job").out

    (tmp_path / "job.json").write_text(job)

    assert profile["job"] == json.loads(job)


@pytest.mark.long
def test_a_plan_measures_nothing_and_counts_what_is_there(place: Place) -> None:
    """`farm plan` says what would be measured and what is measured already."""
    sweep = place.sweep("plan", batches=[1, 2])
    assert "2 jobs: 2 to measure" in place.farm("plan", sweep).out
    assert [] == place.profiles()

    place.farm("run", sweep)

    again = json.loads(place.farm("plan", sweep, "--json").out)
    assert (0, 2) == (again["to_measure"], again["reused"])
