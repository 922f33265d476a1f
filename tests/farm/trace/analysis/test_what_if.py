"""What a step would take without some of its work: the model of the seed, and the bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Refused
from farm.trace.analysis import timings, what_if
from farm.trace.analysis.what_if import Basis, Projection
from tests.farm.trace import g8
from tests.farm.trace.analysis.traces import (
    COMM,
    ELEMENTWISE,
    GEMM,
    WORK,
    Event,
    call,
    copy,
    graph,
    kernel,
    launch,
    launched,
    made,
    op,
    repeated,
    span,
    step,
)

HALF, FULL = g8.events(), g8.events(busy=0.9)


def based(events: list[Event]) -> Basis:
    found = made(events)
    return what_if.basis(found.analysis, timings.of_trace(found.found))


def without(events: list[Event], category: str) -> Projection:
    return what_if.without_category(based(events), category)


def fewer(events: list[Event], launches: int) -> Projection:
    return what_if.without_launches(based(events), launches)


@pytest.mark.seed("S4.91", "S4.93")
def test_below_eighty_percent_fewer_launches_save_what_each_costs_the_host() -> None:
    """G8: ten of 20 launches of 250 µs each; 10 → 7.5 ms."""
    found = fewer(HALF, 10)

    assert (10.0, 7.5, 7.5, 10.0) == pytest.approx(
        (found.now, found.projected, found.best, found.worst)
    )
    assert "launches" in found.mechanism
    assert (0.0, 0.0, 10) == found.removed


@pytest.mark.seed("S4.90", "S4.94")
def test_above_eighty_percent_the_saving_is_less_work_of_the_device() -> None:
    """G8: without its gemm, 2.7 ms; 10 → 7.3 ms."""
    found = without(FULL, "gemm")

    assert (7.3, 2.7) == pytest.approx((found.projected, found.removed.gpu_ms))
    assert 7.0 == pytest.approx(found.best)
    assert "device" in found.mechanism


@pytest.mark.seed("S4.94")
@pytest.mark.parametrize(("busy", "word"), [(0.8, "device"), (0.7998, "launches")])
def test_at_exactly_eighty_percent_the_device_limits(busy: float, word: str) -> None:
    assert word in fewer(g8.events(busy=busy), 1).mechanism


@pytest.mark.seed("S4.96")
def test_no_projection_falls_below_the_floor_of_the_other_resource() -> None:
    """Without all launches the work of the device stays, without all work that of the host."""
    assert 5.0 == pytest.approx(fewer(HALF, 20).projected)
    everything = [each | {"name": WORK} if each["cat"] == "kernel" else each for each in FULL]
    assert 1.0 == pytest.approx(without(everything, "other").projected)


def test_the_floor_holds_the_waiting_for_data_too() -> None:
    loading = repeated(
        5,
        1000,
        lambda number, at: [
            span("step/dataload", at, 300),
            *launched(at + 400, 500, number + 1),
        ],
    )

    found = fewer(loading, 1)

    assert 0.8 == pytest.approx(found.projected)


@pytest.mark.seed("S4.95")
def test_the_caveat_says_that_only_measuring_again_proves_it() -> None:
    assert "approximation" in what_if.CAVEAT
    assert "measuring again" in what_if.CAVEAT


@pytest.mark.seed("S4.97")
@pytest.mark.parametrize("category", ["comm", "nonsense", ""])
def test_a_category_without_kernels_here_is_refused_with_those_that_are(category: str) -> None:
    with pytest.raises(Refused) as caught:
        without(FULL, category)

    assert "elementwise, gemm, layout, norm, other" in str(caught.value.why)


@pytest.mark.seed("S4.97")
def test_a_category_that_no_kernel_could_have_names_the_nearest_that_is_here() -> None:
    """Capitals are no other category."""
    with pytest.raises(Refused) as caught:
        without(FULL, "gemmm")

    assert ("no category 'gemmm'", "did you mean `gemm`?") == (caught.value.what, caught.value.hint)
    assert without(FULL, "gemm") == without(FULL, "GEMM")


@pytest.mark.seed("S4.98")
@pytest.mark.parametrize(
    "events",
    [
        [step(each, 100 * each, 100) for each in range(3)] + [op("a", 110, 80)],
        [step(each, 100 * each, 100) for each in range(3)]
        + [*launched(20, 5, 1), call("cudaMemcpyAsync", 110, of=2), copy(120, 50, 2)],
    ],
    ids=["no kernels", "no launches in the window"],
)
def test_without_kernels_or_launches_nothing_is_projected(events: list[Event]) -> None:
    with pytest.raises(Refused):
        fewer(events, 1)


@pytest.mark.seed("S4.98")
@pytest.mark.parametrize(
    ("word", "events"),
    [
        ("no-gpu-data", [launch(0, 1), step(1, 0, 10)]),
        ("too-little-data", launched(10, 5, 1)),
        ("under-recorded", [*HALF, *(launch(20 + each, 9000 + each) for each in range(50))]),
    ],
)
def test_nothing_is_projected_from_what_was_refused(word: str, events: list[Event]) -> None:
    with pytest.raises(Refused, match=word):
        fewer(events, 1)
    with pytest.raises(Refused, match=word):
        without(events, "other")


@pytest.mark.seed("S4.98")
def test_more_launches_than_there_are_is_all_of_them_and_said() -> None:
    all_of_them, more = fewer(HALF, 20), fewer(HALF, 1000)

    assert all_of_them[1:-1] == more[1:-1]
    assert "only 20" in more.note
    assert not all_of_them.note


@pytest.mark.parametrize("n", [0, -5])
def test_fewer_than_one_launch_is_refused(n: int) -> None:
    with pytest.raises(Refused):
        fewer(HALF, n)


def test_work_that_is_hidden_under_other_work_saves_no_time_of_the_device() -> None:
    """The model of the seed says 1 ms of 10; the kernels beside it still take 9."""
    both = repeated(
        5,
        10_000,
        lambda number, at: [
            *launched(at + 500, 9000, 2 * number + 1, name=ELEMENTWISE),
            *launched(at + 500, 9000, 2 * number + 2, name=GEMM, stream=8),
        ],
    )

    found = without(both, "elementwise")

    assert (9.0, 0.0) == pytest.approx((found.removed.gpu_ms, found.removed.exclusive_gpu_ms))
    assert (1.0, 9.5) == pytest.approx((found.projected, found.best))
    assert found.below_bound


def test_a_launch_goes_only_if_all_its_kernels_go() -> None:
    """A graph of two kinds stays."""
    mixed = repeated(
        5,
        1000,
        lambda number, at: [
            graph(at + 1, 3 * number + 1),
            kernel(at + 100, 100, 3 * number + 1, name=COMM),
            kernel(at + 300, 100, 3 * number + 1),
            *launched(at + 500, 100, 3 * number + 2, name=COMM),
            call("cudaMemcpyAsync", at + 700, of=3 * number + 3),
        ],
    )

    assert 1.0 == without(mixed, "comm").removed.launches


def test_a_launch_whose_work_began_before_the_window_does_not_go() -> None:
    """The kernel of a step before runs on until 500 µs of the next, where the window begins."""
    both = repeated(
        5,
        1000,
        lambda number, at: [
            graph(at + 1, 3 * number + 1),
            kernel(at + 100, 50, 3 * number + 1, name=COMM, stream=8),
            kernel(at + 600, 50, 3 * number + 1, name=COMM, stream=8),
            *launched(at + 700, 800, 3 * number + 2),
        ],
    )

    found = based(both)
    removed = what_if.without_category(found, "comm").removed

    assert found.ran is not None
    assert (4, 0.75) == (found.ran.steps, removed.launches)


def test_without_recorded_launches_each_kernel_was_one() -> None:
    bare = [each for each in HALF if each["cat"] != "cuda_runtime"]

    assert 6.0 == without(bare, "gemm").removed.launches


RUNS = st.lists(
    st.tuples(
        st.integers(0, 900),
        st.integers(1, 400),
        st.sampled_from([GEMM, COMM, WORK, ELEMENTWISE]),
        st.integers(7, 9),
    ),
    min_size=1,
    max_size=6,
)


def drawn(runs: list[tuple[int, int, str, int]], loading: int) -> list[Event]:
    """Return four equal steps of 2 ms of these kernels, and of so much waiting for data."""

    def of_step(number: int, at: float) -> list[Event]:
        found = [span("step/dataload", at, loading)]
        for of, (start, length, name, stream) in enumerate(runs, 10 * number + 1):
            found += launched(at + 20 + start, length, of, name=name, stream=stream)
        return found

    return repeated(4, 2000, of_step)


@given(RUNS, st.integers(0, 500))
def test_no_projection_is_below_what_stays_nor_above_what_is(
    runs: list[tuple[int, int, str, int]], loading: int
) -> None:
    """best ≥ b − X: the union of the kernels that stay has to run."""
    found = based(drawn(runs, loading))
    assert found.ran is not None

    for row in found.ran.categories:
        without = what_if.without_category(found, row)
        floor = found.busy_ms - without.removed.exclusive_gpu_ms
        assert without.best >= floor - 1e-9
        assert max(without.best, without.projected) <= without.worst == without.now
        assert without.below_bound is (without.projected < without.best)


@given(RUNS, st.integers(0, 500))
def test_more_removed_never_gives_a_larger_best(
    runs: list[tuple[int, int, str, int]], loading: int
) -> None:
    found = based(drawn(runs, loading))

    fewer = [what_if.without_launches(found, each) for each in range(1, len(runs) + 3)]

    bests = [each.best for each in fewer]
    assert sorted(bests, reverse=True) == bests
    assert all(each.best >= found.busy_ms - 1e-9 for each in fewer)
