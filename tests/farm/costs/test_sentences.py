import pytest

from farm import costs
from farm.costs.record import CostReport
from farm.schema import Estimate, LayerTable
from tests.farm.costs.modelled import bounds, cost, profile, spec, table

FAST, WIDE = spec("fast", 100, 10, int8=400), spec("wide", 1, 1_000, int8=2)
LAYERS = table(
    ("norm", "LayerNorm", 30.0, 0, None),
    ("head", "Linear", 45.0, 75, 12.0),
    ("first", "Linear", 25.0, 25, 9.0),
)


def said(found: CostReport, question: str) -> str:
    return next(each.said for each in found.answers if each.question == question)


def answer(question: str, *, timed: LayerTable | None = LAYERS, devices=(FAST,), **more) -> str:
    return said(costs.report(profile(**more), timed, devices), question)


@pytest.mark.seed("S2.9")
def test_the_bound_names_its_evidence() -> None:
    """One device with its numbers, several by how many: 500 FLOP/byte lie between the ridges."""
    assert (
        "by the roofline of fast, not measured: memory (500.0 FLOP/byte, ridge at 10000)"
        == answer("bound")
    )
    assert (
        "by the roofline, not measured: compute on 1 of 2 devices, memory on 1 of 2 devices"
        == answer("bound", devices=(FAST, WIDE))
    )
    assert "no peak of any device is known" == answer("bound", devices=())


def test_measured_estimated_and_heuristic_bounds_stand_side_by_side() -> None:
    """None of the words replaces another."""
    found = answer("bound", latency=True, bounds=bounds("balanced"), estimate=roof())

    assert found.startswith("measured: compute and memory limit it alike, 43 % of peak FLOP/s, 2.1")
    assert "; by the roofline of fast, not measured: memory" in found
    assert found.endswith("; by the rule of thumb, which is no bandwidth: compute")


def test_a_step_that_beats_its_roofs_concludes_nothing() -> None:
    wrong = bounds(None, roof_violation=True, mfu=None, mbu=None)

    found = answer("bound", latency=True, bounds=wrong, estimate=roof())

    assert found.startswith("measured: it was quicker than its peaks allow")


def test_a_latency_that_was_given_is_not_called_measured() -> None:
    found = said(costs.report(profile(), LAYERS, [FAST], given_ms=2.0), "bound")

    assert found.startswith("given: 5.0 % of peak FLOP/s")
    assert "measured:" not in found.replace("not measured:", "")


@pytest.mark.seed("S2.9", "S2.10", "S2.26")
def test_the_dominating_layer_is_told_with_its_shares_and_what_looking_cost() -> None:
    assert (
        "head (Linear) takes 45 % of the time at 12 % of peak and does 75 % of the FLOPs "
        "(profiled 1.05 times as long as clean: low overhead)" == answer("layer")
    )
    assert "no layer was timed" == answer("layer", timed=None)


@pytest.mark.parametrize(
    ("perturbation", "word"), [(0.99, "low"), (1.0, "moderate"), (8.99, "moderate"), (9.0, "high")]
)
@pytest.mark.seed("S2.26")
def test_the_overhead_is_low_below_two_and_moderate_below_ten(perturbation, word) -> None:
    timed = table(("a", "Linear", 100.0, 1, None), perturbation=perturbation)

    assert f": {word} overhead)" in answer("layer", timed=timed)


@pytest.mark.seed("S2.9")
def test_integers_pay_where_bytes_limit_it_and_weights_are_many_of_them() -> None:
    """3 of 20 MB go away; of 200 MB the same 3 are not worth it."""
    few = cost(bytes_lower_bound_per_batch=200_000_000, flops_per_batch=1)

    pays, hardly = answer("quantisation"), answer("quantisation", needs=few)

    assert pays.startswith("would pay: weights of 8 bits move up to 15 % fewer bytes")
    assert pays.endswith("; candidates: 2 Linear (70 % of the time)")
    assert hardly.startswith("would hardly pay: weights of 8 bits move up to 1.5 % fewer bytes")


