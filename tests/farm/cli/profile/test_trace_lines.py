"""The summary of a trace and a projection, in lines that a narrow terminal holds."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from farm.cli.profile import trace_lines
from farm.report.table import Table
from farm.trace import opening, projecting, trials
from farm.trace.analysis.record import Analysis
from farm.trace.importing import libreyolo
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken
from tests.farm.trace.importing.made import INFERENCE

FOUND = g8.analysis(g8.events())
HOST = g8.analysis(g8.host())


def lines(found: Analysis) -> list[str]:
    return [each for each in trace_lines.summary(found, name="t") if isinstance(each, str)]


def said(found: Analysis, name: str) -> str:
    """All that is said behind a name."""
    told, at_it = [], False
    for line in lines(found):
        at_it = line.startswith(f"{name:<13}") or (at_it and line.startswith(" "))
        if at_it:
            told.append(line[13:])
    return "\n".join(told)


@pytest.mark.seed("S4.56", "S4.58", "S4.61")
def test_the_summary_shows_the_step_the_gpu_and_the_host() -> None:
    """With n beside the median, and the source of the step."""
    assert said(FOUND, "step").startswith("10.00 ms, median of 9 · mean 10.00 ms")
    assert "from the last GPU work of a step to that of the next" in said(FOUND, "step")
    assert said(FOUND, "GPU").startswith(
        "50 % busy with kernels, 5.000 ms · 50 % with copies as well"
    )
    assert said(FOUND, "host").startswith("overhead 5.000 ms · ")


@pytest.mark.seed("S4.66")
def test_a_profile_of_another_tool_is_shown_as_far_as_it_goes() -> None:
    """No median is claimed that it does not tell, and no kernel is counted."""
    found = libreyolo.imported(json.dumps(INFERENCE | {"bound": "host / launch"}).encode())

    assert "6.000 ms · as its tool tells it" == said(found, "step")
    assert "p50 6.000 ms · p90 7.000 ms · p99 8.000 ms" == said(found, "latency")
    assert "preprocess 1.500 ms · forward 4.000 ms · postprocess 0.5000 ms" == said(found, "stages")
    assert "– (it ran on a CPU)" == said(found, "GPU")
    assert "its tool said host / launch, which it cannot know" in said(found, "bound")
    assert [] == [each for each in lines(found) if "kernels" in each]


@pytest.mark.seed("S4.57")
def test_the_summary_shows_the_throughput_or_why_there_is_none() -> None:
    known = structs.replace(FOUND, img_per_s=312.5)

    assert "312.5 images/s" == said(known, "throughput")
    assert "– (a trace does not tell; a capture does)" == said(FOUND, "throughput")


@pytest.mark.seed("S4.59", "S4.62")
def test_the_summary_shows_the_tensor_core_share_and_the_launches() -> None:
    units = said(FOUND, "matrix units")

    assert "15 % of kernel time, as far as names tell · 10 % unknown" == units
    assert " · 20 launches · " in said(FOUND, "host")


@pytest.mark.seed("S4.60")
def test_the_summary_shows_the_peak_of_memory() -> None:
    """Where the trace holds memory events, in the units of people."""
    args = {"Device Type": 1, "Device Id": 0, "Bytes": 1, "Total Allocated": 3 * 2**29}
    event = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 1}
    with_memory = g8.analysis([*g8.events(), event | {"ts": 5000, "args": args}])

    assert "1.5 GiB allocated" == said(with_memory, "peak memory")
    assert said(FOUND, "peak memory").startswith("– (")


@pytest.mark.seed("S4.63")
def test_the_summary_shows_the_bound_its_reason_and_how_sure_it_is() -> None:
    told = said(FOUND, "bound")

    assert told.startswith("host / launch: the device waits for the host\nidle_host_of_idle ")
    assert told.endswith(", threshold 0.5000")
    assert "high" == said(FOUND, "confidence")
    doubtful = structs.replace(FOUND.quality, flags=["few_steps", "of_a_newer_farm"])
    shown = structs.replace(FOUND, quality=doubtful, confidence="medium")
    assert "medium\nfewer than three steps\nof a newer farm" == said(shown, "confidence")


@pytest.mark.seed("S4.64", "S4.65")
def test_the_summary_shows_the_mix_and_the_costliest_kernels() -> None:
    assert "gemm 30.0 % · layout 30.0 % · elementwise 15.0 % · norm 15.0 %\nother 10.0 %" == said(
        FOUND, "kernel time"
    )
    many = g8.analysis(g8.events(names=tuple(f"work_{at}" for at in range(10))))
    table = trace_lines.summary(many, name="t")[-1]
    assert isinstance(table, Table)
    assert 8 == len(table.rows)
    assert "8 of 10 kernels, 80 % of the time; `farm profile kernels` shows more" == table.notes[0]


@pytest.mark.seed("S4.66")
def test_of_an_inference_it_shows_the_percentiles_and_the_stages() -> None:
    """They come with its analysis; a training has none."""
    stages = ("preprocess", "forward", "postprocess")
    (row, *_) = FOUND.phases
    points = {"latency_p50_ms": 54.2, "latency_p90_ms": 55.0, "latency_p99_ms": 57.3}
    found = structs.replace(
        FOUND,
        mode="inference",
        metrics=FOUND.metrics | points,
        phases=[structs.replace(row, phase=each, wall_ms_per_step=3.0) for each in stages],
    )

    assert "p50 54.20 ms · p90 55.00 ms · p99 57.30 ms" == said(found, "latency")
    assert "preprocess 3.000 ms · forward 3.000 ms · postprocess 3.000 ms" == said(found, "stages")
    assert "" == said(structs.replace(found, mode="training"), "latency")


@pytest.mark.seed("S4.67")
@pytest.mark.parametrize(("mallocs", "marked"), [(4, False), (5, True), (6, True)])
def test_memory_thrash_is_marked_above_the_numbers(mallocs: int, marked: bool) -> None:
    """Synchronous allocations, five a step and more; never for a utilisation of 90 %."""
    found = g8.analysis(g8.events(busy=0.9, mallocs=mallocs))

    assert marked == lines(found)[0].startswith("NOT TRUSTWORTHY: under memory pressure ")
    assert marked == found.memory_pressure


@pytest.mark.parametrize("flag", ["throttled", "contended"])
def test_a_disturbed_profile_is_marked_above_the_numbers(flag: str) -> None:
    doubtful = structs.replace(FOUND.quality, flags=[flag])

    assert lines(structs.replace(FOUND, quality=doubtful))[0].startswith("NOT TRUSTWORTHY: ")


def test_the_idle_time_is_split_by_cause() -> None:
    told = said(FOUND, "idle")

    assert " ms in all · " in told
    assert " ms the host was late" in told
    without = FOUND.metrics | {"idle_ms": None}
    why = FOUND.null_reasons | {"metrics.idle_ms": "error: clock skew"}
    skewed = structs.replace(FOUND, metrics=without, null_reasons=why)
    assert "– (clock skew)" == said(skewed, "idle")


def test_what_nothing_else_runs_beside_is_told() -> None:
    """Each step has a collective of 250 µs by itself, and a copy that kernels hide."""
    made = g8.events(names=("ncclDevKernel_AllReduce_Sum_f32_RING_LL", *["work"] * 19))

    assert "0.2500 ms communication alone" == said(g8.analysis(made), "exposed")
    assert "" == said(FOUND, "exposed")


def test_of_a_cpu_nothing_is_said_about_a_gpu() -> None:
    assert "– (the trace has no kernel of a GPU)" == said(HOST, "GPU")
    assert "waits for data 0.000 ms" == said(HOST, "host")
    for name in ("idle", "matrix units", "kernel time"):
        assert "" == said(HOST, name)
    table = trace_lines.summary(HOST, name="t")[-1]
    assert isinstance(table, Table)
    assert "aten::addmm" == table.rows[0][-1].text


def test_repairs_drops_and_orphans_are_told() -> None:
    made = [*g8.events(), g8.kernel("lost", 30_000, 5, 99_999)]
    quality = structs.replace(FOUND.quality, repaired={"bom": 1}, dropped={"no_ts": 1200})
    found = structs.replace(g8.analysis(made), quality=quality)

    told = said(found, "file").replace("\n", " · ")

    assert told.startswith("201 kernels · 1 of them orphans, launched before it began")
    assert told.endswith("repaired bom 1 · dropped no_ts 1,200")


def test_every_line_is_short_enough_for_a_narrow_terminal() -> None:
    many = [g8.events(busy=0.9, mallocs=6), g8.events(steps=1), g8.host(), g8.events(steps=1000)]

    for each in many:
        assert [] == [line for line in lines(g8.analysis(each)) if len(line) > 80]


# ── captures ─────────────────────────────────────────────────────────────────────────────────────

STAGES = {"preprocess": [1.0], "forward": [6.0], "postprocess": [0.5]}


@pytest.mark.seed("S4.49", "S4.50", "S4.51")
def test_of_a_captured_inference_it_shows_the_plain_step_percentiles_rate_and_stages() -> None:
    found = captures.analysis(Taken(stages_ms=STAGES))

    assert said(found, "step") == (
        "10.00 ms, median of 3 plain steps · sample deviation 10 %\n1.200 times as long when traced"
    )
    assert "p50 20.00 ms · p90 20.80 ms · p99 22.40~ ms" == said(found, "latency")
    assert "64.00 images/s" == said(found, "throughput")
    assert "preprocess 1.000 ms · forward 6.000 ms · postprocess 0.5000 ms" == said(found, "stages")
    assert "– (no GPU computed)" == said(found, "peak memory")


def test_a_percentile_that_too_few_samples_stand_behind_has_its_mark() -> None:
    """That of the median within one process is another matter: it has no interval for its own."""
    found = captures.analysis(Taken())
    reasons = found.null_reasons
    known = structs.replace(
        found, null_reasons={k: v for k, v in reasons.items() if k != "intervals.latency_p99_ms"}
    )

    assert reasons["intervals.latency_p99_ms"].startswith("below_resolution")
    assert "p99 22.40~ ms" in said(found, "latency")
    assert "~" not in said(known, "latency")


def test_it_says_what_was_captured_how_and_on_what() -> None:
    made = captures.analysis(Taken())
    told = {"batch": 4, "imgsz": 96, "precision": "fp32", "device": "EPYC", "framework": "torch 3"}
    found = structs.replace(made, model="net", config=made.config | told)

    assert "net, inference · batch 4 · 96 × 96 · fp32 · EPYC · torch 3" == said(found, "what")


def test_who_disturbed_a_capture_is_named_among_its_doubts() -> None:
    made = captures.analysis(Taken())
    found = structs.replace(made, config=made.config | {"neighbours": ["python (pid 7), 90 %"]})

    assert "beside it: python (pid 7), 90 %" == trace_lines.doubts(found)[-1]


@pytest.mark.parametrize("item", ["vector", "sequence", "chunk"])
def test_a_rate_is_of_what_the_model_takes(item: str) -> None:
    made = captures.analysis(Taken())
    found = structs.replace(made, config=made.config | {"item": item})

    assert f"64.00 {item}s/s" == said(found, "throughput")


def test_of_a_captured_training_it_shows_the_gpu_the_wait_and_the_peak() -> None:
    events, waits = g8.events(busy=0.9), [1.0, 1.0, 1.0]

    found = captures.analysis(Taken(events=events, waits_ms=waits, on_gpu=True), "train")

    assert said(found, "GPU").startswith("90 % busy with kernels, 9.000 ms")
    assert said(found, "host").endswith("waits for data 1.000 ms")
    assert "3 GiB allocated · 4 GiB reserved" == said(found, "peak memory")
    assert ("", "") == (said(found, "latency"), said(found, "stages"))


def test_without_a_trace_it_says_so_and_shows_no_table() -> None:
    found = captures.analysis(Taken(events=None, stages_ms=STAGES))

    assert ("– (no trace was taken)", "") == (said(found, "GPU"), said(found, "host"))
    assert said(found, "bound").startswith("unknown: no trace was taken")
    assert said(found, "stages").startswith("preprocess 1.000 ms")
    assert [] == [each for each in trace_lines.summary(found, name="t") if isinstance(each, Table)]


def test_a_profiler_that_slowed_the_steps_is_told_in_words() -> None:
    found = captures.analysis(Taken(stages_ms=STAGES, traced_ms=[15.0]))

    assert "medium\nthe profiler made a step more than 25 % longer" == said(found, "confidence")


def test_stages_that_only_the_profiler_saw_are_not_told() -> None:
    found = captures.analysis(Taken(stages_ms={}))

    assert "– (they were not timed without the profiler)" == said(found, "stages")


@pytest.mark.parametrize(("last", "told"), [(10.4, False), (12.0, True)])
def test_a_mean_that_is_far_from_the_median_is_told_beside_it(last: float, told: bool) -> None:
    """More than 5 % of it: the steps come in bursts, or one stood still."""
    found = captures.analysis(Taken(plain_ms=[10.0, 10.0, last], stages_ms=STAGES))

    assert told == ("· mean 10.67 ms" in said(found, "step"))


@pytest.mark.seed("S4.28", "S4.29")
def test_of_several_trials_it_says_what_is_a_mean_and_what_is_of_the_last() -> None:
    """How many steps each median is of is no fact of all of them."""
    made = [Taken(plain_ms=[ms] * 3, rate=1000 / ms, stages_ms=STAGES) for ms in (10.0, 12.0)]

    found = trials.together([captures.analysis(each) for each in made], files=["a", "b"])

    assert said(found, "step").startswith(
        "11.00 ms, mean of 2 trials · sample deviation 1.414 ms, n 2\n"  # √2
        "each the median of its plain steps\n"
    )
    assert "91.67 images/s · sample deviation 11.79, n 2" == said(found, "throughput")
    assert "numbers are means over the trials" in said(found, "trials")
    assert "of the last trial" in said(found, "trials").replace("\n", " ")
    assert "" == said(FOUND, "trials")
    assert [] == [line for line in lines(found) if len(line) > 80]


# ── what-if ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.95")
def test_a_projection_stands_between_its_bounds_and_ends_with_its_caveat(tmp_path: Path) -> None:
    found = opening.opened(g8.file(tmp_path / "trace.json"))

    told = trace_lines.what_if(projecting.projected(found, category="gemm", launches=None))

    assert [
        "bound        host / launch",
        "removed      6 launches of a step · 1.500 ms of kernels",
        "             1.500 ms with no other beside them",
        "step         10.00 ms now · 8.500 ms projected (−15.0 %)",
        "             at best 7.000 ms · at worst 10.00 ms",
        "mechanism    fewer launches: the host is what the device waits for",
        "caveat       the cost of a launch is an approximation; only measuring again",
        "             proves it",
    ] == told


def test_a_projection_says_what_it_does_not_change_and_where_it_promises_too_much(
    tmp_path: Path,
) -> None:
    found = opening.opened(g8.file(tmp_path / "busy.json", g8.events(busy=0.9)))
    plain = projecting.projected(found, category=None, launches=99)
    below = structs.replace(plain, model_below_bound=True)

    assert "step         10.00 ms now · 10.00 ms projected (unchanged)" in trace_lines.what_if(
        plain
    )
    assert "note         there are only 20 launches in a step" in trace_lines.what_if(plain)
    assert [] != [each for each in trace_lines.what_if(below) if "below the best" in each]
