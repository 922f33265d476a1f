"""Captures for tests: a trace, and what the clean passes and the stage timers say beside it.

Times are ms. A trace of a CPU is one whose steps take 10 ms.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, structs

from farm import schema
from farm.schema import Captured, Job, Profile, Traced
from farm.trace import captured
from farm.trace.analysis.record import Analysis
from tests.farm import make
from tests.farm.trace import g8
from tests.farm.trace.analysis import traces

TRAINING: Final = ("dataload", "to_device", "forward", "backward", "optimizer")
INFERENCE: Final = ("preprocess", "forward", "postprocess")
TOTAL_BYTES: Final = 2**35
_FITTED: Final = {"fitted_batch": "24"}


class Taken(NamedTuple):
    """What a measurement comes to. events: of its trace, None for none.

    waits_ms: for data, one for each plain step. stages_ms: of each phase, one for each iteration.
    reserved, retries, peak: of the allocator of a GPU, on which it ran if on_gpu.
    """

    events: Sequence[g8.Event] | None = ()
    plain_ms: Sequence[float] = (9.0, 10.0, 11.0)
    waits_ms: Sequence[float] = ()
    traced_ms: Sequence[float] = (12.0,)
    stages_ms: Mapping[str, Sequence[float]] = {}
    unused: Sequence[str] = ()
    notes: Sequence[str] = ()
    flags: Sequence[str] = ()
    failure: schema.Failure | None = None
    p50_ms: float = 20.0
    rate: float = 64.0
    on_gpu: bool = False
    peak: int = 3 * 2**30
    reserved: int = 4 * 2**30
    retries: int = 0
    untraced: str = "not_requested"
    pipeline: Literal["detection", "plain"] = "detection"


def host(phases: Sequence[str] = INFERENCE, *, steps: int = 4, busy: float = 1.0) -> list[g8.Event]:
    """Steps of a CPU of 10 ms, in equal phases; busy: what operators take of each."""
    made: list[g8.Event] = []
    part = 10_000 // len(phases)
    for at in range(steps):
        begin = 1000 + at * 10_000
        made.append(g8.span(f"ProfilerStep#{at}", begin, 10_000))
        for number, phase in enumerate(phases):
            start = begin + number * part
            made.append(g8.span(f"step/{phase}", start, part))
            made.append(g8.span(f"aten::{phase}", start, busy * part, cat="cpu_op"))
    return made


def job(mode: str = "inference", *, model: str = "detector-t", batch: int = 4) -> Job:
    """A job of images."""
    made = make.job(model, batch=batch)
    work = structs.replace(made.workload, mode=mode, item="image")
    return structs.replace(made, workload=work)


def beside(taken: Taken) -> Captured:
    """What the worker leaves beside the trace."""
    return Captured(
        plain_ns=_ns(taken.plain_ms),
        waits_ns=_ns(taken.waits_ms),
        traced_ns=_ns(taken.traced_ms) if taken.events is not None else [],
        stages_ns={name: _ns(each) for name, each in taken.stages_ms.items()},
        pipeline=taken.pipeline,
        unused=list(taken.unused),
        notes=list(taken.notes),
    )


def profile(taken: Taken, of: Job, *, n: int = 100) -> Profile:
    """What the worker says of it; n: iterations that were timed."""
    if taken.failure is not None:
        return make.profile(of, status="failed", failure=taken.failure)
    facts = {"cuda_device": "H200", "cuda_memory_bytes": str(TOTAL_BYTES)} if taken.on_gpu else {}
    made = make.profile(
        of,
        p50_ms=taken.p50_ms,
        repeats=1,
        n=n,
        flags=taken.flags,
        throughput=taken.rate,
        resolved=facts | _FITTED,
    )
    traced = None if taken.events is None else Traced(iterations=4, bytes=1000)
    memory = made.memory
    if taken.on_gpu and memory is not UNSET:
        memory = structs.replace(
            memory,
            cuda_allocated_peak_bytes=taken.peak,
            cuda_reserved_peak_bytes=taken.reserved,
            cuda_alloc_retries=taken.retries,
        )
    why = {"trace": taken.untraced} if traced is None else {}
    reasons = made.null_reasons | why
    return structs.replace(made, trace=traced, memory=memory, null_reasons=reasons)


def analysis(taken: Taken, mode: str = "inference", **asked: Any) -> Analysis:
    """The analysis of a capture; asked: what stands first in its configuration."""
    events = taken.events
    trace = None
    if events is not None:
        trace = traces.trace(events or host(), deviceProperties=[g8.DEVICE])
    return captured.analysis(
        trace,
        profile(taken, job(mode)),
        beside(taken),
        card=make.card(),
        asked=asked,
        name="profile_trace.json",
    )


def _ns(times_ms: Sequence[float]) -> list[int]:
    return [round(1e6 * each) for each in times_ms]
