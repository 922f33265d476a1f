"""Who watches the cores of a CPU slot, and in which manner its word is taken."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from farm.gates import gates
from workers.fakes import FakeClock
from workers.gates import Finding, HostState, Unfit
from workers.guard import Closing, Guard, Manner, Mode
from workers.host_sentry import HostSentry

S = 1_000_000_000
QUIET = HostState(
    busy_share=0.0, some_share=0.0, available_bytes=8 << 30, free_share=0.5, clocksource="tsc"
)
BUSY = HostState(
    busy_share=0.97, some_share=0.0, available_bytes=8 << 30, free_share=0.5, clocksource="tsc"
)


class Looks:
    """An outlook whose states a test says: one after the other, the last for ever."""

    def __init__(self, *states: HostState) -> None:
        self.states = list(states)
        self.begun = 0

    def state(self) -> HostState:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def begin_anew(self) -> None:
        self.begun += 1

    def names(self, sleep: Any) -> list[str]:
        return ["hog (pid 7), 97 % of a core"]


def sentry(*states: HostState) -> HostSentry:
    outlook: Any = Looks(*states)
    return HostSentry(outlook, gates=gates())


def guard(mode: Mode, *states: HostState, wait_s: float = 2.0) -> tuple[Guard, FakeClock]:
    clock = FakeClock(now_ns=S)
    made = Guard(
        sentry(*states),
        Manner(mode=mode, wait_s=wait_s),
        clock=lambda: clock() / S,
        sleep=clock.sleep,
    )
    return made, clock


def verdicts(found: Sequence[Finding]) -> dict[str, str]:
    return {each.id: each.verdict for each in found}


# ── what is watched ──────────────────────────────────────────────────────────────────────────────


def test_a_quiet_host_is_fit_and_leaves_no_doubt() -> None:
    watcher = sentry(QUIET)

    found = watcher.ready()

    names = {"host_cores", "host_pressure", "host_memory", "host_disk", "host_clock"}
    assert names == set(verdicts(found))
    assert {"ok"} == set(verdicts(found).values())
    assert Closing() == watcher.closed(None)


def test_a_hog_on_its_cores_forbids_a_repeat_and_is_named() -> None:
    with pytest.raises(Unfit, match=r"others use 97 % of its cores: hog \(pid 7\)") as caught:
        sentry(BUSY).ready()

    assert caught.value.fault is None  # no device is to blame


def test_what_is_accepted_all_the_same_is_a_doubt() -> None:
    watcher = sentry(BUSY)

    assert "defer" == verdicts(watcher.ready(accept=True))["host_cores"]

    assert Closing(flags=["not_quiet"]) == watcher.closed(None)


def test_a_clock_that_takes_a_system_call_is_a_doubt_of_every_repeat() -> None:
    """It holds until somebody changes the machine."""
    slow = structs.replace(QUIET, clocksource="hpet")
    watcher = sentry(slow)

    assert "degraded" == verdicts(watcher.ready())["host_clock"]

    assert Closing(flags=["not_quiet"]) == watcher.closed(None)


def test_our_own_last_repeat_is_no_neighbour() -> None:
    """A look in the first half second after it says nothing, and is no doubt either."""
    settling = HostState(
        is_settling=True, available_bytes=8 << 30, free_share=0.5, clocksource="tsc"
    )
    watcher = sentry(settling)

    found = verdicts(watcher.ready())

    assert ("skipped", "skipped") == (found["host_cores"], found["host_pressure"])
    assert Closing() == watcher.closed(None)


def test_every_repeat_begins_the_history_anew() -> None:
    outlook: Any = Looks(QUIET)
    watcher = HostSentry(outlook, gates=gates())

    watcher.ready()
    watcher.closed(None)

    assert 1 == outlook.begun


# ── the manner ───────────────────────────────────────────────────────────────────────────────────


def test_who_is_strict_measures_nothing_on_a_busy_host() -> None:
    strict, _ = guard("strict", BUSY)

    with pytest.raises(Unfit):
        strict.check()
    with pytest.raises(Unfit):
        strict.ready(lambda _: None)


def test_who_warns_waits_and_goes_on_as_soon_as_it_is_quiet() -> None:
    warns, _ = guard("warn", BUSY, BUSY, QUIET)
    said: list[str] = []

    found = warns.ready(said.append)

    assert {"ok"} == set(verdicts(found).values())
    assert 2 == len(said)
    assert said[0].startswith("waiting: host_cores: others use 97 %")
    assert Closing() == warns.closed(None, job="j")


def test_who_warns_measures_in_the_end_with_a_mark_and_waits_no_second_time() -> None:
    warns, clock = guard("warn", BUSY)
    begin = clock()

    found = warns.ready(lambda _: None)

    assert "defer" == verdicts(found)["host_cores"]
    assert 2.0 <= (clock() - begin) / S <= 3.0
    assert Closing(flags=["not_quiet"]) == warns.closed(None, job="j")
    again = clock()
    warns.ready(lambda _: None)
    assert again == clock()


def test_who_warns_claims_a_job_all_the_same() -> None:
    warns, _ = guard("warn", BUSY)

    warns.check()


def test_who_does_not_look_says_so() -> None:
    blind, _ = guard("off", BUSY)

    blind.check()
    assert [] == blind.ready(lambda _: None)
    assert Closing(flags=["gates_off"]) == blind.closed(None, job="j")


def test_a_fault_of_the_device_is_waited_for_by_nobody() -> None:
    class Broken(HostSentry):
        def ready(self, *, accept: bool = False) -> list[Finding]:
            raise Unfit([Finding(id="x", phase="before", verdict="quarantine", severity="hard")])

    outlook: Any = Looks(QUIET)
    warns = Guard(Broken(outlook, gates=gates()), Manner(mode="warn"))

    with pytest.raises(Unfit):
        warns.check()
    with pytest.raises(Unfit):
        warns.ready(lambda _: None)
