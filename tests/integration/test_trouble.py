"""What goes wrong around a command: full disks, read-only stores, brokers of the wrong kind, kills.

Each has its exit code and one message, and what was measured is not lost.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from farm import embedded
from tests.farm.doctor.sound import listening, redis_like
from tests.integration.farm_here import Place, until

pytestmark = pytest.mark.redis


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mount a small file system of its own; skip where nobody may."""
    made: list[Path] = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"mount{len(made)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("this user may not mount a file system")
        made.append(folder)
        return folder

    yield mount
    for each in made:
        subprocess.run(["umount", "-l", str(each)], check=True)


def test_a_full_disk_is_said_before_anything_is_measured(place: Place, mounted) -> None:
    """4, worth retrying, and what to do about it."""
    folder = mounted("size=64k")
    (folder / "filler").write_bytes(b"x" * 65536)

    said = place.farm("run", place.sweep("full"), "--store", str(folder / "store"), code=4)

    assert "No space left on device" in said.err
    assert "hint: free some space there, or name another store" in said.err
    assert not place.pids("workers.child")


@pytest.mark.long
def test_a_disk_that_fills_up_under_a_run_is_waited_for(place: Place, mounted) -> None:
    """Nothing is called done that is not stored, and nothing is measured again."""
    folder = mounted("size=256k")
    store = str(folder / "store")
    sweep = place.sweep("fills", batches=[1, 2], iterations=20)
    running = place.start("run", sweep, "--store", store)
    until(lambda: list((folder / "store").glob("runs/v1/*/manifest.json")), "no manifest")
    filler = folder / "filler"
    fill(filler)
    until(lambda: len(waiting(place)) == 2, "what was measured does not wait")

    filler.unlink()
    out, err = running.communicate(timeout=120)

    assert 0 == running.returncode, out + err
    assert "Traceback" not in err
    assert "measured profiles wait on node" in err
    assert "No space left on device" in err
    found = [json.loads(each.read_text()) for each in (folder / "store/inbox").rglob("*.json")]
    assert [("ok", 1), ("ok", 1)] == [(each["status"], each["attempt"]) for each in found]


def waiting(place: Place) -> list[Path]:
    """The profiles that wait for their store."""
    return sorted(place.folder.glob(".farm/spool/*/[0-9]*"))


@pytest.mark.long
def test_an_outage_of_the_store_costs_a_run_nothing(place: Place) -> None:
    """The devices go on, everybody can see what waits, and it drains by itself."""
    store, away = place.folder / ".farm/store", place.folder / "away"
    running = place.start("run", place.sweep("outage", batches=[1, 2, 3], iterations=20))
    until(lambda: list(store.glob("runs/v1/*/manifest.json")), "no manifest")
    until(lambda: place.pids("workers.child"), "nothing is measured")
    store.rename(away)
    until(lambda: len(waiting(place)) == 3, "what was measured does not wait")

    said = place.farm("status")
    (spool,) = json.loads(place.farm("status", "--json").out)["spools"]
    assert "3 profiles wait on node" in said.err
    assert "the store is not there" in said.err
    assert (3, False) == (spool["profiles"], spool["is_full"])
    assert spool["age_s"] > 0
    assert "3 profiles wait on node" in place.farm("nodes").err
    assert not store.exists()

    away.rename(store)
    out, err = running.communicate(timeout=120)
    assert 0 == running.returncode, out + err
    assert "measured profiles wait on node" in err
    assert [("ok", 1)] * 3 == [(each["status"], each["attempt"]) for each in place.profiles()]
    assert [] == waiting(place)


@pytest.mark.long
def test_what_waited_when_a_run_was_ended_is_sent_by_its_resume(place: Place) -> None:
    """And not measured again."""
    store, away = place.folder / ".farm/store", place.folder / "away"
    running = place.start("run", place.sweep("ended", batches=[1], iterations=20))
    until(lambda: place.pids("workers.child"), "nothing is measured")
    store.rename(away)
    until(lambda: waiting(place), "what was measured does not wait")
    running.send_signal(signal.SIGINT)
    assert 130 == (running.communicate(timeout=60), running.returncode)[1]
    (kept,) = waiting(place)
    fence = json.loads((kept / "profile.json").read_text())["fence"]
    away.rename(store)

    place.farm("resume", "@last")

    assert [("ok", fence)] == [(each["status"], each["fence"]) for each in place.profiles()]
    assert [] == waiting(place)


def fill(path: Path) -> None:
    """Write until there is no room for another byte."""
    with path.open("wb", buffering=0) as full, suppress(OSError):
        while True:
            full.write(b"x" * 4096)


def test_a_read_only_store_is_refused_for_writing_and_read(place: Place, mounted) -> None:
    folder = mounted("size=1m")
    store = str(folder / "store")
    place.farm("run", place.sweep("before"), "--store", store)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)

    said = place.farm("run", place.sweep("after", batches=[7]), "--store", store, code=4)

    assert "the store refuses" in said.err
    assert "Read-only file system" in said.err
    assert "before" in place.farm("status", "--store", store).out


def test_a_wrong_password_is_refused_and_not_shown(place: Place, redis_url: str) -> None:
    wrong = redis_url.replace(redis_url.split(":")[2].split("@")[0], "hunter2")

    said = place.farm("nodes", code=4, environ={"FARM_BROKER": wrong})

    assert "the broker refuses our credentials" in said.err
    assert "hunter2" not in said.err
    assert "`farm doctor` looks closer" in said.err


