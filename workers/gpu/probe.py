"""Asking the probe, with a deadline: a driver that hangs costs a process and no more.

A probe that does not answer is killed, and the next question starts another. It may be stuck in
the kernel, so that nobody waits for its end.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import msgspec

from workers.gpu.record import Board, Reading, State

if TYPE_CHECKING:
    from workers.telemetry import Sample

T = TypeVar("T")

DEADLINE_S: Final = 10.0
_PROGRAM: Final = (sys.executable, "-P", "-m", "workers.gpu.sensors")


class Hung(Exception):
    """The probe did not answer in time, or is gone. in_a_row: how often, since it last answered."""

    def __init__(self, what: str, *, in_a_row: int) -> None:
        super().__init__(what)
        self.in_a_row = in_a_row


class Found(msgspec.Struct, frozen=True):
    """The boards of this machine; why: what is missing, such as the library."""

    boards: list[Board]
    why: str = ""


class Samples(NamedTuple):
    """What a watched GPU showed. hz: the rate that the probe can keep, which may be a lower one."""

    hz: float
    samples: "list[Sample]"


class Probe:
    """One probe process, started with the first question and again when it does not answer.

    fake, faults: as `farm-worker --fake`, and the file with its faults. program: what is started
    in its place. Each question raises Hung.
    """

    def __init__(
        self,
        *,
        fake: str = "",
        faults: str = "",
        deadline_s: float = DEADLINE_S,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = _PROGRAM,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        more = [*(("--fake", fake) if fake else ()), *(("--faults", faults) if faults else ())]
        self._command, self._environ = [*program, *more], environ
        self._deadline_s, self._clock = deadline_s, clock
        self._process: subprocess.Popen[bytes] | None = None
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._in_a_row = 0

    def boards(self) -> Found:
        return self._ask(Found, ask="boards")

    def facts(self, uuid: str) -> dict[str, Reading]:
        return self._ask(dict[str, Reading], ask="facts", uuid=uuid)

    def state(self, uuid: str) -> State:
        """Return what gates look at; never within a measured pass."""
        return self._ask(State, ask="state", uuid=uuid)

    def watch(self, uuid: str, hz: float) -> float:
        """Sample a GPU so often from now on, 0 for no more; return the rate of all."""
        return self._ask(float, ask="watch", uuid=uuid, hz=hz)

    def samples(self, uuid: str, *, since_ns: int = 0) -> Samples:
        """Return the samples since a moment of CLOCK_MONOTONIC."""
        from workers.telemetry import Sample  # it brings numpy along, for windows

        found = self._ask(dict[str, msgspec.Raw], ask="samples", uuid=uuid, since_ns=since_ns)
        rows = msgspec.json.decode(found["samples"], type=list[Sample])
        return Samples(msgspec.json.decode(found["hz"], type=float), rows)

    def close(self) -> None:
        """End the probe: its input ends, and so does it; one that is stuck is killed."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                assert process.stdin is not None, "a pipe was asked for"
                process.stdin.close()
                try:
                    process.wait(1.0)
                except subprocess.TimeoutExpired:
                    process.kill()
        for each in self._stuck:
            each.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, kind: type[T], **question: Any) -> T:
        process = self._started()
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            process.stdin.flush()
            line = self._line(process.stdout.fileno())
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            raise self._given_up(process, str(question["ask"]))
        self._in_a_row = 0
        said = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        if "error" in said:
            raise LookupError(msgspec.json.decode(said["error"], type=str))
        return msgspec.json.decode(said["answer"], type=kind)

    def _line(self, fd: int) -> bytes:
        """Return one line, or what came of it until the deadline or the end."""
        until, found = self._clock() + self._deadline_s, b""
        while not found.endswith(b"\n"):
            left = until - self._clock()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                return found
            data = os.read(fd, 1 << 20)
            if not data:
                return found
            found += data
        return found

    def _given_up(self, process: "subprocess.Popen[bytes]", asked: str) -> Hung:
        self._in_a_row += 1
        self._process = None
        code = process.poll()
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        if code is None:
            self._stuck.append(process)
        self._stuck = [each for each in self._stuck if each.poll() is None]
        how = (
            f"ended with {code}" if code is not None else f"said nothing in {self._deadline_s:g} s"
        )
        return Hung(f"the probe {how} when it was asked for {asked}", in_a_row=self._in_a_row)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environ,
                start_new_session=True,  # Ctrl-C is for us; it ends when its input does
            )
        return self._process
