"""Numbers by the names of a course module, and why some of them are unknown."""

import pytest

from workers.profiler.figures import MIB, figures, heuristic, memory, quantisation, with_reasons
from workers.profiler.speed import Milliseconds
from workers.record import CostReading

UNSEEN = {
    "flops_per_batch": "not_supported: no formula for Det",
    "activation_peak_bytes": "not_supported: sparse tensors",
    "buffers_bytes": "error: no",
}


def reading(*unknown, **known):
    """Return a cost of which these fields are unknown."""
    found = {
        "params_total": 1000,
        "params_unique_bytes": 4 * MIB,
        "buffers_bytes": 2 * MIB,
        "param_dtypes": {"fp32": 4 * MIB},
        "flops_per_batch": 800,
        "activation_peak_bytes": MIB,
        "flops_by_layer": {"head": 800},
    }
    found |= dict.fromkeys(unknown) | known
    reasons = {name: UNSEEN[name] for name in unknown if name in UNSEEN}
    return CostReading(**found, reasons=reasons)


def test_the_memory_of_a_call_is_all_that_it_holds():
    assert {
        "parameter_memory_mb": 4.0,
        "activation_memory_mb": 1.0,
        "peak_memory_mb": 7.0,
    } == memory(reading())


@pytest.mark.parametrize(
    "unknown", ["params_unique_bytes", "buffers_bytes", "activation_peak_bytes"]
)
def test_a_sum_with_an_unknown_part_is_unknown(unknown):
    """A part that nobody knows is not zero."""
    found = with_reasons(memory(reading(unknown)), reading(unknown))

    assert found["peak_memory_mb"] is None
    assert UNSEEN.get(unknown, "not_supported") == found["null_reasons"]["peak_memory_mb"]


def test_parameters_that_nobody_knows_take_no_bytes_in_any_precision():
    read = reading("params_total", "params_unique_bytes")

    found = with_reasons({"quantisation": quantisation(read, {"": "Net", "head": "Linear"})}, read)

    assert ["head"] == found["quantisation"]["candidates"]
    assert {"quantisation.modelled_int8_bytes", "quantisation.actual_bytes"} == set(
        found["null_reasons"]
    )


def test_a_bandwidth_needs_no_flops_and_the_bound_does():
    read = reading("flops_per_batch")

    found = figures(read, Milliseconds([2.0] * 20), 4)
    found = with_reasons({**found, **heuristic(found)}, read)

    assert 3500.0 == found["memory_bandwidth_mbs"]
    assert {"flops", "batch_flops", "gflops_per_second", "heuristic_bound", "bottleneck"} == set(
        found["null_reasons"]
    )
    assert {UNSEEN["flops_per_batch"]} == set(found["null_reasons"].values())


def test_few_calls_have_no_interval_and_say_why():
    found = with_reasons(figures(reading(), Milliseconds([1.0, 2.0, 3.0]), 1), reading())

    assert ["latency_interval_ms"] == list(found["null_reasons"])
    assert found["null_reasons"]["latency_interval_ms"].startswith("below_resolution")


def test_an_efficiency_without_a_peak_says_why():
    found = with_reasons({"compute_efficiency": None}, reading(), {"card.stable.gpu": "mig"})

    assert found["null_reasons"]["compute_efficiency"].startswith("not_probed: no spec gives")
    assert "mig" == found["null_reasons"]["card.stable.gpu"]
