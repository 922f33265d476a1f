"""GPUs that are not there: `--fake 8xH100`, rows of the hardware table under a script of faults.

The script is a JSON file that is read again for each answer, so that faults come and go while jobs
run: `{"0": {"readings": {"ecc_uncorrected": 1}}}`. By the index of a GPU, or `*` for all:

`readings`, `sensors`  values by name, or the null code of what fails
`xids`                 numbers, each told once
`processes`            rows of pid, kind and used_bytes
`gone`                 the GPU is not listed any more
`hang_s`               each question about it takes so long
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from farm.errors import Refused
from farm.hardware import Row, named, table
from workers.gpu.record import Board, Process, Reading, State

_FORM: Final = re.compile(r"([1-9][0-9]{0,3})x(.+)", re.IGNORECASE)
_GIBI: Final = 1 << 30
_IDLE_C, _SLOWDOWN_C, _SHUTDOWN_C = 34, 90, 95
_QUIET: Final[Mapping[str, Any]] = {
    "temperature_c": _IDLE_C,
    "slowdown_c": _SLOWDOWN_C,
    "shutdown_c": _SHUTDOWN_C,
    "sm_clock_mhz": 345,
    "compute_mode": 0,
    "persistence": 1,
    "mig_mode": [0, 0],
    "ecc_mode": [1, 1],
    "ecc_corrected": 0,
    "ecc_uncorrected": 0,
    "remapped": [0, 0, 0, 0],
    "retired_pending": 0,
    "retired_single": 0,
    "retired_double": 0,
    "pcie_gen": 5,
    "pcie_width": 16,
    "memory_used_bytes": 0,
    "memory_reserved_bytes": 640 << 20,
    "utilization_pct": 0,
    "recovery_action": 0,
    "pcie_replays": 0,
    "nvlink_errors": 0,
}
_COUNTERS: Final = ("sw_power_ns", "sw_thermal_ns", "hw_thermal_ns", "power_brake_ns")


class Simulated:
    """So many GPUs of one row of the hardware table; a script of their faults in a file, if any.

    Raises Refused for words that name none.
    """

    def __init__(
        self,
        word: str,
        *,
        faults: Path | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._count, self._row = parsed(word)
        self._file, self._clock, self._sleep = faults, clock, sleep
        self._told: dict[int, int] = {}
        self._xids: dict[int, list[tuple[int, int]]] = {}

    def boards(self) -> tuple[Sequence[Board], str]:
        there = [at for at in range(self._count) if not self._script(at).get("gone")]
        lost = self._count - len(there)
        return [self._board(at) for at in there], f"{lost} gone by the script" if lost else ""

    def facts(self, uuid: str) -> Mapping[str, Reading]:
        self._index(uuid)
        row, boost = self._row, _mhz(self._row)
        known = {
            "architecture": row.architecture,
            "power_limit_w": _whole(row.tdp_w),
            "power_default_w": _whole(row.tdp_w),
            "sm_max_hz": boost * 1_000_000 if boost else None,
            "base_clock_hz": boost * 750_000 if boost else None,
            "ecc": True,
        }
        return {
            name: Reading(value) if value is not None else Reading(reason="not_supported")
            for name, value in known.items()
        }

    def state(self, uuid: str, *, at_ns: int) -> State:
        index = self._index(uuid)
        script, row = self._script(index), self._row
        watts = None if row.tdp_w is None else round(1000 * row.tdp_w)
        memory = self._board(index).memory_bytes
        usual: dict[str, Any] = {
            **_QUIET,
            "power_limit_mw": watts,
            "power_default_mw": watts,
            "sm_max_mhz": _mhz(row),
            "memory_total_bytes": memory,
        }
        listed = script.get("processes", [])
        is_list = isinstance(listed, list)
        return State(
            at_ns=at_ns,
            readings={
                name: _reading(x) for name, x in (usual | script.get("readings", {})).items()
            },
            xids=list(self._xids.get(index, [])),
            processes=[Process(**each) for each in listed] if is_list else None,
            processes_reason="" if is_list else str(listed),
        )

    def sensors(self, uuid: str) -> Mapping[str, float | int | str]:
        boost = (_mhz(self._row) or 1000) * 1e6
        usual: dict[str, float | int | str] = {
            "sm_clock_hz": boost,
            "mem_clock_hz": 2.6e9,
            "temperature_c": _IDLE_C + 20,
            "power_w": 0.5 * (self._row.tdp_w or 300),
            "events": 0,
            **dict.fromkeys(_COUNTERS, 0),
        }
        told: dict[str, float | int | str] = self._script(self._index(uuid)).get("sensors", {})
        return usual | told

    def hear(self) -> None:
        """Take what the script has in `xids` beyond what it had."""
        for index in range(self._count):
            listed = self._script(index).get("xids", [])
            for xid in listed[self._told.get(index, 0) :]:
                self._xids.setdefault(index, []).append((self._clock(), int(xid)))
            self._told[index] = len(listed)

    def _board(self, index: int) -> Board:
        gib = self._row.memory_gb
        return Board(
            uuid=f"GPU-51300000-0000-0000-0000-{index:012x}",
            kind="gpu",
            name=self._row.names[0],
            pci_bdf=f"0000:{index + 1:02x}:00.0",
            index=index,
            memory_bytes=None if gib is None else round(gib * _GIBI),
            sm_count=self._row.sm_count,
        )

    def _index(self, uuid: str) -> int:
        """Return which GPU it is, after as long as the script lets it hang; KeyError if none."""
        index = int(uuid.rpartition("-")[2], 16)
        script = self._script(index)
        self._sleep(float(script.get("hang_s", 0)))
        if script.get("gone") or index >= self._count:
            raise KeyError(uuid)
        return index

    def _script(self, index: int) -> dict[str, Any]:
        if self._file is None:
            return {}
        try:
            whole = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):  # none yet, or half of one
            return {}
        return {**whole.get("*", {}), **whole.get(str(index), {})}


def parsed(word: str) -> tuple[int, Row]:
    """Return how many of which row `8xH100` means; raises Refused with the form or the nearest.

    The beginning of a key is enough: it is the SXM form of those that begin so, else the first.
    """
    found = _FORM.fullmatch(word)
    if found is None:
        raise Refused(f"--fake {word!r} names no devices", why="write 8xH100: how many, and which")
    rows = table()
    key = found[2].casefold()
    begin = [name for name in rows if name.casefold().startswith(key)]
    begin.sort(key=lambda name: rows[name].form_factor != "sxm")
    exact = [name for name in begin if name.casefold() == key]
    return int(found[1]), named(rows, next(iter(exact or begin), found[2]))


def _reading(value: object) -> Reading:
    if value is None:
        return Reading(reason="not_supported")
    return Reading(reason=value) if isinstance(value, str) else Reading(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _mhz(row: Row) -> int | None:
    found = row.boost_mhz.get("tensor") or row.boost_mhz.get("fp32")
    return None if found is None else round(found)
