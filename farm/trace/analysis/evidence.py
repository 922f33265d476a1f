"""What decides about the bound of a trace, taken from its numbers."""

from collections.abc import Callable

from farm.trace.analysis.bounds import Evidence
from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.idle import Idle
from farm.trace.analysis.known import Known
from farm.trace.analysis.measures import Counts, OfDevice, mean
from farm.trace.analysis.metrics import Metrics


def evidence(
    found: Gathered,
    metrics: Metrics,
    counts: Counts,
    devices: list[OfDevice],
    *,
    skewed: bool,
    known: Known | None = None,
) -> Evidence:
    """Return what the rules look at; shares are those of the window.

    known: what a capture knows better; its steps are steady, since they come after a warm-up.
    """
    captured = known or _own(found, metrics)
    has_kernels = metrics.gpu_util is not None

    def share(part: Callable[[OfDevice], int]) -> float | None:
        """Return a part of the window, of whole ns: rounded ms would miss an exact threshold."""
        if not has_kernels:
            return None
        return mean([part(each) for each in devices]) / found.window.length_ns

    def waited(*causes: str) -> float | None:
        return None if skewed else share(lambda each: sum(getattr(each.idle, c) for c in causes))

    return Evidence(
        categories=found.trace.categories,
        kernels=counts.kernels,
        launch_calls=counts.launch_calls,
        unrecorded=counts.unrecorded_launches,
        replays_short=counts.graph_replays_short,
        replays_checked=counts.graph_replays_checked,
        steps=counts.steps,
        skewed=skewed,
        steady=known is not None or metrics.step_ms_source == "gpu_period",
        on_gpu=captured.on_gpu,
        mallocs=metrics.cuda_mallocs_per_step,
        allocator_retries=captured.allocator_retries,
        reserved=captured.reserved,
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
        stages=captured.stages,
        step_ms=metrics.step_ms,
    )


def _own(found: Gathered, metrics: Metrics) -> Known:
    """Return what a trace knows itself of what a capture would know better."""
    reserved = _reserved(found, metrics.peak_reserved_bytes)
    return Known(step_ms=metrics.step_ms, reserved=reserved)


def _reserved(found: Gathered, reserved: int | None) -> float | None:
    """Return the reserved share of the memory of the smallest device that worked."""
    sizes = [each.get("totalGlobalMem") for each in found.properties]
    known = [each for each in sizes if isinstance(each, int) and each > 0]
    return None if reserved is None or not known else reserved / min(known)
