"""Which kernels came and went: by names whose digits do not count, and by category."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.analysis.quality import Quality
from farm.trace.analysis.record import Analysis
from farm.trace.analysis.tables import KernelRow
from farm.trace.comparing import kernels
from tests.farm.trace.analysis.expected import ABSENT, DATA
from tests.farm.trace.comparing.sides import made, side


def kernel(name: str, ms: float, *, calls: float = 1.0, category: str = "gemm") -> KernelRow:
    return KernelRow(
        kernel=name,
        raw_name=name,
        category=category,
        tensorcore=False,
        matrix_unit="no",
        ms_per_step=ms,
        pct_of_gpu=0.0,
        count_per_step=calls,
    )


def with_kernels(*rows: KernelRow, flags: tuple[str, ...] = ()) -> Analysis:
    return side(kernels=[*rows], quality=Quality(flags=[*flags], repaired={}, dropped={}))


def test_names_that_differ_in_digits_alone_are_one_kernel() -> None:
    before = with_kernels(kernel("sgemm_128x64_nn", 3.0, calls=2), kernel("sgemm_64x32_nn", 1.0))
    after = with_kernels(kernel("sgemm_256x128_nn", 3.0, calls=2))

    (found,) = kernels.by_name(before, after)

    assert ("sgemm_#x#_nn", 2, "both") == (found.kernel, found.names, found.listed)
    assert (4.0, 3.0, -1.0, 0.75) == (
        *(found.before_ms, found.after_ms, found.change_ms, found.ratio),
    )
    assert (3.0, 2.0, -1.0) == (found.before_count, found.after_count, found.change_count)


def test_a_kernel_of_one_side_alone_has_0_on_the_other() -> None:
    before = with_kernels(kernel("stays", 1.0), kernel("goes", 2.0))
    after = with_kernels(kernel("stays", 1.0), kernel("comes", 5.0, category="norm"))

    found = {each.kernel: each for each in kernels.by_name(before, after)}

    assert ["comes", "goes", "stays"] == [*found]
    assert ("after", 0.0, 5.0, None, "norm") == (
        *(found["comes"].listed, found["comes"].before_ms, found["comes"].after_ms),
        *(found["comes"].ratio, found["comes"].category),
    )
    assert ("before", -2.0, -1.0) == (
        *(found["goes"].listed, found["goes"].change_ms, found["goes"].change_count),
    )


def test_where_a_list_is_cut_nobody_knows_what_is_not_in_it() -> None:
    before = with_kernels(kernel("stays", 1.0), kernel("gone or cut", 2.0))
    after = with_kernels(kernel("stays", 1.0), flags=(kernels.CUT,))

    found = kernels.by_name(before, after)[0]

    assert ("gone or cut", "before", 2.0) == (found.kernel, found.listed, found.before_ms)
    assert (None, None, None, None, None) == (
        *(found.after_ms, found.change_ms, found.ratio, found.after_count, found.change_count),
    )


def test_without_kernels_on_a_side_nothing_came_or_went() -> None:
    """A capture without a trace has none, whatever ran."""
    untraced = side(kernels=[], categories=[])

    for pair in ((untraced, made()), (made(), untraced)):
        assert [] == kernels.by_name(*pair) == kernels.by_category(*pair)


def test_categories_are_told_with_what_came_and_went() -> None:
    found = {each.name: each for each in kernels.by_category(made(0.5), made(0.9))}

    assert {"elementwise", "gemm", "layout", "norm", "other"} == {*found}
    assert (1.5, 2.7, 1.2, 1.8) == pytest.approx(
        (
            found["gemm"].before_ms,
            found["gemm"].after_ms,
            found["gemm"].change_ms,
            found["gemm"].ratio,
        )
    )
    sizes = [abs(each.change_ms) for each in found.values()]
    assert sorted(sizes, reverse=True) == sizes


NAMES = st.lists(st.tuples(st.sampled_from(["a1", "a2", "b", "c9", "d"]), st.floats(0, 1e3)))


@given(NAMES, NAMES)
def test_no_time_is_lost_and_swapping_the_sides_turns_it_round(
    one: list[tuple[str, float]], other: list[tuple[str, float]]
) -> None:
    before, after = (with_kernels(*(kernel(*each) for each in rows)) for rows in (one, other))

    there, back = kernels.by_name(before, after), kernels.by_name(after, before)

    if one and other:
        assert sum(each for _, each in one) == pytest.approx(sum(r.before_ms or 0 for r in there))
        assert sum(each for _, each in other) == pytest.approx(sum(r.after_ms or 0 for r in there))
    turned = {"before": "after", "after": "before", "both": "both"}
    assert [(each.kernel, turned[each.listed], -(each.change_ms or 0)) for each in there] == [
        (each.kernel, each.listed, each.change_ms) for each in back
    ]


@given(NAMES)
def test_nothing_comes_or_goes_between_the_same(rows: list[tuple[str, float]]) -> None:
    same = with_kernels(*(kernel(*each) for each in rows))

    for each in kernels.by_name(same, same):
        assert ("both", 0.0, 0.0) == (each.listed, each.change_ms, each.change_count)


@given(st.text(alphabet="ab_012<>٣"))
def test_folding_is_done_once_and_keeps_all_but_digits(name: str) -> None:
    found = kernels.folded(name)

    assert found == kernels.folded(found)
    assert [each for each in name if each not in "012"] == [*found.replace("#", "")]


@pytest.mark.skipif(not DATA.is_dir(), reason=ABSENT)
def test_between_two_real_traces_the_collectives_came_and_the_old_gemms_went() -> None:
    """One V100 without collectives, then one A100 of several: the same network."""
    from farm.trace.opening import opened

    before, after = (opened(next(DATA.glob(f"{at}_*"))).analysis for at in ("02", "03"))

    found = kernels.by_name(before, after)

    first = found[0]
    assert (True, "after", 5.0) == (
        first.kernel.startswith("ncclKernel_AllReduce"),
        *(first.listed, first.after_count),
    )
    sgemm = next(each for each in found if each.kernel == "volta_sgemm_#x#_nn")
    assert ("before", 2, 22.0) == (sgemm.listed, sgemm.names, sgemm.before_count)
    whole = sum(each.ms_per_step for each in before.kernels)
    assert whole == pytest.approx(sum(each.before_ms or 0 for each in found))
    kinds = {each.name: each.change_ms for each in kernels.by_category(before, after)}
    assert (True, True) == (kinds["comm"] > 17, kinds["gemm"] < -45)
