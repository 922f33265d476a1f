"""Which kernels, ops and metrics are meant, and what is said of words that mean none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.trace.analysis import choosing
from farm.trace.analysis.kernels import categories
from farm.trace.analysis.record import Analysis
from tests.farm.trace import g8


@pytest.fixture(scope="module")
def found() -> Analysis:
    return g8.analysis(g8.events(names=(*g8.NAMES, g8.GEMM)))


def names(rows) -> list[str]:
    return [each.raw_name for each in rows]


# ── kernels ──────────────────────────────────────────────────────────────────────────────────────


def test_without_a_wish_all_kernels_are_meant_the_costliest_first(found: Analysis) -> None:
    """Ties by name, in every order."""
    rows = choosing.kernels(found)

    assert set(g8.NAMES) == set(names(rows))
    keys = [(-each.ms_per_step, each.raw_name) for each in rows]
    assert sorted(keys) == keys


@pytest.mark.seed("S4.74")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gemm", {g8.GEMM, g8.PLAIN_GEMM}),
        ("layout", {g8.CAT, g8.NHWC}),
        ("norm", {g8.NORM}),
        ("elementwise", {g8.SILU}),
        ("wise", {g8.SILU}),
        ("o", {g8.CAT, g8.NHWC, g8.NORM, g8.MYSTERY}),
        ("", set(g8.NAMES)),
        ("attention", set()),
    ],
)
def test_a_category_is_meant_by_a_part_of_its_name(
    found: Analysis, text: str, expected: set[str]
) -> None:
    """One that has no kernel here is no mistake."""
    assert expected == set(names(choosing.kernels(found, category=text)))


def test_a_category_that_no_kernel_could_have_is_refused_with_those_known(found: Analysis) -> None:
    for text in ("gemms", "GEMMS", "gemm|norm", "x" * 5000):
        with pytest.raises(Refused) as caught:
            choosing.kernels(found, category=text)
        assert f"known: {', '.join(categories())}" == caught.value.why
        assert len(caught.value.what) < 100


@pytest.mark.seed("S4.74")
def test_capitals_are_no_other_category(found: Analysis) -> None:
    assert choosing.kernels(found, category="gemm") == choosing.kernels(found, category="GEmm")


@pytest.mark.seed("S4.75")
def test_a_pattern_is_searched_in_the_whole_name(found: Analysis) -> None:
    assert [g8.NORM] == names(choosing.kernels(found, pattern=r"bn_\w+_NCHW<float"))
    assert {g8.SILU, g8.NORM, g8.CAT, g8.NHWC} == set(
        names(choosing.kernels(found, pattern="^void "))
    )
    assert [] == choosing.kernels(found, pattern="^bn")


@pytest.mark.seed("S4.75")
@pytest.mark.parametrize("pattern", ["[", "(", "*", "a{2,1}", "(?P<x", "a{1000000000000}", "\\"])
def test_a_pattern_that_is_none_is_refused(found: Analysis, pattern: str) -> None:
    with pytest.raises(Refused, match="is no regular expression"):
        choosing.kernels(found, pattern=pattern)


@pytest.mark.parametrize("pattern", ["[[a]", "a--b", "[a||b]"])
def test_a_pattern_that_may_be_read_otherwise_one_day_warns_nobody(
    found: Analysis, pattern: str
) -> None:
    """Warnings are errors here."""
    choosing.kernels(found, pattern=pattern)


@given(st.text(max_size=20))
def test_any_text_is_a_pattern_or_refused(found: Analysis, pattern: str) -> None:
    try:
        rows = choosing.kernels(found, pattern=pattern)
    except Refused:
        with pytest.raises((re.error, OverflowError)):
            re.compile(pattern)
    else:
        assert set(names(rows)) <= set(g8.NAMES)


@pytest.mark.seed("S4.76")
def test_tensor_core_kernels_are_those_whose_name_proves_it(found: Analysis) -> None:
    """Not those that nobody knows."""
    assert [g8.GEMM] == names(choosing.kernels(found, tensorcore=True))


@pytest.mark.seed("S4.77")
def test_kernels_are_sorted_by_time_by_count_or_by_name() -> None:
    """A few long ones, many short ones."""
    made = [g8.kernel("b_many", 10 * at, 1, at + 1) for at in range(40)]
    made += [g8.kernel("c_long", 1000 * at, 90, 100 + at) for at in range(1, 15)]
    made += [g8.kernel("a_rare", 20_000, 50, 300)]
    found = g8.analysis(made)

    def sorted_by(order: choosing.Order) -> list[str]:
        return names(choosing.kernels(found, order=order))

    assert ["c_long", "a_rare", "b_many"] == sorted_by("time")
    assert ["b_many", "c_long", "a_rare"] == sorted_by("count")
    assert ["a_rare", "b_many", "c_long"] == sorted_by("name")


@pytest.mark.seed("S4.78", "S4.81")
def test_a_phase_has_its_own_kernels_and_its_shares_add_up(found: Analysis) -> None:
    """Five of the twenty kernels of a step start in each quarter."""
    rows = choosing.kernels(found, phase="forward")

    assert 5.0 == pytest.approx(sum(each.count_per_step for each in rows))
    assert 100.0 == pytest.approx(sum(each.pct_of_gpu for each in rows))


def test_filters_compose(found: Analysis) -> None:
    rows = choosing.kernels(found, phase="forward", category="gemm", tensorcore=True)

    assert [g8.GEMM] == names(rows)


# ── phases, ops, metrics ─────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.79")
def test_an_unknown_phase_lists_those_present(found: Analysis) -> None:
    for ask in (choosing.kernels, choosing.ops):
        with pytest.raises(Refused) as caught:
            ask(found, phase="forwrd")
        told = caught.value
        assert ("no phase 'forwrd'", "did you mean `forward`?") == (told.what, told.hint)
        assert "here are to_device, forward, backward, optimizer" == told.why


def test_phases_without_end_do_not_fill_a_message_without_end() -> None:
    """Anybody may name a span as he likes."""
    made = [g8.span(f"step/{at}{'x' * 500}", at, 1) for at in range(500)]

    with pytest.raises(Refused) as caught:
        choosing.ops(g8.analysis(made), phase="gone")

    assert caught.value.why.endswith(", 480 more")
    assert len(caught.value.why) < 1000


@pytest.mark.seed("S4.83")
def test_a_phase_has_its_own_ops() -> None:
    made = g8.host()
    made += [g8.span("aten::late", 1000 + at * 10_000 + 8000, 5, cat="cpu_op") for at in range(4)]
    found = g8.analysis(made)

    assert {"aten::linear", "aten::addmm"} == {
        each.op for each in choosing.ops(found, phase="forward")
    }
    assert "aten::late" in [each.op for each in choosing.ops(found)]


def test_a_metric_is_found_by_its_name(found: Analysis) -> None:
    assert 10.0 == pytest.approx(choosing.metric(found, "step_ms"))
    assert choosing.metric(found, "img_per_s") is None


@pytest.mark.seed("S4.70")
@pytest.mark.parametrize(
    ("field", "hint"),
    [("gpu_utl", "did you mean `gpu_util`?"), ("zzz", ""), ("", ""), ("x" * 100_000, "")],
)
def test_an_unknown_metric_points_to_the_listing(found: Analysis, field: str, hint: str) -> None:
    with pytest.raises(Refused) as caught:
        choosing.metric(found, field)

    assert ("without FIELD all of them are listed", hint) == (caught.value.why, caught.value.hint)
    assert len(caught.value.what) < 100
