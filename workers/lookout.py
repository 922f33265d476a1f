"""Looks at one GPU through its probe, and what they come to: how quiet it was, who is on it.

A question that its driver does not answer is no look; how often that was in a row is known.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from workers.gates import Baseline
from workers.gpu import Board, Hung, Probe, State
from workers.host import Host

if TYPE_CHECKING:
    from workers.telemetry import Sample

T = TypeVar("T")

log = logging.getLogger(__name__)

_LOOKS: Final = 3
_LOOK_AGAIN_S: Final = 0.4  # utilisation covers up to a second


class Lookout:
    """Asks the probe about a device. host: names who else is on it.

    baseline: the quietest that it was seen. hangs: how often in a row its driver did not answer.
    is_gone: whether it fell off the bus, or was cut otherwise.
    """

    def __init__(
        self,
        probe: Probe,
        board: Board,
        *,
        host: Host,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._probe, self._board = probe, board
        self._host, self._sleep = host, sleep
        self.baseline = Baseline()
        self.hangs = 0
        self.is_gone = False

    def looks(self) -> list[State]:
        """Return the last looks at it, none where its driver does not answer.

        One look is enough at a device that idles; a busy one is looked at again.
        """
        found: deque[State] = deque(maxlen=_LOOKS)
        for _ in range(_LOOKS):
            state = self.look()
            if state is None:
                return []
            found.append(state)
            use = state.readings.get("utilization_pct")
            if use is None or not use.value:
                break
            self._sleep(_LOOK_AGAIN_S)
        return list(found)

    def look(self) -> State | None:
        """Return how it is now, None where its driver does not answer."""
        state = self._asked(lambda: self._probe.state(self._board.uuid))
        if state is not None and state.processes == []:
            used = state.readings.get("memory_used_bytes")
            warm = state.readings.get("temperature_c")
            self.baseline = structs.replace(
                self.baseline,
                used_bytes=_least(self.baseline.used_bytes, used.value if used else None),
                idle_c=_least(self.baseline.idle_c, warm.value if warm else None),
            )
        return state

    def watch(self, hz: float) -> None:
        """Sample it so often from now on; 0 for no more."""
        self._asked(lambda: self._probe.watch(self._board.uuid, hz))

    def samples(self, *, since_ns: int) -> "list[Sample]":
        """Return its samples since a moment of CLOCK_MONOTONIC."""
        seen = self._asked(lambda: self._probe.samples(self._board.uuid, since_ns=since_ns))
        return seen.samples if seen is not None else []

    def names(self, states: Sequence[State]) -> Mapping[int, str]:
        """Return the commands of the processes that are on it; only then is it worth a look."""
        if not any(each.processes for each in states[-1:]):
            return {}
        return {pid: usage.command for pid, usage in self._host.processes().items()}

    def _asked(self, question: Callable[[], T]) -> T | None:
        try:
            answer = question()
        except Hung as error:
            self.hangs = error.in_a_row
            log.warning("%s: %s", self._board.kind, error)
            return None
        except LookupError as error:
            log.warning("%s: %s", self._board.kind, error)
            self.is_gone = self.is_gone or "KeyError" in str(error)
            return None
        self.hangs, self.is_gone = 0, False
        return answer


def _least(one: int | None, other: int | None) -> int | None:
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)
