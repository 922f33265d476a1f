"""Whether the clocks of host and device agree: if not, no gap can be blamed on anybody."""

import re
from typing import Final

import numpy as np

from farm.trace.analysis.gathering import Gathered
from farm.trace.analysis.launches import MISSING

_WHOLE_DEVICE: Final = re.compile(r"(?:cuda|hip|mu)DeviceSynchronize|cuCtxSynchronize")
_EARLY_NS: Final = 100_000  # a synchronisation returns so long before the work it waited for ends
_BEFORE_NS: Final = 1_000  # work starts so long before its launch
_SHARE: Final = 0.01


def disagree(found: Gathered) -> bool:
    """Tell if a wait for the whole device ended too early, or if much began before its launch."""
    launches, gpu = found.launches, found.gpu
    known = launches.launch != MISSING
    if not known.any():
        return False
    launched = launches.calls.start[launches.launch[known]]
    early = gpu.start[known] < launched - _BEFORE_NS
    if np.count_nonzero(early) > _SHARE * early.size:
        return True
    # With several devices nobody sees which one a call waited for.
    return len(found.devices) == 1 and _returns_early(found)


def _returns_early(found: Gathered) -> bool:
    calls, gpu = found.launches.calls, found.gpu
    names = found.trace.names
    waits = np.array([_WHOLE_DEVICE.fullmatch(each) is not None for each in names])[calls.name]
    known = found.launches.launch != MISSING
    launched = calls.end[found.launches.launch[known]]
    order = np.argsort(launched, kind="stable")
    last_end = np.maximum.accumulate(gpu.end[known][order])
    before = np.searchsorted(launched[order], calls.start[waits], side="right")
    waited = before > 0
    ends = last_end[before[waited] - 1]
    return bool(np.any(ends > calls.end[waits][waited] + _EARLY_NS))
