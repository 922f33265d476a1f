"""What a capture without a trace says of a step: no kernel, no op, and a bound by its stages."""

from typing import Any, Final

from farm.trace.analysis.bounds import Bound, Evidence, bound
from farm.trace.analysis.known import Known
from farm.trace.analysis.metrics import Metrics
from farm.trace.analysis.quality import Quality, of_steps
from farm.trace.analysis.record import Analysis, Over

_OTHERS: Final = (
    *("bound", "memory_pressure", "peak_vram_mb", "img_per_s", "throughput_img_s", "nms_ms"),
    *("latency_p50_ms", "latency_p90_ms", "latency_p99_ms"),
)
_UNSEEN: Final = "no trace was taken, and the stages alone name no limit"


def untraced(known: Known) -> Analysis:
    """Return the analysis of a capture that took no trace.

    What only a trace tells is null, without its reason yet: `captured.dressed` gives it.
    """
    made = bound(_evidence(known))
    if made.word not in _NAMED:
        made = Bound("unknown", _UNSEEN, ())
    word = made.word
    doubts = of_steps(known.steps, known.step_cv) | {"near_threshold": made.near}
    wait, share = known.dataload_ms, known.dataload_frac
    values: dict[str, Any] = dict.fromkeys((*Metrics.__struct_fields__, *_OTHERS))
    del values["gpu_util_by_device"]
    values |= {
        "step_ms": known.step_ms,
        "step_ms_cv": known.step_cv,
        "step_ms_source": None if known.step_ms is None else "capture",
        "dataload_ms": wait,
        "dataload_frac": share,
        "bound": word,
        "memory_pressure": word == "memory-pressure",
    }
    nothing: dict[str, Any] = dict.fromkeys(_NULL)
    nothing |= {name: [] for name in _LISTS} | {name: {} for name in _BY_PHASE}
    return Analysis(
        bound=word,
        bound_why=made.why,
        reasons=list(made.reasons),
        confidence="high",
        inferred_forward=False,
        step_ms=known.step_ms,
        dataload_ms=wait,
        dataload_frac=share,
        memory_pressure=word == "memory-pressure",
        window=Over(wall_ms=known.wall_ms, real_steps=known.steps),
        metrics=values,
        quality=Quality(flags=[f for f, holds in doubts.items() if holds], repaired={}, dropped={}),
        null_reasons={},
        **nothing,
    )


_NULL: Final = (
    *("trace", "model", "mode", "attribution", "img_per_s", "gpu_util", "gpu_util_raw"),
    *("cuda_mallocs_per_step", "host_overhead_ms_per_step", "launches_per_step"),
    *("gpu_busy_ms_per_step", "mean_kernel_us", "kernels_per_step", "unique_kernels"),
    *("memcpy_ms_per_step", "tensorcore_pct", "peak_vram_mb", "diagnostics", "timings"),
)
_LISTS: Final = ("categories", "phases", "kernels", "ops")
_BY_PHASE: Final = ("kernels_by_phase", "ops_by_phase", "counts")
_NAMED: Final = ("dataloader", "preprocess", "postprocess", "memory-pressure")


def _evidence(known: Known) -> Evidence:
    return Evidence(
        categories={},
        kernels=0,
        launch_calls=0,
        unrecorded=0,
        replays_short=0,
        replays_checked=0,
        steps=1,
        skewed=False,
        steady=True,
        on_gpu=False,  # whether kernels should be there: nobody looked
        mallocs=0.0,
        allocator_retries=known.allocator_retries,
        reserved=known.reserved,
        dataload=known.dataload_frac or 0.0,
        idle_dataload=None,
        comm=None,
        util=None,
        memcpy=None,
        idle=None,
        idle_sync=None,
        idle_host=None,
        idle_wait=None,
        op_cover=0.0,
        stages=known.stages,
        step_ms=known.step_ms or 0.0,
    )
