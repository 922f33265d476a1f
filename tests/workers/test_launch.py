"""Real children: however one ends, its outcome is its own, in time, and nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from farm.schema import UNSET, Effort, Failure, Inputs, Job, Model, Protocol, Selector, Workload
from workers import launch as launching
from workers.environment import child_environment
from workers.launch import Ended, Limits, ignore, launch
from workers.record import Assignment
from workers.voice import KEPT_BYTES, LONG, Voice


def job(**options: str | int | bool) -> Job:
    """A job of the fake backend: 2 ms steps unless the options say otherwise."""
    return Job(
        workload=Workload(
            model=Model(name="fake", ref="fake:step", source="module", digest="0" * 64),
            inputs=Inputs(spec={}),
            precision="unspecified",
            batch=1,
            backend="fake",
            backend_options={"duration_us": 2000, **options},
        ),
        protocol=Protocol(iterations=50, warmup=2),
        selector=Selector(kind="any"),
    )


@pytest.fixture
def stop() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


class Launcher:
    def __init__(self, folder: Path, stop: tuple[int, int]) -> None:
        self.folder, self.stop = folder, stop
        self.heard: list[str] = []
        self.on_output: Callable[[bytes], None] = ignore

    def __call__(
        self,
        asked: Job,
        *,
        limits: Limits | None = None,
        memory: int = 0,
        parent: dict[str, str] | None = None,
        leases: tuple[int, ...] = (),
    ) -> Ended:
        assignment = Assignment(
            job=asked,
            effort=Effort(budget_ms=1000, memory_limit_bytes=memory),
            index=0,
            cores=[min(os.sched_getaffinity(0))],
            threads=1,
            folder=str(self.folder),
        )
        return launch(
            assignment,
            environment=child_environment(parent or os.environ, threads=1, folder=self.folder),
            leases=leases,
            limits=limits or Limits(job_s=60),
            stop_fd=self.stop[0],
            clock=time.monotonic,
            on_progress=lambda phase, _n: self.heard.append(phase),
            on_output=self.on_output,
        )


@pytest.fixture
def run(tmp_path: Path, stop: tuple[int, int]) -> Launcher:
    return Launcher(tmp_path, stop)


def failure(ended: Ended) -> Failure:
    assert ended.record is not None
    assert isinstance(ended.record.failure, Failure)
    return ended.record.failure


def test_a_good_child_brings_a_record_and_its_samples(run: Launcher) -> None:
    """A repeat that ends well: every phase, every sample, the cores and threads it had."""
    ended = run(job())

    assert ("ended", 0, None) == (ended.cause, ended.exit_code, ended.signal)
    assert ended.record is not None
    assert ended.record.failure is UNSET
    names = ["load", "first", "warmup", "latency", "throughput", "memory", "check"]
    assert names == [each.name for each in ended.record.phases]
    assert names == list(dict.fromkeys(run.heard))
    assert [min(os.sched_getaffinity(0))] == ended.record.affinity
    with np.load(run.folder / "samples.npz") as arrays:
        assert 50 == len(arrays["latency_ns"]) == len(arrays["label_bits"])
        assert 2_000_000 <= np.median(arrays["latency_ns"])


def test_a_model_that_raises_says_so_and_where(run: Launcher) -> None:
    """The exception is the failure; its traceback is in the output."""
    ended = run(job(fail="raise", fail_at="latency"))

    said = failure(ended)
    assert ("model_error", "latency") == (said.kind, said.phase)
    assert "told to raise" in said.message
    assert b"Traceback" in ended.output


def test_a_child_that_hangs_is_stopped_with_its_stacks(run: Launcher) -> None:
    """Past the limit the stacks are printed, then the group ends."""
    ended = run(job(fail="hang", fail_at="first"), limits=Limits(job_s=1))

    assert ("timeout", "first", "SIGTERM") == (ended.cause, ended.phase, ended.signal)
    assert b"most recent call first" in ended.output


def test_a_child_that_ignores_the_request_is_killed(run: Launcher) -> None:
    """SIGTERM is a request; 5 s later SIGKILL is none."""
    ended = run(job(fail="stubborn", fail_at="first"), limits=Limits(job_s=1))

    assert ("timeout", "SIGKILL") == (ended.cause, ended.signal)
    assert 6 <= ended.seconds <= 20


def test_silence_in_mid_pass_is_a_hang(run: Launcher) -> None:
    """A child that says nothing while it measures is stopped before its whole time is up."""
    ended = run(job(fail="hang", fail_at="latency"), limits=Limits(job_s=300, silence_s=1))

    assert ("silent", "latency") == (ended.cause, ended.phase)


def test_a_child_that_prints_100_mb_neither_blocks_nor_fills_us(run: Launcher) -> None:
    """The first 16 KiB and the last 64 KiB are kept, and what is left out is counted."""
    ended = run(job(fail="print", fail_at="first"))

    assert ended.record is not None
    assert ended.record.failure is UNSET
    assert len(ended.output) < 81 * 1024
    assert b"bytes left out" in ended.output


def test_what_a_child_prints_is_heard_as_it_comes(run: Launcher) -> None:
    """Line by line while it loads: one that would print for ever is stopped at its first line."""
    chunks: list[bytes] = []

    def hear(data: bytes) -> None:
        chunks.append(data)
        os.write(run.stop[1], b"x")

    run.on_output = hear
    ended = run(job(fail="babble", fail_at="load"))

    assert "stopped" == ended.cause
    assert chunks[0].startswith(b"still here 0\n")
    assert len(chunks[0]) < 4096  # a buffer would be let out when it is full
    assert ended.output == b"".join(chunks)


def test_a_listener_does_not_hold_up_a_child_that_prints_100_mb(run: Launcher) -> None:
    """Nor is it handed more than it can read."""
    put: list[list[str]] = []
    voice = Voice(put.append)
    run.on_output = voice.take
    voice.listen()

    ended = run(job(fail="print", fail_at="first"))

    voice.close()
    assert ended.record is not None
    assert ended.seconds < 30
    assert len(put) <= 2 + 2 * ended.seconds
    assert all(len(each) <= KEPT_BYTES // LONG + 2 for each in put)


@pytest.mark.parametrize(("how", "name"), [("kill", "SIGKILL"), ("segv", "SIGSEGV")])
def test_a_child_that_dies_of_a_signal_brings_nothing(run: Launcher, how: str, name: str) -> None:
    """The signal is reported; no record is believed."""
    ended = run(job(fail=how, fail_at="latency"))

    assert ("ended", name, None, "latency") == (
        ended.cause,
        ended.signal,
        ended.record,
        ended.phase,
    )


def test_an_exit_with_0_and_no_record_is_no_success(run: Launcher) -> None:
    """The exit code is believed only together with a whole record."""
    ended = run(job(fail="exit", fail_at="latency"))

    assert (0, None) == (ended.exit_code, ended.record)


def test_memory_beyond_the_limit_is_an_error_of_the_job(run: Launcher) -> None:
    """The limit turns an excess into `host_oom`, not into a killed machine."""
    ended = run(job(fail="allocate", fail_at="first"), memory=512 << 20)

    assert "host_oom" == failure(ended).kind


def test_a_stop_ends_the_child_at_once(run: Launcher) -> None:
    """A request to stop does not wait for the step."""
    timer = threading.Timer(1.5, lambda: os.write(run.stop[1], b"x"))
    timer.start()

    ended = run(job(fail="hang", fail_at="latency"))

    timer.join()
    assert "stopped" == ended.cause
    assert ended.seconds < 5


def test_nothing_secret_reaches_the_child(run: Launcher) -> None:
    """Of broker, store and proxy variables the child's environment holds none (N10)."""
    secrets = {
        "FARM_BROKER": "redis://:pw@h",
        "AWS_SECRET_ACCESS_KEY": "x",
        "https_proxy": "y",
        "CUDA_API_TOKEN": "z",
    }
    heard: list[bytes] = []

    def look() -> None:
        for pid in os.listdir("/proc"):
            try:
                if b"workers.child" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    heard.append(Path(f"/proc/{pid}/environ").read_bytes())
            except OSError:
                continue

    timer = threading.Timer(1.0, look)
    timer.start()
    run(job(fail="hang", fail_at="first"), limits=Limits(job_s=3), parent={**os.environ, **secrets})
    timer.join()

    assert heard
    for name in secrets:
        assert name.encode() not in heard[0]


