"""Whatever dies in mid-run: the run completes, no cell is missing, none is there twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.farm_here import Place, complete, until

_OTHERS = ("workers.tasks", "farm-worker")
pytestmark = pytest.mark.redis


def started(place: Place, sweep: str, *words: str) -> "subprocess.Popen[str]":
    """Start a run and return it once a child is measuring."""
    process = place.start("run", sweep, *words)
    until(lambda: place.pids("workers.child") or process.poll() is not None, "no child")
    time.sleep(0.5)  # into the repeat: what is killed shall have work in hand
    return process


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode, out, err


def assert_each_once(place: Place, cells: int) -> None:
    """One good profile per job, and one end per entry."""
    good = [each["job_id"] for each in place.profiles() if each["status"] == "ok"]
    assert cells == len(good) == len(set(good))


@pytest.mark.parametrize(
    "victim",
    ["workers.child", *(pytest.param(each, marks=pytest.mark.long) for each in _OTHERS)],
)
def test_a_killed_process_costs_no_cell(place: Place, victim: str) -> None:
    """SIGKILL of a child, of the slot worker, of the agent: the run ends complete and good."""
    sweep = place.sweep("kill", batches=[1, 2], repeats=2)
    process = started(place, sweep)

    place.kill(victim)
    code, out, err = ended(process)

    assert 0 == code, out + err
    assert complete(out, 2), out
    assert_each_once(place, 2)
    assert 1 == len({tuple(each["execution"]["device"]["cpus"]) for each in place.profiles()})


@pytest.mark.seed("S1.50")
@pytest.mark.long
def test_a_crash_costs_at_most_the_repeat_in_hand(place: Place) -> None:
    """The next attempt takes over the repeats that ended."""
    sweep = place.sweep("keep", repeats=3)
    process = started(place, sweep)
    record = "work/*/*/repeat-1/record.json"
    until(lambda: list((place.folder / ".farm").glob(record)), "no second repeat")

    place.kill("workers.tasks")
    code, out, err = ended(process)

    assert 0 == code, out + err
    (profile,) = place.profiles()
    assert 2 == profile["attempt"]
    took = [each["started_at"] for each in profile["repeats"]]
    assert sum(each < profile["execution"]["started_at"] for each in took) >= 2


def test_ctrl_c_leaves_an_open_run_that_resume_completes(place: Place) -> None:
    """130, a message how to come back, no process left; then exactly the missing is measured."""
    sweep = place.sweep("stop", batches=[1, 2, 3])
    process = started(place, sweep)
    until(lambda: place.profiles(), "no first profile")

    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)

    assert 130 == code
    run_id = place.manifest()["run_id"]
    assert f"farm resume {run_id}" in err
    place.assert_quiet()
    before = len(place.profiles())
    assert before < 3

    said = place.farm("resume", run_id)

    assert complete(said.out, 3), said.out
    assert_each_once(place, 3)
    assert "nothing is missing" in place.farm("resume", run_id).err


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL]
)
def test_a_killed_command_leaves_nothing_running(place: Place, number: signal.Signals) -> None:
    """The workers end with the command, whatever it dies of; the store can complete the run."""
    sweep = place.sweep("gone", batches=[1, 2])
    process = started(place, sweep)

    process.send_signal(number)
    ended(process)

    for word in ("workers.child", "workers.tasks", "farm-worker"):
        until(lambda word=word: not place.pids(word), f"{word} is left")
    assert "2 ok" in place.farm("resume", "@last").out
    assert_each_once(place, 2)


@pytest.mark.long
def test_a_time_out_leaves_an_open_run(place: Place) -> None:
    """124, and resume completes."""
    sweep = place.sweep("late", batches=[1, 2])

    said = place.farm("run", sweep, "--timeout", "3s", code=124)

    assert "farm resume" in said.err
    assert "2 ok" in place.farm("resume", "@last").out


@pytest.mark.long
def test_two_runs_at_once_share_the_machine(place: Place) -> None:
    """The second run waits for the same device, and both end complete."""
    first = started(place, place.sweep("one", batches=[1, 2]))
    second = place.start("run", place.sweep("two", batches=[3, 4]))

    codes = [ended(first)[0], ended(second)[0]]

    assert [0, 0] == codes
    assert_each_once(place, 4)


@pytest.mark.long
def test_a_run_in_another_folder_waits_for_the_device(place: Place, tmp_path: Path) -> None:
    """A device serves one at a time (X1): the run of another folder says whom it waits for."""
    first = started(place, place.sweep("one", batches=[1, 2]))
    other = Place(tmp_path / "other")
    second = other.start("run", other.sweep("two"))

    assert 0 == ended(first)[0]
    code, out, err = ended(second)

    assert 0 == code, out + err
    assert "waiting: device cpu:0 is taken" in err
    other.assert_quiet()


@pytest.mark.long
def test_the_second_run_goes_on_when_the_first_is_killed(place: Place) -> None:
    """Q17: SIGKILL of the first `farm run`; the second takes the device over and ends well."""
    first = started(place, place.sweep("one", batches=[1, 2]))
    second = place.start("run", place.sweep("two", batches=[3, 4]))
    until(lambda: len(list(place.folder.glob(".farm/store/runs/v1/*/*"))) == 2, "no second run")

    first.kill()
    ended(first)
    code, out, err = ended(second)

    assert 0 == code, out + err
    assert complete(out, 2), out


def test_a_store_that_cannot_be_written_is_said_at_once(place: Place) -> None:
    """Nothing is started for a store that takes nothing."""
    (place.folder / ".farm").mkdir()
    (place.folder / ".farm" / "store").write_text("a file")

    said = place.farm("run", place.sweep("nowhere"), code=2)

    assert "store" in said.err


BURN = "while True: pass"


@pytest.mark.long
@pytest.mark.timing
def test_a_busy_neighbour_makes_a_figure_invalid_and_is_named(place: Place) -> None:
    """With a burner on the leased core the cell is `contended`, never valid, tried once more."""
    core = sorted(os.sched_getaffinity(0))[1 if len(os.sched_getaffinity(0)) > 1 else 0]
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    os.sched_setaffinity(burner.pid, {core})
    try:
        said = place.farm("run", place.sweep("busy", repeats=2, iterations=300))
    finally:
        burner.kill()
        burner.wait()

    (profile,) = place.profiles()
    assert "invalid" == profile["quality"]["validity"]
    assert "contended" in profile["quality"]["flags"]
    assert 3 == len(profile["repeats"])
    assert any(str(burner.pid) in each for each in profile["quality"]["neighbours"])
    assert "1 invalid" in said.out
    again = place.farm("run", "busy.yaml").err
    assert "1 job measured again: its profile is invalid:" in again


def test_the_password_of_the_broker_is_nowhere(place: Place) -> None:
    """In no command line and no log (Q18)."""
    process = started(place, place.sweep("secret"))
    config = next((place.folder / ".farm/broker").rglob("*.conf"))
    password = next(
        line.split()[1].strip('"')
        for line in config.read_text().splitlines()
        if line.startswith("requirepass")
    )

    lines = [
        Path(f"/proc/{pid}/cmdline").read_bytes()
        for word in ("farm", "workers", "valkey", "redis")
        for pid in place.pids(word)
    ]
    child = Path(f"/proc/{place.pids('workers.child')[0]}/environ").read_bytes()
    ended(process)

    assert lines
    assert not [each for each in [*lines, child] if password.encode() in each]
    for log in place.folder.glob(".farm/**/*.log"):
        assert password not in log.read_text()