@pytest.mark.seed("S2.9")
def test_integers_pay_under_compute_only_where_they_are_multiplied_faster() -> None:
    assert answer("quantisation", devices=(WIDE,)).startswith(
        "would pay only where integers are multiplied faster: "
        "int8 peaks are 2 times those of fp32 on 1 device"
    )
    without = answer("quantisation", devices=(spec("plain", 1, 1_000),))
    assert "no such device is listed" in without


@pytest.mark.parametrize("limit", ["overhead", "launch", "transfer"])
def test_integers_hardly_pay_where_something_else_takes_the_time(limit: str) -> None:
    """What was measured beats the roofline."""
    found = answer("quantisation", latency=True, bounds=bounds(limit), estimate=roof())

    assert found.startswith("would hardly pay: ")
    assert "integers do not change that" in found


@pytest.mark.seed("S2.9")
@pytest.mark.parametrize("timed", [None, table()])
@pytest.mark.parametrize("devices", [(FAST,), (WIDE,), ()])
def test_without_a_timed_layer_nobody_can_tell_if_integers_pay(timed, devices) -> None:
    """That no layer was seen does not say that none would pay."""
    found = answer("quantisation", timed=timed, devices=devices)

    assert "cannot be told: no layer was timed" == found


@pytest.mark.parametrize("limit", ["overhead", "launch", "transfer"])
def test_what_no_layer_changes_needs_no_layer_table(limit: str) -> None:
    found = answer("quantisation", timed=None, latency=True, bounds=bounds(limit), estimate=roof())

    assert found.startswith("would hardly pay: ")
    assert found.endswith("integers do not change that")


@pytest.mark.parametrize("limit", ["compute", "overhead", "balanced"])
def test_a_measured_bound_that_is_not_to_be_believed_decides_nothing(limit: str) -> None:
    """A neighbour was there: the roofline of the one device decides, which says memory."""
    found = answer(
        "quantisation",
        latency=True,
        bounds=bounds(limit),
        estimate=roof(),
        flags=["contended"],
    )

    assert found.startswith("would pay: weights of 8 bits move up to 15 % fewer bytes")
    kept = answer("quantisation", latency=True, bounds=bounds(limit), flags=["drifting"])
    assert not kept.startswith("would pay: ")


def test_devices_that_are_evenly_split_decide_nothing() -> None:
    """One more on either side does; the order of their names is no evidence."""
    even = answer("quantisation", devices=(FAST, WIDE))

    assert even.startswith("cannot be told: nothing settles what limits it")
    more = answer("quantisation", devices=(FAST, WIDE, spec("fast2", 100, 10)))
    assert more.startswith("would pay: ")
    other = answer("quantisation", devices=(FAST, WIDE, spec("wide2", 1, 1_000)))
    assert other.startswith("would pay only where")


def test_integers_hardly_pay_where_no_layer_multiplies_by_weights() -> None:
    timed = table(("norm", "LayerNorm", 100.0, 0, None))

    assert (
        "would hardly pay: no layer with floating-point weights takes enough of the time"
        == answer("quantisation", timed=timed)
    )


def test_nothing_is_said_of_integers_where_nothing_is_known() -> None:
    assert answer("quantisation", devices=()).startswith("cannot be told")


@pytest.mark.seed("S2.9")
def test_a_cache_pays_where_attention_looks_back() -> None:
    """And what has none shares no work between two inputs."""
    flash = cost(attention="scaled_dot_product_flash_attention_for_cpu")

    assert answer("caching", needs=flash).startswith("keys and values would pay")
    assert answer("caching").startswith("would not pay")
    assert answer("caching", needs=cost(attention=None)).startswith("not known")


def roof() -> Estimate:
    return costs.report(profile(), None, [FAST]).estimates[0]
