"""A run as it goes: a live view on a terminal, a line now and then in a pipe."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from farm.console.layout import Pieces, cut, drawn
from farm.console.stream import Stream
from farm.report import words
from farm.report.table import Column, Datum, Table

if TYPE_CHECKING:
    from rich.live import Live

_CHANGE_S: Final = 1.0  # least time between two lines about a change, in a pipe
_ALIVE_S: Final = 10.0  # most time without a line


class JobLine(NamedTuple):
    """One job under way or just ended. state: one word, such as measuring or failed."""

    node: str
    device: str
    label: str
    state: str
    p50_ms: float | None
    note: str


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is. left_s: an estimate, None while there is nothing to estimate from."""

    run_id: str
    name: str
    total: int
    done: int
    failed: int
    running: int
    queued: int
    elapsed_s: float
    left_s: float | None
    lines: tuple[JobLine, ...] = ()


class Progress:
    """A run as it goes; use it as a context manager and tell it every state."""

    def __init__(self, stream: "Stream", *, clock: Callable[[], float], silent: bool) -> None:
        self._stream = stream
        self._clock = clock
        self._silent = silent
        self._live: Live | None = None
        self._last: RunState | None = None
        self._told: tuple[int, int] | None = None
        self._told_at = 0.0

    def __enter__(self) -> "Progress":
        if self._stream.is_terminal and not self._silent:
            self._live = self._stream.live()
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave one line about how it ended, unless that was said already."""
        if self._live is not None:
            self._live.stop()
        elif self._last is None or self._told == (self._last.done, self._last.failed):
            return
        if self._last is not None and not self._silent:
            self._stream.line([(heading(self._last), "")])

    def update(self, state: RunState) -> None:
        """Show the state; in a pipe only a change, at most once a second, or ten silent seconds."""
        self._last = state
        if self._silent:
            return
        if self._live is not None:
            self._stream.redraw(self._live, _frame(state, self._stream))
            return
        counts = (state.done, state.failed)
        silence = self._clock() - self._told_at
        wait = _ALIVE_S if counts == self._told else _CHANGE_S
        if self._told is None or silence >= wait:
            self._told, self._told_at = counts, self._clock()
            self._stream.line([(heading(state) + _busy(state), "")])


def heading(state: RunState) -> str:
    """Return a run in one line: its counts, how long it took, how long it may take."""
    parts = [f"{state.done} done"]
    for number, word in ((state.running, "running"), (state.queued, "queued")):
        parts += [f"{number} {word}"] if number else []
    parts += [f"{state.failed} failed"] if state.failed else []
    took = words.span(state.elapsed_s)
    left = f", ~{words.span(state.left_s)} left" if state.left_s is not None else ""
    total = words.count(state.total, "job")
    name = words.visible(f"{state.name}  {state.run_id}")
    return f"{name}   {total}: {' · '.join(parts)}   {took}{left}"


def _frame(state: RunState, stream: "Stream") -> list[Pieces]:
    """Return the live view: the heading, and as many jobs as the screen holds."""
    room = max(1, stream.height - 5)
    columns = (
        Column("node", cut=True),
        Column("device", cut=True),
        Column("job", cut=True),
        Column("state"),
        Column("p50", "ms", right=True),
        Column("note", cut=True),
    )
    rows = tuple(
        (
            Datum(each.node),
            Datum(each.device),
            Datum(each.label),
            Datum(each.state, tone="bad" if each.state.endswith("failed") else ""),
            Datum(words.number(each.p50_ms)),
            Datum(each.note),
        )
        for each in state.lines[:room]
    )
    lines: list[Pieces] = [[(cut(heading(state), stream.width), "bold")]]
    if rows:
        lines += drawn(Table("", columns, rows), limit=stream.width).lines
    return lines


def _busy(state: RunState) -> str:
    under_way = [each for each in state.lines if not each.state.endswith(("failed", "done"))]
    said = [
        f"{each.label} ({each.state}{', ' if each.note else ''}{each.note})" for each in under_way
    ]
    return words.visible(f"   {words.listed(said, most=2)}") if said else ""
