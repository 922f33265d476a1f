"""What records become: flags with their evidence, blocks over repeats, validity and stability."""

import numpy as np
import pytest

from tests.workers.make import MIB, arrays, edge, record
from workers import figures, resources
from workers.figures import Taken
from workers.record import Record


def taken(
    index: int = 0,
    center_ms: float = 10.0,
    *,
    by: Record | None = None,
    neighbours: tuple[str, ...] = ("yes (pid 7), 98 % of a core",),
    **of: float,
) -> Taken:
    return figures.taken(
        by or record(index),
        arrays(center_ms, seed=index, **of),  # type: ignore[arg-type]
        batch=4,
        neighbours=neighbours,
    )


def judged(repeats: list[Taken], wanted: int = 3) -> tuple[str, str, list[str]]:
    block, _ = figures.latency(repeats, batch=4)
    quality = figures.quality(repeats, block, wanted=wanted, slot_flags=())
    return quality.validity, quality.stability, quality.flags


@pytest.mark.parametrize(
    ("after", "flag"),
    [
        ({"wait_ns": 30_000_000}, "contended"),
        ({"nr_throttled": 1}, "contended"),
        ({"steal_ticks": 2}, "contended"),
        ({"run_ns": None, "wait_ns": None, "psi_some_us": 30_000}, "contended"),
        ({"run_ns": None, "wait_ns": None, "psi_some_us": None}, "contention_unknown"),
        ({"major_faults": 1}, "paging"),
        ({"suspended_ns": 5_000_000}, "suspended"),
    ],
)
def test_each_disturbance_has_its_flag(after: dict[str, int | None], flag: str) -> None:
    """Evidence of a disturbed pass is named, one flag per kind (measurement §8)."""
    disturbed = record(latency_edges=(edge(1), edge(2, **after)))

    assert [flag] == taken(by=disturbed).repeat.flags


@pytest.mark.parametrize(
    "after",
    [
        {},
        {"wait_ns": 15_000_000},
        {"steal_ticks": 1},
        {"psi_some_us": 900_000},
        {"involuntary_switches": 500},
        {"suspended_ns": 300_000},
    ],
)
def test_what_a_quiet_machine_shows_is_no_flag(after: dict[str, int]) -> None:
    """Below the limits, and for what separates nothing, there is no doubt.

    One tick of stolen time is the counter's rounding; pressure on other cores is not ours.
    """
    assert [] == taken(by=record(latency_edges=(edge(1), edge(2, **after)))).repeat.flags


def test_a_neighbour_of_the_throughput_pass_is_seen_too() -> None:
    """A figure of a repeat may come from either pass, so either one's disturbance counts."""
    late = record(throughput_edges=(edge(3), edge(4, wait_ns=500_000_000)))

    assert ["contended"] == taken(by=late).repeat.flags


@pytest.mark.parametrize(
    ("after", "who", "flag"),
    [
        ({"wait_ns": 400_000_000}, (), "own_loaders"),
        ({"wait_ns": 400_000_000}, ("python (pid 7), 90 % of a core",), "contended"),
        ({"steal_ticks": 20}, (), "contended"),
        ({"nr_throttled": 1}, (), "contended"),
        ({"run_ns": None, "wait_ns": None, "psi_some_us": 30_000}, (), "own_loaders"),
    ],
)
def test_waiting_for_its_own_loaders_is_no_contention(after, who, flag) -> None:
    """They share its cores, and are a part of what is measured; a neighbour is not."""
    loading = record(latency_edges=(edge(1), edge(2, **after)), loaders=8)

    found = taken(by=loading, neighbours=who)
    assert [flag] == found.repeat.flags
    assert (flag == "contended") is found.is_invalid


def test_a_headline_is_the_median_of_process_medians() -> None:
    """Three processes around 10, 10.1 and 10.3 ms: the headline is the middle one."""
    repeats = [taken(i, center) for i, center in enumerate((10.0, 10.1, 10.3))]

    block, nulls = figures.latency(repeats, batch=4)

    assert 10.1 == pytest.approx(block.p50_ms, rel=0.002)
    assert block.p50_lo_ms is not None
    assert block.p50_hi_ms is not None
    assert block.p50_lo_ms < block.p50_ms < block.p50_hi_ms
    assert {} == {name: why for name, why in nulls.items() if name.startswith("p50")}
    assert 1200 == block.n


def test_one_process_has_no_interval() -> None:
    """A single repeat shows nothing of the spread between processes, and says so."""
    block, nulls = figures.latency([taken()], batch=4)

    assert (None, False) == (block.p50_lo_ms, block.p50_reliable)
    assert "single_repeat" == nulls["p50_lo_ms"] == nulls["proc_cv"]


def test_a_tail_without_enough_samples_has_a_point_and_no_interval() -> None:
    """A p99 of 60 samples is shown, marked, and says how many it needs."""
    block, nulls = figures.latency([taken(i, n=20) for i in range(3)], batch=4)

    assert block.p99_ms > 0
    assert (None, False) == (block.p99_lo_ms, block.p99_reliable)
    assert nulls["p99_lo_ms"].startswith("below_resolution")


def test_three_calm_repeats_are_valid_and_stable() -> None:
    """No flag, small spread, agreeing processes: `valid`, `stable`."""
    assert ("valid", "stable", []) == judged([taken(i) for i in range(3)])


def test_one_contended_repeat_does_not_enter_the_headline() -> None:
    """A repeat that was disturbed is listed, and the figure is that of the others."""
    bad = record(1, latency_edges=(edge(1), edge(2, wait_ns=900_000_000)))
    repeats = [taken(0), taken(1, 80.0, by=bad), taken(2), taken(3)]

    used = figures.counted(repeats)

    assert [0, 2, 3] == [each.repeat.index for each in used]
    assert ("valid", "stable", []) == judged(used)


