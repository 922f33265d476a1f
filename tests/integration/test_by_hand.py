"""The instrument with real processes: what every job leaves, and what one takes by hand."""

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from farm import schema
from farm.schema import LayerTable
from farm.trace import blocks
from tests.integration.farm_here import Place, until

WORKER = Path(sys.executable).with_name("farm-worker")
SWEEP = """
name: layers
matrix: {model: mlp, precision: fp32, batch: 1, device: cpu}
measure: {repeats: 1, warmup: 2, iterations: 20, layer_iterations: 10}
"""


@pytest.mark.redis
@pytest.mark.seed("S0.27", "S0.28", "S0.29")
def test_every_job_ships_its_layer_table_and_its_log_without_being_asked(place: Place) -> None:
    """They lie beside the profile; `profiles get` prints them and `verify` reads them back."""
    place.farm("run", place.write("layers.yaml", SWEEP), "--no-report")
    label = "@last/mlp-fp32-b1-cpu"

    table = place.told("profiles", "get", label, "layers").out
    log = place.told("profiles", "get", label, "log").out
    (profile,) = place.profiles()
    disturbed = profile["quality"]["validity"] == "invalid"  # by other work here: then it FAILs
    verified = place.told("verify", label, code=1 if disturbed else 0)

    assert {"layers", "layer_table", "log", "samples", "output"} <= set(profile["artifacts"])
    rows = list(csv.DictReader(io.StringIO(table)))
    assert table.startswith(blocks.HEADER)
    assert {"layers.0", "layers.2", "layers.4"} <= {row["layer"] for row in rows}
    assert 100 == pytest.approx(sum(float(row["time_pct"]) for row in rows), abs=0.05 * len(rows))
    assert "instrumented" in log
    assert "layers.0" in verified.out
    assert 17_664 == profile["cost"]["flops_per_item"]


@pytest.mark.long
@pytest.mark.redis
def test_a_sweep_may_leave_the_instruments_out(place: Place) -> None:
    """`measure.layers` and `measure.flops` are true unless it says otherwise."""
    sweep = place.write("layers.yaml", SWEEP)

    place.farm(
        *("run", sweep, "--no-report"),
        *("-S", "measure.layers=false", "-S", "measure.flops=false"),
    )

    (profile,) = place.profiles()
    assert (None, None) == (profile["layers"], profile["cost"])
    assert "not_requested" == profile["null_reasons"]["layers"]
    assert "layers" not in profile["artifacts"]


@pytest.mark.long
@pytest.mark.redis
def test_energy_that_this_machine_does_not_count_is_null_with_its_reason(place: Place) -> None:
    """Or it is there, with its uncertainty: never 0."""
    sweep = place.write("layers.yaml", SWEEP)

    place.farm("run", sweep, "--no-report", "-S", "measure.energy=true")

    (profile,) = place.profiles()
    if profile["energy"] is None:
        code = profile["null_reasons"]["energy"].partition(":")[0]
        assert code in schema.NULL_CODES - {"not_requested"}
    else:
        assert profile["energy"]["energy_gross_j"] > 0


@pytest.mark.timing
@pytest.mark.seed("S0.1", "S0.24")
def test_one_flag_on_the_run_of_a_job_adds_its_layer_table(place: Place) -> None:
    """The same job, no second build: the table is appended, and two runs are two blocks."""
    place.write("job.json", _job())

    for _ in range(2):
        said = subprocess.run(
            [WORKER, "run", "job.json", "--effort", "quick", "--profile-layers"],
            cwd=place.folder,
            env=place.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert "farm.profile/v1" in said.stdout

    text = (place.folder / "profile_layers.csv").read_text()
    assert 2 == text.count(blocks.HEADER)
    compared = place.told("profile", "compare", "profile_layers.csv#1", "profile_layers.csv#2")
    assert "layers.0" in compared.out


@pytest.mark.timing
@pytest.mark.seed("S0.3", "S0.34", "S0.35")
def test_layers_output_and_latency_of_one_model(place: Place) -> None:
    """Three passes of one command, kept and printed apart; the output is the model's."""
    said = place.farm(
        *("profile", "layers", "mlp", "--iterations", "10", "--benchmark"),
        *("--output", "y.npz", "--json"),
        environ={"FARM_EFFORT": "quick"},
    )

    document = json.loads(said.out)
    with np.load(place.folder / "y.npz") as found:
        (name,) = found.files
        assert (1, 10) == found[name].shape
    assert document["latency"]["n"] > 0
    assert document["table"]["iterations"] == 10
    table = schema.decode(json.dumps(document["table"]).encode(), LayerTable)
    assert table.rows


def _job() -> str:
    from farm import models
    from farm.schema import Inputs, Job, Protocol, Selector, Workload

    found = models.resolve("mlp", root=Path.cwd())
    assert found.defaults is not None
    inputs = found.defaults.inputs
    assert isinstance(inputs, dict)
    job = Job(
        workload=Workload(model=found.model, inputs=Inputs(spec=inputs), precision="fp32", batch=1),
        protocol=Protocol(warmup=2, iterations=20),
        selector=Selector(kind="class", value="cpu"),
    )
    return schema.encode(job).decode()


SLOW = """
import time


def slow(x):
    time.sleep(0.2)
    return x
"""


def slow_callable(place: Place) -> "subprocess.Popen[str]":
    """Start a profile of a function that takes minutes; return once it is being measured."""
    place.write("slow.py", SLOW)
    np.savez(place.folder / "in.npz", x=np.zeros(1))
    (place.folder / "tmp").mkdir()
    words = ("--model", "slow.py:slow", "--inputs", "in.npz", "--output", "out.json")
    started = place.start(
        *("profile", "callable", *words), environ={"TMPDIR": str(place.folder / "tmp")}
    )
    until(lambda: place.pids("workers.child"), "no child measures")
    return started


@pytest.mark.timing
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_a_profile_that_is_ended_takes_its_worker_along(
    place: Place, number: signal.Signals, code: int
) -> None:
    """To the command alone, and not to its group: no process and no output is left."""
    started = slow_callable(place)

    started.send_signal(number)
    _, err = started.communicate(timeout=30)

    assert code == started.returncode, err
    place.assert_quiet()
    assert not (place.folder / "out.json").exists()
    # Killed, the command cannot remove its folder; whoever measures for it does.
    until(lambda: not any((place.folder / "tmp").iterdir()), "a folder is left")


@pytest.mark.timing
def test_a_worker_that_is_killed_is_no_bug_of_ours(place: Place) -> None:
    started = slow_callable(place)

    place.kill("farm-worker")
    _, err = started.communicate(timeout=30)

    assert 3 == started.returncode
    assert "error: farm-worker died of SIGKILL" in err
    place.assert_quiet()


@pytest.mark.timing
def test_what_a_run_reads_is_not_replaced_by_what_it_writes(place: Place) -> None:
    """Not with --force either."""
    place.write("slow.py", SLOW)
    np.savez(place.folder / "in.npz", x=np.zeros(1))
    words = ("--model", "slow.py:slow", "--inputs", "in.npz", "--force")

    for output in ("in.npz", "slow.py"):
        said = place.farm("profile", "callable", *words, "--output", output, code=2)
        assert f"'{output}' is read by this very run" in said.err
