"""`--fake 8xH100`: rows of the table as GPUs, and faults that come while they are asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.errors import Refused
from workers.fakes import FakeClock
from workers.gpu.simulated import Simulated, parsed


class Script:
    """A file of faults, as whoever injects them writes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **gpus: dict[str, Any]) -> None:
        self.path.write_text(json.dumps({name.lstrip("_"): each for name, each in gpus.items()}))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "faults.json")


def made(script: Script | None = None, word: str = "2xH100", **more: Any) -> Simulated:
    return Simulated(word, faults=script.path if script else None, clock=FakeClock(), **more)


def uuids(boards: Simulated) -> list[str]:
    return [each.uuid for each in boards.boards()[0]]


def test_there_are_as_many_as_were_asked_for_each_its_own() -> None:
    boards, why = made(word="8xH100").boards()

    assert (8, 8, 8, "") == (
        len(boards),
        len({each.uuid for each in boards}),
        len({each.pci_bdf for each in boards}),
        why,
    )
    assert {("NVIDIA H100 80GB HBM3", 132, 80 << 30)} == {
        (each.name, each.sm_count, each.memory_bytes) for each in boards
    }


@pytest.mark.parametrize(
    ("word", "key"),
    [("8xH100", "H100-SXM"), ("1xh100-pcie", "H100-PCIe"), ("3xL4", "L4"), ("2xA10", "A10")],
)
def test_a_row_is_named_by_its_key_or_by_how_it_begins(word: str, key: str) -> None:
    """A whole key is no beginning of another: A10 is no A100."""
    assert key == parsed(word)[1].key


@pytest.mark.parametrize("word", ["H100", "0xH100", "8x", "8xNothing", "-1xH100", "8 H100"])
def test_words_that_name_no_devices_are_refused(word: str) -> None:
    with pytest.raises(Refused):
        parsed(word)


def test_a_quiet_one_has_no_fault_and_nobody_on_it() -> None:
    boards = made()

    found = boards.state(uuids(boards)[0], at_ns=7)

    assert (7, [], []) == (found.at_ns, found.xids, found.processes)
    assert (0, 0, 80 << 30) == tuple(
        found.readings[name].value
        for name in ("ecc_uncorrected", "recovery_action", "memory_total_bytes")
    )


def test_faults_come_and_go_while_it_is_asked(script: Script) -> None:
    """Each GPU has its own, and `*` is for all of them."""
    boards = made(script)
    first, second = uuids(boards)

    script.write(_0={"readings": {"ecc_uncorrected": 1, "nvlink_errors": "no_permission"}})
    broken, other = boards.state(first, at_ns=0), boards.state(second, at_ns=0)
    script.path.write_text(json.dumps({"*": {"sensors": {"events": 8, "power_w": "error"}}}))
    healed, slow = boards.state(first, at_ns=0), boards.sensors(second)

    assert (1, None, "no_permission") == (
        broken.readings["ecc_uncorrected"].value,
        broken.readings["nvlink_errors"].value,
        broken.readings["nvlink_errors"].reason,
    )
    assert [0, 0] == [each.readings["ecc_uncorrected"].value for each in (other, healed)]
    assert (8, "error") == (slow["events"], slow["power_w"])


def test_an_error_of_the_driver_is_told_once(script: Script) -> None:
    boards = made(script)
    first = uuids(boards)[0]

    script.write(_0={"xids": [79]})
    boards.hear()
    boards.hear()
    script.write(_0={"xids": [79, 48]})
    boards.hear()

    assert [79, 48] == [xid for _, xid in boards.state(first, at_ns=0).xids]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([{"pid": 7, "kind": "compute", "used_bytes": 1}], ([7], "")),
        ("no_permission", (None, "no_permission")),
    ],
)
def test_a_stranger_may_sit_on_it_or_the_list_be_hidden(
    listed: Any, expected: Any, script: Script
) -> None:
    boards = made(script)
    script.write(_0={"processes": listed})

    found = boards.state(uuids(boards)[0], at_ns=0)

    pids = None if found.processes is None else [each.pid for each in found.processes]
    assert expected == (pids, found.processes_reason)


def test_one_that_is_gone_is_not_listed(script: Script) -> None:
    boards = made(script)
    script.write(_1={"gone": True})

    assert (1, "1 gone by the script") == (len(boards.boards()[0]), boards.boards()[1])


def test_one_that_hangs_takes_its_time(script: Script) -> None:
    slept: list[float] = []
    boards = made(script, sleep=slept.append)
    first = uuids(boards)[0]
    script.write(_0={"hang_s": 60})

    boards.sensors(first)

    assert [60.0] == slept


@pytest.mark.parametrize("text", ["", "{", "[1"])
def test_half_a_script_is_none(text: str, script: Script) -> None:
    """Whoever writes it may be at it just now."""
    script.path.write_text(text)

    assert 2 == len(made(script).boards()[0])
