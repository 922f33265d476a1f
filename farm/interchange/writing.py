"""A profile of ours as a callable JSON: their keys, our figures, and a reason for every null."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from farm import schema
from farm.errors import Bad
from farm.interchange.document import (
    TIMING_SCOPE,
    Array,
    CallableProfile,
    Peaks,
    Provenance,
    SystemCard,
    is_gpu,
    realtime_budget,
)
from farm.interchange.figures import Figures, figures
from farm.interchange.origin import Origin
from farm.schema import Latency, Memory, Profile, Quality
from farm.stats.percentiles import Samples

MIB: Final = 2**20
GIB: Final = 2**30
_ON_CPU: Final = "not_applicable: measured on a CPU"
# What one can declare and see again in an output; other words are recorded as they are.
_SEEN_AS: Final = {"fp64", "fp32", "fp16", "bf16"}
_NO_COST: Final = "not_applicable: nobody sees into a function; `farm profile cost` takes modules"
_NUMBER: Final = re.compile("[0-9]{1,18}")
_BY_TAG: Final = "not_probed: a function does not tell; say it with -t"


class Request(Struct, frozen=True, kw_only=True):
    """What was asked for. inputs_sha256: of the NPZ. visible: CUDA_VISIBLE_DEVICES if set."""

    model: str
    inputs: dict[str, Array]
    inputs_sha256: str
    device: str = "cpu"
    unit: str = "request"
    precision: str = "unspecified"
    warmup: int = 10
    repeats: int = 1000
    tags: dict[str, str] = {}
    visible: str | None = None

    @property
    def on_gpu(self) -> bool:
        return is_gpu(self.device)


def of_profile(
    profile: Profile,
    samples_ms: Sequence[Samples],
    request: Request,
    *,
    origin: Origin,
    card: schema.SystemCard | None,
    profile_id: str | None,
    quality: Quality | None = None,
    is_function: bool = True,
) -> CallableProfile:
    """Return the callable JSON of a profile that has a latency.

    samples_ms: of each process whose figures these are, in order. quality: of these, as the profile
    has it if None. is_function: nothing was cast then, and only its output shows its precision; of
    a job the worker has judged it (under autocast an output may well be fp32). Raises Bad for a
    profile that failed, and if there is no sample.
    """
    latency = profile.latency
    quality = quality or (profile.quality if isinstance(profile.quality, Quality) else None)
    if not isinstance(latency, Latency) or quality is None or not samples_ms:
        raise Bad(f"{request.model} has no latency", why=f"its profile ended as {profile.status}")
    taken = figures(
        samples_ms,
        timer_floor_ns=latency.timer_floor_ns,
        of_blocks=latency.of_blocks,
        stability=quality.stability,
        validity=quality.validity,
    )
    nulls = {f"latency_detail.{path}": why for path, why in taken.reasons.items()} | _hoisted(card)
    nulls |= {f"provenance.{name}": why for name, why in origin.reasons.items()}
    observed = profile.execution.precision_observed
    if profile_id is None:
        nulls["profile_id"] = "not_applicable: kept in no store"
    return CallableProfile(
        timing_scope=TIMING_SCOPE,
        device=request.device,
        unit=request.unit,
        warmup_calls=request.warmup,
        measured_calls=taken.detail.n,
        inputs=request.inputs,
        latency=taken.latency,
        latency_samples_ms=[float(each) for array in samples_ms for each in array],
        memory=_memory(profile, request, nulls),
        system_card=_system(card, request, profile, nulls),
        notes=_notes(profile, request, taken, is_function=is_function),
        model_callable=request.model,
        inputs_sha256=request.inputs_sha256,
        latency_detail=taken.detail,
        realtime_budget=realtime_budget(taken.latency.p50_ms),
        flags=_flags(quality, request, observed if is_function else {}),
        profile_id=profile_id,
        tags=request.tags,
        provenance=_provenance(profile, request, origin, nulls),
        card=None if card is None else structs.replace(card, null_reasons={}),
        cost=None,
        null_reasons=nulls | {"cost": _NO_COST},
    )


def _flags(quality: Quality, request: Request, observed: Mapping[str, str]) -> list[str]:
    found = set(quality.flags)
    if request.warmup == 0:
        found.add("first")
    seen = set(observed.get("output", "").split("+")) & _SEEN_AS
    if request.precision in _SEEN_AS and seen and request.precision not in seen:
        found.add("precision_mismatch")
    return sorted(found)


def _notes(profile: Profile, request: Request, taken: Figures, *, is_function: bool) -> list[str]:
    n, blocks = taken.detail.n, taken.detail.of_blocks
    precision = "as declared, and nothing was cast"
    if not is_function:
        precision = "as the job asked, and as seen in `provenance`"
    fed = f"fixed input: {n} timed calls on one input, not on {n} inputs"
    if profile.job.protocol.input_policy == "rotate":
        sets = profile.execution.resolved.get("input_sets", "several")
        fed = f"{n} timed calls on {sets} sets of inputs in turn"
    notes = [
        fed,
        "closed loop: a call starts when the one before it has ended",
        "percentiles by linear interpolation over all samples; deviations with ddof 1",
        f"`_mb` is MiB and `_gb` GiB; precision is {precision}",
        "whole-board GPU memory and allocations outside torch are not in `memory`",
    ]
    if is_function and request.unit == "request":
        notes.append(
            "if the function calls a remote API, the time is network plus server and the memory "
            "that of the client"
        )
    if request.warmup == 0:
        notes.append("no warm-up: the first call, with whatever it loads, is a sample")
    if blocks > 1:
        notes.append(f"each sample is the mean of {blocks} calls in a row, too short to time alone")
    return notes


def _memory(profile: Profile, request: Request, nulls: dict[str, str]) -> Peaks:
    memory = profile.memory
    host = memory.cpu_rss_peak_lifetime_bytes if isinstance(memory, Memory) else None
    if host is None:
        path = "memory.cpu_rss_peak_lifetime_bytes"
        nulls["memory.cpu_process_lifetime_peak_mb"] = profile.null_reasons.get(path, "not_probed")
    return Peaks(
        cpu_process_lifetime_peak_mb=None if host is None else host / MIB,
        cuda_peak_allocated_mb_by_visible_device=_cuda_peaks(profile, request, nulls),
    )


def _cuda_peaks(
    profile: Profile, request: Request, nulls: dict[str, str]
) -> dict[str, float | None] | None:
    """Return the allocator's peaks in MiB; a device that could not be read is null by itself."""
    theirs = "memory.cuda_peak_allocated_mb_by_visible_device"
    memory = profile.memory
    peaks = (
        memory.cuda_allocated_peak_bytes_by_visible_device if isinstance(memory, Memory) else None
    )
    if not request.on_gpu or not isinstance(peaks, dict):
        nulls[theirs] = "not_probed" if request.on_gpu else _ON_CPU
        return None
    ours = "memory.cuda_allocated_peak_bytes_by_visible_device"
    for at in (at for at, each in peaks.items() if each is None):
        nulls[f"{theirs}.{at}"] = profile.null_reasons.get(f"{ours}.{at}", "not_probed")
    return {at: None if each is None else each / MIB for at, each in peaks.items()}


