"""Profiles for a person, and as the lines of a list: no figure without its doubt or its reason."""

import msgspec
import pytest

from farm import profiles, schema
from farm.profiles.search import KEYS
from farm.report.table import Table
from tests.farm import make
from tests.farm.profiles.instrumented import BLOCKS, profile


def cells(table: Table) -> list[tuple[str, ...]]:
    return [tuple(each.text for each in row) for row in table.rows]


def told(document) -> str:
    """Everything a screen says, as text."""
    blocks = profiles.screen(make.row(document))
    return "\n".join(
        each if isinstance(each, str) else "\n".join(" ".join(row) for row in cells(each))
        for each in blocks
    )


def test_a_row_names_job_state_figures_system_time_and_run():
    row = make.row(make.profile())

    table = profiles.table([row], of=1)

    figures = ("mlp/fp32/b1/cpu", "valid", "10.00", "100.0", "epyc-7b13-2c")
    assert [(row.profile_id[:12], *figures, "2026-11-30 10:15", make.RUN)] == cells(table)
    assert () == table.notes


@pytest.mark.parametrize(
    ("made", "state"),
    [
        ({"flags": ["drifting"]}, "degraded"),
        ({"flags": ["contended"]}, "invalid"),
        ({"status": "failed", "failure": make.fault("oom")}, "oom"),
        ({"status": "infra", "failure": make.fault("worker_lost")}, "worker_lost"),
    ],
)
def test_a_row_without_a_good_figure_says_what_it_is(made, state):
    (row,) = cells(profiles.table([make.row(make.profile(**made))], of=1))

    assert state == row[2]
    assert ("–" in row) == ("status" in made)


def test_a_table_says_what_it_leaves_out():
    assert ("and 2 profiles more; --limit shows them",) == profiles.table(
        [make.row(make.profile())], of=3
    ).notes


def test_a_line_of_the_list_is_a_document():
    """Keys as they are searched by; figures that cannot exist are absent."""
    document = profiles.document(make.row(make.profile(tags={"a": "b"})))

    plain = msgspec.to_builtins(document)
    assert ("farm.profile_row/v1", "mlp", 1, 10.0, 100.0, {"a": "b"}) == (
        plain["schema"],
        plain["model"],
        plain["batch"],
        plain["p50_ms"],
        plain["throughput_items_per_s"],
        plain["tags"],
    )
    assert {*KEYS} <= {*plain}
    failed = msgspec.to_builtins(profiles.document(make.row(make.profile(status="failed"))))
    assert {"p50_ms", "throughput_items_per_s", "null_reasons"} == {*plain} - {*failed} | {
        "null_reasons"
    }
    assert "failed" == failed["status"]


def test_a_null_of_a_line_has_its_reason():
    """The one mechanism for nulls holds here too."""
    document = make.profile()
    throughput = schema.Throughput(
        throughput_items_per_s=None, lo=None, hi=None, window_s=None, method="back_to_back"
    )
    reasons = {f"throughput.{each}": "phase_failed" for each in _NULLS}
    document = msgspec.structs.replace(
        document, throughput=throughput, null_reasons={**document.null_reasons, **reasons}
    )

    line = profiles.document(make.row(document))

    assert line.throughput_items_per_s is None
    assert {"throughput_items_per_s": "phase_failed"} == line.null_reasons
    assert "throughput – items/s – the pass failed" in told(document)


_NULLS = ("throughput_items_per_s", "lo", "hi", "window_s")


def test_a_screen_shows_figures_quality_repeats_and_the_way_back():
    said = told(make.profile(flags=["drifting"], neighbours=["python (pid 7), 97 % of a core"]))

    for words in (
        "mlp/fp32/b1/cpu   degraded   profile ",
        "latency p50 10.00 ms [9.96, 10.04]",
        "throughput 100.0 items/s [99.0, 101.0]",
        "host memory peak 300.0 MiB",
        "quality  degraded, stable: the times drifted by more than 2 %",
        "beside   python (pid 7), 97 % of a core",
        "40 in 0.4 s, converged",
        "taken    2026-11-30T10:15:00Z on laptop, AMD EPYC 7B13 (cpu:0, cores [0, 1], 2 threads)",
        "attempt 1 of run " + make.RUN,
        "job | farm-worker run -",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "valid, stable: no doubt"),
        ({"stability": "noisy"}, "valid, noisy: the times scatter widely"),
        (
            {"stability": "noisy", "flags": ["drifting"]},
            "degraded, noisy: the times drifted by more than 2 %, the times scatter widely",
        ),
        ({"repeats": 2}, "valid, stable: fewer usable repeats than asked"),
    ],
)
def test_a_screen_doubts_what_a_report_doubts(given, said):
    """Also what no flag says."""
    assert f"quality  {said}" in told(make.profile(**given)).splitlines()


