"""A callable JSON on a screen: value, spread and n, marks where they belong, and what to do."""

import re

import msgspec
import numpy as np

from farm.profiles import callables
from farm.report.table import Table
from tests.farm import make
from tests.farm.interchange import calls


def shown(document):
    """The cells of the table, and the lines beside it."""
    blocks = callables.screen(document)
    (table,) = (each for each in blocks if isinstance(each, Table))
    cells = [[cell.text for cell in row] for row in table.rows]
    return cells, [each for each in blocks if isinstance(each, str)]


def test_a_screen_has_value_spread_and_n_and_marks_what_is_not_sure():
    cells, lines = shown(calls.document([1.0, 2.0, 3.0], warmup=2))

    assert ["latency p50", "2.000 ~", "ms", "–", "one repeat gives no interval"] == cells[0]
    assert ["latency p99", "2.980 ~"] == cells[3][:2]
    assert ["latency std", "1.000", "ms", "", ""] == cells[5]
    assert ["host memory peak", "310.0", "MiB", "", ""] == cells[6]
    assert "3 calls on one input after 2 untimed" in lines[0]
    assert lines[1].startswith("budget   share of a period that one call takes: 5 Hz 0.01")
    assert "quality  valid, stable: no doubt" == lines[2]


def test_times_that_scatter_are_a_doubt_without_a_flag():
    _, lines = shown(calls.document(profile=make.profile(repeats=1, stability="noisy")))

    assert "quality  valid, noisy: the times scatter widely" == lines[2]


def test_an_interval_is_shown_where_there_is_one(seed):
    """A thousand independent samples bound their p95; the mark is then gone."""
    samples = np.random.default_rng(seed).permutation(np.arange(9001.0, 10001.0))

    cells, _ = shown(calls.document(samples))

    assert re.fullmatch(r"\[99\d\d, 99\d\d\]", cells[2][3])
    assert "~" not in cells[2][1]


def test_one_call_has_no_spread_and_the_screen_says_why():
    cells, _ = shown(calls.document([5.0]))

    assert ["latency std", "–", "ms", "", "one sample gives no spread"] == cells[5]


def test_a_rate_that_a_call_is_too_slow_for_is_marked():
    _, lines = shown(calls.document([142.7]))

    assert "5 Hz 0.7135, 10 Hz 1.427 (too slow), 30 Hz 4.281 (too slow)" in lines[1]


def test_a_doubt_comes_with_what_to_do_about_it():
    profile = make.profile(repeats=1, flags=["contended", "clock_blip"])

    _, lines = shown(calls.document(profile=profile, warmup=0))

    assert "doubt    clock_blip: one sample of a slowed clock" in lines
    assert (
        "doubt    contended: other work ran on its cores; measure again while nothing else runs"
    ) in lines
    assert any(each.startswith("doubt    first: the first call") for each in lines)
    assert any(each.endswith("give --warmup 1 or more") for each in lines)


def test_calls_that_are_short_for_the_clock_are_not_said_to_be_timed_together():
    """However short one is, a call stays a call here, and the clock is part of its time."""
    document = calls.document(profile=make.profile(repeats=1, flags=["timer_limited"]))

    _, lines = shown(document)

    (said,) = (each for each in lines if "timer_limited" in each)
    assert 1 == document.latency_detail.of_blocks
    assert "each was timed alone" in said
    assert "let one call do the work of several" in said


def test_a_slot_of_the_cpu_is_no_gpu():
    """`--device cpu:0` is the CPU, whose GPU memory nobody asks about."""
    document = calls.document(device="cpu:0")

    cells, _ = shown(document)

    assert not any("GPU" in row[0] for row in cells)
    assert document.system_card.gpu_name is None
    assert "not_applicable" in document.null_reasons["system_card.gpu_name"]


def test_memory_of_a_gpu_is_told_by_device_or_why_it_is_not():
    unknown = calls.document(device="cuda")
    memory = msgspec.structs.replace(
        unknown.memory, cuda_peak_allocated_mb_by_visible_device={"0": 512.0, "1": 0.0}
    )
    known = msgspec.structs.replace(unknown, memory=memory)

    assert ["GPU memory", "–", "MiB", "", "not probed"] == shown(unknown)[0][7]
    assert [["allocated on cuda:0", "512.0"], ["allocated on cuda:1", "0.000"]] == [
        each[:2] for each in shown(known)[0][7:]
    ]
