"""A farm on this machine for the length of one command, and a run followed to its end.

There is no second way to measure: the jobs of `farm run` go through the same ledger, tickets, slot
workers and store as those of a fleet. When the command ends, however it ends, the workers end with
it, what is still queued is withdrawn, and the manifest in the store says what a `farm resume` owes.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from farm import broker, embedded, schema
from farm.console import JobLine, RunState
from farm.effort import repeat_words
from farm.errors import FarmError, NoResult, Refused, TimedOut, Unreachable
from farm.ledger import ENDS, Ledger, Record, Slot
from farm.planning import seconds
from farm.scheduler import check_end
from farm.schema import Latency, Manifest, Profile
from farm.store import Store, StoreError
from farm.submit import enqueue, missing, takeable
from farm.sweep import label_text

if TYPE_CHECKING:
    from celery import Celery

READY_S: Final = 60.0
WAITING: Final = "waiting for a device: "  # what an agent's log says while another farm has it
POLL_S: Final = 0.5
_AGENT_RESTARTS: Final = 5
_WORDS: Final = {"RUNNING": "measuring", "DEAD": "failed"}
_BY_CODE: Final[dict[int, type[FarmError]]] = {2: Refused, 3: NoResult, 4: Unreachable}


class Here(NamedTuple):
    """The farm of this command: its ledger, its doorbell, and the slots that answered."""

    ledger: Ledger
    app: "Celery"
    agents: "_Agents"
    slots: list[Slot]


class _Agents:
    """The agent of this machine, started again if it dies while jobs are left."""

    def __init__(self, start: Callable[[], "embedded.Agent"]) -> None:
        self._start = start
        self._restarts = 0
        self.current = start()

    def look_after(self) -> None:
        """Start the agent again if it is gone; raise what it said if it will not stay."""
        code = self.current.exit_code()
        if code is None:
            return
        self._restarts += 1
        if self._restarts > _AGENT_RESTARTS or code in _BY_CODE:
            raise _said(self.current, code)
        self.current = self._start()


def slots_here(state: Path, devices: str) -> list[Slot]:
    """Return the slots that this machine would offer, without serving them."""
    said = embedded.ask("devices", "--devices", devices, "--state-dir", str(state))
    return msgspec.convert(said["slots"], list[Slot])


@contextmanager
def farm_here(
    *,
    state: Path,
    store: str,
    devices: str,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> Iterator[Here]:
    """Yield a running farm on this machine; nothing of it is left when the block has ended.

    say: hears that another command of this machine has the device and we wait for it. Raises
    NoResult if no device answers, Unreachable if the broker does not come up.
    """
    with _stoppable(), embedded.broker(state, when_alone=_forget) as server:
        ledger = Ledger(server.url)
        ledger.setup()
        running: list[embedded.Agent] = []
        cores = _affinity()

        def start() -> "embedded.Agent":
            with _on(cores):  # an agent that is started again must see the same machine
                agent = embedded.start_agent(
                    url=server.url, store=store, state=state, devices=devices, environ=environ
                )
            running.append(agent)
            return agent

        try:
            agents = _Agents(start)
            slots = _await_slots(ledger, agents, say)
            with suppress(OSError):  # the server of somebody else's command keeps its cores
                _pin(server.pid, cores[:1])
            # Stand aside while this machine measures: the lowest core is for housekeeping.
            with _on(cores[:1]):
                yield Here(ledger, broker.connect(server.url), agents, slots)
        except BaseException:  # whatever it is, nobody waits for the jobs in hand any more
            for agent in running:
                agent.stop(now=True)
            raise
        for agent in running:
            agent.stop()


def follow(
    here: Here,
    expected: Manifest,
    *,
    store: Store,
    timeout_s: float | None,
    show: Callable[[RunState], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Enqueue what is missing and wait until the run has ended, showing how it goes.

    Raises TimedOut when the time is up; whatever raises, what is still queued is withdrawn.
    """
    began = clock()
    lacking = takeable(missing(expected, store, here.slots), here.slots)
    view = _View(expected, store, began, before=len(expected.jobs) - len(lacking))
    resubmitted = 0
    enqueue(expected, lacking, here.ledger)
    broker.send_tickets(here.app, here.ledger.tick().tickets)
    try:
        while True:
            here.agents.look_after()
            records = here.ledger.entries(expected.run_id)
            show(view.state(records, clock(), slots=len(here.slots)))
            if all(each.state in ENDS for each in records):
                again = check_end(
                    expected,
                    store=store,
                    ledger=here.ledger,
                    slots=here.slots,
                    resubmitted=resubmitted,
                    now=datetime.now(UTC),
                )
                if not again:
                    return
                resubmitted += 1
            if timeout_s is not None and clock() - began > timeout_s:
                raise TimedOut(
                    f"run {expected.run_id} is not done after {timeout_s:.0f} s",
                    hint=f"`farm resume {expected.run_id}` measures what is missing",
                )
            sleep(POLL_S)
    finally:
        here.ledger.withdraw(expected.run_id)


