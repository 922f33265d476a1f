"""The golden documents of the instrument: a profile with every block, its layer table, roofs."""

import msgspec

from farm import schema
from farm.hardware import Product, Roofs, Stream
from tests.farm import make

_BLOCKS = {
    "gpu_time": schema.GpuTime(
        n=200,
        p50_ms=9.31,
        p50_lo_ms=9.25,
        p50_hi_ms=9.38,
        std_ms=0.13,
        enqueue_p50_ms=2.41,
        enqueue_bound=False,
        reliable=True,
    ),
    "energy": schema.Energy(
        energy_gross_j=91.4,
        energy_net_j=61.3,
        energy_per_iteration_j=0.613,
        energy_per_item_j=0.0766,
        energy_uncertainty_j=None,
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
    ),
    "layers": schema.Layers(
        method="hooks",
        clock="device",
        warmup_iterations=5,
        iterations=100,
        rows=2,
        hotspots=[
            schema.Hotspot(layer="layer1.0.conv1", type="Conv2d", share_pct=62.5),
            schema.Hotspot(layer="fc", type="Linear", share_pct=37.5),
        ],
        unattributed_ms=0.11,
        profiled_ms=10.5,
        clean_ms=10.0,
        perturbation=0.05,
    ),
    "cost": schema.Cost(
        params_total=11_689_512,
        params_trainable=11_689_512,
        params_unique_bytes=23_379_024,
        buffers_bytes=38_452,
        param_dtypes={"bf16": 23_379_024},
        flops_per_batch=29_025_173_504,
        flops_per_item=3_628_146_688.0,
        macs_per_item=1_814_073_344.0,
        flops_status="partial",
        flops_counter="torch 2.13.0",
        uncounted_ops=["aten::adaptive_avg_pool2d"],
        flops_coverage=0.984,
        attention="none",
        bytes_lower_bound_per_batch=33_000_000,
        activation_peak_bytes=None,
        weights=schema.WeightSpread(
            n=11_689_512,
            used=1_168_952,
            percentiles={"p50": 0.0103, "p99": 0.0511},
            shares_below={"0.001": 0.0497},
        ),
    ),
    "estimate": schema.Estimate(
        not_measured=True,
        spec="A100-80GB-SXM",
        dtype="bf16",
        peak_flops_per_s=3.12e14,
        peak_bytes_per_s=2.039e12,
        peak_source="datasheet",
        arithmetic_intensity_flop_per_byte=879.55,
        ridge_flop_per_byte=153.02,
        attainable_flops_per_s=3.12e14,
        compute_ms=0.09303,
        memory_ms=0.016185,
        roofline_ms=0.09303,
        roofline_bound="compute",
    ),
    "bounds": schema.Bounds(
        measured_bound="launch",
        mfu=0.0093,
        mbu=0.0016,
        gflops_per_second=2902.5,
        memory_bandwidth_mbs=74_658.0,
        heuristic_bound="memory",
        roof_violation=False,
    ),
}
_COMPILED = {"compile_s": 12.5, "compile_iterations": 3, "recompiles": 0, "outlier_share": 0.004}
_MEMORY = {
    "cuda_allocated_peak_bytes": 712 << 20,
    "cuda_reserved_peak_bytes": 811 << 20,
    "cuda_requested_peak_bytes": 701 << 20,
    "cuda_inactive_split_peak_bytes": 12 << 20,
    "cuda_alloc_retries": 0,
    "cuda_allocated_peak_bytes_by_visible_device": {"0": 712 << 20, "1": None},
}
_EFFORT = schema.Effort(percentiles=(50.0, 99.9), energy=True, layer_iterations=100, threads=2)


def profile() -> schema.Profile:
    """A compiled model on a GPU, with everything that can be asked for; some of it unknown."""
    made = make.profile(_job(), effort=_EFFORT, resolved={"cuda_device": "A100-SXM4-80GB"})
    assert isinstance(made.latency, schema.Latency)
    assert isinstance(made.memory, schema.Memory)
    further = schema.Percentile(q=99.9, value_ms=12.9, lo_ms=None, hi_ms=None, reliable=False)
    latency = msgspec.structs.replace(made.latency, p50_item_ms=1.25, percentiles=[further])
    kinds = {"layers": "x-npz", "layer_table": "json", "output": "x-npz"}
    made = msgspec.structs.replace(
        made,
        repeats=[msgspec.structs.replace(each, **_COMPILED) for each in made.repeats],
        latency=latency,
        memory=msgspec.structs.replace(made.memory, **_MEMORY),
        artifacts={name: _artifact(name, media) for name, media in kinds.items()},
        **_BLOCKS,
    )
    return make.with_reasons(made)


def layer_table() -> schema.LayerTable:
    """Two layers, of which one has no FLOPs and none a known peak."""
    made = make.layer_table("layer1.0.conv1", "fc", method="hooks", clock="device")
    rows = [msgspec.structs.replace(made.rows[0], flops_per_batch=None), made.rows[1]]
    why = {"rows.0.flops_per_batch": "not_supported: no formula for aten::conv2d"}
    return msgspec.structs.replace(made, rows=rows, null_reasons={**made.null_reasons, **why})


def roofs() -> Roofs:
    """Of a CPU that was never quiet enough for bf16."""
    stream = Stream(
        working_set_bytes=8 << 20,
        triad_bytes_per_s=4.1e10,
        read_bytes_per_s=5.2e10,
        runs=20,
        taken_at=make.STARTED,
    )
    wide = msgspec.structs.replace(
        stream, working_set_bytes=1 << 30, triad_bytes_per_s=1.9e10, read_bytes_per_s=2.1e10
    )
    product = Product(
        flops_per_s=1.1e11, size=2048, sizes=[1024, 2048, 4096], runs=10, taken_at=make.STARTED
    )
    return Roofs(
        system_id=make.SYSTEM,
        system_class="epyc-7b13-2c",
        device="AMD EPYC 7B13",
        threads=2,
        recipe="roofs/1",
        tried_at=make.STARTED,
        cache_bytes=32 << 20,
        products={"fp32": product, "bf16": None},
        caches=[stream],
        memory=wide,
        null_reasons={"products.bf16": "not_probed: the host was busy"},
    )


def _job() -> schema.Job:
    job = make.job("resnet18", precision="bf16", batch=8, device="a100-80gb")
    inputs = schema.Inputs(
        spec={"x": schema.Tensor(shape=("batch", 3, 224, 224))},
        digest="3" * 64,
        samples=("office", "street"),
    )
    workload = msgspec.structs.replace(
        job.workload, inputs=inputs, backend_options={"compile": True}, item="image"
    )
    protocol = schema.Protocol(compat="yasp", warmup=5, iterations=100)
    return msgspec.structs.replace(job, workload=workload, protocol=protocol)


def _artifact(name: str, media: str) -> schema.Artifact:
    return schema.Artifact(
        key=f"blobs/v1/{name}", sha256="4" * 64, bytes=1000, media_type=f"application/{media}"
    )
