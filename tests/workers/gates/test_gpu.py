"""One fault for each row of the gate table gives exactly its gate and verdict (N13), no other."""

from typing import Any

import pytest
from msgspec import structs

from farm.gates import gates
from tests.workers.gates.quiet import QUIET_HOST
from workers.fakes import FakeClock
from workers.gates import Baseline, Finding, after, before, static, worst
from workers.gpu import Process, Reading, State
from workers.gpu.simulated import Simulated

GATES = gates(enforced=True)
MINUTE = 60_000_000_000


def healthy(at_ns: int = 0) -> State:
    """A GPU that nothing is wrong with, as a simulated one shows it."""
    boards = Simulated("1xH100", clock=FakeClock())
    return boards.state(boards.boards()[0][0].uuid, at_ns=at_ns)


def state(at_ns: int = 0, **changes: Any) -> State:
    """A healthy GPU but for these readings; text is the reason of one that fails."""
    found = healthy(at_ns)
    new = {
        name: Reading(reason=value) if isinstance(value, str) else Reading(value)
        for name, value in changes.items()
    }
    return structs.replace(found, readings=found.readings | new)


def on_it(*processes: Process, why: str = "") -> State:
    listed = None if why else list(processes)
    return structs.replace(healthy(), processes=listed, processes_reason=why)


def worked(pid: int = 7) -> Process:
    return Process(pid=pid, kind="compute", used_bytes=1 << 20)


def ahead(*states: State, **more: Any) -> list[Finding]:
    fields = {"gates": GATES, "on_cpu": False, **more}
    return before(states or (healthy(),), QUIET_HOST, **fields)


def bad(found: list[Finding]) -> dict[str, tuple[str, str]]:
    """What is not ok, by its gate."""
    quiet = ("ok", "skipped")
    return {each.id: (each.verdict, each.severity) for each in found if each.verdict not in quiet}


def test_a_healthy_gpu_on_a_quiet_host_is_fit() -> None:
    first, last = healthy(), healthy(MINUTE)

    every = [*ahead(), *after(first, last, gates=GATES), *static(first, QUIET_HOST, gates=GATES)]

    assert {} == bad(every)
    assert "ok" == worst(every)
    shown = {each.id for each in every}
    assert {"throttle"} == set(GATES) - shown  # which looks at many repeats together


XIDS = {
    **dict.fromkeys((46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 140), ("quarantine", "hard")),
    **dict.fromkeys((63, 92, 94, 109, 999), ("degraded", "")),
    **dict.fromkeys((13, 31, 43, 45, 68, 69), ("degraded", "job")),
}


@pytest.mark.parametrize(("xid", "expected"), XIDS.items())
def test_an_error_of_the_driver_is_the_gpus_or_the_jobs(
    xid: int, expected: tuple[str, str]
) -> None:
    told = structs.replace(healthy(), xids=[(5, xid)])

    assert {"xid": expected} == bad(ahead(told))
    assert {} == bad(ahead(told, since_ns=6))  # it was judged before
    assert {"xid": expected} == bad(after(healthy(), told, gates=GATES))


@pytest.mark.parametrize(
    ("changes", "gate", "expected"),
    [
        ({"recovery_action": 3}, "recovery_action", ("degraded", "")),
        *(
            ({"recovery_action": each}, "recovery_action", ("quarantine", "hard"))
            for each in (1, 2, 4, 5, 6, 7)
        ),
        ({"ecc_uncorrected": 1}, "ecc_uncorrected", ("quarantine", "hard")),
        ({"remapped": [0, 0, 1, 0]}, "remap", ("degraded", "")),
        ({"remapped": [0, 512, 0, 0]}, "remap", ("degraded", "")),
        ({"remapped": [0, 0, 0, 1]}, "remap", ("quarantine", "hard")),
        ({"retired_pending": 1}, "remap", ("degraded", "")),
        ({"retired_single": 40, "retired_double": 23}, "remap", ("quarantine", "hard")),
        ({"memory_used_bytes": 257 << 20}, "device_memory", ("defer", "")),
        ({"temperature_c": 90}, "temperature", ("quarantine", "hard")),
        ({"power_limit_mw": 600_000}, "power_limit", ("degraded", "")),
        # what should be there and fails is unknown, and never ok (N14)
        ({"recovery_action": "symbol_missing"}, "recovery_action", ("unknown", "")),
        ({"ecc_uncorrected": "error: 999"}, "ecc_uncorrected", ("unknown", "")),
        ({"memory_used_bytes": "timed_out"}, "device_memory", ("unknown", "")),
        ({"temperature_c": "no_permission"}, "temperature", ("unknown", "")),
        ({"power_default_mw": "error"}, "power_limit", ("unknown", "")),
        ({"utilization_pct": "mig"}, "device_idle", ("unknown", "")),
    ],
)
def test_a_fault_before_a_repeat_has_its_verdict(
    changes: dict[str, Any], gate: str, expected: tuple[str, str]
) -> None:
    assert {gate: expected} == bad(ahead(state(**changes)))


@pytest.mark.parametrize("name", list(healthy().readings))
def test_what_a_gpu_does_not_offer_is_no_fault_and_not_ok(name: str) -> None:
    """Such as memory that corrects itself, on a GeForce."""
    found = ahead(state(**{name: "not_supported"}))

    assert {} == bad(found)


@pytest.mark.parametrize(
    ("code", "words"), [(15, "lost"), (16, "reset"), (18, "driver and library differ")]
)
def test_a_broken_gpu_is_out_at_once(code: int, words: str) -> None:
    broken = structs.replace(
        healthy(), readings={"temperature_c": Reading(reason="gpu_lost", code=code)}
    )

    (found,) = [each for each in ahead(broken) if each.id == "nvml"]

    assert ("quarantine", "hard") == (found.verdict, found.severity)
    assert words in found.reason