@pytest.mark.parametrize(
    "info", [{"redis_version": "6.2.14"}, {"redis_version": "7.2.0", "loading": 1}]
)
def test_a_server_of_another_kind_is_no_broker(place: Place, info) -> None:
    """Old, or something that only looks like it: one sentence, never a traceback."""
    with listening(redis_like(info)) as port:
        said = place.farm(
            "submit",
            place.sweep("old"),
            code=4,
            environ={"FARM_BROKER": f"redis://127.0.0.1:{port}/0"},
        )

    assert "the broker does not answer as a Redis server of version 7 does" in said.err


def test_a_web_server_at_the_port_is_no_broker(place: Place) -> None:
    with listening(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        url = f"redis://127.0.0.1:{port}/0"
        said = place.farm("nodes", code=4, environ={"FARM_BROKER": url})
        doctor = place.farm("doctor", code=4, environ={"FARM_BROKER": url})

    assert said.err.startswith("error: the broker ")
    assert "something else listens there" in doctor.out


@pytest.mark.long
def test_a_keeper_that_was_killed_leaves_nothing_in_the_way(place: Place) -> None:
    """Its agent ends with it, looking says that nothing is up, and `up` starts anew."""
    sweep = place.sweep("kept", batches=[1, 2], duration_us=5_000)
    up = json.loads(place.farm("up", "--json").out)
    run_id = place.farm("submit", sweep, "-q").out.strip()
    until(lambda: place.pids("workers.child"), "nothing is measured")

    os.kill(up["pid"], signal.SIGKILL)

    until(lambda: not place.pids("farm-worker"), "the agent outlives its keeper")
    assert "a broker that one had left behind is ended" in place.farm("down", code=3).err
    assert not place.pids("broker.conf")
    assert "no farm is running here" in place.farm("submit", sweep, code=4).err
    assert run_id in place.farm("status").out
    again = json.loads(place.farm("up", "--json").out)
    assert up["pid"] != again["pid"]
    place.farm("watch", run_id, "-i", "0.2")
    place.farm("down")
    ok = [each["job_id"] for each in place.profiles() if each["status"] == "ok"]
    assert 2 == len(ok) == len(set(ok))


def test_a_farm_whose_broker_died_still_goes_down(place: Place) -> None:
    """It cannot say what is queued, and must end all the same."""
    with embedded.broker(place.folder / "elsewhere") as server:
        environ = {"FARM_BROKER": server.url}
        place.farm("up", environ=environ)
        os.kill(server.pid, signal.SIGKILL)

        assert "is down" in place.farm("down", "--now", environ=environ).out

    assert not place.pids("farm-worker")


@pytest.mark.long
def test_a_resume_of_all_goes_on_behind_a_damaged_run(place: Place) -> None:
    """The command after a disaster must not stop at the first thing that is broken."""
    for name, batch in (("older", 1), ("newer", 2)):
        place.farm("up")
        place.farm("submit", place.sweep(name, batches=[batch]), "-S", "device=h300")
        place.farm("cancel", "@last")
        place.farm("down")
    newest = place.manifest()["jobs"][0]["job_id"]
    (document,) = (place.folder / ".farm/store/jobs").rglob(f"{newest}.json")
    document.write_text("{")
    place.farm("up")

    said = place.farm("resume", "@all", "--json", code=1)

    assert "is left out: the document of job" in said.err
    assert [1] == [len(json.loads(line)["job_ids"]) for line in said.out.splitlines()]
    place.farm("cancel", "older", "-y")
    place.farm("down")
    here = place.farm("resume", "@all", code=1)
    assert "is left out: the document of job" in here.err
    assert "no device here takes what is missing" in here.err
    assert "is left out" in place.farm("resume", "@all", "--dry-run", code=1).err


@pytest.mark.long
def test_a_second_keeper_is_refused_and_a_second_up_is_welcome(place: Place) -> None:
    place.farm("up")

    assert "was up" in place.farm("up").out
    said = place.farm("up", "--foreground", code=2)

    assert "a farm is up already" in said.err
    assert "keeps its profiles in" in place.farm("up", "--store", "elsewhere", code=2).err
    assert (
        "keeps its profiles in"
        in place.farm("run", place.sweep("apart"), "--store", "elsewhere", code=2).err
    )
    place.farm("down")


@pytest.mark.long
def test_a_run_beside_a_farm_that_is_up_uses_its_devices(place: Place) -> None:
    """There is one broker in a folder, and a device measures one job at a time."""
    place.farm("up")

    place.farm("run", place.sweep("beside", batches=[1, 2]))

    assert 2 == len(place.profiles())
    place.farm("down")


def test_a_time_out_counts_the_wait_for_a_device(place: Place) -> None:
    """Another folder's run has the device: 124 when the time is up, and no run is left open."""
    holder = place.start("run", place.sweep("holder", iterations=2000, duration_us=20_000))
    until(lambda: place.pids("workers.child"), "nothing is measured")

    said = place.farm(
        "run",
        place.sweep("waits", batches=[7]),
        "--timeout",
        "2s",
        code=124,
        environ={"FARM_STATE": str(place.folder / "other")},
    )

    assert "no device was free within 2 s" in said.err
    holder.terminate()
    holder.communicate(timeout=60)
    assert 1 == len(json.loads(place.farm("status", "--json").out)["runs"])
