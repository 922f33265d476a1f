"""Start one child, wait for it without polling, believe its exit code before its words, clean up.

A parent waits on four descriptors at once: the child's output, its progress, its exit and a request
to stop. Time limits turn a child that hangs into an outcome; the group is killed before the child
is reaped, so that its number cannot belong to anybody else by then.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final, Literal

import msgspec

from workers.record import Assignment, Record

READY_S: Final = 300.0  # interpreter and framework; longer is a broken node, not a slow model
SILENCE_S: Final = 120.0
HEAD_BYTES, TAIL_BYTES = 16 * 1024, 64 * 1024
_RESULT_BYTES = 64 << 20
_LET_GO_S: Final = 10.0
_ESCALATION: Final = ((signal.SIGUSR1, 1.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0))

Cause = Literal["ended", "timeout", "silent", "not_ready", "stopped"]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a child ended. record is None unless it exited with 0 and wrote a whole one."""

    cause: Cause
    exit_code: int | None
    signal: str | None
    record: Record | None
    phase: str
    output: bytes
    seconds: float
    unkillable: bool = False


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds to the first word, for the whole repeat after it, and of silence."""

    job_s: float
    ready_s: float = READY_S
    silence_s: float = SILENCE_S


def ignore(_output: bytes) -> None:
    """Do nothing with what a child printed: nobody follows it."""


@dataclass
class _Watch:
    on_output: Callable[[bytes], None]
    phase: str = "start"
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    cut: int = 0
    line: bytes = b""
    ready_at: float | None = None
    heard_at: float = 0.0
    gap: float = 0.0


def launch(
    assignment: Assignment,
    *,
    environment: Mapping[str, str],
    leases: Sequence[int],
    limits: Limits,
    stop_fd: int,
    clock: Callable[[], float],
    on_progress: Callable[[str, int], None],
    on_output: Callable[[bytes], None] = ignore,
    python: str = sys.executable,
) -> Ended:
    """Run one repeat in a fresh process and return how it ended; no process of it is left.

    stop_fd: readable as soon as the child must end. environment: the child's whole environment.
    leases: lock descriptors that the child keeps open, so that a lock outlives a killed parent.
    on_output: takes what the child prints as it comes, and must not wait.
    """
    with tempfile.TemporaryFile() as result, tempfile.TemporaryFile() as asked:
        asked.write(msgspec.json.encode(assignment))
        asked.seek(0)
        started = clock()
        home = environment.get("HOME", assignment.folder)
        child = _start(python, asked, result, environment, leases, home)
        watch = _Watch(on_output, heard_at=started)
        try:
            fds = (child.output, child.progress, stop_fd)
            cause, unkillable = _wait(child.process, watch, fds, limits, clock, on_progress)
        finally:
            _end_group(child.process)
            for fd in (child.output, child.progress, child.lifeline):
                os.close(fd)
        code: int | None = child.process.returncode
        record = _read(result) if cause == "ended" and code == 0 else None
    return Ended(
        cause=cause,
        exit_code=code if code is not None and code >= 0 else None,
        signal=signal.Signals(-code).name if code is not None and code < 0 else None,
        record=record,
        phase=watch.phase,
        output=_joined(watch),
        seconds=clock() - started,
        unkillable=unkillable or code is None,
    )


@dataclass(frozen=True)
class _Child:
    """A running child and our ends of its pipes."""

    process: "subprocess.Popen[bytes]"
    output: int
    progress: int
    lifeline: int


def _start(
    python: str,
    asked: IO[bytes],
    result: IO[bytes],
    environment: Mapping[str, str],
    leases: Sequence[int],
    folder: str,
) -> _Child:
    progress_r, progress_w = os.pipe()
    output_r, output_w = os.pipe()
    lifeline_r, lifeline_w = os.pipe()
    try:
        process = subprocess.Popen(
            [python, "-P", "-m", "workers.child"],
            stdin=asked,
            stdout=output_w,
            stderr=output_w,
            env={
                **environment,
                "FARM_RESULT_FD": str(result.fileno()),
                "FARM_PROGRESS_FD": str(progress_w),
                "FARM_LIFELINE_FD": str(lifeline_r),
                "FARM_LEASE_FDS": ",".join(map(str, leases)),
            },
            cwd=folder,
            pass_fds=(result.fileno(), progress_w, lifeline_r, *leases),
            start_new_session=True,
        )
    finally:
        for fd in (progress_w, output_w, lifeline_r):
            os.close(fd)
    return _Child(process, output_r, progress_r, lifeline_w)


def _wait(
    process: "subprocess.Popen[bytes]",
    watch: _Watch,
    fds: tuple[int, int, int],
    limits: Limits,
    clock: Callable[[], float],
    on_progress: Callable[[str, int], None],
) -> tuple[Cause, bool]:
    output, progress, stop = fds
    exit_r, exit_w = os.pipe()
    waiter = threading.Thread(target=_wait_for_exit, args=(process, exit_w), daemon=True)
    waiter.start()
    cause: Cause = "ended"
    steps = iter(_ESCALATION)
    deadline: float | None = None
    with selectors.DefaultSelector() as selector:
        for fd in (output, progress, stop, exit_r):
            selector.register(fd, selectors.EVENT_READ)
        while True:
            due, why = (deadline, cause) if deadline is not None else _due(watch, limits)
            ready = [key.fd for key, _ in selector.select(max(0.0, due - clock()))]
            if output in ready and not _keep(watch, output):
                selector.unregister(output)
            if progress in ready and not _hear(watch, progress, clock(), on_progress):
                selector.unregister(progress)
            if exit_r in ready:
                _drain(watch, output)
                os.close(exit_r)
                return cause, False
            if stop in ready and deadline is None:
                cause, deadline = "stopped", clock()
                selector.unregister(stop)
                next(steps)  # a stop needs no stacks
            elif clock() >= due:
                cause = why
                step = next(steps, None)
                if step is None:
                    return cause, True
                _signal_group(process.pid, step[0])
                deadline = clock() + step[1]


def _due(watch: _Watch, limits: Limits) -> tuple[float, Cause]:
    if watch.ready_at is None:
        return watch.heard_at + limits.ready_s, "not_ready"
    by_limit: tuple[float, Cause] = (watch.ready_at + limits.job_s, "timeout")
    if watch.phase in ("load", "first"):
        return by_limit  # no step has been timed yet: a slow first call is not a hang
    silence = max(limits.silence_s, 20 * watch.gap)
    by_silence: tuple[float, Cause] = (watch.heard_at + silence, "silent")
    return min(by_limit, by_silence)


def _wait_for_exit(process: "subprocess.Popen[bytes]", wake: int) -> None:
    """Block until the child is dead, where possible not reaped yet, then wake the selector."""
    try:
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13
            process.wait()
    except ChildProcessError:
        pass
    finally:
        os.close(wake)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of its group; a child that the kernel does not let go stays for later."""
    _signal_group(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_LET_GO_S)


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _keep(watch: _Watch, fd: int) -> bool:
    data = os.read(fd, 1 << 16)
    watch.on_output(data)
    room = HEAD_BYTES - len(watch.head)
    if room > 0:
        watch.head += data[:room]
        watch.tail += data[room:]
    else:
        watch.tail += data
    excess = len(watch.tail) - TAIL_BYTES
    if excess > 0:
        watch.cut += excess
        del watch.tail[:excess]
    return bool(data)


