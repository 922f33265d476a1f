"""Profiles with a cost, tables of layers and peaks of made-up devices."""

from typing import Any

import msgspec

from farm import schema
from farm.hardware import GPUSpec
from tests.farm import make


def cost(**more: Any) -> schema.Cost:
    """A model of 1 M fp32 parameters that does 10 GFLOP and moves 20 MB."""
    fields: dict[str, Any] = {
        "params_total": 1_000_000,
        "params_trainable": 1_000_000,
        "params_unique_bytes": 4_000_000,
        "buffers_bytes": 0,
        "param_dtypes": {"fp32": 4_000_000},
        "flops_per_batch": 10_000_000_000,
        "flops_per_item": 10_000_000_000.0,
        "macs_per_item": 5_000_000_000.0,
        "flops_status": "measured",
        "flops_counter": "meta tensors, torch 2.13.0",
        "uncounted_ops": [],
        "flops_coverage": 1.0,
        "attention": "none",
        "bytes_lower_bound_per_batch": 20_000_000,
        "activation_peak_bytes": 1_000_000,
    }
    return schema.Cost(**(fields | more))


def profile(
    *,
    needs: schema.Cost | None = None,
    why: dict[str, str] | None = None,
    latency: bool = False,
    precision: str = "fp32",
    estimate: schema.Estimate | None = None,
    bounds: schema.Bounds | None = None,
    **more: Any,
) -> schema.Profile:
    """A profile that holds a cost; why: reasons of its nulls. latency: whether it has one."""
    made = make.profile(make.job(precision=precision), **more)
    blocks: dict[str, Any] = {"cost": needs or cost(), "estimate": estimate, "bounds": bounds}
    if not latency:
        blocks |= dict.fromkeys(("latency", "throughput", "memory", "quality"), msgspec.UNSET)
        blocks["repeats"] = []
    made = msgspec.structs.replace(made, **blocks)
    plain = msgspec.to_builtins(made)
    reasons = {
        path: (why or {}).get(path, made.null_reasons.get(path, "not_probed"))
        for path in schema.null_paths({k: v for k, v in plain.items() if k != "null_reasons"})
    }
    return msgspec.structs.replace(made, null_reasons=reasons | (why or {}))


def table(
    *rows: tuple[str, str, float, int | None, float | None], **more: Any
) -> schema.LayerTable:
    """A table of layers: name, type, share in percent, FLOPs and percent of peak."""
    made = [
        schema.LayerRow(
            layer=layer,
            type=kind,
            calls_per_iteration=1.0,
            share_pct=share,
            average_ms=share / 100,
            median_ms=share / 100,
            std_ms=0.001,
            total_ms=share,
            scaled_ms=share / 100,
            flops_per_batch=flops,
            pct_of_peak=peak,
            reliable=True,
        )
        for layer, kind, share, flops, peak in rows
    ]
    return make.layer_table(rows=made, null_reasons={}, **more)


def spec(name: str, flops: float | None, width: float | None, **formats: float) -> GPUSpec:
    """A device with peaks in TFLOP/s and GB/s."""
    peaks = {} if flops is None else {"fp32": flops}
    return GPUSpec(
        name=name,
        peak_flops_per_s={word: 1e12 * each for word, each in (peaks | formats).items()},
        peak_bytes_per_s=None if width is None else 1e9 * width,
        source="datasheet",
    )


def bounds(limit: str | None = None, **more: Any) -> schema.Bounds:
    fields: dict[str, Any] = {
        "measured_bound": limit,
        "mfu": 0.43,
        "mbu": 0.021,
        "gflops_per_second": 100.0,
        "memory_bandwidth_mbs": 50.0,
        "heuristic_bound": "compute",
        "roof_violation": False,
    }
    return schema.Bounds(**(fields | more))