@pytest.mark.parametrize(("hangs", "verdict"), [(1, "unknown"), (2, "unknown"), (3, "quarantine")])
def test_a_driver_that_hangs_is_unknown_until_the_third_time(hangs: int, verdict: str) -> None:
    found = before((), QUIET_HOST, gates=GATES, on_cpu=False, hangs=hangs)

    assert {"nvml": verdict} == {name: said for name, (said, _) in bad(found).items()}


@pytest.mark.parametrize(
    ("found", "own", "names", "expected"),
    [
        (on_it(worked()), (), {7: "python"}, ("defer", "on it: python")),
        (on_it(worked()), (), {}, ("defer", "on it: pid 7")),
        (on_it(worked(0)), (0,), {}, ("defer", "on it: an unseen process")),
        (on_it(worked()), (7,), {}, None),
        (on_it(worked()), (), {7: "Xorg"}, ("degraded", "on it: Xorg")),
        (
            on_it(worked(), worked(8)),
            (),
            {7: "Xorg", 8: "python"},
            ("defer", "on it: Xorg, python"),
        ),
        (
            on_it(why="no_permission"),
            (),
            {},
            ("unknown", "the list of its processes: no_permission"),
        ),
    ],
)
def test_who_else_is_on_it(
    found: State, own: tuple[int, ...], names: dict[int, str], expected: Any
) -> None:
    """A number that nobody can know is nobody of ours."""
    said = [each for each in ahead(found, own=own, names=names) if each.id == "contention"]

    told = [(each.verdict, each.reason) for each in said if each.verdict != "ok"]
    assert ([expected] if expected else []) == told


def test_memory_is_held_against_the_quietest_of_this_boot() -> None:
    """A driver that takes 300 MiB for itself always did."""
    used = state(memory_used_bytes=300 << 20)

    assert {} == bad(ahead(used, baseline=Baseline(used_bytes=290 << 20)))
    assert ["device_memory"] == list(bad(ahead(used, baseline=Baseline(used_bytes=200 << 20))))


@pytest.mark.parametrize(
    ("waited_s", "expected"),
    [(0.0, ("defer", "")), (59.0, ("defer", "")), (60.0, ("quarantine", "soft"))],
)
def test_memory_that_nobody_has_gets_a_minute_to_be_let_go(
    waited_s: float, expected: tuple[str, str]
) -> None:
    used = state(memory_used_bytes=2 << 30)

    found = ahead(used, baseline=Baseline(used_bytes=0), waited_s={"device_memory": waited_s})

    assert {"device_memory": expected} == bad(found)


@pytest.mark.parametrize(
    ("looks", "expected"), [([80, 0, 0], {}), ([0, 80, 80], {"device_idle"}), ([80], set())]
)
def test_a_gpu_is_busy_when_it_is_seen_so_twice(looks: list[int], expected: Any) -> None:
    found = ahead(*(state(utilization_pct=each) for each in looks))

    assert set(expected) == set(bad(found))


@pytest.mark.parametrize(
    ("waited_s", "verdict"), [(0.0, "defer"), (59.0, "defer"), (60.0, "degraded")]
)
def test_a_warm_gpu_gets_a_minute_to_cool_down(waited_s: float, verdict: str) -> None:
    found = ahead(
        state(temperature_c=60), baseline=Baseline(idle_c=34), waited_s={"temperature": waited_s}
    )

    assert {"temperature": (verdict, "")} == bad(found)


@pytest.mark.parametrize(
    ("changes", "gate", "expected"),
    [
        ({"ecc_corrected": 11}, "ecc_corrected", ("degraded", "")),
        ({"pcie_replays": 62}, "pcie_replay", ("degraded", "")),
        ({"pcie_replays": 620}, "pcie_replay", ("quarantine", "soft")),
        ({"nvlink_errors": 1}, "nvlink", ("degraded", "")),
        ({"ecc_corrected": "error"}, "ecc_corrected", ("unknown", "")),
        ({"pcie_width": "error"}, "pcie_replay", ("unknown", "")),
    ],
)
def test_a_fault_that_a_repeat_left_has_its_verdict(
    changes: dict[str, Any], gate: str, expected: tuple[str, str]
) -> None:
    """16 lanes of generation 5 may repeat 31 packets a minute."""
    assert {gate: expected} == bad(after(healthy(), state(MINUTE, **changes), gates=GATES))


def test_counters_that_were_high_before_are_no_fault_of_the_repeat() -> None:
    high = {"ecc_corrected": 10**6, "pcie_replays": 10**6, "nvlink_errors": 10**6}

    assert {} == bad(after(state(**high), state(MINUTE, **high), gates=GATES))
    assert {} == bad(after(state(**high), state(MINUTE), gates=GATES))  # begun anew meanwhile


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"compute_mode": 2}, ("quarantine", "hard")),
        ({"mig_mode": [0, 1]}, ("degraded", "")),
        ({"compute_mode": "error"}, ("unknown", "")),
    ],
)
def test_a_mode_that_is_none_to_compute_in(changes: dict[str, Any], expected: Any) -> None:
    assert {"mode": expected} == bad(static(state(**changes), QUIET_HOST, gates=GATES))


def test_a_gate_on_trial_says_what_it_saw_and_has_no_effect() -> None:
    """Until real hardware of the class has verified it."""
    found = ahead(state(ecc_uncorrected=1), gates=gates())

    assert {"ecc_uncorrected": ("quarantine", "hard")} == bad(found)
    assert "ok" == worst(found)
    assert "quarantine" == worst(ahead(state(ecc_uncorrected=1)))
