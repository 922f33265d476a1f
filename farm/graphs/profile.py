"""What the profiler of ONNX Runtime wrote: which node ran when, on tensors of which shapes.

The file is a list of events, one on a line, each written when its work has ended: the nodes of a
run, then the run itself (`model_run`). Times are whole microseconds.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta, Raw, Struct
from numpy.typing import NDArray

from farm.errors import Bad, Refused

_KERNEL: Final = "_kernel_time"
_RUN: Final = "model_run"
_CUT: Final = "profile_truncated"
_GRAPHS: Final = {"If", "Loop", "Scan", "SequenceMap"}  # nodes that run other nodes
_LONGEST_LINE: Final = 1 << 22
# Each cell of a real profile is an event, of which the runtime writes a million; these are 1 GiB.
_MOST_CELLS: Final = 1 << 27
# A hundred days: longer than any profile, and as nanoseconds still exact in a float64.
_LONGEST_US: Final = 1 << 43

Shape = tuple[str, tuple[int, ...]]  # the type of a tensor, in the runtime's words, and its shape


class NodeRun(NamedTuple):
    """One call of a node. own_us: without the nodes that it ran; at: counts the calls of a file."""

    name: str
    op: str
    number: str
    provider: str
    start_us: int
    own_us: int
    inputs: Raw
    outputs: Raw

    def shapes(self) -> tuple[list[Shape], list[Shape]]:
        """Return what it was called with and what it returned; raises Bad for an odd event."""
        return _shapes(self.inputs), _shapes(self.outputs)


class GraphRun(NamedTuple):
    """One run of the model: its time, and its nodes in the order of their beginning."""

    total_us: int
    nodes: list[NodeRun]


class Layers(NamedTuple):
    """The time of each node in each run: int64[layers, runs] in ns, int64[runs] of whole runs.

    names, types: of each layer, in the order of the first execution; of one name there may be
    several. calls: per run.
    """

    names: list[str]
    types: list[str]
    calls: list[float]
    layer_ns: NDArray[np.int64]
    run_ns: NDArray[np.int64]


def read(path: Path) -> list[GraphRun]:
    """Return every whole run of a file in order; what is left of a cut one is dropped.

    Raises Refused if the file cannot be read, and Bad if it is no profile, holds no whole run, or
    tells of times that no run takes.
    """
    try:
        with path.open("rb") as file:
            return _whole(file, path.name)
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error


def of_bytes(data: bytes, *, name: str) -> list[GraphRun]:
    """Return the runs of a file that was read already; raises Bad as `read` does."""
    return _whole(io.BytesIO(data), name)


def layers(runs: Sequence[GraphRun]) -> Layers:
    """Return the nodes of the runs as layers; several calls within a run are summed.

    A node that did not run took 0 ns. Times are whole microseconds: below ten of them, hardly more
    than their order of magnitude is known. Raises Bad where every run has other nodes than the
    rest, so that the matrix is nearly empty and very large.
    """
    places: dict[tuple[str, str, str], int] = {}
    for run in runs:
        for node in run.nodes:
            places.setdefault((node.name, node.number, node.op), len(places))
    if len(places) * len(runs) > _MOST_CELLS:
        what = f"{len(places)} nodes in {len(runs)} runs are no profile of one model"
        raise Bad(what, why="its runs have hardly a node in common")
    times = np.zeros((len(places), len(runs)), dtype=np.int64)
    calls = [0] * len(places)
    for at, run in enumerate(runs):
        for node in run.nodes:
            place = places[node.name, node.number, node.op]
            times[place, at] += node.own_us * 1000
            calls[place] += 1
    return Layers(
        names=[name for name, _, _ in places],
        types=[op for _, _, op in places],
        calls=[each / len(runs) for each in calls],
        layer_ns=times,
        run_ns=np.array([run.total_us * 1000 for run in runs], dtype=np.int64),
    )


# ── events ───────────────────────────────────────────────────────────────────────────────────────


class _Args(Struct, frozen=True):
    op_name: str = ""
    node_index: str | int = ""
    provider: str = ""
    input_type_shape: Raw = Raw(b"[]")
    output_type_shape: Raw = Raw(b"[]")


_Time = Annotated[int, Meta(ge=0, le=_LONGEST_US)]


class _Event(Struct, frozen=True):
    name: str
    cat: str = ""
    ts: _Time = 0
    dur: _Time = 0
    args: _Args = _Args()


def _whole(lines: Iterable[bytes], name: str) -> list[GraphRun]:
    found = list(_runs(_events(lines, name)))
    if not any(run.nodes for run in found):
        raise Bad(f"{name} holds no whole run of a model", why=f"no event is called {_RUN}")
    took_us = sum(run.total_us + sum(node.own_us for node in run.nodes) for run in found)
    if took_us > _LONGEST_US:
        raise Bad(f"{name}: its times add up to {took_us} µs", why="no profile takes 100 days")
    return found


def _events(file: Iterable[bytes], name: str) -> Iterator[_Event]:
    """Yield the events of the lines; the last one may be cut off.

    Raises Bad for anything else that is none, so that no other file passes for a profile.
    """
    cut = ""
    for number, line in enumerate(file, start=1):
        text = line.strip().removeprefix(b"[").strip().removesuffix(b",")
        if number == 1 and not line.lstrip().startswith(b"["):
            raise Bad(f"{name} is no profile of ONNX Runtime", why="it does not begin with a list")
        if not text or text == b"]":
            continue
        if cut:
            raise Bad(f"{name}: {cut}")
        if len(text) > _LONGEST_LINE:
            raise Bad(f"{name}: line {number} is no event", why="it is far too long")
        try:
            yield msgspec.json.decode(text.removesuffix(b"]"), type=_Event)
        except msgspec.ValidationError as error:  # what no cut makes of an event
            raise Bad(f"{name}: line {number} is no event", why=str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            cut = f"line {number} is no event: {error}"
    # a profile that is cut off ends in the middle of its last line


class _Ended(NamedTuple):
    """A call of a node with all that ran within it."""

    start_us: int
    took_us: int


def _runs(events: Iterable[_Event]) -> Iterator[GraphRun]:
    waiting: list[NodeRun] = []
    ended: list[_Ended] = []
    for event in events:
        if event.cat == "Node" and event.name.endswith(_KERNEL):
            waiting.append(_node(event, ended))
        elif event.name == _RUN:
            # what began before the run belongs to one that failed and left no event of its own
            nodes = [each for each in waiting if each.start_us >= event.ts]
            yield GraphRun(event.dur, sorted(nodes, key=lambda each: each.start_us))
            waiting, ended = [], []
        elif event.name == _CUT:
            return


def _node(event: _Event, ended: list[_Ended]) -> NodeRun:
    """Return the call of a node, which joins what has ended; what ran within it is taken off.

    That has ended before it, and stands at the end of the list. Side by side, or by rounding, it
    may have taken more than the node itself, whose own time is none then.
    """
    args, inside = event.args, 0
    if args.op_name in _GRAPHS:
        while ended and ended[-1].start_us >= event.ts:
            inside += ended.pop().took_us
    own = max(0, event.dur - inside)
    ended.append(_Ended(event.ts, own + inside))
    return NodeRun(
        name=event.name.removesuffix(_KERNEL),
        op=args.op_name,
        number=str(args.node_index),
        provider=args.provider,
        start_us=event.ts,
        own_us=own,
        inputs=args.input_type_shape,
        outputs=args.output_type_shape,
    )


def _shapes(raw: Raw) -> list[Shape]:
    try:
        listed = msgspec.json.decode(raw, type=list[dict[str, tuple[int, ...]]])
    except msgspec.DecodeError as error:
        raise Bad("a shape of the profile cannot be read", why=str(error)) from error
    return [next(iter(each.items())) for each in listed if each]