def test_a_killed_parent_takes_its_child_along(tmp_path: Path) -> None:
    """Through the lifeline a child hears of SIGKILL on its parent, and its lease is free (N7)."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_launch import Launcher, job\n"
        "run = Launcher(Path(sys.argv[1]), os.pipe())\n"
        "run.heard = type('Say', (list,), {'append': lambda s, p: print(p, flush=True)})()\n"
        "run(job(fail='hang', fail_at='latency'))\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    while parent.stdout.readline().strip() != "latency":
        assert parent.poll() is None
    child = _child_of(parent.pid)

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    deadline = time.monotonic() + 10
    while _is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_alive(child)
    parent.stdout.close()


def _child_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return int(text.split()[0])


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_how_long_a_step_may_take_is_not_forgotten_when_a_phase_begins() -> None:
    """A phase is told at once, after no step at all; loading is no step, however long."""
    watch = launching._Watch(on_output=lambda _data: None)
    read, write = os.pipe()
    gaps = []
    for at, phase in ((9, "load"), (90, "first"), (130, "warmup"), (131, "warmup"), (131, "check")):
        os.write(write, json.dumps({"phase": phase, "iterations": 1}).encode() + b"\n")
        launching._hear(watch, read, at, lambda *_: None)
        gaps.append(watch.gap)
    os.close(read)
    os.close(write)

    assert [0, 0, 40, 1, 1] == gaps
