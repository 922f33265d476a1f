"""`farm watch` on a run of 2,000 jobs, beside somebody who reads every entry every two seconds."""

import os
import pty
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from farm import embedded
from farm.ledger import Claim, Entry, Held, Ledger
from farm.store import LocalStore
from tests.bench.row import Row, compare
from tests.farm import make

JOBS = 2000
A_SECOND = 10  # jobs that end: a fleet of some dozens of devices
LOOK_S = 2.0
WINDOW_S = 20.0
SETTLE_S = 4.0  # interpreter, imports, first snapshot: a price paid once
ROUNDS = 3
_TICKS = os.sysconf("SC_CLK_TCK")


def rows() -> Iterator[Row]:
    """Yield the share of a core that a live view takes, in percent."""
    with tempfile.TemporaryDirectory() as name, embedded.broker(Path(name)) as server:
        folder = Path(name)
        jobs = [make.job(batch=each) for each in range(1, JOBS + 1)]
        store = LocalStore(folder / ".farm/store", fsync=False)
        expected = make.manifest(jobs, run_id="r-bench1")
        make.put(store, expected)
        ledger = Ledger(server.url)
        ledger.setup()
        keys = [f"{each.job_id}.{expected.repeat_set}" for each in jobs]
        entries = [Entry(key=each, class_="any", spec="{}", again=True) for each in keys]

        def in_a_farm(measured: Callable[[], float]) -> float:
            """Measure while a fleet works through the run."""
            ledger.submit("r-bench1", entries)
            over = threading.Event()
            fleet = threading.Thread(target=_work, args=(server.url, over))
            fleet.start()
            try:
                return measured()
            finally:
                over.set()
                fleet.join()
                ledger.cancel("r-bench1", keys, running=False)

        def watched() -> float:
            environ = {**os.environ, "FARM_BROKER": server.url, "COLUMNS": "100", "TERM": "xterm"}
            ours, theirs = pty.openpty()
            command = [str(Path(sys.executable).with_name("farm")), "watch", "r-bench1"]
            process = subprocess.Popen(
                command, cwd=folder, env=environ, stdout=theirs, stderr=theirs
            )
            os.close(theirs)
            drain = threading.Thread(target=_drain, args=(ours,))
            drain.start()
            time.sleep(SETTLE_S)
            began, spent = time.monotonic(), _cpu_s(process.pid)
            time.sleep(WINDOW_S)
            share = 100 * (_cpu_s(process.pid) - spent) / (time.monotonic() - began)
            process.terminate()
            process.wait()
            drain.join()
            return share

        def read_all() -> float:
            began, spent = time.monotonic(), time.thread_time()
            while time.monotonic() - began < WINDOW_S:
                ledger.entries("r-bench1")
                time.sleep(LOOK_S)
            return 100 * (time.thread_time() - spent) / (time.monotonic() - began)

        yield compare(
            "farm watch, 2,000 jobs, live view",
            "reading every entry every 2 s",
            "% core",
            lambda: in_a_farm(watched),
            lambda: in_a_farm(read_all),
            rounds=ROUNDS,
        )
        ledger.close()


def _work(url: str, over: threading.Event) -> None:
    """Claim and end entries at a steady pace, each with a word about its progress."""
    ledger = Ledger(url)
    slot = make.slot()
    while not over.wait(1 / A_SECOND):
        held = ledger.claim(slot, owner="laptop/cpu:0#a")
        if isinstance(held, Claim):
            said = '{"repeat": 1, "phase": "latency", "iterations": 9}'
            ledger.beat([Held(key=held.key, fence=held.fence, progress=said)])
            ledger.finish(held, state="DONE", cause="ok", profile_key="")
    ledger.close()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS  # utime, stime


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 1 << 16):
            pass
    except OSError:  # the other side is gone
        pass
    os.close(fd)
