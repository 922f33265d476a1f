"""Tables of a trace: their columns with units, their shares, and what is not in them."""

import pytest
from msgspec import structs

from farm.cli.profile import trace_views
from tests.farm.trace import g8

FOUND = g8.analysis(g8.events())
HOST = g8.analysis(g8.host())


def texts(table) -> list[list[str]]:
    return [[each.text for each in row] for row in table.rows]


@pytest.mark.seed("S4.71")
def test_a_phase_has_its_gpu_time_its_wall_time_its_kernels_and_its_ops() -> None:
    """A quarter of each step, in its order."""
    table = trace_views.phases(FOUND)

    headers = ["phase", "GPU ms", "wall ms", "kernels", "launches", "ops"]
    assert headers == [each.header for each in table.columns]
    assert [
        [name, "1.250", "2.500", "5", "5", "5"]
        for name in ("to_device", "forward", "backward", "optimizer")
    ] == texts(table)


def test_without_a_gpu_its_time_is_not_0_but_unknown() -> None:
    assert ["–", "–"] == [row[1] for row in texts(trace_views.phases(HOST))]


def test_what_is_in_no_phase_stands_last_and_is_explained() -> None:
    """One launch before any span, and one kernel whose launch nobody saw."""
    made = g8.events()
    made += [g8.launch(500, 7), g8.kernel("early", 20_000, 5, 7), g8.kernel("lost", 30_000, 5, 8)]

    table = trace_views.phases(g8.analysis(made))

    assert ["unphased", "unattributed"] == [row[0] for row in texts(table)][-2:]
    assert "unphased: launched in none of the phases" in table.notes
    assert "unattributed: launched before the trace began" in table.notes


def test_a_forward_that_was_inferred_is_told() -> None:
    told = trace_views.phases(structs.replace(FOUND, inferred_forward=True)).notes

    assert [] != [each for each in told if each.startswith("forward: inferred")]
    assert [] == [each for each in trace_views.phases(FOUND).notes if "inferred" in each]


def test_an_op_whose_own_time_nobody_tells_has_none_and_that_is_said() -> None:
    """Another tool times it with those inside it; no share of that is shown."""
    told = [structs.replace(each, ms_per_step=None, pct_of_cpu_ops=None) for each in HOST.ops]

    table = trace_views.ops(told, of=9)

    assert [("–", "–")] * len(told) == [(row[0], row[4]) for row in texts(table)]
    assert "self: not told, its tool times an op with those inside it" in table.notes


@pytest.mark.seed("S4.80")
def test_a_kernel_has_its_share_its_time_its_calls_its_category_and_its_mark() -> None:
    table = trace_views.kernels(FOUND.kernels, of=7)

    headers = ["share %", "time ms", "calls", "category", "matrix", "kernel"]
    assert headers == [each.header for each in table.columns]
    shown = {row[-1]: row[:-1] for row in texts(table)}
    assert ["15.0", "0.750", "3", "gemm", "yes"] == shown[g8.GEMM]
    assert ["15.0", "0.750", "3", "gemm", "no"] == shown[g8.PLAIN_GEMM]
    assert ["10.0", "0.500", "2", "other", "unknown"] == shown[g8.MYSTERY]
    assert ["15.0", "0.750", "3", "norm", "no"] == shown[g8.NORM.removeprefix("void ")]


@pytest.mark.seed("S4.81")
def test_the_header_says_whose_time_a_share_is_of() -> None:
    rows = FOUND.kernels_by_phase["forward"]
    of_phase = trace_views.kernels(rows, of=len(rows), phase="forward")
    of_all = trace_views.kernels(FOUND.kernels, of=7)

    assert "kernels, per step; share of the GPU time of forward in kernels" == of_phase.title
    assert "kernels, per step; share of the GPU time in kernels" == of_all.title
    assert 100.0 == pytest.approx(sum(float(row[0]) for row in texts(of_phase)), abs=0.5)


@pytest.mark.seed("S4.84")
def test_an_op_has_its_own_time_and_beside_it_that_of_what_is_inside() -> None:
    """addmm runs for 3 of the 4 ms of linear; launches are those that it made itself."""
    table = trace_views.ops(HOST.ops, of=2)
    on_gpu = trace_views.ops(FOUND.ops, of=2)

    headers = ["self ms", "total ms", "calls", "launches", "share %", "op"]
    assert headers == [each.header for each in table.columns]
    assert [
        ["6.000", "6.000", "2", "0", "75.0", "aten::addmm"],
        ["2.000", "8.000", "2", "0", "25.0", "aten::linear"],
    ] == texts(table)
    assert ["10", "10"] == [row[3] for row in texts(on_gpu)]


def test_what_is_left_out_is_told_with_its_share() -> None:
    table = trace_views.kernels(FOUND.kernels[:2], of=7)

    assert "2 of 7 kernels, 30 % of the time; --top shows more" == table.notes[0]
    assert ("no op here",) == trace_views.ops([], of=0).notes


def test_a_time_that_is_too_short_for_its_column_keeps_its_digits() -> None:
    row = structs.replace(FOUND.kernels[0], ms_per_step=0.000012, pct_of_gpu=0.0001)

    assert ["0.1", "0.00001200"] == texts(trace_views.kernels([row], of=1))[0][:2]


def test_the_listing_names_a_null_and_its_reason() -> None:
    shown = {row[0]: row[1:] for row in texts(trace_views.listing(HOST))}

    why = "not_applicable: the trace has no kernel of a GPU"
    assert ["null", "of 1", why] == shown["gpu_util"]
    assert ["10.00", "ms", ""] == shown["step_ms"]
    assert ["false", "", ""] == shown["memory_pressure"]
    assert ["4", "per step", ""] == shown["ops_per_step"]
