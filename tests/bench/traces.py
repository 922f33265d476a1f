"""A trace of over a million events, from opening to columns, beside others who read such files.

The file is five copies of the largest real trace, one after the other, with ids and steps of their
own. CPU time is that of the reading alone; memory is that of the whole process.
"""

import gzip
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.bench.row import Row, compare

SOURCE: Final = Path(__file__).parents[3] / "shared/data/traces/13_mi300x_sd35_largest.json.gz"
COPIES: Final = 5
ROUNDS: Final = 3
_APART: Final = 10_000_000  # between the ids of two copies
_IDS: Final = ("correlation", "External id", "Python id", "Python parent id")
_STEP: Final = re.compile(r"ProfilerStep#(\d+)")
_TOLD: Final = """
import json, time
spent = time.process_time() - began
held = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
print(json.dumps({"cpu_s": spent, "peak_mib": int(held) / 1024}))
"""
_OURS: Final = """
import sys, time
from farm.trace.reading import reader
began = time.process_time()
reader.of(open(sys.argv[1], "rb"))
"""
_JSON: Final = """
import gzip, json, sys, time
began = time.process_time()
opened = gzip.open if sys.argv[1].endswith(".gz") else open
json.loads(opened(sys.argv[1], "rb").read())
"""
_OTHERS: Final = {  # module → what reads with it
    "hta": """
import sys, time
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
began = time.process_time()
parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
""",
    "duckdb": """
import sys, time
import duckdb
began = time.process_time()
duckdb.sql(
    "select unnest(traceEvents, recursive := true) from "
    f"read_json('{sys.argv[1]}', maximum_object_size = 2000000000)"
).arrow().read_all()
""",
}


class Run(NamedTuple):
    """What reading a file took, in a process of its own."""

    cpu_s: float
    peak_mib: float


def rows() -> Iterator[Row]:
    """Yield MB of text per CPU second, and peak memory; nothing without the shared data."""
    if not SOURCE.exists():
        return
    with tempfile.TemporaryDirectory() as name:
        plain = Path(name) / "large.json"
        megabytes = _made(plain) / 1e6
        packed = plain.with_suffix(".json.gz")
        with packed.open("wb") as file:
            file.write(gzip.compress(plain.read_bytes(), compresslevel=6))
        readers = {"json.loads": _JSON}
        readers |= {each: code for each, code in _OTHERS.items() if importlib.util.find_spec(each)}
        for beside, code in readers.items():
            yield from _beside("trace, plain", beside, plain, code, megabytes)
        yield from _beside("trace, gzip", "json.loads", packed, _JSON, megabytes)


def _beside(what: str, beside: str, file: Path, code: str, megabytes: float) -> Iterator[Row]:
    """Yield two rows of the same rounds: speed and memory."""
    ours: list[Run] = []
    bare: list[Run] = []

    def speed(into: list[Run], reader: str) -> float:
        into.append(_run(reader, file))
        return megabytes / into[-1].cpu_s

    yield compare(
        what,
        beside,
        "MB/s",
        lambda: speed(ours, _OURS),
        lambda: speed(bare, code),
        rounds=ROUNDS,
    )
    mine, other = (iter([each.peak_mib for each in some]) for some in (ours, bare))
    yield compare(f"{what}, peak", beside, "MiB", mine.__next__, other.__next__, rounds=ROUNDS)


def _run(reader: str, file: Path) -> Run:
    command = [sys.executable, "-c", reader + _TOLD, str(file)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Run(**json.loads(said.stdout.splitlines()[-1]))


def _made(file: Path) -> int:
    """Write the large file, and return its size in bytes."""
    trace = json.loads(gzip.decompress(SOURCE.read_bytes()))
    events = trace.pop("traceEvents")
    spans = [(each["ts"], each["ts"] + each.get("dur", 0)) for each in events if "ts" in each]
    length = max(end for _, end in spans) - min(begin for begin, _ in spans) + 1000
    with file.open("w") as out:
        out.write(json.dumps(trace)[:-1] + ', "traceEvents": [')
        for copy in range(COPIES):
            made = (json.dumps(_shifted(each, copy, length)) for each in events)
            out.write((", " if copy else "") + ", ".join(made))
        out.write("]}")
    return file.stat().st_size


def _shifted(event: dict[str, Any], copy: int, length: float) -> dict[str, Any]:
    """Return an event of a later copy: another time, other ids, another step."""
    made = dict(event)
    if "ts" in made:
        made["ts"] = round(made["ts"] + copy * length, 3)
    if (step := _STEP.fullmatch(str(made.get("name")))) is not None:
        made["name"] = f"ProfilerStep#{int(step[1]) + copy * 1000}"
    if isinstance(args := made.get("args"), dict):
        ids = {name: args[name] + copy * _APART for name in _IDS if _is_id(args.get(name))}
        made["args"] = args | ids
    if _is_id(made.get("id")):
        made["id"] += copy * _APART
    return made


def _is_id(value: object) -> bool:
    return isinstance(value, int) and value > 0
