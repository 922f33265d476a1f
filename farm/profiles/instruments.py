"""What the instruments found, for a person: layers, trace, cost, limits, energy, some lines each.

A share stands for a share, and what was computed says that it was not measured. What is not there
is named at the end with its reason, unless nobody asked for it.
"""

from collections.abc import Mapping
from typing import Final

from farm.catalog.rows import Row
from farm.report import words
from farm.schema import Bounds, Cost, Energy, Estimate, Layers, Profile, Traced

_NOT_ASKED: Final = "not_requested"
# What a person calls a block, and a number in one; bytes in MiB.
_BLOCKS: Final[Mapping[str, str]] = {
    "layers": "layers",
    "trace": "trace",
    "cost": "cost",
    "estimate": "roofline",
    "bounds": "limits",
    "gpu_time": "device time",
    "energy": "energy",
}
_NUMBERS: Final[Mapping[str, str]] = {
    "layers.perturbation": "perturbation",
    "cost.params_total": "parameters",
    "cost.params_unique_bytes": "their size",
    "cost.flops_per_item": "FLOPs",
    "cost.flops_coverage": "coverage",
    "cost.bytes_lower_bound_per_batch": "bytes moved",
    "cost.activation_peak_bytes": "activations",
    "estimate.roofline_ms": "roofline",
    "bounds.measured_bound": "measured bound",
    "bounds.mfu": "mfu",
    "bounds.mbu": "mbu",
    "bounds.gflops_per_second": "FLOP/s",
    "bounds.heuristic_bound": "rule of thumb",
    "energy.energy_gross_j": "gross energy",
    "energy.energy_uncertainty_j": "its uncertainty",
    "energy.energy_net_j": "net energy",
    "energy.energy_per_item_j": "energy per item",
}
SHOWN: Final[Mapping[str, str]] = {**_BLOCKS, **_NUMBERS}  # whose reason is told if they are null


def lines(row: Row) -> list[str]:
    """Return what there is of each instrument; nothing of a profile without."""
    profile = row.profile
    said: list[str] = []
    if isinstance(profile.layers, Layers):
        said += _layers(profile.layers)
        if "layers" in profile.artifacts:
            said.append(f"         table: farm profiles get {row.profile_id[:12]} layers")
    if isinstance(profile.trace, Traced):
        said += _block("trace", _traced(profile.trace, row.profile_id))
    if isinstance(profile.cost, Cost):
        item = profile.job.workload.item
        said += _block("cost", _held(profile.cost), _work(profile.cost, item))
    said += _block("limits", *_limits(profile))
    if isinstance(profile.energy, Energy):
        said += _block("energy", *_energy(profile.energy, profile.job.workload.item))
    return said + _without(profile)


def _block(name: str, *parts: str) -> list[str]:
    """Return the lines of a block; only the first one has its name."""
    known = [each for each in parts if each]
    return [f"{'' if at else name:<9}{each}" for at, each in enumerate(known)]


def _traced(found: Traced, profile_id: str) -> str:
    held = f"{words.count(found.iterations, 'iteration')}, {words.size(found.bytes)}"
    return f"{held}; read it: farm profile summary {profile_id[:12]}"


def _layers(found: Layers) -> list[str]:
    spots = [
        f"{words.visible(each.layer)} {words.percent(each.share_pct / 100)} %"
        for each in found.hotspots
    ]
    more = found.rows - len(spots)
    spots += [f"{more} more"] if more > 0 else []
    how = [found.method, f"{found.clock} clock", f"{found.iterations} iterations"]
    if found.perturbation is not None:
        how.append(f"perturbation {100 * found.perturbation:+.1f} %")
    return _block("layers", ", ".join(spots), f"shares of a profiled pass: {', '.join(how)}")


