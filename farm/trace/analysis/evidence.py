"""What decides about the bound of a trace, taken from its numbers."""

from collections.abc import Callable

from farm.trace.analysis.bounds import Evidence
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.idle import Idle
from farm.trace.analysis.measures import Counts, OfDevice, mean
from farm.trace.analysis.metrics import Metrics


def evidence(
    found: Gathered, metrics: Metrics, counts: Counts, devices: list[OfDevice], *, skewed: bool
) -> Evidence:
    """Return what the rules look at; shares are those of the window."""
    has_kernels = metrics.gpu_util is not None

    def share(part: Callable[[OfDevice], int], *, known: bool = True) -> float | None:
        """Return a part of the window, of whole ns: rounded ms would miss an exact threshold."""
        if not has_kernels or not known:
            return None
        return mean([part(each) for each in devices]) / found.window.length_ns

    def waited(*causes: str) -> float | None:
        return share(
            lambda each: sum(getattr(each.idle, name) for name in causes), known=not skewed
        )

    return Evidence(
        categories=found.trace.categories,
        kernels=counts.kernels,
        launch_calls=counts.launch_calls,
        unrecorded=counts.unrecorded_launches,
        replays_short=counts.graph_replays_short,
        replays_checked=counts.graph_replays_checked,
        steps=counts.steps,
        skewed=skewed,
        steady=metrics.step_ms_source == "gpu_period",
        on_gpu=False,
        mallocs=metrics.cuda_mallocs_per_step,
        allocator_retries=0,
        reserved=_reserved(found, metrics.peak_reserved_bytes),
        dataload=metrics.dataload_frac,
        idle_dataload=waited("dataload"),
        comm=share(lambda each: each.free_comm),
        util=metrics.gpu_util,
        memcpy=share(lambda each: each.free_copy),
        idle=waited(*Idle._fields),
        idle_sync=waited("sync"),
        idle_host=waited("host"),
        idle_wait=waited("kernel_wait", "graph"),
        op_cover=metrics.op_cover,
        stages={},
        step_ms=metrics.step_ms,
    )


def _reserved(found: Gathered, reserved: int | None) -> float | None:
    """Return the reserved share of the memory of the smallest device that worked."""
    sizes = [each.get("totalGlobalMem") for each in found.properties]
    known = [each for each in sizes if isinstance(each, int) and each > 0]
    return None if reserved is None or not known else reserved / min(known)
