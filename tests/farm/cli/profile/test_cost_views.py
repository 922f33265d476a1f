import pytest

from farm import costs
from farm.cli.profile import cost_views
from farm.report.table import Table
from tests.farm.costs.modelled import bounds, cost, profile, spec, table

SPECS = [spec("quick", 100, 100), spec("dark", None, 100)]
LAYERS = table(("head", "Linear", 60.0, 75, 12.0), ("norm", "LayerNorm", 40.0, 0, None))


def lines(*, timed=LAYERS, specs=SPECS, given_ms=None, **more) -> list[str]:
    shown = cost_views.screen(costs.report(profile(**more), timed, specs, given_ms=given_ms))
    return [each if isinstance(each, str) else _flat(each) for each in shown]


def _flat(drawn: Table) -> str:
    rows = [[each.header for each in drawn.columns], *([d.text for d in r] for r in drawn.rows)]
    return "\n".join([drawn.title, *(" ".join(each) for each in rows), *drawn.notes])


def line(name: str, shown: list[str]) -> str:
    return next(each for each in shown if each.startswith(f"{name:<14}"))


@pytest.mark.seed("S2.9")
def test_the_answers_come_first() -> None:
    shown = lines()

    assert "mlp, fp32, batch 1" == shown[0]
    assert ["bound", "layer", "quantisation", "caching"] == [each.split()[0] for each in shown[1:5]]


@pytest.mark.seed("S1.2", "S2.11")
def test_each_kind_of_evidence_stands_under_its_own_heading() -> None:
    """Shares of a profiled pass are measured, estimates are not, and the rule is printed."""
    shown = lines(latency=True)

    headings = [
        next(at for at, each in enumerate(shown) if each.startswith(start))
        for start in (
            "cost, from the model",
            "estimates, not measured",
            "roofline",
            "measured here, in a profiled pass",
            "measured here, on",
        )
    ]
    assert sorted(headings) == headings
    assert "not measured: computed from peaks" in shown[headings[2]]
    assert "at least 5 % of the time" in line("rule", shown)


@pytest.mark.seed("S1.3")
def test_the_cost_shows_exact_counts_and_half_as_many_macs() -> None:
    shown = lines()

    assert "1,000,000, 1,000,000 trainable; fp32 3.81 MiB" in line("parameters", shown)
    flops = line("FLOPs", shown)
    assert "10,000,000,000 per item (5,000,000,000 multiply-accumulates)" in flops
    assert "coverage 100 %" in flops


@pytest.mark.seed("S1.6")
def test_what_is_unknown_is_a_dash_with_its_reason() -> None:
    """Never a zero."""
    needs = cost(
        flops_per_batch=None,
        flops_per_item=None,
        macs_per_item=None,
        flops_status="unsupported",
        uncounted_ops=["aten::_fft_r2c"],
        activation_peak_bytes=None,
        attention=None,
    )

    shown = lines(needs=needs, why={"cost.flops_per_batch": "not_supported: no formula"})

    assert "FLOPs         – unsupported: no formula" in shown
    assert "uncounted     aten::_fft_r2c" in shown
    assert "activations   –" in shown
    assert "attention     –" in shown


def test_a_device_without_a_peak_keeps_its_row() -> None:
    shown = next(each for each in lines() if each.startswith("roofline"))

    assert "dark fp32 – 100.0 – – – 0.2000 – –" in shown


@pytest.mark.seed("S2.24")
def test_the_rule_of_thumb_says_that_it_is_no_bandwidth() -> None:
    shown = lines(latency=True, bounds=bounds("compute"))

    assert "no bandwidth" in line("heuristic", shown)
    assert "43 % of peak FLOP/s, 2.1 % of peak bandwidth" in line("used", shown)


def test_a_given_latency_is_told_from_a_measured_one() -> None:
    given, taken = lines(specs=SPECS[:1], given_ms=2.0), lines(latency=True)

    assert "given, not measured here: 2.000 ms on quick" in given
    assert not [each for each in given if each.startswith("latency")]
    assert line("latency", taken).startswith("latency       p50 10.00 ms [9.96, 10.04] over 768")


def test_doubts_about_a_latency_are_shown() -> None:
    assert "doubt         other work ran on its cores" in lines(latency=True, flags=["contended"])
