"""Steps whose limit is known, as files of a user's: a product, a triad, a thousand additions."""

import os
import tempfile
from pathlib import Path

from farm.hardware import Work
from farm.schema import (
    Asked,
    Effort,
    Inputs,
    Job,
    Latency,
    Model,
    Order,
    Protocol,
    Quality,
    Selector,
    Tensor,
    Workload,
)
from workers.host import Host
from workers.node import offer
from workers.station import Station

SIZE = 768
KNOWN = """
import numpy as np
import torch

def gemm(inputs):
    a, b = inputs["a"], inputs["b"]
    into = torch.empty_like(a)
    return lambda **_: torch.mm(a, b, out=into)

def triad(batch):
    a, b, c = (torch.from_numpy(np.empty(batch, np.float32)).fill_(x) for x in (0.0, 1.0, 2.0))
    first = a[:1]
    def step():
        torch.add(b, c, alpha=3.0, out=a)
        return first
    return step

def adds():
    one, total = torch.ones(1), torch.zeros(1)
    def step():
        total.zero_()
        for _ in range(1000):
            total.add_(one)
        return total
    return step
"""


def here(state: Path) -> Station:
    """The first CPU slot of this machine, ready to measure."""
    (served,) = offer(state, selector="cpu:0", name="n1", lock_dir="", count=1)
    return Station(
        node="n1",
        worker="n1/cpu:0#hand",
        device=served.device,
        card=served.card,
        environment="default",
        flags=served.flags,
        cache=state / "cache",
        lock_dir=served.lock_dir,
        store=None,
        version="0",
        host=Host(),
    )


def work(name: str, *, elements: int = 0) -> Work:
    """What an iteration of a step has to do; elements: of each array of the triad.

    Additions are no FLOPs by convention, so that nothing but memory can limit a triad.
    """
    if name == "gemm":
        return Work(flops=2 * SIZE**3, moved_bytes=3 * 4 * SIZE**2)
    if name == "triad":
        return Work(flops=0, moved_bytes=12 * elements)
    return Work(flops=1000, moved_bytes=12_000)


def p50_ms(station: Station, name: str, *, elements: int = 1) -> float | None:
    """Measure one of the steps; None if a neighbour disturbed it."""
    square = Tensor(shape=(SIZE, SIZE))
    model = Model(
        name=name,
        ref=f"known.py:{name}",
        source="file",
        digest="0" * 64,
        kind="factory",
        bundled=True,
    )
    job = Job(
        workload=Workload(
            model=model,
            inputs=Inputs(spec={"a": square, "b": square} if name == "gemm" else {}),
            precision="fp32",
            batch=elements,
        ),
        protocol=Protocol(warmup=4),
        selector=Selector(kind="any"),
    )
    effort = Effort(level="quick", repeats=1, budget_ms=500, min_time_ms=200)
    stop, other = os.pipe()
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "known.py").write_text(KNOWN)
            profile = station.measure(
                Order(job=job, effort=effort, repeat_set="base", label=name),
                run_id="known",
                attempt=1,
                fence=0,
                queue_s=None,
                folder=Path(folder) / "work",
                stop_fd=stop,
                on_progress=lambda *_: None,
                by_hand=Asked(
                    job=job, effort=effort, folder=folder, bundle=folder, passes=("latency",)
                ),
            )
    finally:
        os.close(stop)
        os.close(other)
    assert isinstance(profile.latency, Latency), profile.failure
    assert isinstance(profile.quality, Quality)
    return None if profile.quality.validity == "invalid" else profile.latency.p50_ms
