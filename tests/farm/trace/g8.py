"""The synthetic traces G8 of the seeds: ten steps of 10 ms whose answers follow from arithmetic.

Each step has four host spans of a quarter, 20 equal kernels, each with a launch call of its own,
names dealt in turn from seven, and one copy of 100 µs beside the first of them.
"""

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from farm.trace.analysis.analysing import analysed
from farm.trace.analysis.record import Analysis
from farm.trace.reading import reader

Event = dict[str, Any]

GEMM: Final = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32_tensor16x8x16_kernel"
PLAIN_GEMM: Final = "ampere_sgemm_128x64_nn"
SILU: Final = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel()::{lambda}>"
)
NORM: Final = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct)"
CAT: Final = "void at::native::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>(float*)"
NHWC: Final = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(float*)"
MYSTERY: Final = "mystery_kernel"
NAMES: Final = (GEMM, PLAIN_GEMM, SILU, NORM, CAT, NHWC, MYSTERY)
PHASES: Final = ("to_device", "forward", "backward", "optimizer")
DEVICE: Final = {"id": 0, "name": "Synthetic GPU", "totalGlobalMem": 2**35, "computeMajor": 8}
_STEP: Final = 10_000  # µs
_KERNELS: Final = 20


def span(name: str, ts: float, dur: float, *, cat: str = "user_annotation", **more: Any) -> Event:
    """An event of the main thread, in µs."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 100, "tid": 1, "ts": ts, "dur": dur} | more


def launch(ts: float, correlation: int, *, name: str = "cudaLaunchKernel") -> Event:
    return span(name, ts, 5, cat="cuda_runtime", args={"correlation": correlation})


def kernel(
    name: str, ts: float, dur: float, correlation: int, *, stream: int = 7, cat: str = "kernel"
) -> Event:
    args = {"device": 0, "stream": stream, "correlation": correlation}
    return span(name, ts, dur, cat=cat, args=args) | {"pid": 0, "tid": stream}


def step(
    at: int,
    *,
    busy: float = 0.5,
    mallocs: int = 0,
    names: tuple[str, ...] = NAMES,
    streams: int = 1,
) -> list[Event]:
    """The events of a step; busy: what its kernels take one after another, as a part of it."""
    begin = 1000 + at * _STEP
    made = [span(f"ProfilerStep#{at}", begin, _STEP)]
    for quarter, phase in enumerate(PHASES):
        made.append(span(f"step/{phase}", begin + quarter * 2500, 2500))
    first = 1000 * at + 100
    made.append(launch(begin + 2, first, name="cudaMemcpyAsync"))
    copy = kernel("Memcpy HtoD (Pinned -> Device)", begin + 10, 100, first, cat="gpu_memcpy")
    made.append(copy)
    for number in range(_KERNELS):
        ts = begin + number * _STEP // _KERNELS
        name = names[number % len(names)]
        correlation = first + 1 + number
        made.append(launch(ts, correlation))
        stream = 7 + number % streams
        made.append(kernel(name, ts + 10, busy * _STEP / _KERNELS, correlation, stream=stream))
        made.append(span("aten::add" if number % 2 else "aten::conv2d", ts, 30, cat="cpu_op"))
    made += [span("cudaMalloc", begin + 40 + 9 * n, 5, cat="cuda_runtime") for n in range(mallocs)]
    return made


def events(*, steps: int = 10, **more: Any) -> list[Event]:
    """The events of a whole trace; more: as `step` takes."""
    return [each for at in range(steps) for each in step(at, **more)]


def text(made: list[Event], **keys: Any) -> bytes:
    """A trace file of these events; keys: others beside them."""
    return json.dumps({"schemaVersion": 1, **keys, "traceEvents": made}).encode()


def file(path: Path, made: list[Event] | None = None, **keys: Any) -> Path:
    """Write a trace, packed where its name says so; the half busy one unless told otherwise."""
    known: Mapping[str, Any] = {"deviceProperties": [DEVICE], **keys}
    data = text(events() if made is None else made, **known)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def analysis(made: list[Event]) -> Analysis:
    """What is made of a trace of these events."""
    trace = reader.of(io.BytesIO(text(made, deviceProperties=[DEVICE])))
    return analysed(trace, name="trace.json").analysis


def host(*, steps: int = 4) -> list[Event]:
    """Steps of a trace without a GPU: forward and backward, each with ops."""
    made: list[Event] = []
    for at in range(steps):
        begin = 1000 + at * _STEP
        made.append(span(f"ProfilerStep#{at}", begin, _STEP))
        for quarter, phase in ((0, "forward"), (2, "backward")):
            start = begin + quarter * 2500
            made.append(span(f"step/{phase}", start, 5000))
            made.append(span("aten::linear", start, 4000, cat="cpu_op"))
            made.append(span("aten::addmm", start + 500, 3000, cat="cpu_op"))
    return made
