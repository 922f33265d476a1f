"""The probe's own work: what it answers, what it keeps, how often it looks."""

import os
import threading
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from workers.fakes import FakeClock
from workers.gpu.record import Board, Reading, State
from workers.gpu.sensors import Sensors, serve

MS, S = 1_000_000, 1_000_000_000
GPU = Board(uuid="GPU-1", kind="gpu", name="X", pci_bdf="", index=0, memory_bytes=1, sm_count=2)


class Boards:
    """One GPU whose sensors take as long as a test says."""

    def __init__(self, clock: FakeClock, *, takes_ns: int = 0) -> None:
        self.clock, self.takes_ns, self.heard = clock, takes_ns, 0

    def boards(self) -> tuple[list[Board], str]:
        return [GPU], "GPU 1: gpu_lost"

    def facts(self, uuid: str) -> Mapping[str, Reading]:
        return {"ecc": Reading(True), "vbios": Reading(reason="not_supported")}

    def state(self, uuid: str, *, at_ns: int) -> State:
        return State(at_ns=at_ns, readings={}, xids=[(1, 79)], processes=[])

    def sensors(self, uuid: str) -> Mapping[str, float | int | str]:
        self.clock.now_ns += self.takes_ns
        return {"power_w": 300.0, "events": "no_permission"}

    def hear(self) -> None:
        self.heard += 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def asked(sensors: Sensors, **question: Any) -> Any:
    said = msgspec.json.decode(sensors.answer(msgspec.json.encode(question)))
    return said.get("answer", said)


def after(sensors: Sensors, clock: FakeClock, seconds: float) -> None:
    """Let the probe look whenever something is due, for so long."""
    until = clock.now_ns + round(seconds * S)
    while (wait := sensors.wait_s()) is not None and clock.now_ns + round(wait * S) <= until:
        clock.now_ns += round(wait * S)
        sensors.look()
    clock.now_ns = max(clock.now_ns, until)


def test_it_tells_what_there_is_and_what_is_missing(clock: FakeClock) -> None:
    found = asked(Sensors(Boards(clock), clock=clock), ask="boards")

    assert (["GPU-1"], "GPU 1: gpu_lost") == (
        [each["uuid"] for each in found["boards"]],
        found["why"],
    )


def test_a_value_that_is_not_there_keeps_its_reason(clock: FakeClock) -> None:
    found = asked(Sensors(Boards(clock), clock=clock), ask="facts", uuid="GPU-1")

    assert {"ecc": {"value": True}, "vbios": {"reason": "not_supported"}} == found


def test_a_state_has_its_moment_and_the_errors_that_came_until_then(clock: FakeClock) -> None:
    boards = Boards(clock)
    clock.now_ns = 5 * S

    found = asked(Sensors(boards, clock=clock), ask="state", uuid="GPU-1")

    assert (5 * S, [[1, 79]], 1) == (found["at_ns"], found["xids"], boards.heard)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"ask": "nonsense"}', b'{"ask": 1}'])
def test_what_is_no_question_is_answered_as_an_error(line: bytes, clock: FakeClock) -> None:
    said = msgspec.json.decode(Sensors(Boards(clock), clock=clock).answer(line))

    assert ["error"] == list(said)


def test_a_watched_gpu_is_sampled_at_its_rate_and_others_are_not(clock: FakeClock) -> None:
    sensors = Sensors(Boards(clock), clock=clock)
    assert sensors.wait_s() is None

    assert 10.0 == asked(sensors, ask="watch", uuid="GPU-1", hz=10.0)
    after(sensors, clock, 2.0)
    found = asked(sensors, ask="samples", uuid="GPU-1")

    assert 21 == len(found["samples"])
    gaps = {
        b["at_ns"] - a["at_ns"]
        for a, b in zip(found["samples"], found["samples"][1:], strict=False)
    }
    assert {100 * MS} == gaps
    first = found["samples"][0]
    assert (300.0, None, "no_permission") == (
        first["power_w"],
        first["events"],
        first["missing"]["events"],
    )
    assert [] == asked(sensors, ask="samples", uuid="GPU-2")["samples"]


def test_samples_are_told_from_a_moment_on(clock: FakeClock) -> None:
    sensors = Sensors(Boards(clock), clock=clock)
    asked(sensors, ask="watch", uuid="GPU-1", hz=10.0)
    after(sensors, clock, 1.0)

    found = asked(sensors, ask="samples", uuid="GPU-1", since_ns=800 * MS)

    assert [800 * MS, 900 * MS, 1000 * MS] == [each["at_ns"] for each in found["samples"]]


def test_watching_ends_when_it_is_told_to(clock: FakeClock) -> None:
    sensors = Sensors(Boards(clock), clock=clock)
    asked(sensors, ask="watch", uuid="GPU-1", hz=10.0)

    asked(sensors, ask="watch", uuid="GPU-1", hz=0)

    assert sensors.wait_s() is None


def test_samples_that_cost_too_much_come_half_as_often(clock: FakeClock) -> None:
    """Down to one a second; who reads them sees the rate."""
    sensors = Sensors(Boards(clock, takes_ns=6 * MS), clock=clock)
    asked(sensors, ask="watch", uuid="GPU-1", hz=10.0)

    rates = []
    for _ in range(5):
        after(sensors, clock, 60.0)
        rates.append(asked(sensors, ask="samples", uuid="GPU-1")["hz"])

    assert 10.0 > rates[0]
    assert 1.0 == rates[-1]


def test_what_was_missed_is_not_made_up_for_in_a_burst(clock: FakeClock) -> None:
    sensors = Sensors(Boards(clock), clock=clock)
    asked(sensors, ask="watch", uuid="GPU-1", hz=10.0)
    after(sensors, clock, 0.5)

    clock.now_ns += 3 * S
    for _ in range(5):
        sensors.look()

    found = asked(sensors, ask="samples", uuid="GPU-1", since_ns=600 * MS)
    assert 1 <= len(found["samples"]) <= 2


def test_it_serves_until_its_input_ends_also_in_pieces(clock: FakeClock) -> None:
    ask_r, ask_w = os.pipe()
    say_r, say_w = os.pipe()
    server = threading.Thread(
        target=serve,
        args=(Sensors(Boards(clock), clock=clock),),
        kwargs={"ask": ask_r, "say": say_w},
    )
    server.start()

    os.write(ask_w, b'{"ask": "boa')
    os.write(ask_w, b'rds"}\n{"ask": "x"}\n')
    os.close(ask_w)
    server.join(10)
    os.close(say_w)

    assert not server.is_alive()
    with os.fdopen(say_r, "rb") as said:
        assert [b'{"answe', b'{"error'] == [line[:7] for line in said.read().splitlines()]
    os.close(ask_r)
