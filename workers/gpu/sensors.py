"""The probe: `python -m workers.gpu.sensors`, the only process that loads the driver's library.

It answers one question a line on its standard input, and between them takes samples of the GPUs
that are watched. It ends with whoever asks: when its input does.
"""

import argparse
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from workers.gpu.record import Boards
from workers.telemetry import Sample, take

_HELD: Final = 36_000  # samples of a GPU: an hour at the rate of a job
_SLOW_NS: Final = 5_000_000  # a sample that takes longer disturbs what it watches
_LOOKED_AT: Final = 50  # the last samples whose cost decides about the rate
_LEAST_HZ: Final = 1.0


class Question(msgspec.Struct, frozen=True):
    """One line of input. uuid: what it is about; since_ns: of samples; hz: 0 ends watching."""

    ask: str
    uuid: str = ""
    since_ns: int = 0
    hz: float = 0.0


class Sensors:
    """Answers questions about boards, and keeps the samples of those that are watched."""

    def __init__(self, boards: Boards, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._boards, self._clock = boards, clock
        self._held: dict[str, deque[Sample]] = {}
        self._costs: deque[int] = deque(maxlen=_LOOKED_AT)
        self._hz, self._due_ns = 0.0, 0
        self._asks: dict[str, Callable[[Question], Any]] = {
            "boards": lambda _: dict(zip(("boards", "why"), self._boards.boards(), strict=True)),
            "facts": lambda asked: dict(self._boards.facts(asked.uuid)),
            "state": self._state,
            "watch": self._watch,
            "samples": self._samples,
        }

    def wait_s(self) -> float | None:
        """Return how long until a sample is due; None where nothing is watched."""
        return max(0, self._due_ns - self._clock()) / 1e9 if self._hz and self._held else None

    def look(self) -> None:
        """Take a sample of each watched GPU if one is due."""
        began = self._clock()
        if not (self._hz and self._held) or began < self._due_ns:
            return
        for uuid, held in self._held.items():
            at_ns = self._clock()
            held.append(take(_Of(self._boards, uuid), at_ns=at_ns))
            self._costs.append(self._clock() - at_ns)
        self._boards.hear()
        self._slow_down()
        # From when it was due, so that the rate is kept; but no burst makes up for what was missed.
        self._due_ns = max(self._due_ns, began - round(1e9 / self._hz)) + round(1e9 / self._hz)

    def answer(self, line: bytes) -> bytes:
        """Return the answer to one line, as one line."""
        try:
            asked = msgspec.json.decode(line, type=Question)
            found = {"answer": self._asks[asked.ask](asked)}
        except Exception as error:  # whoever asks says what that means
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        return msgspec.json.encode(found) + b"\n"

    def _state(self, asked: Question) -> Any:
        self._boards.hear()
        return self._boards.state(asked.uuid, at_ns=self._clock())

    def _watch(self, asked: Question) -> float:
        if asked.hz:
            self._held.setdefault(asked.uuid, deque(maxlen=_HELD))
        else:
            self._held.pop(asked.uuid, None)
        self._hz = asked.hz or self._hz
        self._costs.clear()
        self._due_ns = self._clock()
        return self._hz

    def _samples(self, asked: Question) -> dict[str, Any]:
        held = self._held.get(asked.uuid, ())
        rows = [asdict(each) for each in held if each.at_ns >= asked.since_ns]
        return {"hz": self._hz, "samples": rows}

    def _slow_down(self) -> None:
        """Halve the rate where samples cost too much of the driver's time."""
        if len(self._costs) < _LOOKED_AT or self._hz <= _LEAST_HZ:
            return
        if sorted(self._costs)[round(0.95 * (_LOOKED_AT - 1))] > _SLOW_NS:
            self._hz = max(_LEAST_HZ, self._hz / 2)
            self._costs.clear()


class _Of:
    """The sensors of one board."""

    def __init__(self, boards: Boards, uuid: str) -> None:
        self._boards, self._uuid = boards, uuid

    def read(self) -> Any:
        return self._boards.sensors(self._uuid)


def serve(sensors: Sensors, *, ask: int, say: int) -> None:
    """Answer what is asked on a descriptor until it ends."""
    line = b""
    while True:
        if select.select([ask], [], [], sensors.wait_s())[0]:
            data = os.read(ask, 1 << 16)
            if not data:
                return
            *lines, line = (line + data).split(b"\n")
            for each in lines:
                _write(say, sensors.answer(each))
        sensors.look()


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _source(fake: str, faults: str) -> Boards:
    if fake:
        from workers.gpu.simulated import Simulated

        return Simulated(fake, faults=Path(faults) if faults else None)
    from workers.gpu.driver import Driver
    from workers.gpu.nvml import Library

    return Driver(Library())


def main() -> None:
    """Serve standard input; --fake N×DEVICE stands in for the driver."""
    parser = argparse.ArgumentParser(prog="workers.gpu.sensors", description=__doc__)
    parser.add_argument("--fake", default="")
    parser.add_argument("--faults", default="")
    given = parser.parse_args()
    boards = _source(given.fake, given.faults)
    say = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # a library that prints says no answer
    serve(Sensors(boards), ask=sys.stdin.fileno(), say=say)


if __name__ == "__main__":
    main()
