"""How strictly a slot takes its gates: waits for them, measures under a doubt, or does not look."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from msgspec import Struct

from workers.gates import Finding, Unfit
from workers.record import Record, Watched

Mode = Literal["strict", "warn", "off"]
_LOOK_AGAIN_S: Final = 0.5


class Manner(Struct, frozen=True, kw_only=True):
    """strict: nothing is measured while a gate forbids it. warn: it is waited for so long, then
    measured with a mark. off: nobody looks.
    """

    mode: Mode = "strict"
    wait_s: float = 10.0


class Closing(NamedTuple):
    """What a repeat has left: findings of the gates, doubts as flags, what its device did.

    columns: the samples of the device, by sensor, None where one gave no number.
    """

    findings: Sequence[Finding] = ()
    flags: Sequence[str] = ()
    watched: Sequence[Watched] = ()
    columns: Mapping[str, Sequence[float | int | None]] = {}


class Watcher(Protocol):
    """Who watches a device: a `Sentry` at a GPU, a `HostSentry` at cores."""

    is_suspect: bool

    @property
    def fault(self) -> Finding | None: ...
    def ready(self, *, accept: bool = False) -> list[Finding]: ...
    def watch(self) -> None: ...
    def closed(self, record: Record | None, *, job: str = "") -> Closing: ...
    def forgive(self) -> None: ...


class Guard:
    """A watcher, and the manner in which its word is taken."""

    def __init__(
        self,
        watcher: Watcher,
        manner: Manner,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.watcher, self._manner = watcher, manner
        self._clock, self._sleep = clock, sleep
        self._unfit_since: float | None = None

    def check(self) -> None:
        """Raise Unfit if nothing is to be begun now: by one who is strict, or for a fault."""
        if self._manner.mode == "off":
            return
        try:
            self.watcher.ready()
        except Unfit as error:
            if self._manner.mode == "strict" or error.fault is not None:
                raise

    def ready(self, say: Callable[[str], None]) -> list[Finding]:
        """Return what the gates say before a repeat; say: hears what is waited for.

        Raises Unfit as `check` does. What is unfit for as long as one is to wait is waited for no
        more, until it was fit again.
        """
        if self._manner.mode == "off":
            return []
        while True:
            try:
                found = self.watcher.ready()
            except Unfit as error:
                if self._manner.mode == "strict" or error.fault is not None:
                    raise
                now = self._clock()
                if self._unfit_since is None:
                    self._unfit_since = now
                if now - self._unfit_since >= self._manner.wait_s:
                    return self.watcher.ready(accept=True)
                say(f"waiting: {error}")
                self._sleep(_LOOK_AGAIN_S)
            else:
                self._unfit_since = None
                return found

    def closed(self, record: Record | None, *, job: str) -> Closing:
        """Return what a repeat has left, and the doubts about its passes."""
        if self._manner.mode == "off":
            return Closing(flags=["gates_off"])
        return self.watcher.closed(record, job=job)

    def watch(self) -> None:
        if self._manner.mode != "off":
            self.watcher.watch()
