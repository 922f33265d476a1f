"""Callable JSONs for tests, each valid as it comes."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from farm import interchange
from farm.interchange import CallableProfile, Origin, Request
from farm.interchange.document import Array
from tests.farm import make

REQUEST = Request(
    model="predict.py:predict",
    inputs={"rgb": Array(shape=[4, 6, 3], dtype="uint8")},
    inputs_sha256="ab" * 32,
    warmup=10,
    repeats=3,
)
ORIGIN = Origin(
    commit="c" * 40,
    dirty=False,
    container_image=None,
    host_load_1m=0.5,
    reasons={"container_image": "not_applicable: no container"},
)
# As the other tool writes them: without a schema, and with 0, "" and 1 for what it does not know.
FOREIGN: dict[str, Any] = {
    "timing_scope": "callable",
    "device": "cpu",
    "unit": "frame",
    "warmup_calls": 1,
    "measured_calls": 2,
    "inputs": {"rgb": {"shape": [4, 6, 3], "dtype": "uint8"}},
    "latency": {"p50_ms": 10.0, "p95_ms": 20.0, "p99_ms": 20.0, "mean_ms": 15.0},
    "latency_samples_ms": [10.0, 20.0],
    "memory": {
        "cpu_process_lifetime_peak_mb": 38.0,
        "cuda_peak_allocated_mb_by_visible_device": {},
    },
    "system_card": {
        "gpu_name": "",
        "gpu_memory_gb": 0.0,
        "gpu_count": 1,
        "cpu_name": "x86_64",
        "ram_gb": 16.0,
        "cuda_version": "",
        "pytorch_version": "2.1.0",
        "python_version": "3.10.1",
        "precision": "fp32",
        "batch_size": 1,
        "input_resolution": "",
        "os": "Linux",
        "driver_version": "",
    },
    "notes": "one input",
    "model_callable": "predict:predict",
    "inputs_sha256": "cd" * 32,
}


def request(**changes: Any) -> Request:
    return msgspec.structs.replace(REQUEST, **changes)


def document(
    *samples_ms: Sequence[float],
    flags: Sequence[str] = (),
    card: bool = True,
    origin: Origin = ORIGIN,
    profile: Any = None,
    **changes: Any,
) -> CallableProfile:
    """A callable JSON of these samples, one series a process; `changes` go to the request."""
    series = [np.asarray(each, dtype=float) for each in samples_ms or ([1.0, 2.0, 3.0],)]
    return interchange.of_profile(
        profile or make.profile(repeats=1, flags=flags),
        series,
        request(**changes),
        origin=origin,
        card=make.card() if card else None,
        profile_id="e" * 64,
    )
