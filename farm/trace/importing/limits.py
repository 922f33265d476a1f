"""What limits a step that LibreYOLO profiled: its own word, unless it cannot know that.

A run on a CPU is not limited by launches, and what a device does all the time is no sign of memory
pressure: the sum over streams exceeds the time that passed wherever two of them work. Source:
`traces.md` §7, §11.
"""

from collections.abc import Iterator
from typing import Final

from farm.trace.analysis.bounds import Bound, Reason
from farm.trace.importing.original import Original

PRESSURE: Final = "memory-pressure"
_ON_CPU: Final = ("compute", "cpu", "dataloader", "postprocess", "preprocess")
_MALLOCS: Final = 5  # in each step, on the device
_DATA: Final = 0.20
_STAGE: Final = 0.35
_BUSY: Final = 0.80
_NO_GPU: Final = "not_applicable: it ran on a CPU"
_NO_KERNEL: Final = "not_probed: the tool recorded no kernel"


def untold(found: Original) -> str:
    """Return why no number of a GPU is known; "" where kernels were recorded."""
    if found.kernels_per_step or found.kernels:
        return ""
    return _NO_GPU if _device(found).startswith("cpu") else _NO_KERNEL


def bound(found: Original) -> Bound:
    """Return what limits a step; what the tool says, where it may say so."""
    said = Bound(found.bound, found.bound_why, ())
    if not untold(found):
        return _of_device(found, said)
    if found.trace is not None and _device(found) not in ("", "cpu") and untold(found) != _NO_GPU:
        return Bound("no-gpu-data", "it ran on a GPU, and no kernel was recorded", ())
    return said if found.bound in _ON_CPU else next(_of_host(found))


def _of_device(found: Original, said: Bound) -> Bound:
    blamed = "memory" in found.bound.lower()
    if not (blamed or found.memory_pressure):
        return said
    mallocs = found.cuda_mallocs_per_step or 0.0
    if mallocs >= _MALLOCS:
        why = "memory is taken from the device and given back in every step"
        return Bound(PRESSURE, why, (Reason("cuda_mallocs_per_step", mallocs, _MALLOCS),))
    if not blamed:
        return said
    if (util := found.gpu_util or 0.0) >= _BUSY:
        why = "kernels run nearly all of the time"
        return Bound("compute", why, (Reason("gpu_util", util, _BUSY),))
    return Bound("mixed", "no cause that the file tells reaches its threshold", ())


def _of_host(found: Original) -> Iterator[Bound]:
    waits = found.dataload_frac or 0.0
    if waits >= _DATA:
        reason = Reason("dataload_frac", waits, _DATA)
        yield Bound("dataloader", "the step waits for data", (reason,))
    stages = found.stages_ms or {}
    for stage in ("postprocess", "preprocess"):
        took = stages.get(stage) or 0.0
        share = took / found.step_ms if found.step_ms else 0.0
        if took >= (stages.get("forward") or 0.0) and share >= _STAGE:
            why = f"{stage} takes longer than the model"
            yield Bound(stage, why, (Reason(f"{stage}_share", share, _STAGE),))
    yield Bound("cpu", "it ran on a CPU; nothing is said about a GPU", ())


def _device(found: Original) -> str:
    device = found.config.get("device")
    return "" if device is None else str(device).lower()
