"""Who watches the GPU of a slot: whether it is fit before a repeat, and what became of it then.

It looks through the probe, and never within a measured pass: there the probe only takes samples,
which are cut into windows afterwards.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from farm.gates import Gate
from farm.schema import GateRow
from workers.gates import Finding, Unfit, after, before, forbids, is_doubt, static, worst_fault
from workers.gpu import Board, Probe, State
from workers.guard import Closing
from workers.host import Host
from workers.host_sentry import Outlook
from workers.lookout import Lookout
from workers.record import Record

RATE_HZ: Final = 10.0
_WAITING: Final = ("temperature", "device_memory")  # what may pass by itself
# What a gate that looked afterwards means for the repeat that it closes.
_FLAGS: Final = {"contention": "foreign_gpu_process"}


class Sentry:
    """The gates and samples of one device. host: names who else is on it; outlook: of its host.

    base_clock_hz: that it keeps under load, None where nobody knows.
    """

    def __init__(
        self,
        probe: Probe,
        board: Board,
        *,
        gates: Mapping[str, Gate],
        host: Host,
        outlook: Outlook | None = None,
        base_clock_hz: float | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._lookout = Lookout(probe, board, host=host, sleep=sleep)
        self._gates, self._outlook, self._clock = gates, outlook, clock
        self._base_clock_hz = base_clock_hz
        self._begin: State | None = None
        self._judged_ns = 0
        self._since_ns: dict[str, int] = {}
        self._doubted = False
        self._faults: list[Finding] = []
        self._throttled: deque[tuple[int, str]] = deque()
        self.is_suspect = False

    @property
    def fault(self) -> Finding | None:
        """The worst fault of the device itself that was seen since it was last forgiven."""
        return worst_fault(self._faults)

    def forgive(self) -> None:
        """Forget its faults: somebody has seen to it."""
        self._faults.clear()
        self._throttled.clear()
        self._since_ns.clear()
        self._judged_ns = self._clock() + 1

    def ready(self, *, accept: bool = False) -> list[Finding]:
        """Return what its gates say before a repeat; raise Unfit if one of them forbids it.

        A fault of the device itself forbids all that comes after, until it is forgiven; a suspect
        goes on in spite of soft ones, under a doubt. accept: go on with what may pass by itself,
        under a doubt as well.
        """
        states = self._lookout.looks()
        self._begin = states[-1] if states else None
        self._check_faults()
        host = self._outlook.state() if self._outlook is not None else None
        found = static(self._begin, host, gates=self._gates)
        found += before(
            states,
            host,
            gates=self._gates,
            on_cpu=False,
            baseline=self._lookout.baseline,
            waited_s=self._waited_s(),
            since_ns=self._judged_ns,
            hangs=self._lookout.hangs,
            names=self._lookout.names(states),
        )
        self._wait_for(found)
        self._remember(found)
        self._check_faults()
        bad = [each for each in found if forbids(each) and each.severity != "soft"]
        if bad and not accept:
            raise Unfit(found)
        self._doubted = bool(bad) or any(map(is_doubt, found))
        return found

    def _check_faults(self) -> None:
        if self._lookout.is_gone:
            self._remember([self._gone()])
        bad = [each for each in self._faults if each.severity == "hard" or not self.is_suspect]
        if bad:
            raise Unfit(bad)

    def _remember(self, found: Sequence[Finding]) -> None:
        """Keep the faults of the device; one that lasts is one."""
        known = {(each.id, each.severity) for each in self._faults}
        self._faults += [
            each
            for each in found
            if worst_fault([each]) is not None and (each.id, each.severity) not in known
        ]

    def _waited_s(self) -> Mapping[str, float]:
        """Return for how long the gates that wait for something have done so."""
        now = self._clock()
        return {name: (now - since) / 1e9 for name, since in self._since_ns.items()}

    def _wait_for(self, found: Sequence[Finding]) -> None:
        now = self._clock()
        for each in found:
            if each.id in _WAITING and each.verdict not in ("ok", "skipped"):
                self._since_ns.setdefault(each.id, now)
            else:
                self._since_ns.pop(each.id, None)

    def watch(self) -> None:
        """Sample the device from now on as often as a job wants it."""
        self._lookout.watch(RATE_HZ)

    def closed(self, record: Record | None, *, job: str = "") -> Closing:
        """Return what a repeat has left on its device, its passes, and the doubts about them.

        record: of the child, None if it left none: then its windows are not known. job: whose
        repeat it was: a device that slows down job after job is at fault itself.
        """
        first, last = self._begin, self._lookout.look()
        found: list[Finding] = []
        if first is not None and last is not None:
            found = after(
                first,
                last,
                gates=self._gates,
                baseline=self._lookout.baseline,
                names=self._lookout.names([last]),
            )
        if last is not None:
            self._judged_ns = last.at_ns + 1
        self._remember(found)
        if self._lookout.is_gone:
            self._remember([self._gone()])
        flags = {
            _FLAGS.get(each.id, "device_fault")
            for each in found
            if forbids(each) and each.severity != "job"
        }
        flags |= {"device_fault"} if any(map(_is_hard, self._faults)) else set()
        if self._doubted or last is None or any(map(is_doubt, found)):
            flags.add("not_quiet")
        told = self._passes(record) if record is not None else Closing()
        flags |= set(told.flags)
        if "throttled" in flags:
            found += self._slowed(job)
        if self._outlook is not None:
            self._outlook.begin_anew()
        # What nobody measures on is no reason to ask its driver ten times a second.
        self._lookout.watch(0)
        return told._replace(findings=found, flags=sorted(flags))

    def _slowed(self, job: str) -> list[Finding]:
        """Note that a repeat was slowed down; return the finding once that is the device's way."""
        gate, now = self._gates["throttle"], self._clock()
        span_ns = gate.limits["over_min"] * 60_000_000_000
        self._throttled.append((now, job))
        while self._throttled and self._throttled[0][0] < now - span_ns:
            self._throttled.popleft()
        often = len(self._throttled) >= gate.limits["per_min"] * gate.limits["over_min"]
        if not often or len({each for _, each in self._throttled}) < gate.limits["jobs"]:
            return []
        found = Finding(
            id="throttle",
            phase="window",
            verdict="quarantine",
            severity="soft",
            reason=f"{len(self._throttled)} repeats slowed down in {gate.limits['over_min']} min",
            enforced=gate.mode == "enforce",
        )
        self._remember([found])
        return [found]

    def _passes(self, record: Record) -> Closing:
        """Return the measured passes, cut out of the samples, with their flags."""
        from workers.telemetry import columns, passes  # which brings numpy along

        known = {"latency": record.latency_edges, "throughput": record.throughput_edges}
        edges = {name: each for name, each in known.items() if each is not None}
        if not edges:
            return Closing()
        since = min(begin.at_ns for begin, _ in edges.values()) - 1_000_000_000
        samples = self._lookout.samples(since_ns=since)
        made, flags = passes(
            samples,
            edges,  # type: ignore[arg-type]
            repeat=record.index,
            base_clock_hz=self._base_clock_hz,
        )
        return Closing(flags=sorted(flags), watched=made, columns=columns(samples))

    def _gone(self) -> Finding:
        return Finding(
            id="nvml",
            phase="before",
            verdict="quarantine",
            severity="hard",
            reason="it is not there any more",
            enforced=self._gates["nvml"].mode == "enforce",
        )


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


def _is_hard(found: Finding) -> bool:
    return found.enforced and found.severity == "hard"
