"""`farm up`: broker, scheduler and agent of this machine, kept by one process in the background.

The keeper is an ordinary `farm up --foreground`, so a service manager may run it as well. It holds
`up.lock` for as long as it lives, and what is written in `up.json` is believed only if the process
has the start time that stands there: a number that now belongs to another process is left alone.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from farm import broker, embedded, scheduler
from farm.compaction import Compaction, starter
from farm.errors import Refused, TimedOut
from farm.ledger import Ledger, Slot
from farm.local import Agents, await_slots, said, slots_here
from farm.settings import shown
from farm.store import Store, place

READY_S: Final = 90.0
STEP_S: Final = 1.0
_STOP_S: Final = 3600.0  # the agent has a limit of its own for the jobs in hand


class Up(Struct, frozen=True, kw_only=True):
    """What is written down about a farm that is up.

    broker: without its password, "" for the embedded one. devices: as asked for. slots: NODE/SLOT
    of each. since: "" until they answer.
    """

    pid: int
    started: str
    store: str
    broker: str
    devices: str
    slots: list[str]
    since: str


def found(state: Path) -> Up | None:
    """Return the farm that is up in this state folder, None if there is none that lives."""
    import msgspec

    try:
        record = msgspec.json.decode((state / "up.json").read_bytes(), type=Up)
    except (OSError, msgspec.DecodeError):
        return None
    return record if embedded.started(record.pid) == record.started else None


def start(
    words: Sequence[str],
    *,
    state: Path,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    wait: Callable[[float], None] = time.sleep,
) -> tuple[Up, bool]:
    """Start the keeper and return the farm once its devices answer, and whether it is that one.

    It is not where somebody else was a bit faster. words: of `farm up --foreground`. Raises what
    the keeper said if it ended, TimedOut if it needs too long; it is left to itself then.
    """
    _make(state)
    log = state / "up.log"
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "farm.cli", "up", "--foreground", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environ),
            start_new_session=True,
        )
    deadline = time.monotonic() + READY_S
    told = ""
    while time.monotonic() < deadline:
        code = keeper.poll()
        record = found(state)
        if record is not None and record.since:
            return record, record.pid == keeper.pid
        if code is not None and record is None:
            raise said(_tail(log), code, who="the farm of this machine")
        line = _waiting(state)
        if line and line != told:
            told, deadline = line, time.monotonic() + READY_S
            say(line)
        wait(0.05)
    raise TimedOut(
        f"no device answered within {READY_S:.0f} s", why=_tail(log), hint=f"its log is {log}"
    )


def stop(
    record: Up, *, now: bool, say: Callable[[str], None], wait: Callable[[float], None] = time.sleep
) -> None:
    """End the farm; jobs in hand end first. now: they are given back instead."""

    def is_there() -> bool:  # a number that belongs to another process by now is left alone
        return embedded.started(record.pid) == record.started

    for _ in range(2 if now else 1):
        with suppress(ProcessLookupError):
            if is_there():
                os.kill(record.pid, signal.SIGTERM)
        wait(0.1)
    began, told = time.monotonic(), now
    while is_there():
        if not told and time.monotonic() - began > 2.0:
            told = True
            say("waiting for the jobs in hand; `farm down --now` gives them back instead")
        wait(0.05)


def end_leftover(state: Path) -> bool:
    """End a broker whose keeper was killed, unless somebody uses it; return whether one ended."""
    if embedded.running(state) is None:
        return False
    with embedded.broker(state):  # we are a user of it now, and the last one stops it
        pass
    return embedded.running(state) is None


# ── the keeper itself ────────────────────────────────────────────────────────────────────────────


def keep(
    *,
    state: Path,
    store_url: str,
    store: Store,
    broker_url: str,
    devices: str,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    did: Callable[[scheduler.Done], None],
    at: Callable[[], str],
) -> None:
    """Be the farm of this machine until a signal ends it; a second one does not wait for jobs.

    broker_url: of a broker that runs elsewhere; "" starts the embedded one. Raises Refused if the
    folder has a farm that is up, NoResult if no device answers.
    """
    _make(state)
    record = _ours(state, store=store_url, broker=broker_url, devices=devices)
    with ExitStack() as kept:
        kept.enter_context(_alone(state))
        stops = kept.enter_context(_signals())
        url = broker_url or kept.enter_context(embedded.broker(state)).url
        ledger = Ledger(url)
        ledger.setup()

        def agent() -> embedded.Agent:
            return embedded.start_agent(
                url=url, store=place(store_url), state=state, devices=devices, environ=environ
            )

        agents = Agents(agent)
        try:
            looks_after = scheduler.Scheduler(
                ledger,
                broker.connect(url),
                store,
                compaction=Compaction(starter(store_url, environ)),
            )
            kept.callback(looks_after.end)
            _write(state, record)
            await_slots(
                ledger,
                agents,
                say,
                enough=lambda: stops.heard(0.0),
                is_mine=lambda slot: _name(slot) in record.slots,
            )
            _write(state, replace(record, since=at()))
            while not stops.heard(STEP_S):
                agents.look_after()
                for each in looks_after.step():
                    did(each)
        finally:
            _end(agents, stops)
            (state / "up.json").unlink(missing_ok=True)


def _ours(state: Path, *, store: str, broker: str, devices: str) -> Up:
    """Return what is to be written down about this process before its devices answer."""
    pid = os.getpid()
    return Up(
        pid=pid,
        started=embedded.started(pid) or "",
        store=place(store),
        broker=shown(broker),
        devices=devices,
        slots=[_name(each) for each in slots_here(state, devices)],
        since="",
    )


def _name(slot: Slot) -> str:
    return f"{slot.node}/{slot.slot}"


def _end(agents: Agents, stops: "_Stops") -> None:
    """Let the agent end its jobs; a second signal gives them back."""
    deadline = time.monotonic() + _STOP_S
    agents.current.terminate()
    while agents.current.exit_code() is None and time.monotonic() < deadline:
        if stops.count > 1:
            break
        stops.heard(0.2)
    agents.current.stop(now=True)


class _Stops:
    """How often we were told to end; hears a signal at once."""

    def __init__(self, wake: int) -> None:
        self.count = 0
        self._wake = wake

    def __call__(self, _number: int, _frame: object) -> None:
        self.count += 1

    def heard(self, seconds: float) -> bool:
        """Wait at most so long for a signal; return whether any was heard so far."""
        if not self.count and select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)
        elif self.count and seconds:
            select.select([self._wake], [], [], seconds)
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
        return self.count > 0


@contextmanager
def _signals() -> Iterator[_Stops]:
    wake_r, wake_w = os.pipe()
    for each in (wake_r, wake_w):
        os.set_blocking(each, False)
    stops = _Stops(wake_r)
    numbers = (signal.SIGTERM, signal.SIGINT)
    former = {each: signal.signal(each, stops) for each in numbers}
    fd = signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    try:
        yield stops
    finally:
        signal.set_wakeup_fd(fd)
        for number, handler in former.items():
            signal.signal(number, handler)
        os.close(wake_r)
        os.close(wake_w)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    with (state / "up.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(
                f"a farm is up already in {str(state)!r}", hint="`farm down` ends it"
            ) from error
        yield


def _write(state: Path, record: Up) -> None:
    import msgspec

    partial = state / f".up.json.{record.pid}"
    partial.write_bytes(msgspec.json.encode(record))
    partial.rename(state / "up.json")


def _make(state: Path) -> None:
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state / "up.lock").touch()
    except OSError as error:
        raise Refused(f"cannot write {str(state)!r}", why=error.strerror or "") from error


def _waiting(state: Path) -> str:
    """Return what the keeper waits for, if its log says so."""
    with suppress(OSError):
        lines = (state / "up.log").read_text("utf-8", "replace").splitlines()
        return next((each for each in reversed(lines) if each.startswith("waiting: ")), "")
    return ""


def _tail(log: Path) -> str:
    return log.read_bytes()[-2048:].decode("utf-8", "replace").strip()
