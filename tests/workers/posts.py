"""A sentry at a simulated GPU, whose probe is no process and whose faults a test writes."""

import json
from pathlib import Path
from typing import Any, Final

from farm.gates import gates
from workers.fakes import FakeClock
from workers.gpu import Hung, State
from workers.gpu.probe import Samples
from workers.gpu.simulated import Simulated
from workers.host import Host
from workers.sentry import Sentry
from workers.telemetry import Sample

S: Final = 1_000_000_000


class Asked:
    """A probe without a process: its devices are simulated, its samples are what a test says."""

    def __init__(self, boards: Simulated, clock: FakeClock) -> None:
        self.boards, self.clock = boards, clock
        self.rates: list[float] = []
        self.seen: list[Sample] = []
        self.hung = 0

    def state(self, uuid: str) -> State:
        if self.hung:
            raise Hung("it said nothing", in_a_row=self.hung)
        self.boards.hear()
        try:
            return self.boards.state(uuid, at_ns=self.clock())
        except KeyError as error:  # as the probe says it
            raise LookupError(f"KeyError: {error}") from error

    def watch(self, uuid: str, hz: float) -> float:
        self.rates.append(hz)
        return hz

    def samples(self, uuid: str, *, since_ns: int = 0) -> Samples:
        return Samples(10.0, [each for each in self.seen if each.at_ns >= since_ns])


class Post:
    """A sentry at a simulated GPU, and the script of its faults."""

    def __init__(self, folder: Path, *, enforced: bool = True) -> None:
        self.file, self.clock = folder / "faults.json", FakeClock(now_ns=S)
        boards = Simulated("1xH100", faults=self.file, clock=self.clock)
        self.board = boards.boards()[0][0]
        self.probe = Asked(boards, self.clock)
        probe: Any = self.probe
        self.sentry = Sentry(
            probe,
            self.board,
            gates=gates(enforced=enforced),
            host=Host(folder / "none"),
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def fault(self, **script: Any) -> None:
        self.file.write_text(json.dumps({"0": script}))

    def heal(self) -> None:
        self.file.unlink()
