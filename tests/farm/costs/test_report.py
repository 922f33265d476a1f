import msgspec
import pytest

from farm import costs, schema
from tests.farm.costs.modelled import bounds, cost, profile, spec, table

# 10 GFLOP take 1 ms at 10 TFLOP/s; 20 MB take 0.2 ms at 100 GB/s.
SOME = [spec("slow", 10, 10), spec("quick", 100, 100), spec("dark", None, 100)]


@pytest.mark.seed("S2.1", "S2.8")
def test_a_report_holds_cost_rooflines_and_latency() -> None:
    """The quickest device first; one whose peak nobody knows comes last, with the reason."""
    found = costs.report(profile(latency=True), None, SOME)

    assert (1_000_000, 10_000_000_000) == (found.cost.params_total, found.cost.flops_per_batch)
    assert 1_000_000 == found.cost.activation_peak_bytes
    assert found.taken is not msgspec.UNSET
    assert 10.0 == found.taken.p50_ms
    assert ["quick", "slow", "dark"] == [each.spec for each in found.estimates]
    quick, slow, dark = found.estimates
    assert (0.1, 0.2, "memory") == (quick.compute_ms, quick.memory_ms, quick.roofline_bound)
    assert 500.0 == quick.arithmetic_intensity_flop_per_byte
    assert 1_000.0 == quick.ridge_flop_per_byte
    assert 500.0 * 100e9 == quick.attainable_flops_per_s
    assert (1.0, 2.0) == (slow.compute_ms, slow.roofline_ms)
    assert dark.roofline_ms is None
    assert "dark has no fp32 peak" in found.null_reasons["estimates.2.roofline_ms"]


@pytest.mark.seed("S1.2", "S1.4")
def test_the_three_kinds_of_evidence_have_keys_of_their_own() -> None:
    """Nothing timed lies in the cost, and what is computed says that it was not measured."""
    plain = msgspec.to_builtins(costs.report(profile(latency=True), None, SOME))

    assert not [key for key in plain["cost"] if key.endswith("_ms")]
    assert all(each["not_measured"] is True for each in (*plain["estimates"], plain["training"]))
    assert "measured" == plain["taken"]["source"]
    assert {"cost", "estimates", "taken"} <= set(plain)


def test_a_report_is_a_document_with_a_reason_for_every_null() -> None:
    """Whatever is missing: the count, the layers, an interval, the peaks of this machine."""
    nothing = cost(
        flops_per_batch=None,
        flops_per_item=None,
        macs_per_item=None,
        flops_coverage=None,
        bytes_lower_bound_per_batch=None,
        activation_peak_bytes=None,
        params_total=None,
        params_trainable=None,
        params_unique_bytes=None,
    )
    for made in (
        costs.report(profile(needs=nothing, latency=True), None, SOME),
        costs.report(profile(needs=nothing), None, SOME, given_ms=3.0),
        costs.report(profile(needs=nothing), None, SOME[:1], given_ms=3.0),
        costs.report(profile(latency=True, bounds=bounds(None)), table(), []),
        costs.report(profile(latency=True, half_rel=None, repeats=1), None, SOME),
    ):
        assert made == schema.decode(schema.encode(made), type(made))


@pytest.mark.seed("S2.21", "S2.22")
def test_training_is_estimated_by_formula() -> None:
    """Half of it frozen: half the gradients, and twice that for Adam."""
    found = costs.report(profile(needs=cost(params_trainable=500_000)), None, []).training

    assert 20_000_000_000 == found.backward_flops_per_batch
    assert 2_000_000 == found.gradient_bytes
    assert {"sgd": 0, "adam": 4_000_000, "adamw": 4_000_000} == found.optimiser_bytes


@pytest.mark.seed("S2.15")
def test_integers_are_modelled_beside_what_the_weights_take() -> None:
    """A million codes kept in floats still take four million bytes."""
    found = costs.report(profile(), None, []).packed

    assert (1_000_000, 4_000_000) == (found.modelled_int8_bytes, found.actual_bytes)


def test_without_a_latency_nothing_is_taken() -> None:
    assert costs.report(profile(), None, SOME).taken is msgspec.UNSET


def test_a_given_latency_is_held_against_the_one_device_that_was_named() -> None:
    """100 TFLOP/s for 10 GFLOP in 1 ms are 10 % of it; the memory is weights and activations."""
    alone = costs.report(profile(), None, SOME[1:2], given_ms=1.0).taken

    assert alone is not msgspec.UNSET
    assert ("given", "quick", 5_000_000) == (alone.source, alone.device, alone.peak_memory_bytes)
    assert alone.bounds is not None
    assert pytest.approx(0.1) == alone.bounds.mfu
    assert pytest.approx(0.2) == alone.bounds.mbu
    assert pytest.approx(10_000.0) == alone.bounds.gflops_per_second
    assert "compute" == alone.bounds.heuristic_bound


def test_a_given_latency_beside_many_devices_is_held_against_none() -> None:
    found = costs.report(profile(), None, SOME, given_ms=1.0)

    assert found.taken is not msgspec.UNSET
    assert found.taken.bounds is None
    assert "not_requested: one --spec" in found.null_reasons["taken.bounds"]


@pytest.mark.seed("S2.11")
def test_candidates_come_from_the_layers_with_the_rule() -> None:
    timed = table(("a", "Linear", 60.0, 1, None), ("b", "ReLU", 40.0, 0, None))

    found = costs.report(profile(), timed, [])

    assert found.hotspots is not None
    assert found.candidates is not None
    assert ["a", "b"] == [each.layer for each in found.hotspots]
    assert ["a"] == [each.layer for each in found.candidates]
    assert found.quantisation_rule.endswith("at least 5 % of the time")


def test_hotspots_and_their_sentence_are_by_medians() -> None:
    """One slow iteration gives `b` most of the total; most iterations say `a`."""
    timed = table(("a", "Linear", 60.0, 1, None), ("b", "ReLU", 40.0, 0, None))
    a, b = timed.rows
    rows = [msgspec.structs.replace(a, share_pct=10.0), msgspec.structs.replace(b, share_pct=90.0)]

    found = costs.report(profile(), msgspec.structs.replace(timed, rows=rows), [])

    assert found.hotspots is not None
    assert [("a", 60.0), ("b", 40.0)] == [(e.layer, round(e.share_pct, 6)) for e in found.hotspots]
    (said,) = [each.said for each in found.answers if each.question == "layer"]
    assert said.startswith("a (Linear) takes 60 % of the time")


def test_without_a_layer_table_there_are_no_hotspots_and_the_reason_is_told() -> None:
    found = costs.report(profile(why={"layers": "not_supported: one piece"}), None, [])

    assert found.hotspots is None
    assert "not_supported: one piece" == found.null_reasons["hotspots"]


def test_an_unspecified_precision_takes_the_peak_of_most_weights() -> None:
    """A model that casts itself to bf16 is held against the bf16 peak."""
    needs = cost(param_dtypes={"bf16": 3_000_000, "fp32": 1_000})
    device = spec("both", 10, 100, bf16=40)

    found = costs.report(profile(needs=needs, precision="unspecified"), None, [device])

    assert ("bf16", 0.25) == (found.estimates[0].dtype, found.estimates[0].compute_ms)


@pytest.mark.seed("S2.9")
def test_one_report_answers_the_four_questions() -> None:
    found = costs.report(profile(), table(("a", "Linear", 100.0, 1, None)), SOME)

    assert ["bound", "layer", "quantisation", "caching"] == [e.question for e in found.answers]
    assert all(each.said for each in found.answers)
