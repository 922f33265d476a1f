"""What limits a step, as far as a trace tells: one word, the evidence, and what is to be doubted.

Refusals come first, because a file that lost half of its kernels still has a convincing number for
everything (`traces.md` §7).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

_UNSUPPORTED: Final = re.compile(r"mtia_ccp_events|hpu_op|privateuse1_k\w*")
_FEWEST_KERNELS: Final = 50
_MOST_UNRECORDED: Final = 0.10
_NEAR: Final = 0.05
REFUSALS: Final = (
    *("unsupported-device", "no-gpu-data", "too-little-data", "under-recorded", "clock-skew"),
)


class Evidence(NamedTuple):
    """What the rules look at. Shares are of the mean step, None where they mean nothing.

    stages: milliseconds of preprocess, forward and postprocess of a capture for inference.
    steady: whether allocations are those of steady steps.
    """

    categories: Mapping[str, int]
    kernels: int
    launch_calls: int
    unrecorded: int
    replays_short: int
    replays_checked: int
    steps: int
    skewed: bool
    steady: bool
    on_gpu: bool
    mallocs: float
    allocator_retries: int
    reserved: float | None
    dataload: float
    idle_dataload: float | None
    comm: float | None
    util: float | None
    memcpy: float | None
    idle: float | None
    idle_sync: float | None
    idle_host: float | None
    idle_wait: float | None
    op_cover: float
    stages: Mapping[str, float]
    step_ms: float


class Reason(Struct, frozen=True):
    """A metric that decided, its value, and the threshold that it reached."""

    metric: str
    value: float
    threshold: float


class Bound(NamedTuple):
    """word: what limits it, or the refusal. near: the deciding value is within 5 % of its limit."""

    word: str
    why: str
    reasons: tuple[Reason, ...]
    near: bool = False

    @property
    def is_refusal(self) -> bool:
        """Whether it names no limit."""
        return self.word in REFUSALS


def bound(seen: Evidence) -> Bound:
    """Return the first refusal that holds, or else the first rule."""
    for refused in _refusals(seen):
        return refused
    for rule in _of_device(seen) if seen.kernels else _of_host(seen):
        if rule.value is not None and rule.value >= rule.threshold:
            near = rule.value <= (1 + _NEAR) * rule.threshold
            return Bound(rule.word, rule.why, (rule.reason(),), near)
    if seen.skewed:
        return Bound("clock-skew", "the clocks of host and device disagree", ())
    if not seen.kernels:
        least = Reason("op_cover", seen.op_cover, _HALF)
        why = "most of the step is outside of framework operators"
        return Bound("cpu", why, (least,), _nearly((least,)))
    shares = tuple(_shares(seen))
    return Bound("mixed", "no cause alone reaches its threshold", shares, _nearly(shares))


def _nearly(reasons: Sequence[Reason]) -> bool:
    """Tell if one of some values that are below their thresholds is within 5 % of it."""
    return any(each.value >= (1 - _NEAR) * each.threshold for each in reasons)


class _Rule(NamedTuple):
    word: str
    why: str
    metric: str
    value: float | None
    threshold: float

    def reason(self) -> Reason:
        assert self.value is not None, "a rule that holds has a value"
        return Reason(self.metric, self.value, self.threshold)


_HALF: Final = 0.5
_DATA: Final = "the step waits for data"


def _refusals(seen: Evidence) -> Iterator[Bound]:
    unknown = [each for each in seen.categories if _UNSUPPORTED.fullmatch(each)]
    if not seen.kernels and unknown:
        why = f"its device leaves events of the kind {unknown[0]!r}, which nothing here reads"
        yield Bound("unsupported-device", why, ())
    if not seen.kernels and (seen.launch_calls or seen.on_gpu):
        why = "kernels were launched and none was recorded"
        if not seen.launch_calls:
            why = "it ran on a GPU and no kernel was recorded"
        yield Bound("no-gpu-data", why, (Reason("kernels", seen.kernels, 1),))
    if not seen.steps and seen.kernels < _FEWEST_KERNELS:
        reason = Reason("kernels", seen.kernels, _FEWEST_KERNELS)
        yield Bound("too-little-data", "no step is marked and hardly anything ran", (reason,))
    lost = (
        ("unrecorded_launches", seen.unrecorded, seen.launch_calls, "launches left no GPU event"),
        (
            "graph_replays_short",
            seen.replays_short,
            seen.replays_checked,
            "graph replays are short",
        ),
    )
    for metric, some, of_all, what in lost:
        if of_all and some / of_all > _MOST_UNRECORDED:
            reason = Reason(metric, some / of_all, _MOST_UNRECORDED)
            yield Bound("under-recorded", f"{some} of {of_all} {what}", (reason,))


def _of_device(seen: Evidence) -> Iterator[_Rule]:
    blame = not seen.skewed
    pressure = "memory is taken from the device and given back in every step"
    if seen.steady:
        yield _Rule("memory-pressure", pressure, "cuda_mallocs_per_step", seen.mallocs, 5)
    yield from _of_memory(seen)
    if blame:
        yield _Rule("dataloader", _DATA, "idle_dataload", seen.idle_dataload, 0.20)
    yield from _of_stages(seen)
    comm = "collectives run while nothing else does"
    yield _Rule("communication", comm, "exposed_comm", seen.comm, 0.20)
    yield _Rule("compute", "kernels run nearly all of the time", "gpu_util", seen.util, 0.80)
    copies = "copies run while no kernel does"
    yield _Rule("memcpy", copies, "exposed_memcpy", seen.memcpy, 0.10)
    if not blame or not seen.idle:
        return
    causes = (
        ("sync", "the host waits for the device", "idle_sync", seen.idle_sync),
        ("host / launch", "the device waits for the host", "idle_host", seen.idle_host),
        ("gpu-wait", "work was queued and did not start", "idle_wait", seen.idle_wait),
    )
    for word, why, metric, part in causes:
        share = None if part is None else part / seen.idle
        yield _Rule(word, why, f"{metric}_of_idle", share, _HALF)


def _of_memory(seen: Evidence) -> Iterator[_Rule]:
    """Yield the rules of the allocator of a device, which a capture knows without any trace."""
    retries = "the allocator found no room and had to try again"
    yield _Rule("memory-pressure", retries, "allocator_retries", seen.allocator_retries, 1)
    full = "nearly all memory of the device is reserved"
    yield _Rule("memory-pressure", full, "reserved_share", seen.reserved, 0.95)


def _of_host(seen: Evidence) -> Iterator[_Rule]:
    yield from _of_memory(seen)
    yield _Rule("dataloader", _DATA, "dataload_frac", seen.dataload, 0.20)
    yield from _of_stages(seen)
    why = "the host computes in framework operators; nothing is said about a GPU"
    yield _Rule("compute", why, "op_cover", seen.op_cover, _HALF)


def _of_stages(seen: Evidence) -> Iterator[_Rule]:
    """Yield the rules of a capture for inference: a stage beside its forward pass."""
    forward = seen.stages.get("forward", 0.0)
    for stage in ("postprocess", "preprocess"):
        took = seen.stages.get(stage)
        if took is not None and took >= forward and seen.step_ms:
            why = f"{stage} takes longer than the model"
            yield _Rule(stage, why, f"{stage}_share", took / seen.step_ms, 0.35)


def _shares(seen: Evidence) -> Iterator[Reason]:
    parts: Sequence[tuple[str, float | None]] = (
        ("idle_sync_of_idle", seen.idle_sync),
        ("idle_host_of_idle", seen.idle_host),
        ("idle_wait_of_idle", seen.idle_wait),
    )
    for metric, part in parts:
        if part is not None and seen.idle:
            yield Reason(metric, part / seen.idle, _HALF)