@pytest.mark.parametrize(
    ("of_blocks", "said"), [(1, "each was timed alone"), (40, "40 were timed together")]
)
def test_short_steps_are_told_as_they_were_timed(of_blocks, said):
    document = make.profile(flags=["timer_limited"])
    latency = msgspec.structs.replace(document.latency, of_blocks=of_blocks)

    quality = told(msgspec.structs.replace(document, latency=latency))

    assert f"so short a step, and {said}" in quality


BAD = ["contended"]


@pytest.mark.parametrize(
    ("flags", "counts", "said"),
    [
        ([[], [], []], ["yes"] * 3, None),
        ([[], ["drifting"], []], ["yes"] * 3, None),
        (
            [[], BAD, [], []],
            ["yes", "replaced", "yes", "yes"],
            "repeats  3 of 4 count; left out: 1; 1 of them replaced by a further one",
        ),
        (
            [BAD, BAD, [], []],
            ["no", "no", "yes", "yes"],
            "repeats  2 of 4 count; left out: 0, 1; 1 of them replaced by a further one",
        ),
        (
            [[], BAD],
            ["yes", "no"],
            "repeats  1 of 2 count; left out: 1; 0 of them replaced by a further one",
        ),
        (
            [BAD, BAD, BAD, BAD],
            ["for want of better"] * 4,
            "repeats  none is good; the figures are of all of them",
        ),
    ],
)
def test_a_screen_says_which_repeats_count_and_which_were_replaced(flags, counts, said):
    """Three were asked for. The figures are of those that are not invalid, or of all."""
    document = make.profile(repeats=len(flags), repeat_flags=flags)

    blocks = profiles.screen(make.row(document))

    (table,) = (each for each in blocks if isinstance(each, Table) and len(each.rows[0]) == 7)
    assert counts == [row[1] for row in cells(table)]
    assert [said] * (said is not None) == [
        each for each in blocks if isinstance(each, str) and each.startswith("repeats")
    ]


def test_a_figure_without_an_interval_is_marked_and_says_why():
    said = told(make.profile(repeats=1, n=64))

    assert "latency p50 10.00 ~ ms – one repeat gives no interval" in said
    assert "latency p99 11.20 ~ ms – too few independent samples for an interval" in said


def test_a_failure_shows_cause_phase_hint_and_last_output():
    """And no table of figures that are not there."""
    failed = make.profile(status="failed", failure=make.fault("oom", hint="take a smaller batch"))

    said = told(failed)

    for words in (
        "✗ oom in phase warmup: needed 91 of 80 GiB",
        "  take a smaller batch",
        "last output:\nTraceback",
        "kept     no artefacts",
    ):
        assert words in said
    assert "latency" not in said


def test_device_time_and_gpu_memory_are_figures():
    text = told(profile())

    assert "device time p50 7.310 ms [7.250, 7.380] " in text
    assert "enqueue p50 2.410 ms – " in text
    assert "allocated on the GPU 712.0 MiB – " in text
    assert "reserved on the GPU 811.0 MiB – " in text


def test_an_unreliable_device_time_is_marked_and_says_why():
    block = msgspec.structs.replace(BLOCKS["gpu_time"], reliable=False)

    assert "device time p50 7.310 ~ ms [7.250, 7.380] too short for its clock" in told(
        profile(gpu_time=block)
    )


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("gpu_time.p50_ms", "device time p50 – ms – this user may not read it"),
        ("gpu_time.enqueue_p50_ms", "enqueue p50 – ms – this user may not read it"),
        (
            "memory.cuda_allocated_peak_bytes",
            "allocated on the GPU – MiB – this user may not read it",
        ),
        (
            "memory.cuda_reserved_peak_bytes",
            "reserved on the GPU – MiB – this user may not read it",
        ),
    ],
)
def test_a_figure_of_a_device_that_is_null_says_why(path, line):
    nulls = [path]
    if path == "gpu_time.p50_ms":
        nulls += ["gpu_time.p50_lo_ms", "gpu_time.p50_hi_ms"]

    text = told(profile(nulls=nulls, codes=dict.fromkeys(nulls, "no_permission")))

    assert line in text


def test_a_run_on_a_cpu_has_no_figure_of_a_device():
    """Absent is not unknown."""
    text = told(make.profile())

    assert not any(word in text for word in ("device time", "enqueue", "on the GPU"))
