"""Who watches the host of a slot: whether its cores, memory and disk are free before a repeat.

A CPU slot measures on the cores themselves and waits for them; a GPU slot only feeds its device,
and a busy host is a doubt there.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from farm.gates import Gate
from workers.gates import Finding, HostState, Unfit, before, forbids, is_doubt, static
from workers.guard import Closing
from workers.host import Host, neighbours
from workers.host.history import History, free_share
from workers.record import Record

_NAMING_S: Final = 0.5  # for which processes are watched to be named


class Outlook:
    """What gates look at of a host. folder: on the disk that holds the state."""

    def __init__(self, host: Host, cores: Collection[int], folder: Path) -> None:
        self._host, self._cores, self._folder = host, tuple(cores), folder
        self._history = History(host, cores)

    def keep(self) -> "Outlook":
        """Look every other second from now on."""
        self._history.keep()
        return self

    def begin_anew(self) -> None:
        """Forget what was: it was our own work."""
        self._history.begin_anew()

    def state(self) -> HostState:
        """Return how the host is, over about two seconds."""
        busy = self._history.over()
        clock = self._host.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
        return HostState(
            busy_share=busy.cores,
            some_share=busy.pressure,
            is_settling=not busy.is_known,
            available_bytes=self._host.bytes_of("proc/meminfo", "MemAvailable:"),
            free_share=free_share(self._folder),
            clocksource=(clock or "").strip() or None,
        )

    def names(self, sleep: Callable[[float], None]) -> list[str]:
        """Return who uses the cores, watched for half a second."""
        first = self._host.processes()
        sleep(_NAMING_S)
        return neighbours(first, self._host.processes(), cpus=self._cores, seconds=_NAMING_S)


class HostSentry:
    """The gates of a CPU slot, asked as a `Sentry` is: it has no device that could be at fault."""

    fault: Finding | None = None
    is_suspect = False

    def __init__(
        self,
        outlook: Outlook,
        *,
        gates: Mapping[str, Gate],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._outlook, self._gates, self._sleep = outlook, gates, sleep
        self._doubted = False

    def ready(self, *, accept: bool = False) -> list[Finding]:
        """Return what the gates say before a repeat; raise Unfit if one of them forbids it.

        accept: go on all the same, under a doubt.
        """
        host = self._outlook.state()
        found = static(None, host, gates=self._gates)
        found += before(None, host, gates=self._gates, on_cpu=True)
        if any(map(forbids, found)):
            found = self._named(found)
            if not accept:
                raise Unfit(found)
        self._doubted = any(forbids(each) or is_doubt(each) for each in found)
        return found

    def watch(self) -> None:
        """The repeat itself notes who disturbs it."""

    def closed(self, record: Record | None, *, job: str = "") -> Closing:
        """Return the doubts of a repeat that has ended."""
        _ = record, job
        self._outlook.begin_anew()
        return Closing(flags=["not_quiet"]) if self._doubted else Closing()

    def forgive(self) -> None:
        """Nothing is held against a host."""

    def _named(self, found: Sequence[Finding]) -> list[Finding]:
        """Return the findings with who it is that uses the cores."""
        if not any(each.id in ("host_cores", "host_pressure") and forbids(each) for each in found):
            return list(found)
        who = "; ".join(self._outlook.names(self._sleep))
        return [
            structs.replace(each, reason=f"{each.reason}: {who}")
            if who and each.id == "host_cores" and forbids(each)
            else each
            for each in found
        ]
