"""Small traces for tests, event by event: what a file says, and what is made of it.

All times are µs, as in the files.
"""

import io
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from farm.trace.analysis.analysing import Analysed, analysed
from farm.trace.analysis.figures import Figures, figures
from farm.trace.analysis.gathering import Gathered, gather
from farm.trace.reading import reader
from farm.trace.reading.reader import Trace

Event = dict[str, Any]
WORK = "busy_work"  # a kernel of category `other`
GEMM = "sm80_xmma_gemm_f16f16_f32"  # with matrix units
PLAIN_GEMM = "ampere_sgemm_128x64_nn"  # without
COMM = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
ELEMENTWISE = "vectorized_elementwise_kernel"


def event(kind: str, name: str, start: float, length: float, *, thread: Any = 1) -> Event:
    """Return a complete event of a host thread, without arguments."""
    where = {"pid": 0, "tid": thread}
    return {"ph": "X", "cat": kind, "name": name, "ts": start, "dur": length, "args": {}} | where


def op(name: str, start: float, length: float, *, thread: Any = 1, external: int = 0) -> Event:
    """Return an operator of the framework."""
    return event("cpu_op", name, start, length, thread=thread) | {"args": {"External id": external}}


def span(name: str, start: float, length: float, *, thread: Any = 1) -> Event:
    """Return an annotation."""
    return event("user_annotation", name, start, length, thread=thread)


def step(number: int, start: float, length: float, *, thread: Any = 1) -> Event:
    """Return the mark of a step."""
    return span(f"ProfilerStep#{number}", start, length, thread=thread)


def call(
    name: str,
    start: float,
    length: float = 1,
    *,
    of: Any = None,
    thread: Any = 1,
    driver: bool = False,
) -> Event:
    """Return a call of the runtime or the driver; of: its correlation."""
    made = event("cuda_driver" if driver else "cuda_runtime", name, start, length, thread=thread)
    return made | {"args": {} if of is None else {"correlation": of}}


def launch(start: float, of: Any, *, length: float = 1, thread: Any = 1) -> Event:
    """Return the launch of a kernel."""
    return call("cudaLaunchKernel", start, length, of=of, thread=thread)


def graph(start: float, of: Any, *, length: float = 1) -> Event:
    """Return the launch of a graph."""
    return call("cudaGraphLaunch", start, length, of=of)


def kernel(
    start: float,
    length: float,
    of: Any = None,
    *,
    name: str = WORK,
    device: Any = 0,
    stream: Any = 7,
    kind: str = "kernel",
    **args: Any,
) -> Event:
    """Return a kernel; of: the correlation of its launch, None for an orphan."""
    where = {"device": device, "stream": stream}
    told = {} if of is None else {"correlation": of}
    return event(kind, name, start, length) | {"args": where | told | args}


def copy(start: float, length: float, of: Any = None, *, stream: Any = 20) -> Event:
    """Return a copy on a stream of its own."""
    name = "Memcpy HtoD (Pinned -> Device)"
    return kernel(start, length, of, name=name, stream=stream, kind="gpu_memcpy")


def memory(time: float, **args: Any) -> Event:
    """Return a memory event; args: with _ for the blanks in their names."""
    told = {name.replace("_", " "): value for name, value in args.items()}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": time, "args": told}


def launched(
    start: float, length: float, of: Any, *, before: float = 10, **more: Any
) -> list[Event]:
    """Return a kernel and its launch, which begins some µs before it."""
    return [launch(start - before, of), kernel(start, length, of, **more)]


def repeated(n: int, length: float, make: Callable[[int, float], Iterable[Event]]) -> list[Event]:
    """Return n marked steps; make(number, start) returns what is in each."""
    marks = [step(each, each * length, length) for each in range(n)]
    return [*marks, *(one for each in range(n) for one in make(each, each * length))]


class Seen(NamedTuple):
    """What the analysis makes of a small trace."""

    found: Gathered
    figures: Figures


def text(events: Iterable[Event], **keys: Any) -> bytes:
    """Return the file that holds these events; keys: beside them."""
    return json.dumps({"traceEvents": list(events)} | keys).encode()


def trace(events: Iterable[Event], **keys: Any) -> Trace:
    """Return what is read of that file."""
    return reader.of(io.BytesIO(text(events, **keys)))


def gathered(events: Iterable[Event], **keys: Any) -> Gathered:
    """Return its structure."""
    return gather(trace(events, **keys))


def seen(events: Iterable[Event], **keys: Any) -> Seen:
    """Return its structure and its numbers."""
    found = gathered(events, **keys)
    return Seen(found, figures(found))


def made(events: Iterable[Event], **keys: Any) -> Analysed:
    """Return its analysis."""
    return analysed(trace(events, **keys), name="small.json")
