"""Whole children of a capture, in this process: a model of a person's, measured and then traced."""

import dataclasses
import math
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from msgspec import UNSET
from msgspec.structs import replace

from farm import schema
from farm.schema import Capture, Data, Effort, Inputs, Protocol, Tensor
from farm.trace import captured as analysing
from farm.trace.reading import reader
from tests.workers import make
from tests.workers.test_measure import attempt
from workers import child, folders, repeat
from workers.launch import Ended
from workers.measure import measure

MODEL = """
import torch
from torch import nn

PROFILED = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        PROFILED.append(torch.autograd._profiler_enabled())
        return self.layer(x)


class Finds(Net):
    def forward(self, x):
        return super().forward(x.mean(dim=2)[:, :1, :4].flatten(1))

    def preprocess(self, images, size):
        assert size == 32
        return torch.stack([each[:8, :8].permute(2, 0, 1).float() for each in images])

    def postprocess(self, raw, conf, iou, max_det):
        return [each[:max_det] for each in raw]


def build():
    return Net()


def finds():
    return Finds()


def batches(batch):
    for _ in range(9):
        yield torch.ones(batch, 4), torch.zeros(batch, dtype=torch.int64)
"""
NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)


class Children:
    """Children that run in this process, one after the other. records: what they said."""

    def __init__(self):
        self.records, self.folders = [], []

    def __call__(self, assignment):
        asked = replace(assignment, cores=[])
        record, samples = repeat.measure(asked, progress=lambda _phase, _done: None)
        arrays = child._arrays(samples)
        np.savez(Path(assignment.folder) / "samples.npz", **arrays)
        self.records.append(record)
        ended = Ended(
            cause="ended",
            exit_code=0,
            signal=None,
            record=record,
            phase="latency",
            output=b"",
            seconds=1.0,
        )
        return ended, ()


@pytest.fixture
def measured(tmp_path, bundle, load):
    """Measure a capture, or a training of a sweep; return its profile and what the children said.

    `load` leaves this process as it was.
    """
    at = bundle({"own.py": MODEL})

    def one(capture=UNSET, *, mode="inference", window=(2, 6), builds="build", **changes):
        model = schema.Model(name="own", ref=f"own.py:{builds}", source="file", digest="0")
        workload = replace(
            make.job().workload,
            model=model,
            inputs=Inputs(spec={"x": Tensor(shape=("batch", 4))}),
            mode=mode,
        )
        warmup, iterations = window
        protocol = Protocol(warmup=warmup, iterations=iterations, compat="libreyolo")
        order = make.order(1)
        job = replace(order.job, workload=workload, protocol=protocol)
        order = replace(order, job=job, effort=Effort(repeats=1))
        words = {"bundle": str(at), "capture": capture, "passes": ("latency",), **changes}
        children = Children()
        tried = dataclasses.replace(attempt(tmp_path / "work", order), **words)
        tried.folder.mkdir(exist_ok=True)
        profile = measure(tried, run=children, now=lambda: NOW)
        schema.encode(profile)  # finite, and every null has its reason
        return profile, children.records

    return one


def profiled():
    """Whether a profiler was on in each call of the model."""
    return sys.modules["own"].PROFILED


DATA = Data(kind="callable", word="own.py:batches", reference="own.py:batches")


def training(tmp_path, **changes):
    data = replace(DATA, root=str(tmp_path / "bundle"))
    return Capture(data=data, warmup=2, steps=6, **changes)


@pytest.mark.seed("S4.9", "S4.25")
def test_a_training_is_measured_clean_and_then_traced(measured, tmp_path):
    """No profiler is on in the clean child, and the other one yields no time of a plain step."""
    profile, (clean, traced) = measured(training(tmp_path), mode="train", instruments=("trace",))

    assert ("ok", 6) == (profile.status, profile.latency.n)
    assert schema.Traced(iterations=6, bytes=traced.trace.trace_bytes) == profile.trace
    assert (None, None) == (clean.trace, traced.latency_edges)
    assert (8, "not_supported") == (len(clean.waits_ns), profile.null_reasons["gpu_time"])
    beside = schema.decode((tmp_path / "work" / folders.CAPTURED).read_bytes(), schema.Captured)
    assert (6, 6, 6) == tuple(
        len(each) for each in (beside.plain_ns, beside.waits_ns, beside.traced_ns)
    )
    assert {10} == {len(each) for each in beside.stages_ns.values()}
    phases = ["dataload", "to_device", "forward", "backward", "optimizer"]
    assert phases == list(beside.stages_ns)