def test_when_every_repeat_is_contended_the_figure_says_so() -> None:
    """All repeats invalid: shown all the same, marked invalid, the neighbour named."""
    edges = (edge(1), edge(2, wait_ns=900_000_000))
    repeats = [taken(i, by=record(i, latency_edges=edges)) for i in range(3)]

    used = figures.counted(repeats)
    block, _ = figures.latency(used, batch=4)
    quality = figures.quality(used, block, wanted=3, slot_flags=())

    assert 3 == len(used)
    assert ("invalid", "false") == (quality.validity, quality.quiet)
    assert ["yes (pid 7), 98 % of a core"] == quality.neighbours


def test_a_quiet_machine_accuses_nobody() -> None:
    """Neighbours are named only where they disturbed."""
    block, _ = figures.latency([taken()], batch=4)

    assert [] == figures.quality([taken()], block, wanted=1, slot_flags=()).neighbours


def test_fewer_usable_repeats_than_asked_degrade() -> None:
    """Two of three: the figure stands, marked."""
    assert ("degraded", "stable", ["repeats_missing"]) == judged([taken(0), taken(1)])


def test_processes_that_disagree_are_flagged() -> None:
    """Medians 10 % apart are no single figure, whatever their interval."""
    validity, stability, flags = judged([taken(i, 10 * 1.1**i) for i in range(3)])

    assert ("degraded", "noisy", ["processes_disagree"]) == (validity, stability, flags)


def test_unreadable_evidence_never_counts_as_quiet() -> None:
    """Without schedstat `quiet` is unknown."""
    edges = (edge(1, run_ns=None, wait_ns=None), edge(2, run_ns=None, wait_ns=None))
    repeats = [taken(i, by=record(i, latency_edges=edges)) for i in range(3)]
    block, _ = figures.latency(repeats, batch=4)

    assert "unknown" == figures.quality(repeats, block, wanted=3, slot_flags=()).quiet
    assert "not_supported" == repeats[0].nulls["wait_share"]


def test_throughput_is_the_median_of_its_own_passes() -> None:
    """100 intervals a second at batch 4: 400 items/s, never 1/latency."""
    block, nulls = figures.throughput([taken(i) for i in range(3)])

    assert 400.0 == block.throughput_items_per_s
    assert {} == nulls


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("method", ["back_to_back", "pipelined"])
def test_the_method_of_a_throughput_is_what_its_pass_says(method: str, done: bool) -> None:
    """And not whether another pass timed the device: a preset has none, and it may fail."""
    gone = {} if done else {"throughput_iterations": None, "throughput_window_s": None}

    block, _ = figures.throughput([taken(by=record(throughput_method=method, **gone))])

    assert method == block.method
    assert done == (block.throughput_items_per_s is not None)


def test_a_failed_throughput_pass_is_null_with_its_reason() -> None:
    """What could not be had is null, not 0."""
    block, nulls = figures.throughput(
        [taken(by=record(throughput_iterations=None, throughput_window_s=None))]
    )

    assert block.throughput_items_per_s is None
    assert "phase_failed" == nulls["throughput_items_per_s"]


def test_memory_is_the_largest_peak_of_the_repeats() -> None:
    """The peak that a job needs is the largest seen, and the delta is above loading."""
    block, nulls = resources.memory([taken(i) for i in range(3)])

    assert (130 * MIB, 30 * MIB) == (block.cpu_rss_peak_bytes, block.cpu_inference_delta_bytes)
    assert {} == nulls


def test_a_drifting_series_is_flagged() -> None:
    """Latency that creeps up by 10 % over the pass is not steady."""
    ramp = np.linspace(10e6, 11e6, 400).astype(np.int64)
    found = figures.taken(record(), {**arrays(), "latency_ns": ramp}, batch=1, neighbours=())

    assert ["drifting"] == found.repeat.flags


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_caused_iterations_are_told_from_the_rest(share: float) -> None:
    """`clean_p50_ms` leaves out labelled iterations; the headline does not."""
    data = dict(arrays())
    labels = data["label_bits"].copy()
    labels[: int(share * len(labels))] = 1
    found = figures.taken(record(), {**data, "label_bits": labels}, batch=1, neighbours=())

    block, _ = figures.latency([found], batch=4)

    assert 1 - share == pytest.approx(block.clean_share)


def test_a_cpu_that_heat_slowed_down_was_throttled() -> None:
    """A thermal-throttle count that grew during the pass makes it invalid; a VM has no count."""

    def after(count: int) -> Taken:
        edges = (edge(1, heat_throttles=3), edge(2, heat_throttles=count))
        return figures.taken(record(latency_edges=edges), arrays(), batch=4, neighbours=())

    hot, cool = after(4), after(3)

    assert ("throttled" in hot.repeat.flags, hot.is_invalid) == (True, True)
    assert "throttled" not in cool.repeat.flags
    assert "throttled" not in taken().repeat.flags


def test_further_percentiles_come_as_a_list_with_their_intervals() -> None:
    """Those that were asked for beyond the four; 99.9 needs 3,688 effective samples."""
    block, nulls = figures.latency([taken(i) for i in range(3)], batch=4, asked=(50, 75, 99.9))

    (p75, p999) = block.percentiles
    assert (75, True, 99.9, False) == (p75.q, p75.reliable, p999.q, p999.reliable)
    assert p75.lo_ms is not None
    assert p75.lo_ms <= p75.value_ms
    assert {"percentiles.1.lo_ms", "percentiles.1.hi_ms"} <= set(nulls)


def test_the_headline_is_given_per_item_as_well() -> None:
    block, _ = figures.latency([taken(i) for i in range(3)], batch=4)

    assert block.p50_ms / 4 == block.p50_item_ms
