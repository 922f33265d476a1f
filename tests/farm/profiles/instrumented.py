"""Profiles with every block that an instrument fills; every number of theirs is far from 0."""

import msgspec

from farm import schema
from tests.farm import make

LAYERS = schema.Layers(
    method="wrapped",
    clock="wall",
    warmup_iterations=5,
    iterations=91,
    rows=42,
    hotspots=[
        schema.Hotspot(layer=f"block.{at}", type="Linear", share_pct=share)
        for at, share in enumerate((31.2, 22.1, 11.3, 7.2, 5.4))
    ],
    unattributed_ms=0.11,
    profiled_ms=1.26,
    clean_ms=1.2,
    perturbation=0.05,
)
COST = make.cost(
    params_total=11_689_512,
    params_trainable=11_689_512,
    params_unique_bytes=46_758_148,
    buffers_bytes=38_452,
    param_dtypes={"fp32": 46_758_148},
    flops_per_batch=3_628_146_688,
    flops_per_item=3_628_146_688,
    macs_per_item=1_814_173_344,
    flops_status="partial",
    flops_counter="a counter",
    uncounted_ops=["aten::x"],
    flops_coverage=0.934,
    bytes_lower_bound_per_batch=49_545_216,
    activation_peak_bytes=6_422_528,
)
ESTIMATE = schema.Estimate(
    not_measured=True,
    spec="EPYC",
    dtype="fp32",
    peak_flops_per_s=1.1e11,
    peak_bytes_per_s=2.1e10,
    peak_source="measured",
    arithmetic_intensity_flop_per_byte=73.2,
    ridge_flop_per_byte=5.2,
    attainable_flops_per_s=1.1e11,
    compute_ms=32.98,
    memory_ms=2.36,
    roofline_ms=32.98,
    roofline_bound="compute",
)
BOUNDS = schema.Bounds(
    measured_bound="compute",
    mfu=0.412,
    mbu=0.116,
    gflops_per_second=45.3,
    memory_bandwidth_mbs=3355.4,
    heuristic_bound="memory",
    roof_violation=False,
)
GPU_TIME = schema.GpuTime(
    n=200,
    p50_ms=7.31,
    p50_lo_ms=7.25,
    p50_hi_ms=7.38,
    std_ms=0.13,
    enqueue_p50_ms=2.41,
    enqueue_bound=False,
    reliable=True,
)
ENERGY = schema.Energy(
    energy_gross_j=91.4,
    energy_net_j=61.3,
    energy_per_iteration_j=0.613,
    energy_per_item_j=0.613,
    energy_uncertainty_j=4.6,
    power_mean_w=82.3,
    power_idle_w=27.1,
    window_s=1.11,
    windows=3,
    update_period_ms=25.2,
    energy_method="counter",
    energy_scope="device",
    temperature_before_c=41.5,
    temperature_after_c=55.5,
    notes=["duty_25pct"],
)
TRACED = schema.Traced(iterations=17, bytes=23_456_789)
BLOCKS = {
    "layers": LAYERS,
    "trace": TRACED,
    "cost": COST,
    "estimate": ESTIMATE,
    "bounds": BOUNDS,
    "gpu_time": GPU_TIME,
    "energy": ENERGY,
}
WHY = "error: fell over"


def profile(*, nulls=(), codes=None, **blocks) -> schema.Profile:
    """A profile of a GPU with every block, unless one is given; nulls: paths without a number.

    codes: reasons other than the usual one, by path.
    """
    made = make.profile(resolved={"cuda_device": "H200"})
    memory = msgspec.structs.replace(
        made.memory, cuda_allocated_peak_bytes=712 << 20, cuda_reserved_peak_bytes=811 << 20
    )
    made = msgspec.structs.replace(made, memory=memory, **(BLOCKS | blocks))
    for path in nulls:
        name, _, field = path.partition(".")
        block = msgspec.structs.replace(getattr(made, name), **{field: None}) if field else None
        made = msgspec.structs.replace(made, **{name: block})
    paths = schema.null_paths(msgspec.to_builtins(made))
    return msgspec.structs.replace(
        made, null_reasons={path: (codes or {}).get(path, WHY) for path in paths}
    )