def test_an_analysis_can_be_made_of_what_a_capture_left(measured, tmp_path):
    profile, _ = measured(training(tmp_path), mode="train", instruments=("trace",))
    beside = schema.decode((tmp_path / "work" / folders.CAPTURED).read_bytes(), schema.Captured)
    trace = folders.trace(tmp_path / "work")

    with trace.open("rb") as file:
        found = analysing.analysis(
            reader.of(file), profile, beside, card=make.card(), asked={}, name="trace.json"
        )

    assert ("training", 6) == (found.mode, found.metrics["plain_steps"])
    assert {"dataload", "forward", "backward", "optimizer"} <= {p.phase for p in found.phases}
    assert found.metrics["trace_overhead"] > 0
    schema.encode(found)


@pytest.mark.seed("S4.9", "S4.53")
def test_an_inference_times_all_of_its_runs_and_no_profiler_is_on(measured, load):
    """Whatever the number is; the trace has ten of its own."""
    profile, (clean, traced) = measured(
        Capture(warmup=2, steps=6), window=(2, 6), instruments=("trace",)
    )

    assert (6, 10) == (profile.latency.n, profile.trace.iterations)
    assert (None, {}) == (clean.trace, clean.stages_ns)
    assert [10] == [len(each) for each in traced.stages_ns.values()]


@pytest.mark.seed("S4.36", "S4.46", "S4.51")
def test_an_inference_of_images_is_told_apart_by_its_stages(measured, tmp_path):
    """Each one synchronised at its ends, without a profiler; without a trace as well."""
    for trace in (True, False):
        capture = Capture(imgsz=32, warmup=2, steps=6, trace=trace)
        profile, (_, looked) = measured(capture, builds="finds", instruments=("trace",))

        beside = schema.decode((tmp_path / "work" / folders.CAPTURED).read_bytes(), schema.Captured)
        assert ["preprocess", "forward", "postprocess"] == list(beside.stages_ns)
        assert {10} == {len(each) for each in beside.stages_ns.values()}
        assert ("detection", []) == (beside.pipeline, beside.unused)
        assert (trace, trace) == (profile.trace is not None, looked.trace is not None)
        shutil.rmtree(tmp_path / "work")
    assert "not_requested" == profile.null_reasons["trace"]


@pytest.mark.seed("S4.9")
def test_a_profiler_is_on_in_the_traced_iterations_only(measured, tmp_path):
    """Of all calls: warming up, the first look, the start of the profiler, the window, and more."""
    measured(training(tmp_path), mode="train")
    clean = list(profiled())

    profiled().clear()
    measured(training(tmp_path), mode="train", passes=(), instruments=("trace",))

    assert (8, {False}) == (len(clean), set(clean))
    look, window, apart = 1, 2 + 6, 10
    assert 2 + look + window + apart == len(profiled())
    assert look + 6 <= sum(profiled()) <= look + 6 + 1  # the profiler itself warms up in one
    assert {False} == set(profiled()[-apart:])


@pytest.mark.seed("S4.26")
def test_data_that_end_before_the_window_are_the_failure(measured, tmp_path):
    """No trace is looked for then, and no file of one is left."""
    capture = replace(training(tmp_path), steps=20)

    profile, records = measured(capture, mode="train", window=(2, 20), instruments=("trace",))

    assert ("failed", "window_not_filled", 1) == (
        profile.status,
        profile.failure.kind,
        len(records),
    )
    assert "9 iterations at batch 4, and the window needs 22" in profile.failure.message
    assert (
        "a data set of at least 88 items; or --warmup 1 --steps 8 or fewer; or --batch 1 or less"
        == profile.failure.hint
    )
    assert not list((tmp_path / "work").rglob("trace.json"))


def test_a_training_of_a_sweep_has_times_and_neither_layers_nor_flops(measured, tmp_path):
    """Each of them null with its reason; a trace of it is that of the whole step."""
    profile, _ = measured(mode="train", instruments=("layers", "trace", "flops"))

    assert ("ok", 6, 10) == (profile.status, profile.latency.n, profile.trace.iterations)
    assert (None, None) == (profile.layers, profile.cost)
    why = "not_supported: only a forward pass is looked into"
    assert [why, why] == [profile.null_reasons[each] for each in ("layers", "cost")]
    assert math.isfinite(profile.latency.p50_ms)
    beside = schema.decode((tmp_path / "work" / folders.CAPTURED).read_bytes(), schema.Captured)
    assert ["forward", "backward", "optimizer"] == list(beside.stages_ns)


def test_an_inference_of_a_sweep_can_be_traced_too(measured, tmp_path):
    profile, _ = measured(instruments=("trace", "flops"))

    assert 10 == profile.trace.iterations
    assert isinstance(profile.cost, schema.Cost)
    beside = schema.decode((tmp_path / "work" / folders.CAPTURED).read_bytes(), schema.Captured)
    assert ["forward"] == list(beside.stages_ns)
    assert not torch.is_inference_mode_enabled()
