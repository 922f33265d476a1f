"""Who watches the GPU of a slot: whether it is fit before a repeat, and what became of it then.

It asks the probe, and never within a measured pass: there the probe only takes samples, which are
cut into windows afterwards.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from farm.gates import Gate
from farm.schema import GateRow
from workers.gates import Baseline, Finding, after, before, worst
from workers.gpu import Board, Hung, Probe, State
from workers.host import Host
from workers.record import Record
from workers.telemetry import window

T = TypeVar("T")

log = logging.getLogger(__name__)

RATE_HZ: Final = 10.0
_LOOKS: Final = 3
_LOOK_AGAIN_S: Final = 0.4  # utilisation covers up to a second
_UNFIT: Final = ("defer", "quarantine")
# What a gate that looked afterwards means for the repeat that it closes.
_FLAGS: Final = {"contention": "foreign_gpu_process"}


class Unfit(Exception):
    """The device is not to be measured on now; nothing was. findings: what its gates saw."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        bad = [each for each in findings if each.enforced and each.verdict in _UNFIT]
        super().__init__("; ".join(f"{each.id}: {each.reason}" for each in bad))
        self.findings = list(findings)


class Sentry:
    """The gates and samples of one device. host: names who else is on it."""

    def __init__(
        self,
        probe: Probe,
        board: Board,
        *,
        gates: Mapping[str, Gate],
        host: Host,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._probe, self._board, self._gates = probe, board, gates
        self._host, self._clock, self._sleep = host, clock, sleep
        self._looks: deque[State] = deque(maxlen=_LOOKS)
        self._baseline = Baseline()
        self._judged_ns = 0
        self._hangs = 0
        self._warm_since_ns: int | None = None
        self._doubted = False
        self._broken: list[Finding] = []

    def ready(self) -> list[Finding]:
        """Return what its gates say before a repeat; raise Unfit if one of them forbids it.

        A fault of the device itself forbids all that comes after, until somebody has seen to it.
        """
        states = self._looked()
        if any(each.enforced for each in self._broken):
            raise Unfit(self._broken)
        now = self._clock()
        warm_s = 0.0 if self._warm_since_ns is None else (now - self._warm_since_ns) / 1e9
        found = before(
            states,
            None,
            gates=self._gates,
            on_cpu=False,
            baseline=self._baseline,
            waited_s=warm_s,
            since_ns=self._judged_ns,
            hangs=self._hangs,
            names=self._names(states),
        )
        is_warm = any(each.id == "temperature" and each.verdict == "defer" for each in found)
        self._warm_since_ns = (self._warm_since_ns or now) if is_warm else None
        if worst(found) in _UNFIT:
            raise Unfit(found)
        self._doubted = any(map(_is_doubt, found))
        return found

    def watch(self) -> None:
        """Sample the device from now on as often as a job wants it."""
        self._asked(lambda: self._probe.watch(self._board.uuid, RATE_HZ))

    def closed(self, record: Record | None) -> tuple[list[Finding], list[str]]:
        """Return what a repeat has left on its device, and the doubts about its passes.

        record: of the child, None if it left none: then its windows are not known.
        """
        first = self._looks[-1] if self._looks else None
        last = self._look()
        found: list[Finding] = []
        if first is not None and last is not None:
            found = after(
                first,
                last,
                gates=self._gates,
                baseline=self._baseline,
                names=self._names([last]),
            )
        if last is not None:
            self._judged_ns = last.at_ns + 1
        self._broken += [each for each in found if _is_fault(each) and each.severity == "hard"]
        flags = {_FLAGS.get(each.id, "device_fault") for each in found if _is_fault(each)}
        flags |= {"device_fault"} if any(each.enforced for each in self._broken) else set()
        if self._doubted or last is None or any(map(_is_doubt, found)):
            flags.add("not_quiet")
        if record is not None:
            flags |= self._of_passes(record)
        # What nobody measures on is no reason to ask its driver ten times a second.
        self._asked(lambda: self._probe.watch(self._board.uuid, 0))
        return found, sorted(flags)

    def _of_passes(self, record: Record) -> set[str]:
        """Return the flags of the measured passes, cut out of the samples."""
        edges = [each for each in (record.latency_edges, record.throughput_edges) if each]
        if not edges:
            return set()
        since = min(begin.at_ns for begin, _ in edges) - 1_000_000_000
        seen = self._asked(lambda: self._probe.samples(self._board.uuid, since_ns=since))
        samples = seen.samples if seen is not None else []
        flags: set[str] = set()
        for begin, end in edges:
            told = window(
                samples,
                begin_ns=begin.at_ns,
                end_ns=end.at_ns,
                base_clock_hz=None,
                foreign=(False, False),  # the gates have looked at both ends
            )
            flags |= set(told.flags)
        return flags

    def _looked(self) -> list[State]:
        """Return the last looks at it, none where its driver does not answer.

        One look is enough at a device that idles; a busy one is looked at again.
        """
        self._looks.clear()
        for _ in range(_LOOKS):
            state = self._look()
            if state is None:
                return []
            use = state.readings.get("utilization_pct")
            if use is None or not use.value:
                break
            self._sleep(_LOOK_AGAIN_S)
        return list(self._looks)

    def _look(self) -> State | None:
        state = self._asked(lambda: self._probe.state(self._board.uuid))
        if state is None:
            return None
        self._looks.append(state)
        if state.processes == []:
            used = state.readings.get("memory_used_bytes")
            warm = state.readings.get("temperature_c")
            self._baseline = structs.replace(
                self._baseline,
                used_bytes=_least(self._baseline.used_bytes, used.value if used else None),
                idle_c=_least(self._baseline.idle_c, warm.value if warm else None),
            )
        return state

    def _asked(self, question: Callable[[], T]) -> T | None:
        try:
            answer = question()
        except Hung as error:
            self._hangs = error.in_a_row
            log.warning("%s: %s", self._board.kind, error)
            return None
        except LookupError as error:
            log.warning("%s: %s", self._board.kind, error)
            if "KeyError" in str(error) and not self._broken:  # it fell off, or was cut otherwise
                self._broken.append(self._gone())
            return None
        self._hangs = 0
        return answer

    def _gone(self) -> Finding:
        return Finding(
            id="nvml",
            phase="before",
            verdict="quarantine",
            severity="hard",
            reason="it is not there any more",
            enforced=self._gates["nvml"].mode == "enforce",
        )

    def _names(self, states: Sequence[State]) -> Mapping[int, str]:
        """Return the commands of the processes that are on it; only then is it worth a look."""
        if not any(each.processes for each in states[-1:]):
            return {}
        return {pid: usage.command for pid, usage in self._host.processes().items()}


def rows(found: Sequence[Finding], *, repeat: int) -> list[GateRow]:
    """Return findings as a profile has them; those that passed say nothing and are kept too."""
    return [
        GateRow(
            id=each.id,
            phase=each.phase,
            repeat=repeat,
            verdict=each.verdict,
            reason=each.reason,
            enforced=each.enforced,
        )
        for each in found
    ]


def _is_fault(found: Finding) -> bool:
    return found.enforced and found.verdict in _UNFIT and found.severity != "job"


def _is_doubt(found: Finding) -> bool:
    return found.enforced and found.verdict in ("degraded", "unknown")


def _least(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)
