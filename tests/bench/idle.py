"""What a node costs while nothing is measured: an agent with eight slots, beside plain Celery.

Celery runs eight pool processes of one worker that wait for one queue, without gossip, mingle and
heartbeats. The CPU is counted over ten seconds, after everything has settled; memory is the
proportional set size of all processes, so that what they share counts once.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from farm import embedded
from farm.ledger import Ledger
from tests.bench.row import Row, compare

SLOTS = 8
WINDOW_S = 10.0
SETTLE_S = 8.0
ROUNDS = 3
_MIB = 1 << 20
_TICKS = os.sysconf("SC_CLK_TCK")


def rows() -> Iterator[Row]:
    """Yield the share of a core, in percent, and the memory, in MiB, of an idle node."""
    with tempfile.TemporaryDirectory() as name, embedded.broker(Path(name)) as server:
        folder = Path(name)
        with _agent(folder, server.url) as ours, _celery(folder, server.url) as bare:
            time.sleep(SETTLE_S)
            yield compare(
                f"idle node with {SLOTS} slots, CPU",
                f"celery worker -c {SLOTS}",
                "%",
                lambda: _share(ours),
                lambda: _share(bare),
                rounds=ROUNDS,
            )
            yield compare(
                f"idle node with {SLOTS} slots, PSS",
                f"celery worker -c {SLOTS}",
                "MiB",
                lambda: _pss(ours) / _MIB,
                lambda: _pss(bare) / _MIB,
                rounds=ROUNDS,
            )


@contextmanager
def _agent(folder: Path, url: str) -> Iterator[int]:
    store = folder / "store"
    store.mkdir()
    command = [str(Path(sys.executable).with_name("farm-worker")), "start", "--name", "idle"]
    command += ["--fake", f"{SLOTS}xH100", "--devices", "gpu", "--state-dir", str(folder / "state")]
    with _running([*command, "--lock-dir", str(folder / "locks")], folder, url, store) as pid:
        ledger = Ledger(url)
        while len(ledger.slots()) < SLOTS:
            time.sleep(0.1)
        ledger.close()
        yield pid


@contextmanager
def _celery(folder: Path, url: str) -> Iterator[int]:
    (folder / "plain.py").write_text(
        "import os\nfrom celery import Celery\n"
        "app = Celery('plain', broker=os.environ['FARM_BROKER'])\n"
        "app.conf.task_default_queue = 'plain'\n"
        "@app.task\ndef nothing():\n    pass\n"
    )
    command = [sys.executable, "-m", "celery", "-A", "plain", "worker", "-c", str(SLOTS)]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR"]
    with _running([*command, *quiet], folder, url, folder / "store") as pid:
        yield pid


@contextmanager
def _running(command: Sequence[str], folder: Path, url: str, store: Path) -> Iterator[int]:
    environ: Mapping[str, str] = {**os.environ, "FARM_BROKER": url, "FARM_STORE": str(store)}
    with (
        (folder / f"{Path(command[0]).name}.log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log) as process,
    ):
        try:
            yield process.pid
        finally:
            process.terminate()


def _family(pid: int) -> list[int]:
    """Return a process and all that come from it."""
    parents: dict[int, int] = {}
    for each in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(each)] = int(fields[1])
    found, edge = {pid}, {pid}
    while edge:
        edge = {child for child, parent in parents.items() if parent in edge} - found
        found |= edge
    return sorted(found)


def _share(pid: int) -> float:
    family = _family(pid)
    began, spent = time.monotonic(), sum(map(_cpu_s, family))
    time.sleep(WINDOW_S)
    return 100 * (sum(map(_cpu_s, family)) - spent) / (time.monotonic() - began)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _pss(pid: int) -> int:
    total = 0
    for each in _family(pid):
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) << 10
    return total
