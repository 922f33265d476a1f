"""Every cell of a catalogue with its median and interval, from a fresh process.

The cache is warm, and what a process costs to start is part of it: interpreter and libraries.
Beside it pandas does the same work on the same files.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from farm import identity, schema
from farm.catalog import cache, chain, parts
from farm.store import LocalStore, part_key
from tests.bench import fleet
from tests.bench.row import Row, compare
from tests.farm import make

SIZES = (100_000, 1_000_000)
A_PART = 20_000  # rows: what one pass of the compactor puts into a part
TAIL = 5_000
ROUNDS = 5
_OURS = """
import hashlib, json, sys
from pathlib import Path
from farm.catalog.query import open_catalog
from farm.store import LocalStore
with open_catalog(LocalStore(Path(sys.argv[1])), cache=Path(sys.argv[2])) as catalog:
    found = catalog.cells()
at = found.columns.index("profile_id")
digest = hashlib.sha256("".join(sorted(each[at] for each in found.rows)).encode()).hexdigest()
held = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(json.dumps({"cells": digest, "peak_mib": int(held) / 1024}))
"""
_PANDAS = Path(__file__).with_name("pandas_cells.py")


class Run(NamedTuple):
    """What a process took, and a digest of what it found.

    peak_mib: of its own; `ru_maxrss` would count the parent's as well.
    """

    seconds: float
    cpu_s: float
    peak_mib: float
    cells: str


def rows() -> Iterator[Row]:
    """Yield seconds and memory of an overview, of a small and a large fleet and of a bare inbox."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = _filled(folder, size)
            yield from _compared(f"catalog: cells of {size:,} profiles", folder, files)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = _inbox(folder)
        yield from _compared(f"catalog: cells of {TAIL:,} in the inbox", folder, files)


def _compared(what: str, folder: Path, files: list[Path]) -> Iterator[Row]:
    """Yield three rows of the same rounds: time on the wall, of the processor, and memory."""
    ours: list[Run] = []
    bare: list[Run] = []

    def timed(into: list[Run], command: list[str | Path], given: str = "") -> float:
        into.append(_run(command, given))
        return into[-1].seconds

    run: list[str | Path] = [sys.executable, "-c", _OURS, folder / "store", folder / "cache"]
    listed = "\n".join(map(str, files))
    yield compare(
        what,
        "pandas, same files",
        "s",
        lambda: timed(ours, run),
        lambda: timed(bare, [sys.executable, "-P", _PANDAS, "-"], listed),
        rounds=ROUNDS,
    )
    assert {each.cells for each in ours} == {each.cells for each in bare}
    for of, unit, field in (("CPU", "s", "cpu_s"), ("peak", "MiB", "peak_mib")):
        mine, other = (iter([getattr(each, field) for each in some]) for some in (ours, bare))
        yield compare(
            f"{what}, {of}",
            "pandas, same files",
            unit,
            mine.__next__,
            other.__next__,
            rounds=ROUNDS,
        )


def _run(command: list[str | Path], given: str) -> Run:
    began, spent = time.perf_counter(), _cpu_s()
    said = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - began
    found = json.loads(said.stdout)
    return Run(seconds, _cpu_s() - spent, found["peak_mib"], found["cells"])


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _filled(folder: Path, profiles: int) -> list[Path]:
    """Make a store whose catalogue holds so many profiles, and fill the cache with it."""
    store = LocalStore(folder / "store", fsync=False)
    held = []
    for found in fleet.tables(profiles, a_part=A_PART, seed=1):
        draft = folder / "part.parquet"
        parts.write(found, draft)
        data = draft.read_bytes()
        digest = identity.content_id(data)
        days = found.column("received").to_pylist()
        part = schema.CatalogPart(
            key=part_key(days[0][:7], digest),
            sha256=digest,
            bytes=len(data),
            rows=found.num_rows,
            started_min=f"{min(days)}T00:00:00Z",
            started_max=f"{max(days)}T23:59:59Z",
            received_min=min(days),
            received_max=max(days),
        )
        store.put_new(part.key, draft)
        held.append(part)
    last = max(each.received_max for each in held)
    document = schema.Catalog(number=1, written_at=f"{last}T23:00:00Z", writer="b", parts=held)
    chain.commit(store, document)
    return [cache.fetch(store, each, folder=folder / "cache") for each in held]


def _inbox(folder: Path) -> list[Path]:
    """Make a store that was never compacted."""
    store = LocalStore(folder / "store", fsync=False)
    for at in range(TAIL):
        asked = make.job(f"model_{at % 20:02}", batch=1 << at // 20 % 8)
        made = make.profile(asked, fence=at, p50_ms=10 + at % 97 / 100)
        make.put(store, made)
    return sorted((folder / "store/inbox").rglob("*.json"))
