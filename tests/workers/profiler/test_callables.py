"""The laws of a model's profile as a library: cost first, measured later, and never mixed."""

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from farm import schema
from farm.errors import Bad, Refused
from workers.host import Host
from workers.profiler.callables import ModelProfiler, profile_model
from workers.profiler.clocks import LatencyProfiler, MemoryProfiler


def linear():
    return nn.Linear(128, 64)


@pytest.mark.seed("S1.3", "S1.37")
def test_a_module_has_its_parameters_flops_and_macs():
    """G3: 8,256 parameters, 16,384 FLOPs an item at any batch; MACs are half."""
    found = profile_model(linear(), {"input": torch.zeros(4, 128)})

    assert (8256, 8256, 16384.0, 8192.0, 65536, "measured", 4) == (
        found.cost.params_total,
        found.cost.params_trainable,
        found.cost.flops_per_item,
        found.cost.macs_per_item,
        found.cost.flops_per_batch,
        found.cost.flops_status,
        found.batch,
    )
    assert found.cost.bytes_lower_bound_per_batch >= 4 * (8256 + 4 * 128 + 4 * 64)


@pytest.mark.parametrize(
    "inputs",
    [
        {"x": np.zeros((2, 128), "float32")},
        [torch.zeros(2, 128)],
        torch.zeros(2, 128),
        (np.zeros((2, 128), "float32"),),
        (2, 128),
    ],
)
def test_inputs_come_by_name_in_their_order_or_alone(inputs):
    found = profile_model(linear(), inputs)

    assert (16384.0, 2) == (found.cost.flops_per_item, found.batch)


@pytest.mark.seed("S1.49")
def test_shared_weights_count_once_and_frozen_ones_too():
    """Exact integers; trainable and total are two numbers."""

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False)
            self.two.weight = self.one.weight
            self.frozen = nn.Linear(16, 1)
            self.frozen.requires_grad_(False)

        def forward(self, x):
            return self.frozen(self.two(self.one(x)))

    cost = profile_model(Tied(), torch.zeros(1, 16)).cost

    assert (273, 256, 273 * 4, {"fp32": 273 * 4}) == (
        cost.params_total,
        cost.params_trainable,
        cost.params_unique_bytes,
        cost.param_dtypes,
    )


@pytest.mark.seed("S1.7", "S1.48")
def test_a_function_has_nulls_with_reasons_and_a_status():
    found = profile_model(lambda x: x, np.zeros((3, 4)))

    assert (None, None, "unsupported", 3) == (
        found.cost.params_total,
        found.cost.flops_per_item,
        found.cost.flops_status,
        found.batch,
    )
    assert found.null_reasons["cost.params_total"].startswith("not_applicable")
    assert _agrees(found, found.null_reasons)


def _agrees(part, reasons):
    plain = msgspec.to_builtins(part)
    plain.pop("null_reasons", None)
    return set(schema.null_paths(plain)) == set(reasons)


@pytest.mark.seed("S1.48", "S1.38")
def test_a_count_that_fails_says_why_and_stays_empty():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("no such frame")

    found = profile_model(Broken(), torch.zeros(1, 4))

    assert (None, True) == (
        found.cost.flops_per_batch,
        found.cost.flops_status.startswith("failed: "),
    )
    assert "no such frame" in found.cost.flops_status
    assert _agrees(found, found.null_reasons)


@pytest.mark.seed("S1.38")
def test_flops_depend_on_the_input_as_well():
    model = nn.Conv2d(3, 16, 3)

    flops = [
        profile_model(model, torch.zeros(1, 3, size, size)).cost.flops_per_item for size in (32, 64)
    ]

    assert [777_600.0, 2 * 9 * 3 * 16 * 62 * 62] == flops


# ── cost first, measurements later ───────────────────────────────────────────────────────────────


@pytest.fixture
def profiler(tmp_path):
    return ModelProfiler(
        linear(),
        (4, 128),
        latency=LatencyProfiler(warmup=0),
        memory=MemoryProfiler(sample_cuda=False, sample_mps=False, host=Host(tmp_path)),
    )


