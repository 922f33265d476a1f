"""A repeat outside its passes, beside the least that a fresh process of torch costs."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from farm import models
from farm.schema import Effort, Inputs, Job, Protocol, Selector, Workload
from tests.bench.row import Row, compare
from workers.environment import child_environment
from workers.launch import Limits, launch
from workers.record import Assignment


def rows() -> Iterator[Row]:
    """Yield what a repeat of a small model takes beside its measured phases."""
    found = models.resolve("mlp", root=Path.cwd())
    assert found.defaults is not None
    assert isinstance(found.defaults.inputs, dict)
    asked = Job(
        workload=Workload(
            model=found.model,
            inputs=Inputs(spec=found.defaults.inputs),
            precision="fp32",
            batch=1,
        ),
        protocol=Protocol(warmup=5, iterations=1000),
        selector=Selector(kind="any"),
    )
    yield compare(
        "repeat: all but warm-up and passes",
        "python -c 'import torch'",
        "s",
        lambda: _around(asked),
        _bare,
        rounds=5,
    )


def _around(asked: Job) -> float:
    stop_r, stop_w = os.pipe()
    try:
        with tempfile.TemporaryDirectory() as folder:
            ended = launch(
                Assignment(
                    job=asked,
                    effort=Effort(budget_ms=1000),
                    index=0,
                    cores=[max(os.sched_getaffinity(0))],
                    threads=1,
                    folder=folder,
                ),
                environment=child_environment(os.environ, threads=1, folder=Path(folder)),
                leases=(),
                limits=Limits(job_s=60),
                stop_fd=stop_r,
                clock=time.monotonic,
                on_progress=lambda _phase, _n: None,
            )
    finally:
        os.close(stop_r)
        os.close(stop_w)
    assert ended.record is not None
    passes = ("warmup", "latency", "throughput", "memory")
    inside = sum(each.duration_s for each in ended.record.phases if each.name in passes)
    return ended.seconds - inside


def _bare() -> float:
    core = max(os.sched_getaffinity(0))
    began = time.perf_counter()
    code = f"import os; os.sched_setaffinity(0, {{{core}}}); import torch"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    return time.perf_counter() - began
