"""What the profiler of ONNX Runtime wrote: which node ran when, on tensors of which shapes.

The file is a list of events, one on a line, each written when its work has ended: the nodes of a
run, then the run itself (`model_run`). Times are whole microseconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw, Struct
from numpy.typing import NDArray

from farm.errors import Bad, Refused

_KERNEL: Final = "_kernel_time"
_RUN: Final = "model_run"
_CUT: Final = "profile_truncated"
_GRAPHS: Final = {"If", "Loop", "Scan", "SequenceMap"}  # nodes that run other nodes
_LONGEST_LINE: Final = 1 << 22

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

    Raises Refused if the file cannot be read, and Bad if it is no profile or holds no whole run.
    """
    try:
        with path.open("rb") as file:
            found = list(_runs(_events(file, path.name)))
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    if not any(run.nodes for run in found):
        raise Bad(f"{path.name} holds no whole run of a model", why=f"no event is called {_RUN}")
    return found


def layers(runs: Sequence[GraphRun]) -> Layers:
    """Return the nodes of the runs as layers; several calls within a run are summed.

    A node that did not run took 0 ns. Times are whole microseconds: below ten of them, hardly more
    than their order of magnitude is known.
    """
    places: dict[tuple[str, str, str], int] = {}
    for run in runs:
        for node in run.nodes:
            places.setdefault((node.name, node.number, node.op), len(places))
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


class _Event(Struct, frozen=True):
    name: str
    cat: str = ""
    ts: int = 0
    dur: int = 0
    args: _Args = _Args()


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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            cut = f"line {number} is no event: {error}"
    # a profile that is cut off ends in the middle of its last line


def _runs(events: Iterable[_Event]) -> Iterator[GraphRun]:
    waiting: list[NodeRun] = []
    for event in events:
        if event.cat == "Node" and event.name.endswith(_KERNEL):
            waiting.append(_node(event, waiting))
        elif event.name == _RUN:
            nodes = [each for each in waiting if each.start_us >= event.ts]
            yield GraphRun(event.dur, sorted(nodes, key=lambda each: each.start_us))
            waiting = []
        elif event.name == _CUT:
            return


def _node(event: _Event, before: list[NodeRun]) -> NodeRun:
    """Return the call of a node; those that ran within it have ended, and stand before it."""
    args, inside = event.args, 0
    if args.op_name in _GRAPHS:
        for each in reversed(before):
            if each.start_us < event.ts:
                break
            inside += each.own_us
    return NodeRun(
        name=event.name.removesuffix(_KERNEL),
        op=args.op_name,
        number=str(args.node_index),
        provider=args.provider,
        start_us=event.ts,
        own_us=max(0, event.dur - inside),
        inputs=args.input_type_shape,
        outputs=args.output_type_shape,
    )


def _shapes(raw: Raw) -> list[Shape]:
    try:
        listed = msgspec.json.decode(raw, type=list[dict[str, tuple[int, ...]]])
    except msgspec.DecodeError as error:
        raise Bad("a shape of the profile cannot be read", why=str(error)) from error
    return [next(iter(each.items())) for each in listed if each]
