"""A farm on this machine for the length of one command, and a run followed to its end.

There is no second way to measure: the jobs of `farm run` go through the same ledger, tickets, slot
workers and store as those of a fleet. When the command ends, however it ends, the workers end with
it, what is still queued is withdrawn, and the manifest in the store says what a `farm resume` owes.
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from farm import broker, embedded
from farm.errors import BY_CODE, FarmError, NoResult, Refused, TimedOut, Unreachable
from farm.ledger import Ledger, Slot
from farm.report.words import count
from farm.store import place

if TYPE_CHECKING:
    from celery import Celery

READY_S: Final = 60.0
_SPOOL_S: Final = 60.0
_STEP_S: Final = 0.2
WAITING: Final = "waiting for a device: "  # what an agent's log says while another farm has it
_AGENT_RESTARTS: Final = 5
# What a second start would not change; whatever else an agent ends with may pass.
_FOR_GOOD: Final = (Refused.exit_code, NoResult.exit_code, Unreachable.exit_code)


class Here(NamedTuple):
    """The farm of this command: its ledger, its doorbell, and the slots that answered."""

    ledger: Ledger
    app: "Celery"
    agents: "Agents"
    slots: list[Slot]


class Agents:
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
        if self._restarts > _AGENT_RESTARTS or code in _FOR_GOOD:
            raise said(self.current.tail(), code, who="the agent of this machine")
        self.current = self._start()


def slots_here(state: Path, devices: str) -> list[Slot]:
    """Return the slots that this machine would offer, without serving them or writing anything."""
    with ExitStack() as kept:
        if not state.is_dir():  # looking makes no folder; the node's own id matters to nobody here
            state = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="farm-look-")))
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
    patience_s: float | None = None,
) -> Iterator[Here]:
    """Yield a running farm on this machine; nothing of it is left when the block has ended.

    say: hears that another command of this machine has the device and we wait for it, for so long
    as patience_s says. Raises TimedOut after that, NoResult if no device answers, Unreachable if
    the broker does not come up.
    """
    until = time.monotonic() + patience_s if patience_s is not None else math.inf
    with embedded.broker(state, when_alone=lambda it: _forget(it, say)) as server:
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
            agents = Agents(start)
            slots = await_slots(ledger, agents, say, enough=lambda: time.monotonic() > until)
            if not slots:
                raise TimedOut(
                    f"no device was free within {patience_s:.0f} s", why="nothing was measured"
                )
            _check_store(slots, store)
            await_spool(ledger, say)
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


def _forget(server: embedded.Server, say: Callable[[str], None]) -> None:
    """Drop what the ledger holds of runs whose processes are gone; the store knows them."""
    ledger = Ledger(server.url)
    for run_id in ledger.forget():  # of a farm that was up here, and is down
        say(f"{run_id} was still in the queue here; `farm resume {run_id}` sends it again")
    ledger.close()


def _check_store(slots: Sequence[Slot], store: str) -> None:
    """Raise Refused if the devices of this folder's farm keep their profiles elsewhere."""
    others = sorted({each.store for each in slots if each.store} - {place(store)})
    if others:
        raise Refused(
            f"the farm of this folder keeps its profiles in {others[0]!r}",
            why=f"asked for {place(store)!r}",
            hint="wait until it ends, or keep this run apart: FARM_STATE=DIR",
        )


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


def await_slots(
    ledger: Ledger,
    agents: Agents,
    say: Callable[[str], None],
    *,
    enough: Callable[[], bool] = lambda: False,
    is_mine: Callable[[Slot], bool] = lambda _slot: True,
) -> list[Slot]:
    """Wait until this machine's slots are registered, by our agent or by one that runs already.

    An agent that waits for a device which another folder's farm serves is waited for. enough: asked
    now and then whether to stop waiting; what is there then is returned. is_mine: tells our slots
    from those of other nodes of the broker. Raises NoResult.
    """
    deadline = time.monotonic() + READY_S
    told = False
    while time.monotonic() < deadline:
        slots = [each for each in ledger.slots() if is_mine(each)]
        if slots or enough():
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


def await_spool(
    ledger: Ledger, say: Callable[[str], None], *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Wait until what an earlier command measured has reached the store, as long as it goes there.

    Only then is it known what is left to measure.
    """
    for step in range(round(_SPOOL_S / _STEP_S)):
        found = [each.spool for each in ledger.nodes()]
        waiting = sum(each.profiles for each in found)
        if not waiting or any(each.trouble for each in found):
            return
        if step == 0:
            say(f"storing first what was measured before: {count(waiting, 'profile')}")
        sleep(_STEP_S)


def said(text: str, code: int, *, who: str) -> FarmError:
    """Return the last error in what a program printed as one of ours: what, why and hint."""
    lines = text.splitlines() or [""]
    starts = [at for at, line in enumerate(lines) if line.startswith("error: ")]
    kind = BY_CODE.get(code)
    if kind is None or not starts:
        return FarmError(f"{who} keeps ending with {code}", why=lines[-1])
    what, *rest = lines[starts[-1] :]
    why = "\n".join(each.strip() for each in rest if each.startswith("  "))
    hint = "".join(each.removeprefix("hint: ") for each in rest if each.startswith("hint: "))
    return kind(what.removeprefix("error: "), why=why, hint=hint)
