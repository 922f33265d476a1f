"""A run as it goes: a live view on a terminal, a line now and then in a pipe."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from farm.console.layout import Pieces, cut, drawn
from farm.console.stream import Stream
from farm.report import words
from farm.report.table import Column, Datum, Table, Tone

if TYPE_CHECKING:
    from rich.live import Live

# In a pipe: seconds since the start up to which a row holds, the least time between two lines about
# a change, the most time without a line. A log of a long run stays short enough to read.
_PACE: Final = ((20.0, 1.0, 10.0), (300.0, 10.0, 30.0), (3600.0, 30.0, 60.0), (1e12, 60.0, 300.0))


_BAD: Final = ("failed", "dead")
_GLYPHS: Final = {"failed": "✗ ", "dead": "✗ ", "done": "✓ "}
_TONES: Final[dict[str, Tone]] = {"failed": "bad", "dead": "bad", "done": "good"}


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
    """How far a run is. left_s: an estimate, None while there is nothing to estimate from.

    answers: jobs that ended without a figure and are no failures, by cause, such as out of memory.
    uploading: measured, and on the way to the store. notes: what holds the run up.
    """

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
    cancelled: int = 0
    answers: tuple[tuple[str, int], ...] = ()
    uploading: int = 0
    notes: tuple[str, ...] = ()


class Progress:
    """A run as it goes; use it as a context manager and tell it every state."""

    def __init__(self, stream: "Stream", *, clock: Callable[[], float], silent: bool) -> None:
        self._stream = stream
        self._clock = clock
        self._silent = silent
        self._live: Live | None = None
        self._last: RunState | None = None
        self._told: tuple[int, ...] | None = None
        self._told_at = 0.0
        self._complained: set[str] = set()

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
        elif self._last is None or self._told == _counts(self._last):
            return
        if self._last is not None and not self._silent:
            self._stream.line([(heading(self._last), "")])

    def update(self, state: RunState) -> None:
        """Show the state; in a pipe a failure at once, and changes the rarer the longer it goes."""
        self._last = state
        if self._silent:
            return
        if self._live is not None:
            self._stream.redraw(self._live, _frame(state, self._stream))
            return
        for each in state.lines:
            if each.state in _BAD and each.label not in self._complained:
                self._complained.add(each.label)
                why = f": {each.note}" if each.note else ""
                said = words.visible(f"{each.state}  {each.label} on {each.node}{why}")
                self._stream.line([(said, "bold red")])
        for note in state.notes:
            if note not in self._complained:
                self._complained.add(note)
                self._stream.line([(words.visible(note), "yellow")])
        change_s, alive_s = next(pace[1:] for pace in _PACE if state.elapsed_s <= pace[0])
        silence = self._clock() - self._told_at
        wait = alive_s if _counts(state) == self._told else change_s
        if self._told is None or silence >= wait:
            self._told, self._told_at = _counts(state), self._clock()
            self._stream.line([(heading(state) + _busy(state), "")])


def heading(state: RunState) -> str:
    """Return a run in one line: its counts, how long it took, how long it may take."""
    parts = [f"{state.done} done"]
    for number, word in (
        (state.running, "running"),
        (state.uploading, "uploading"),
        (state.queued, "queued"),
    ):
        parts += [f"{number} {word}"] if number else []
    parts += [f"{state.failed} failed"] if state.failed else []
    parts += [f"{many} {word}" for word, many in state.answers]
    parts += [f"{state.cancelled} cancelled"] if state.cancelled else []
    took = words.span(state.elapsed_s)
    left = f", ~{words.span(state.left_s)} left" if state.left_s is not None else ""
    total = words.count(state.total, "job")
    name = words.visible(f"{state.name}  {state.run_id}")
    return f"{name}   {total}: {' · '.join(parts)}   {took}{left}"


def _frame(state: RunState, stream: "Stream") -> list[Pieces]:
    """Return the live view: the heading, and as many jobs as the screen holds."""
    room = max(1, stream.height - 5 - len(state.notes))
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
            Datum(_GLYPHS.get(each.state, "") + each.state, tone=_TONES.get(each.state, "")),
            Datum(words.number(each.p50_ms)),
            Datum(each.note),
        )
        for each in state.lines[:room]
    )
    lines: list[Pieces] = [[(cut(heading(state), stream.width), "bold")]]
    lines += [[(cut(words.visible(each), stream.width), "yellow")] for each in state.notes]
    if rows:
        lines += drawn(Table("", columns, rows), limit=stream.width).lines
    return lines


def _counts(state: RunState) -> tuple[int, ...]:
    return (state.done, state.failed, state.cancelled, sum(many for _, many in state.answers))


def _busy(state: RunState) -> str:
    under_way = [each for each in state.lines if each.state == "measuring"]
    said = [
        f"{each.label} ({each.state}{', ' if each.note else ''}{each.note})" for each in under_way
    ]
    return words.visible(f"   {words.listed(said, most=2)}") if said else ""
