"""Records and arrays as a child would leave them, for tests of what the parent makes of them."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from farm.schema import (
    Cpu,
    Device,
    Drivers,
    Effort,
    Frameworks,
    Inputs,
    Job,
    Model,
    NodeFacts,
    Order,
    Phase,
    Protocol,
    Selector,
    Stable,
    System,
    SystemCard,
    Workload,
)
from workers.record import CostReading, Edge, LayerReading, MemoryReading, Record, WarmUp

MIB = 1 << 20


def edge(at_s: float, **changes: Any) -> Edge:
    """An edge of a quiet machine at a second; whatever is changed is changed."""
    quiet = Edge(
        at_ns=int(at_s * 1e9),
        run_ns=int(at_s * 1e9),
        wait_ns=0,
        steal_ticks=0,
        total_ticks=int(at_s * 100),
        psi_some_us=0,
        nr_throttled=0,
        major_faults=0,
        involuntary_switches=0,
        suspended_ns=0,
    )
    return msgspec.structs.replace(quiet, **changes)


def record(index: int = 0, **changes: Any) -> Record:
    good = Record(
        index=index,
        started_at="2026-11-30T02:00:00.000Z",
        phases=[Phase(name="latency", status="done", duration_s=1.0)],
        first_ms=12.0,
        warmup=WarmUp(iterations=30, seconds=0.4, stop="converged"),
        timer_floor_ns=70,
        latency_edges=(edge(1), edge(2)),
        throughput_iterations=100,
        throughput_window_s=1.0,
        memory=MemoryReading(
            rss_after_load_bytes=100 * MIB,
            rss_peak_bytes=130 * MIB,
            rss_peak_lifetime_bytes=150 * MIB,
            pss_bytes=90 * MIB,
        ),
    )
    return msgspec.structs.replace(good, **changes)


def arrays(
    center_ms: float = 10.0, *, n: int = 400, spread: float = 0.004, seed: int = 0
) -> Mapping[str, NDArray[Any]]:
    """n samples around a center with a relative spread, none labelled."""
    rng = np.random.default_rng(seed)
    samples = center_ms * 1e6 * (1 + spread * rng.standard_normal(n))
    return {
        "latency_ns": samples.astype(np.int64),
        "label_bits": np.zeros(n, dtype=np.uint8),
    }


def instrumented(**changes: Any) -> Record:
    """The record of an instrumented child: two layers, and a count of everything."""
    good = Record(
        index=-1,
        started_at="2026-11-30T02:00:10.000Z",
        phases=[
            Phase(name="layers", status="done", duration_s=1.0, instrumented=True),
            Phase(name="flops", status="done", duration_s=0.1, instrumented=True),
        ],
        layers=LayerReading(
            method="wrapped",
            clock="wall",
            layers=["first", "second"],
            types=["Linear", "ReLU"],
            calls=[1.0, 1.0],
            warmup=5,
            iterations=20,
            blocks=10,
        ),
        cost=CostReading(
            params_total=8256,
            params_trainable=8256,
            params_unique_bytes=33_024,
            buffers_bytes=0,
            param_dtypes={"fp32": 33_024},
            flops_per_batch=65_536,
            flops_status="measured",
            flops_counter="a counter",
            flops_coverage=1.0,
            attention="none",
            bytes_lower_bound_per_batch=40_000,
            activation_peak_bytes=4096,
            flops_by_layer={"first": 65_536},
        ),
    )
    return msgspec.structs.replace(good, **changes)


def layer_arrays(*, seed: int = 0) -> Mapping[str, NDArray[Any]]:
    """Times of the two layers, 3 : 1, and of whole iterations 5 % slower than clean ones."""
    noise = 1 + 0.01 * np.random.default_rng(seed).standard_normal(20)
    whole = np.array(10e6 * noise, dtype=np.int64)
    layers = np.array([7.2e6 * noise, 2.4e6 * noise], dtype=np.int64)
    return {"layer_ns": layers, "profiled_ns": whole, "clean_ns": (whole / 1.05).astype(np.int64)}


def job(**changes: Any) -> Job:
    workload = Workload(
        model=Model(name="mlp", ref="workers.models.mlp:build", source="zoo", digest="0" * 64),
        inputs=Inputs(spec={}),
        precision="fp32",
        batch=4,
    )
    return Job(
        workload=msgspec.structs.replace(workload, **changes),
        protocol=Protocol(),
        selector=Selector(kind="any"),
    )


def order(repeats: int = 3, **effort: Any) -> Order:
    return Order(
        job=job(),
        effort=Effort(repeats=repeats, **effort),
        repeat_set="base",
        label="mlp/fp32/b4/any",
    )


def device() -> Device:
    return Device(name="test cpu", slot="cpu:0", kind="cpu", cpus=[1])


def card() -> SystemCard:
    """A card of a machine that exists in tests only."""
    return SystemCard(
        system_id="5" * 32,
        system_class="test-cpu_1c",
        stable=Stable(
            simulated=False,
            virtualization="none",
            memory_bytes=8 << 30,
            cpu=Cpu(
                vendor="v",
                model="test cpu",
                arch="x86_64",
                sockets=1,
                physical_cores=2,
                logical_cpus=2,
                leased_cores=1,
                smt=False,
                isa=[],
                max_hz=1,
                governor="performance",
                l3_bytes=1,
                numa_nodes=1,
            ),
            os=System(distro="d", kernel="k", libc="l", clocksource="tsc"),
            drivers=Drivers(nvidia="1"),
            frameworks=Frameworks(python="3.11", torch="2.13.0", numpy="2", farm_protocol=1),
            settings={},
        ),
        node=NodeFacts(
            node_id="ab" * 16,
            name="n1",
            collected_at="2026-11-30T02:00:00Z",
            lease_scope="user",
            leased_cpus=[1],
            housekeeping_cpus=[0],
            cgroup_cpus=2,
        ),
    )
