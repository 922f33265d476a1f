"""Documents for tests: each valid as it comes, each thing that matters to a test an argument."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from farm import identity, schema
from farm.catalog.rows import Row
from farm.ledger import Slot
from farm.store import Store, card_key, manifest_key, profile_key
from farm.sweep import Plan, Planned

RUN = "r-20261130-101500-7f3a91"
SYSTEM = identity.short_hash("system")
OTHER_SYSTEM = identity.short_hash("another system")
STARTED = "2026-11-30T10:15:00Z"


def job(model="mlp", *, precision="fp32", batch=1, device="cpu", ref=None) -> schema.Job:
    """A job of the zoo on one class."""
    kind = "any" if device == "any" else "class"
    return schema.Job(
        workload=schema.Workload(
            model=schema.Model(
                name=model,
                ref=ref or f"workers.models.{model}:build",
                source="zoo",
                digest=identity.content_id(model.encode()),
            ),
            inputs=schema.Inputs(spec={"x": schema.Tensor(shape=("batch", 64))}),
            precision=precision,
            batch=batch,
        ),
        protocol=schema.Protocol(),
        selector=schema.Selector(kind=kind, value="" if device == "any" else device),
    )


def repeat(index=0, *, p50_ms=10.0, n=256, flags: Sequence[str] = (), **more) -> schema.Repeat:
    """One usable repeat around a median."""
    fields = {
        "index": index,
        "started_at": STARTED,
        "import_s": 1.2,
        "load_s": 0.1,
        "first_ms": p50_ms * 3,
        "warmup_iterations": 40,
        "warmup_s": 0.4,
        "warmup_stop": "converged",
        "n": n,
        "n_eff": n,
        "mean_ms": p50_ms * 1.01,
        "std_ms": p50_ms * 0.01,
        "min_ms": p50_ms * 0.97,
        "max_ms": p50_ms * 1.3,
        "p50_ms": p50_ms,
        "p90_ms": p50_ms * 1.04,
        "p95_ms": p50_ms * 1.06,
        "p99_ms": p50_ms * 1.12,
        "throughput_items_per_s": 1000 / p50_ms,
        "cpu_rss_peak_bytes": 300 << 20,
        "drift_rel": 0.001,
        "lag1": 0.05,
        "wait_share": 0.001,
        "steal_share": 0.0,
        "psi_share": 0.0,
        "output_digest": "0" * 64,
        "flags": list(flags),
        "phases": [schema.Phase(name="latency", status="done", duration_s=2.5, iterations=n)],
    }
    return schema.Repeat(**(fields | more))


def latency(p50_ms=10.0, *, half_rel: float | None = 0.004, n=768, **more) -> schema.Latency:
    """Statistics around a median; half_rel: half-width of its interval over it, None for none."""
    fields = {
        "n": n,
        "n_eff": n,
        "mean_ms": p50_ms * 1.01,
        "std_ms": p50_ms * 0.01,
        "mad_ms": p50_ms * 0.005,
        "iqr_rel": 0.011,
        "min_ms": p50_ms * 0.97,
        "max_ms": p50_ms * 1.3,
        "timer_floor_ns": 71,
        "of_blocks": 1,
        "proc_cv": None if half_rel is None else 0.003,
        "log_mean": round(math.log(p50_ms), 6),  # a libm may differ in the last digit
        "log_std": None if half_rel is None else 0.003,
        "clean_p50_ms": p50_ms,
        "clean_share": 1.0,
        "p50_ms": p50_ms,
        "p50_lo_ms": None if half_rel is None else p50_ms * (1 - half_rel),
        "p50_hi_ms": None if half_rel is None else p50_ms * (1 + half_rel),
        "p50_reliable": half_rel is not None,
    }
    for name, factor, needed in (("p90", 1.04, 36), ("p95", 1.06, 72), ("p99", 1.12, 368)):
        has = n >= needed
        fields[f"{name}_ms"] = p50_ms * factor
        fields[f"{name}_lo_ms"] = p50_ms * (factor - 0.01) if has else None
        fields[f"{name}_hi_ms"] = p50_ms * (factor + 0.02) if has else None
        fields[f"{name}_reliable"] = has
    return schema.Latency(**(fields | more))


def device(name="AMD EPYC 7B13", *, slot="cpu:0", cpus=(0, 1)) -> schema.Device:
    return schema.Device(name=name, slot=slot, kind="cpu", cpus=list(cpus))


def execution(*, node="laptop", finished_at=STARTED, simulated=False, **more) -> schema.Execution:
    fields = {
        "node": node,
        "worker": f"{node}-0",
        "started_at": STARTED,
        "finished_at": finished_at,
        "queue_s": 0.2,
        "overhead_s": 1.9,
        "start": "cold",
        "isolation": "plain",
        "memory_limit": "none",
        "environment": "default",
        "device": device(),
        "threads": 2,
        "effective_threads": {"torch": 2},
        "simulated": simulated,
        "farm_version": "0.1.0",
        "tags": {},
        "effort": schema.Effort(),
        "resolved": {"warmup": "auto"},
        "precision_observed": {"parameters": "float32"},
    }
    return schema.Execution(**(fields | more))


def profile(
    asked: schema.Job | None = None,
    *,
    status="ok",
    p50_ms=10.0,
    half_rel: float | None = 0.004,
    repeats=3,
    n=256,
    flags: Sequence[str] = (),
    repeat_flags: Sequence[Sequence[str]] = (),
    validity: str | None = None,
    stability="stable",
    neighbours: Sequence[str] = (),
    failure: schema.Failure | None = None,
    throughput: float | None = None,
    rss_bytes: int | None = 300 << 20,
    run_id=RUN,
    repeat_set="base",
    system_id=SYSTEM,
    attempt=1,
    fence=1,
    **more,
) -> schema.Profile:
    """A profile that `schema.encode` accepts; `more` goes to its execution."""
    asked = asked or job()
    fields = {
        "job_id": asked.job_id,
        "cell_id": asked.cell_id,
        "workload_id": asked.workload_id,
        "protocol_id": asked.protocol_id,
        "system_id": system_id,
        "system_class": "epyc-7b13-2c",
        "card_id": identity.content_id(system_id.encode()),
        "run_id": run_id,
        "repeat_set": repeat_set,
        "attempt": attempt,
        "fence": fence,
        "job": asked,
        "status": status,
        "execution": execution(**more),
    }
    if status != "ok":
        given = failure or fault()
        return schema.Profile(**fields, failure=given)
    drafts = [
        repeat(each, p50_ms=p50_ms * (1 + 0.001 * each), n=n, flags=_at(repeat_flags, each))
        for each in range(repeats)
    ]
    pooled = latency(p50_ms, half_rel=half_rel if repeats > 1 else None, n=n * repeats)
    rate = throughput or asked.workload.batch * 1000 / p50_ms
    document = schema.Profile(
        **fields,
        repeats=drafts,
        latency=pooled,
        throughput=schema.Throughput(
            throughput_items_per_s=rate,
            lo=rate * 0.99,
            hi=rate * 1.01,
            window_s=1.0,
            method="back_to_back",
        ),
        memory=schema.Memory(
            cpu_rss_after_load_bytes=250 << 20,
            cpu_rss_peak_bytes=rss_bytes,
            cpu_rss_peak_lifetime_bytes=310 << 20,
            cpu_pss_bytes=None,
            cpu_inference_delta_bytes=50 << 20,
        ),
        quality=quality(flags, validity=validity, stability=stability, neighbours=neighbours),
    )
    return with_reasons(document)


def layer_table(*names: str, iterations=100, **more) -> schema.LayerTable:
    """A table of layers of equal share, in that order."""
    names = names or ("first", "second")
    rows = [
        schema.LayerRow(
            layer=name,
            type="Linear",
            calls_per_iteration=1.0,
            share_pct=100 / len(names),
            average_ms=0.05,
            median_ms=0.0498,
            std_ms=0.001,
            total_ms=0.05 * iterations,
            scaled_ms=0.048,
            flops_per_batch=16_384,
            pct_of_peak=None,
            reliable=True,
        )
        for name in names
    ]
    fields = {
        "method": "wrapped",
        "clock": "wall",
        "precision": "fp32",
        "device": "AMD EPYC 7B13",
        "warmup_iterations": 5,
        "iterations": iterations,
        "unattributed_ms": 0.001,
        "profiled_ms": 0.105,
        "clean_ms": 0.1,
        "perturbation": 0.05,
        "rows": rows,
        "null_reasons": {f"rows.{at}.pct_of_peak": "not_probed" for at in range(len(names))},
    }
    return schema.LayerTable(**(fields | more))


def quality(
    flags: Sequence[str] = (), *, validity=None, stability="stable", neighbours: Sequence[str] = ()
) -> schema.Quality:
    """The judgement that these flags deserve, unless one is given."""
    return schema.Quality(
        validity=validity or schema.validity(flags),
        stability=stability,
        quiet="false" if neighbours else "true",
        flags=list(flags),
        neighbours=list(neighbours),
    )


def fault(kind="oom", **more) -> schema.Failure:
    fields = {
        "kind": kind,
        "phase": "warmup",
        "message": "needed 91 of 80 GiB",
        "log_tail": "Traceback (most recent call last):\n  …\nMemoryError: 91 GiB\n",
    }
    return schema.Failure(**(fields | more))


def with_reasons(document: schema.Profile) -> schema.Profile:
    """The same profile with a reason for each of its nulls."""
    plain = msgspec.to_builtins(document)
    reasons = {path: _reason(path) for path in schema.null_paths(plain)}
    return msgspec.structs.replace(document, null_reasons=reasons)


def row(document: schema.Profile | None = None, *, day="2026-11-30", **more) -> Row:
    """A profile as the catalogue reads it."""
    document = document or profile(**more)
    profile_id = identity.content_id(schema.encode(document))
    return Row(profile_id, f"inbox/v1/date={day}/{document.job_id}.{profile_id}.json", document)


def card(system_id=SYSTEM, *, model="AMD EPYC 7B13", torch="2.13.0", **more) -> schema.SystemCard:
    """The card of a small machine; `more` goes to its frameworks."""
    return schema.SystemCard(
        system_id=system_id,
        system_class="epyc-7b13-2c",
        stable=schema.Stable(
            simulated=False,
            virtualization="kvm",
            memory_bytes=8 << 30,
            cpu=schema.Cpu(
                vendor="AuthenticAMD",
                model=model,
                arch="x86_64",
                sockets=1,
                physical_cores=2,
                logical_cpus=2,
                leased_cores=2,
                smt=False,
                isa=["avx2"],
                max_hz=2_450_000_000,
                governor=None,
                l3_bytes=32 << 20,
                numa_nodes=1,
            ),
            os=schema.System(
                distro="Debian 12", kernel="6.1", libc="glibc 2.36", clocksource="tsc"
            ),
            drivers=schema.Drivers(nvidia=None),
            frameworks=schema.Frameworks(
                **(
                    {"python": "3.11.7", "torch": torch, "numpy": "2.4.6", "farm_protocol": 1}
                    | more
                )
            ),
            settings={},
        ),
        node=schema.NodeFacts(
            node_id="n-1",
            name="laptop",
            collected_at=STARTED,
            lease_scope="user",
            leased_cpus=[0, 1],
            housekeeping_cpus=[],
            cgroup_cpus=None,
        ),
        null_reasons={
            "stable.cpu.governor": "not_supported",
            "stable.drivers.nvidia": "not_applicable",
            "node.cgroup_cpus": "not_applicable",
        },
    )


def labels(asked: schema.Job, **more: str) -> dict[str, str]:
    """The words of a job, as a sweep gives them."""
    work = asked.workload
    return {
        "model": work.model.name,
        "precision": work.precision,
        "batch": str(work.batch),
        "device": asked.selector.value or asked.selector.kind,
    } | more


def manifest(asked: Sequence[schema.Job] = (), **more) -> schema.Manifest:
    """A run of these jobs; `more` replaces its fields."""
    fields = {
        "run_id": RUN,
        "name": "quickstart",
        "submitted_at": "2026-11-30T10:14:58Z",
        "submitted_by": "ada",
        "source": "configs/sweeps/quickstart.yaml",
        "source_sha256": identity.content_id(b"sweep"),
        "effort": schema.Effort(),
        "repeat_set": "base",
        "jobs": [schema.Labelled(job_id=each.job_id, labels=labels(each)) for each in asked],
    }
    return schema.Manifest(**(fields | more))


def plan(asked: Sequence[schema.Job] = (), **more) -> Plan:
    """A sweep of these jobs; `more` replaces its fields."""
    fields = {
        "name": "quickstart",
        "source": "configs/sweeps/quickstart.yaml",
        "source_sha256": identity.content_id(b"sweep"),
        "jobs": [Planned(job=each, labels=labels(each)) for each in asked],
        "skipped": [],
        "effort": schema.Effort(),
        "bundles": {},
        "npz": {},
        "tags": {},
    }
    return Plan(**(fields | more))


def slot(system_id=SYSTEM, *, node="laptop", classes=("hw.cpu", "any"), **more) -> Slot:
    """A live CPU slot."""
    fields = {
        "node": node,
        "slot": "cpu:0",
        "classes": list(classes),
        "device": "AMD EPYC 7B13",
        "system_id": system_id,
        "system_class": "epyc-7b13-2c",
    }
    return Slot(**(fields | more))


def put(store: Store, *documents: schema.Stored, day="2026-11-30") -> list[str]:
    """Store profiles, cards and manifests where they belong; return the id of each one's bytes."""
    ids = []
    for each in documents:
        data = schema.encode(each)
        ids.append(identity.content_id(data))
        if isinstance(each, schema.Profile):
            key = profile_key(day, each.job_id, ids[-1])
        elif isinstance(each, schema.Manifest):
            key = manifest_key(each.run_id)
        else:
            key = card_key(ids[-1])
        store.put_new(key, data)
    return ids


def _at(rows: Sequence[Sequence[str]], index: int) -> Sequence[str]:
    return rows[index] if index < len(rows) else ()


def _reason(path: str) -> str:
    if path.startswith(("latency.proc_cv", "latency.log_std", "latency.p50_")):
        return "single_repeat"
    if path.startswith("latency."):
        return "below_resolution"
    return "no_permission"


def cost(**more) -> schema.Cost:
    """What a small perceptron costs, all of it known."""
    fields: dict[str, Any] = {
        "params_total": 8256,
        "params_trainable": 8256,
        "params_unique_bytes": 33024,
        "buffers_bytes": 0,
        "param_dtypes": {"fp32": 33024},
        "flops_per_batch": 16384,
        "flops_per_item": 16384.0,
        "macs_per_item": 8192.0,
        "flops_status": "measured",
        "flops_counter": "torch",
        "uncounted_ops": [],
        "flops_coverage": 1.0,
        "attention": "none",
        "bytes_lower_bound_per_batch": 34000,
        "activation_peak_bytes": 1024,
    }
    return schema.Cost(**(fields | more))
