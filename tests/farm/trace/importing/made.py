"""Small files as LibreYOLO writes them, and such as it does not."""

import copy
from random import Random
from typing import Any, Final

_PHASE: Final = {"kernels_per_step": 0, "ops_per_step": 1, "unique_kernels": 0}


def phase(name: str, wall: float | None) -> dict[str, Any]:
    return {"phase": name, "gpu_ms_per_step": 0.0, "wall_ms_per_step": wall} | _PHASE


TRAINING: Final[dict[str, Any]] = {
    "schema": "libreyolo.profile.analysis/v1",
    "trace": "runs/profile/prof/profile_trace.json",
    "model": "small",
    "config": {"device": "cpu", "batch": 4, "imgsz": 160, "amp": False},
    "bound": "host / launch",
    "bound_why": "GPU only ~0% busy",
    "step_ms": 100.0,
    "img_per_s": 40.0,
    "dataload_ms": 1.0,
    "dataload_frac": 0.01,
    "gpu_util": 0.0,
    "gpu_util_raw": 0.0,
    "memory_pressure": False,
    "cuda_mallocs_per_step": 0,
    "host_overhead_ms_per_step": 99.0,
    "launches_per_step": 0,
    "gpu_busy_ms_per_step": 0.0,
    "mean_kernel_us": 0.0,
    "kernels_per_step": 0,
    "unique_kernels": 0,
    "memcpy_ms_per_step": 0.0,
    "tensorcore_pct": 0.0,
    "peak_vram_mb": None,
    "window": {"wall_ms": 300.0, "real_steps": 3},
    "metrics": {"img_per_s": 40.0, "gpu_util": 0.0, "forward_gpu_ms": 0.0, "forward_ops": 1},
    "categories": [],
    "phases": [phase("forward", 60.0), phase("backward", 30.0)],
    "kernels_by_phase": {"forward": []},
    "ops_by_phase": {
        "forward": [
            {"op": "aten::add", "ms_per_step": 7.0, "pct_of_cpu_ops": 9.0, "count_per_step": 2}
        ]
    },
    "kernels": [],
    "ops": [{"op": "aten::add", "ms_per_step": 7.0, "pct_of_cpu_ops": 9.0, "count_per_step": 2}],
}
INFERENCE: Final[dict[str, Any]] = TRAINING | {
    "mode": "inference",
    "bound": "compute",
    "step_ms": 6.0,
    "phases": [phase(each, None) for each in ("preprocess", "forward", "postprocess")],
    "stages_ms": {"preprocess": 1.5, "forward": 4.0, "postprocess": 0.5},
    "latency": {
        **{"p50_ms": 6.0, "p90_ms": 7.0, "p99_ms": 8.0, "mean_ms": 6.0},
        **{"min_ms": 5.0, "max_ms": 8.0, "n": 10},
    },
}
REPEATS: Final[dict[str, Any]] = INFERENCE | {
    "trace": None,
    "img_per_s": 0.83,
    "metrics": {"img_per_s": 1.07, "throughput_img_s": 0.83, "forward_gpu_ms": 0.0},
    "img_per_s_std": 0.17,
    "img_per_s_n": 3,
    "img_per_s_trials": [0.7, 0.73, 1.07],
}


def changed(told: Any, random: Random, value: Any) -> Any:
    """Return it with the value in place of one of its own, however deep that is."""
    made = copy.deepcopy(told)
    place = made
    while True:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inside = place[key]
        if not isinstance(inside, dict | list) or not inside or random.random() < 0.3:
            place[key] = value
            return made
        place = inside