def _drain(watch: _Watch, fd: int) -> None:
    """Take what the dead child left in the pipe; a grandchild may still hold the other end."""
    os.set_blocking(fd, False)
    try:
        while _keep(watch, fd):
            pass
    except BlockingIOError:
        return


def _hear(watch: _Watch, fd: int, now: float, on_progress: Callable[[str, int], None]) -> bool:
    data = os.read(fd, 1 << 16)
    *lines, watch.line = (watch.line + data).split(b"\n")
    for line in lines:
        try:
            said = json.loads(line)
            phase, count = str(said["phase"]), int(said["iterations"])
        except (ValueError, KeyError, TypeError):
            continue  # the user's code may write here; it harms its own progress only
        watch.gap = _step(watch, now - watch.heard_at, phase)
        watch.phase, watch.heard_at = phase, now
        watch.ready_at = watch.ready_at if watch.ready_at is not None else now
        on_progress(watch.phase, count)
    return bool(data)


def _step(watch: _Watch, gap: float, phase: str) -> float:
    """Return how long a step may be held to take after a gap between two words of the child.

    Loading is no step, and the word that a phase begins comes with none: it makes no step shorter.
    """
    if watch.phase in ("start", "load"):
        return watch.gap
    return gap if phase == watch.phase else max(gap, watch.gap)


def _joined(watch: _Watch) -> bytes:
    if not watch.cut:
        return bytes(watch.head + watch.tail)
    note = f"\n[… {watch.cut:,} bytes left out …]\n".encode()
    return bytes(watch.head) + note + bytes(watch.tail)


def _read(result: IO[bytes]) -> Record | None:
    result.seek(0, os.SEEK_END)
    if not 0 < result.tell() <= _RESULT_BYTES:
        return None
    result.seek(0)
    try:
        return msgspec.json.decode(result.read(), type=Record)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