@pytest.mark.seed("S1.36", "S1.47")
def test_cost_is_prepared_first_and_the_report_is_built_from_what_a_runner_adds(profiler):
    """Counting is over before the first sample, and is not repeated for the report."""
    calls = []
    profiler._model.register_forward_hook(lambda *_: calls.append(1))

    efficiency = profiler.pre_run_profile()
    counted = len(calls)
    profiler.latency.add_sample_seconds(0.010)
    profiler.latency.add_sample_seconds(0.020)
    report = profiler.full_report()

    assert counted == len(calls)
    assert (16384.0, 15.0, 2) == (
        report.efficiency.cost.flops_per_item,
        report.latency.p50_ms,
        report.latency.n,
    )
    assert efficiency.cost == report.efficiency.cost


def test_a_report_without_a_measurement_is_an_error(profiler):
    profiler.pre_run_profile()

    with pytest.raises(Bad, match="none is left"):
        profiler.full_report()


@pytest.mark.seed("S1.2", "S1.5")
def test_cost_and_measured_values_stand_under_different_names(profiler):
    """No field of the one is in the other, and nothing in the report is an estimate."""
    profiler.latency.add_sample_seconds(0.010)

    report = profiler.full_report(precision="fp32")

    plain = msgspec.to_builtins(report)
    assert {
        *("schema", "model", "device", "efficiency", "latency", "memory", "system_card"),
        "null_reasons",
    } == set(plain)
    assert "cost" == plain["efficiency"]["evidence"]
    assert not set(plain["efficiency"]["cost"]) & {*plain["latency"], *plain["memory"]}
    assert "fp32" == plain["system_card"]["precision"]


@pytest.mark.seed("S1.6")
def test_every_null_of_a_report_has_its_reason_and_it_can_be_written(profiler):
    profiler.latency.add_sample_seconds(0.010)

    report = profiler.full_report()

    data = schema.encode(report)
    assert b'"schema":"farm.profile_report/v1"' in data
    assert None is report.system_card.gpu_name
    assert report.null_reasons["system_card.gpu_name"].startswith("not_applicable")
    assert report.system_card.cpu_name not in ("", "x86_64")


def test_several_inputs_are_drawn_by_their_names():
    class Two(nn.Module):
        def forward(self, left, right):
            return left @ right

    profiler = ModelProfiler(Two(), {"right": (4, 5), "left": (3, 4)})

    assert 2 * 3 * 4 * 5 == profiler.pre_run_profile().cost.flops_per_batch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_inputs_are_drawn_in_the_dtype_of_the_weights(dtype):
    """A model of bfloat16 takes no float32."""
    found = ModelProfiler(linear().to(dtype), (4, 128)).pre_run_profile().cost

    assert ("measured", 65536) == (found.flops_status, found.flops_per_batch)


@pytest.mark.parametrize("model", [linear(), len], ids=["module", "function"])
@pytest.mark.parametrize("batch", [np.zeros((0, 128), "float32"), torch.zeros(0, 128)])
def test_an_empty_batch_is_refused(model, batch):
    """Nothing could be told of an item of it."""
    with pytest.raises(Refused, match="the batch is empty"):
        profile_model(model, {"input": batch})


@pytest.mark.parametrize("shape", [(), (0, 3), (-1,), (1.5,), (True,), {"x": ()}])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(Refused, match="makes no sense"):
        ModelProfiler(linear(), shape)


def test_a_function_is_no_model_here():
    with pytest.raises(Refused, match="is no torch module") as caught:
        ModelProfiler(lambda x: x, (1, 2))

    assert "farm profile callable" in caught.value.hint


@pytest.mark.parametrize("through", ["function", "profiler"])
def test_counting_leaves_statistics_and_modes_as_they_were(through):
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout())
    model[1].eval()
    before = {name: each.clone() for name, each in model.state_dict().items()}

    if through == "function":
        profile_model(model, torch.ones(3, 4))
    else:
        ModelProfiler(model, (3, 4)).pre_run_profile()

    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert [True, True, False] == [each.training for each in model.modules()]


def test_a_lazy_model_is_refused_before_its_first_call():
    model = nn.LazyLinear(2)

    with pytest.raises(Refused, match="no shape yet"):
        profile_model(model, torch.ones(1, 3))
    with pytest.raises(Refused, match="no shape yet"):
        ModelProfiler(model, (1, 3)).pre_run_profile()