def _held(found: Cost) -> str:
    parts = []
    if found.params_total is not None:
        held = found.params_unique_bytes
        size = "" if held is None else f" in {words.number(held / 2**20)} MiB"
        parts.append(f"{found.params_total:,} parameters{size}")
    if (held := found.activation_peak_bytes) is not None:
        parts.append(f"activations of {words.number(held / 2**20)} MiB per batch at most")
    return "; ".join(parts)


def _work(found: Cost, item: str) -> str:
    parts = []
    if found.flops_per_item is not None:
        share = found.flops_coverage
        covered = [] if share is None else [f"coverage {words.share(share)} %"]
        status = [] if found.flops_status == "measured" else [found.flops_status]
        doubt = f" ({', '.join([*status, *covered])})" if status or covered else ""
        parts.append(f"{words.whole(found.flops_per_item)} FLOPs per {item}{doubt}")
    if (moved := found.bytes_lower_bound_per_batch) is not None:
        parts.append(f"at least {words.number(moved / 2**20)} MiB moved per batch")
    return "; ".join(parts)


def _limits(profile: Profile) -> list[str]:
    bounds, roof = profile.bounds, profile.estimate
    said = []
    if isinstance(bounds, Bounds):
        said.append(_measured(bounds))
        if bounds.roof_violation:
            said.append("quicker than its roofs: the peaks or the count of its work are wrong")
    if isinstance(roof, Estimate) and roof.roofline_ms is not None:
        bound = f", {roof.roofline_bound}" if roof.roofline_bound is not None else ""
        said.append(
            f"not measured: {words.number(roof.roofline_ms)} ms at the roofline{bound}; "
            f"{roof.peak_source or words.UNKNOWN} peaks of {roof.spec}, {roof.dtype}"
        )
    if isinstance(bounds, Bounds) and bounds.heuristic_bound is not None:
        said.append(f"not measured: {bounds.heuristic_bound}, by the old rule of thumb")
    return said


def _measured(found: Bounds) -> str:
    parts = [f"measured: {found.measured_bound}"] if found.measured_bound is not None else []
    if found.mfu is not None:
        parts.append(f"mfu {words.percent(found.mfu)} % of peak FLOP/s")
    if found.mbu is not None:
        parts.append(f"mbu {words.percent(found.mbu)} % of peak bandwidth")
    if found.gflops_per_second is not None:
        parts.append(f"{words.number(found.gflops_per_second)} GFLOP/s")
    return ", ".join(parts)


def _energy(found: Energy, item: str) -> list[str]:
    parts = []
    if found.energy_per_item_j is not None:
        parts.append(f"{words.number(found.energy_per_item_j)} J per {item}")
    if found.energy_gross_j is not None:
        half = found.energy_uncertainty_j
        gross = words.plus_minus(found.energy_gross_j, half, reliable=half is not None)
        window = "" if found.window_s is None else f" in {words.number(found.window_s)} s"
        parts.append(f"{gross} J gross{window}")
    if found.energy_net_j is not None:
        parts.append(f"{words.number(found.energy_net_j)} J above idle")
    how = [found.energy_method or "", found.energy_scope or "", *map(words.flag, found.notes)]
    by = [each for each in how if each]
    return ["; ".join(parts), f"by {', '.join(by)}" if by else ""]


def _without(profile: Profile) -> list[str]:
    """Return what is not there, a line for each reason, the same words once."""
    gone: dict[str, dict[str, None]] = {}
    for path, name in SHOWN.items():
        why = profile.null_reasons.get(path, "")
        if why and why.partition(":")[0] != _NOT_ASKED and _was_asked(profile, path):
            gone.setdefault(why, {})[name] = None
    return [f"without  {', '.join(names)}: {words.reason(why)}" for why, names in gone.items()]


def _was_asked(profile: Profile, path: str) -> bool:
    """Return whether it could have been expected: a CPU has no time of a device apart."""
    on_gpu = "cuda_device" in profile.execution.resolved or profile.execution.device.kind != "cpu"
    return path != "gpu_time" or on_gpu
