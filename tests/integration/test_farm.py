"""A farm of several nodes under one broker, used from the command line as a person would."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.ledger import Ledger
from tests.integration.farm_here import Place, until

pytestmark = pytest.mark.redis
UNDER_WAY = {"measuring", "uploading"}

WORKER = str(Path(sys.executable).with_name("farm-worker"))


class Fleet:
    """A broker, a scheduler and nodes that were started by hand on this machine."""

    def __init__(self, place: Place, url: str) -> None:
        self.place, self.url = place, url
        place.environ |= {"FARM_BROKER": url, "FARM_STORE": str(place.folder / ".farm/store")}
        self.ledger = Ledger(url)
        self.started: list[subprocess.Popen[str]] = []

    def farm(self, *words: str, code: int = 0):
        return self.place.farm(*words, code=code)

    def scheduler(self) -> None:
        self.started.append(self.place.start("scheduler"))

    def node(self, name: str) -> "subprocess.Popen[str]":
        """Start a node with device locks of its own, as if it were another machine."""
        for each in ("state", "locks"):
            (self.place.folder / f"{name}-{each}").mkdir(exist_ok=True)
        words = ["--name", name, "--state-dir", f"{name}-state", "--lock-dir", f"{name}-locks"]
        with (self.place.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [WORKER, "start", *words],
                cwd=self.place.folder,
                env=self.place.environ,
                stdout=subprocess.DEVNULL,
                stderr=log,
                text=True,
            )
        self.started.append(process)
        until(lambda: name in {each.node for each in self.ledger.slots()}, f"no node {name}")
        return process

    def submit(self, *words: str) -> str:
        return self.farm("submit", *words, "-q").out.strip()

    def close(self) -> None:
        for each in self.started:
            each.send_signal(signal.SIGTERM)  # a shell lets what it runs behind it ignore SIGINT
            each.send_signal(signal.SIGTERM)
        for each in self.started:
            each.communicate(timeout=40)
        self.ledger.close()


@pytest.fixture
def fleet(place: Place, redis_url: str) -> Iterator[Fleet]:
    made = Fleet(place, redis_url)
    yield made
    made.close()


def lines(text: str) -> list[dict]:
    return [json.loads(each) for each in text.splitlines()]


def test_a_run_is_measured_by_every_node_and_watched_to_its_end(fleet: Fleet) -> None:
    """Submit prints the bare id; watch ends with the code of the run; each job has one profile."""
    fleet.node("n1")
    fleet.node("n2")
    fleet.scheduler()
    sweep = fleet.place.sweep("spread", batches=[1, 2, 3, 4])

    run_id = fleet.submit(sweep, "-t", "branch=main")
    told = lines(fleet.farm("watch", run_id, "--json", "-i", "0.2").out)

    assert run_id.startswith("r-")
    assert ("finished", 0) == (told[-1]["event"], told[-1]["exit_code"])
    assert {"done"} == {each["state"] for each in told if each["event"] == "job"} - UNDER_WAY
    profiles = fleet.place.profiles()
    assert 4 == len(profiles) == len({each["job_id"] for each in profiles})
    assert {"n1", "n2"} == {each["execution"]["node"] for each in profiles}
    assert run_id == json.loads(fleet.farm("report", "branch=main", "--json").out)["run_id"]
    until(lambda: not fleet.ledger.open_runs(), "the run stays open")
    assert "nothing is missing" in fleet.farm("resume", run_id, "--dry-run").err


def test_what_no_device_takes_waits_and_is_named(fleet: Fleet) -> None:
    """Plan, submit, status and nodes say which queue nobody hears; a cancel takes it out."""
    fleet.node("n1")
    sweep = fleet.place.sweep("elsewhere")

    planned = fleet.farm("plan", sweep, "-S", "device=h300")
    sent = fleet.farm("submit", sweep, "-S", "device=h300")

    said = "no live device for hw.h300: 1 job waits"
    assert said in planned.out
    assert said in sent.err
    assert said in fleet.farm("status").err
    assert said in fleet.farm("nodes").err
    run_id = sent.out.strip()
    assert "queued" in fleet.farm("status", run_id).out
    assert "cancelled 1 queued job" in fleet.farm("cancel", run_id).out


@pytest.mark.long
def test_a_cancel_takes_out_what_waits_and_lets_go_on_what_runs(fleet: Fleet) -> None:
    """The run ends incomplete, says so, and a resume measures exactly the rest."""
    fleet.node("n1")
    fleet.scheduler()
    sweep = fleet.place.sweep("slow", batches=[1, 2, 3], iterations=100, duration_us=20_000)
    run_id = fleet.submit(sweep)
    until(lambda: fleet.ledger.counts(run_id).get("RUNNING"), "nothing runs")

    said = fleet.farm("cancel", run_id)

    assert f"cancelled 2 queued jobs of {run_id}; 1 running job left alone" in said.out
    assert f"next: farm cancel {run_id} --running" in said.err
    fleet.farm("watch", run_id, "-i", "0.2", code=3)
    until(lambda: not fleet.ledger.open_runs(), "the run stays open")
    assert 2 == fleet.farm("status", run_id).out.count("cancelled")
    fleet.farm("resume", run_id, "--watch")
    ok = [each for each in fleet.place.profiles() if each["status"] == "ok"]
    assert 3 == len(ok) == len({each["job_id"] for each in ok})


def test_a_cancel_of_what_runs_kills_its_child_at_once(fleet: Fleet) -> None:
    """Without a terminal it needs -y; another run that wants the job keeps it going."""
    fleet.node("n1")
    sweep = fleet.place.sweep("long", iterations=3000, duration_us=20_000)
    run_id = fleet.submit(sweep)
    until(lambda: fleet.place.pids("workers.child"), "no child")

    assert "nobody is here to ask" in fleet.farm("cancel", run_id, "--running", code=2).err
    said = fleet.farm("cancel", run_id, "--running", "-y")

    assert "1 running job told to end" in said.out
    until(lambda: not fleet.place.pids("workers.child"), "the child lives", seconds=10)
    until(lambda: {"CANCELLED": 1} == fleet.ledger.counts(run_id), "it is not cancelled")
    assert [] == [each for each in fleet.place.profiles() if each["status"] == "ok"]


@pytest.mark.long
def test_a_retry_measures_again_what_timed_out_and_nothing_else(fleet: Fleet) -> None:
    fleet.node("n1")
    once = str(fleet.place.folder / "hung-once")
    sweep = fleet.place.sweep("hangs", batches=[1, 2], timeout="3s", fail="hang", fail_once=once)
    run_id = fleet.submit(sweep)
    fleet.farm("watch", run_id, "-i", "0.2", code=1)

    said = fleet.farm("retry", run_id)

    assert f"{run_id}: 1 of 2 to retry" in said.err
    fleet.farm("watch", run_id, "-i", "0.2")
    assert ["failed", "ok", "ok"] == sorted(each["status"] for each in fleet.place.profiles())
    assert "is worth another try" in fleet.farm("retry", run_id, code=3).err


@pytest.mark.long
def test_the_log_of_a_running_job_is_followed_and_that_of_an_ended_one_read(fleet: Fleet) -> None:
    fleet.node("n1")
    fleet.place.write(
        "talk.py",
        "import time\n"
        "def build():\n"
        "    print('built')\n"
        "    def step(x):\n"
        "        print('stepped', flush=True)\n"
        "        time.sleep(0.05)\n"
        "        return x\n"
        "    return step\n",
    )
    sweep = fleet.place.write(
        "talk.yaml",
        "name: talk\n"
        "matrix: {model: 'talk.py:build', batch: 1, device: cpu}\n"
        "inputs: {x: {shape: [batch, 4], dtype: float32}}\n"
        "measure: {repeats: 1, warmup: 2, iterations: 60}\n",
    )
    run_id = fleet.submit(sweep)
    (job,) = json.loads(fleet.farm("status", run_id, "--json").out)["jobs"]

    followed = fleet.farm("logs", f"{run_id}/{job['label']}", "-f")
    ended = fleet.farm("logs", job["job_id"], "--tail", "3")

    assert "stepped" in followed.out
    assert 3 == len(ended.out.splitlines())
    assert "stepped" in ended.out


@pytest.mark.long
def test_high_priority_goes_first(fleet: Fleet) -> None:
    """What runs is not interrupted; what waits gives way."""
    first = fleet.submit(fleet.place.sweep("first", batches=[1, 2]))
    second = fleet.submit(fleet.place.sweep("second", batches=[7]), "--priority", "high")

    fleet.node("n1")
    for each in (first, second):
        fleet.farm("watch", each, "-i", "0.2")

    order = sorted(fleet.place.profiles(), key=lambda each: each["execution"]["started_at"])
    assert [second, first, first] == [each["run_id"] for each in order]


def test_up_serves_this_machine_in_the_background_until_down(place: Place) -> None:
    """What is queued at down goes on at the next up."""
    sweep = place.sweep("behind", batches=[1, 2, 3], duration_us=5_000)

    assert "no farm is running here" in place.farm("submit", sweep, code=4).err
    first = json.loads(place.farm("up", "--json").out)
    assert first["started"]
    assert "was up" in place.farm("up").out
    run_id = place.farm("submit", sweep, "-q").out.strip()
    until(lambda: place.pids("workers.child"), "nothing is measured")
    down = json.loads(place.farm("down", "--now", "--json").out)

    assert 1 <= down["queued"] <= 3
    assert not place.pids("farm-worker")
    place.farm("down", code=3)
    place.farm("up")
    place.farm("watch", run_id, "-i", "0.2")
    place.farm("down")
    assert 3 == len({each["job_id"] for each in place.profiles() if each["status"] == "ok"})


@pytest.mark.long
def test_a_run_of_this_folder_is_watched_and_cancelled_from_another_terminal(place: Place) -> None:
    """`farm run` brings a farm along; who looks on needs no other one."""
    sweep = place.sweep("near", batches=[1, 2, 3], duration_us=10_000)
    running = place.start("run", sweep)
    until(lambda: place.pids("workers.child"), "nothing is measured")

    assert "measuring" in place.farm("nodes").out
    assert "cancelled 2 queued jobs" in place.farm("cancel", "@last").out
    assert "no farm is running here that takes work" in place.farm("submit", sweep, code=4).err
    watching = place.farm("watch", "-i", "0.2", code=3)

    out, err = running.communicate(timeout=60)
    assert 3 == running.returncode, out + err
    assert "1 done" in watching.err
    assert 2 == out.count("  cancelled")


def test_a_reader_that_leaves_ends_a_stream_quietly(fleet: Fleet) -> None:
    fleet.node("n1")
    run_id = fleet.submit(fleet.place.sweep("read", batches=[1, 2]))

    watching = fleet.place.start("watch", run_id, "--json", "-i", "0.2")
    assert watching.stdout is not None
    watching.stdout.readline()
    watching.stdout.close()

    assert 0 == watching.wait(timeout=60)
    assert watching.stderr is not None
    assert "" == watching.stderr.read()
    watching.stderr.close()