def _system(
    card: schema.SystemCard | None, request: Request, profile: Profile, nulls: dict[str, str]
) -> SystemCard:
    found, reasons = system_of(
        card,
        precision=request.precision,
        on_gpu=request.on_gpu,
        tags=request.tags,
        resolved=profile.execution.resolved,
    )
    nulls |= {f"system_card.{name}": why for name, why in reasons.items()}
    return found


def system_of(
    card: schema.SystemCard | None,
    *,
    precision: str,
    on_gpu: bool,
    tags: Mapping[str, str] | None = None,
    resolved: Mapping[str, str] | None = None,
) -> tuple[SystemCard, dict[str, str]]:
    """Return what is known of the machine, and why each of its nulls is one.

    precision: as declared. on_gpu: only then is anything said of a GPU, be there one or not
    (S1.45). tags: batch_size and input_resolution, as somebody said them.
    """
    tags = tags or {}
    size = tags.get("batch_size", "")
    found: dict[str, Any] = dict.fromkeys(SystemCard.__struct_fields__)
    found |= {
        "precision": precision,
        "batch_size": int(size) if _NUMBER.fullmatch(size) else None,
        "input_resolution": tags.get("input_resolution"),
    }
    reasons = dict.fromkeys(("batch_size", "input_resolution"), _BY_TAG)
    found |= _machine(card, reasons)
    found |= _gpu(card, resolved or {}, reasons) if on_gpu else {}
    usual = "not_probed" if on_gpu else _ON_CPU
    nulls = [name for name, value in found.items() if value is None]
    return SystemCard(**found), {name: reasons.get(name, usual) for name in nulls}


def _machine(card: schema.SystemCard | None, reasons: dict[str, str]) -> dict[str, Any]:
    names = ("cpu_name", "ram_gb", "pytorch_version", "python_version", "os")
    if card is None:
        reasons |= dict.fromkeys(names, "not_probed: the card is not here")
        return {}
    stable = card.stable
    paths = ("cpu.model", "memory_bytes", "frameworks.torch", "frameworks.python", "os.distro")
    for name, path in zip(names, paths, strict=True):
        reasons[name] = card.null_reasons.get(f"stable.{path}", "not_probed")
    words = [stable.os.distro, stable.os.kernel]
    return {
        "cpu_name": stable.cpu.model,
        "ram_gb": None if stable.memory_bytes is None else stable.memory_bytes / GIB,
        "pytorch_version": stable.frameworks.torch,
        "python_version": stable.frameworks.python,
        "os": ", ".join(each for each in words if each) or None,
    }


def _gpu(
    card: schema.SystemCard | None, resolved: Mapping[str, str], reasons: dict[str, str]
) -> dict[str, Any]:
    reasons["driver_version"] = "driver_not_loaded"
    count = resolved.get("cuda_devices", "")
    memory = resolved.get("cuda_memory_bytes", "")
    return {
        "gpu_name": resolved.get("cuda_device"),
        "gpu_count": int(count) if _NUMBER.fullmatch(count) else None,
        "gpu_memory_gb": int(memory) / GIB if _NUMBER.fullmatch(memory) else None,
        "cuda_version": resolved.get("cuda_version"),
        "driver_version": card.stable.drivers.nvidia if card is not None else None,
    }


def _provenance(
    profile: Profile, request: Request, origin: Origin, nulls: dict[str, str]
) -> Provenance:
    execution = profile.execution
    visible = (
        (request.visible if request.visible is not None else "all") if request.on_gpu else None
    )
    if visible is None:
        nulls["provenance.visible_devices"] = _ON_CPU
    return Provenance(
        code_digest=profile.job.workload.model.digest,
        commit=origin.commit,
        dirty=origin.dirty,
        container_image=origin.container_image,
        host_load_1m=origin.host_load_1m,
        started_at=execution.started_at,
        finished_at=execution.finished_at,
        visible_devices=visible,
        threads=execution.threads,
        precision_observed=execution.precision_observed,
    )


def _hoisted(card: schema.SystemCard | None) -> dict[str, str]:
    """Return the reasons of a card's nulls as seen from the document: it has one map of reasons."""
    if card is None:
        return {"card": "not_probed: the card is not here"}
    return {f"card.{path}": why for path, why in card.null_reasons.items()}