class _View:
    """Turns records into what a person sees; remembers figures of cells that ended.

    before: jobs that are not waited for, because they were answered earlier or nothing takes them.
    """

    def __init__(self, expected: Manifest, store: Store, began: float, *, before: int) -> None:
        self._expected = expected
        self._store = store
        self._began = began
        self._before = before
        self._labels = {each.job_id: label_text(each.labels) for each in expected.jobs}
        self._ended: dict[tuple[str, str], tuple[float | None, str]] = {}
        self._seconds: list[float] = []

    def state(self, records: list[Record], now: float, *, slots: int) -> RunState:
        """Return the run as it stands; the time left is a guess from the cells that ended."""
        lines = [self._line(each) for each in records if each.state not in ("READY", "BACKOFF")]
        of = {name: sum(each.state == name for each in records) for name in ("RUNNING", "DONE")}
        failed = sum(each.state in ("FAILED", "DEAD") for each in records)
        open_ = [each for each in records if each.state not in ENDS]
        left = None
        if self._seconds:
            left = median(self._seconds) * len(open_) / max(1, slots)
        return RunState(
            run_id=self._expected.run_id,
            name=self._expected.name,
            total=len(self._expected.jobs),
            done=of["DONE"] + self._before,
            failed=failed,
            running=of["RUNNING"],
            queued=len(open_) - of["RUNNING"],
            elapsed_s=now - self._began,
            left_s=left,
            lines=tuple(lines),
        )

    def _line(self, record: Record) -> JobLine:
        job_id = record.key.partition(".")[0]
        p50, note = None, ""
        if record.state in ENDS:
            p50, note = self._figure(record)
        elif record.progress:
            said = json.loads(record.progress)
            wanted = self._expected.effort.repeats
            note = f"{said['phase']}, {repeat_words(said['repeat'], wanted)}"
        return JobLine(
            node=record.node,
            device=record.owner.partition("/")[2].partition("#")[0],
            label=self._labels.get(job_id, job_id),
            state=_WORDS.get(record.state, record.state.lower()),
            p50_ms=p50,
            note=note,
        )

    def _figure(self, record: Record) -> tuple[float | None, str]:
        ended = record.key, record.profile_key  # a job that is measured again ends twice
        if ended not in self._ended:
            self._ended[ended] = self._read_figure(record)
        return self._ended[ended]

    def _read_figure(self, record: Record) -> tuple[float | None, str]:
        if not record.profile_key:
            return None, record.cause
        try:
            profile = schema.decode(self._store.get(record.profile_key), Profile)
        except (StoreError, FarmError) as error:
            return None, f"unreadable: {error}"
        self._seconds.append(seconds(profile))
        if isinstance(profile.latency, Latency):
            quality = profile.quality
            doubts = quality.flags if isinstance(quality, schema.Quality) else []
            return profile.latency.p50_ms, ", ".join(doubts)
        return None, record.cause


def _forget(server: embedded.Server) -> None:
    """Drop what the ledger holds of runs whose processes are gone; the store knows them."""
    ledger = Ledger(server.url)
    ledger.forget()
    ledger.close()


def _affinity() -> list[int]:
    """Return the logical CPUs that we may use, ascending; none where a system cannot pin."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _pin(pid: int, cores: Sequence[int]) -> None:
    if cores:
        os.sched_setaffinity(pid, cores)


@contextmanager
def _on(cores: Sequence[int]) -> Iterator[None]:
    """Keep to these cores for the length of a block."""
    former = _affinity()
    _pin(0, cores)
    try:
        yield
    finally:
        _pin(0, former)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end us in order, as Ctrl-C does."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {each: signal.signal(each, signal.default_int_handler) for each in signals}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def _await_slots(ledger: Ledger, agents: _Agents, say: Callable[[str], None]) -> list[Slot]:
    """Wait until this machine's slots are registered, by our agent or by one that runs already.

    An agent that waits for a device which another folder's farm serves is waited for.
    """
    deadline = time.monotonic() + READY_S
    told = False
    while time.monotonic() < deadline:
        slots = ledger.slots()
        if slots:
            return slots
        agents.look_after()
        _, waits, why = agents.current.tail().rpartition("starting\n")[2].rpartition(WAITING)
        if waits:
            deadline = time.monotonic() + READY_S
            if not told:
                say(f"waiting: {why.splitlines()[0].strip()}")
                told = True
        time.sleep(0.05)
    raise NoResult(
        f"no device of this machine answered within {READY_S:.0f} s",
        why=agents.current.tail(),
        hint=f"the agent's log is {agents.current.log}",
    )


def _said(agent: "embedded.Agent", code: int) -> FarmError:
    """Return the last error that the agent printed as one of ours: what, why and hint."""
    lines = agent.tail().splitlines() or [""]
    starts = [at for at, line in enumerate(lines) if line.startswith("error: ")]
    kind = _BY_CODE.get(code)
    if kind is None or not starts:
        return FarmError(f"the agent of this machine keeps ending with {code}", why=lines[-1])
    what, *rest = lines[starts[-1] :]
    why = "\n".join(each.strip() for each in rest if each.startswith("  "))
    hint = "".join(each.removeprefix("hint: ") for each in rest if each.startswith("hint: "))
    return kind(what.removeprefix("error: "), why=why, hint=hint)
