"""The probe as a real process: asked, killed when it hangs, and started again."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from workers.gpu import Hung, Probe


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    return tmp_path / "faults.json"


@pytest.fixture
def probe(faults: Path) -> Iterator[Probe]:
    with Probe(fake="2xH100", faults=str(faults), deadline_s=10.0) as found:
        yield found


def pid_of(probe: Probe) -> int:
    assert probe._process is not None
    return probe._process.pid


def test_it_answers_every_question_from_one_process(probe: Probe) -> None:
    found = probe.boards()
    first = found.boards[0]
    pid = pid_of(probe)

    assert (2, "") == (len(found.boards), found.why)
    assert "hopper" == probe.facts(first.uuid)["architecture"].value
    assert [] == probe.state(first.uuid).processes
    assert 10.0 == probe.watch(first.uuid, 10.0)
    until = time.monotonic() + 10
    while not (seen := probe.samples(first.uuid)).samples and time.monotonic() < until:
        pass
    assert (10.0, 0) == (seen.hz, seen.samples[0].events)
    assert pid == pid_of(probe)


def test_its_clock_is_ours(probe: Probe) -> None:
    """Passes are cut out of the samples by it."""
    uuid = probe.boards().boards[0].uuid
    before = time.monotonic_ns()

    found = probe.state(uuid)

    assert before <= found.at_ns <= time.monotonic_ns()


def test_one_that_hangs_is_killed_and_the_next_question_finds_another(faults: Path) -> None:
    """Each one in a row is counted, and an answer ends the row."""
    with Probe(fake="1xH100", faults=str(faults), deadline_s=5.0) as probe:
        uuid = probe.boards().boards[0].uuid
        hung = probe._process
        assert hung is not None
        probe._deadline_s = 0.2
        faults.write_text(json.dumps({"*": {"hang_s": 60}}))
        rows = []
        for _ in range(2):
            with pytest.raises(Hung, match=r"said nothing in 0\.2 s") as caught:
                probe.state(uuid)
            rows.append(caught.value.in_a_row)
        faults.unlink()
        probe._deadline_s = 10.0

        assert [] == probe.state(uuid).processes
        assert ([1, 2], 0) == (rows, probe._in_a_row)
        assert -signal.SIGKILL == hung.wait(10)


def test_one_that_died_is_missed_at_once(probe: Probe) -> None:
    uuid = probe.boards().boards[0].uuid
    os.kill(pid_of(probe), signal.SIGKILL)

    with pytest.raises(Hung, match=r"ended with -9|said nothing"):
        probe.state(uuid)

    assert 2 == len(probe.boards().boards)


def test_what_it_cannot_answer_is_no_hang(probe: Probe) -> None:
    with pytest.raises(LookupError, match="ValueError"):
        probe.state("nonsense")

    assert 2 == len(probe.boards().boards)


def test_it_ends_with_whoever_asked() -> None:
    """Killed, they leave no process: its input has ended."""
    code = """if True:
        import os
        from workers.gpu import Probe
        probe = Probe(fake="1xH100")
        probe.boards()
        print(probe._process.pid, flush=True)
        os.kill(os.getpid(), 9)
    """

    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE)

    assert -signal.SIGKILL == said.returncode
    with suppress(ProcessLookupError):  # gone already
        handle = os.pidfd_open(int(said.stdout))
        assert select.select([handle], [], [], 10)[0]
        os.close(handle)


def test_without_a_driver_there_is_no_gpu_and_a_reason() -> None:
    with Probe() as probe:
        found = probe.boards()

    if found.boards:
        pytest.skip("a GPU is here")  # and tests/gpu looks at it
    assert found.why.partition(":")[0] in ("library_missing", "driver_not_loaded")
