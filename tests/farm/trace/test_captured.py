"""The analysis of a capture: every key, the plain numbers before traced ones, a reason per null."""

import json

import pytest
from msgspec import UNSET

from farm import schema
from farm.trace import captured
from farm.trace.analysis.record import Analysis
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken

# Seeds §3: what the original's profile.json holds.
KEYS = (
    *("trace", "model", "config", "bound", "bound_why", "step_ms", "img_per_s", "dataload_ms"),
    *("dataload_frac", "gpu_util", "gpu_util_raw", "memory_pressure", "cuda_mallocs_per_step"),
    *("host_overhead_ms_per_step", "launches_per_step", "gpu_busy_ms_per_step", "mean_kernel_us"),
    *("kernels_per_step", "unique_kernels", "memcpy_ms_per_step", "tensorcore_pct"),
    *("peak_vram_mb", "window", "metrics", "categories", "phases", "phases_gpu"),
    *("kernels_by_phase", "ops_by_phase", "top_kernels", "kernels", "ops"),
    # and what we add
    *("quality", "intervals", "null_reasons", "card", "timings", "counts", "diagnostics"),
    *("reasons", "confidence", "attribution"),
)
OF_ROWS = {
    "window": {"wall_ms", "real_steps"},
    "categories": {"name", "pct", "ms_per_step"},
    "phases": {
        *("phase", "gpu_ms_per_step", "wall_ms_per_step", "kernels_per_step", "ops_per_step"),
        "unique_kernels",
    },
    "kernels": {
        *("kernel", "raw_name", "category", "tensorcore", "ms_per_step", "pct_of_gpu"),
        "count_per_step",
    },
    "ops": {"op", "ms_per_step", "pct_of_cpu_ops", "count_per_step"},
    "latency": {"p50_ms", "p90_ms", "p99_ms", "mean_ms", "min_ms", "max_ms", "n"},
    "stages_ms": {"preprocess", "forward", "postprocess"},
}
STAGES = {"preprocess": [1.0, 1.0, 4.0], "forward": [6.0, 7.0], "postprocess": [0.5]}
INFERRED = Taken(stages_ms=STAGES)
ON_GPU = Taken(events=g8.events(busy=0.9), stages_ms={"forward": [2.0]}, on_gpu=True)
CASES = {
    "cpu": INFERRED,
    "gpu": ON_GPU,
    "untraced": INFERRED._replace(events=None),
    "one": Taken(plain_ms=[10.0], stages_ms=STAGES),
    "none": Taken(plain_ms=[], stages_ms=STAGES),
    "nothing": Taken(plain_ms=[], events=None),
}


def training(taken: Taken) -> Analysis:
    return captures.analysis(taken, "train")


# ── the document ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.6")
@pytest.mark.parametrize("mode", ["train", "inference"])
@pytest.mark.parametrize("case", CASES)
def test_the_document_is_whole_and_each_null_in_it_has_its_reason(case: str, mode: str) -> None:
    """Encoding checks every path; it is one format, whatever was captured."""
    data = schema.encode(captures.analysis(CASES[case], mode))

    plain = json.loads(data)
    assert "farm.analysis/v1" == plain["schema"]
    assert [] == [each for each in KEYS if each not in plain]
    assert ("latency" in plain) == (mode == "inference")
    assert schema.decode(data, Analysis) == captures.analysis(CASES[case], mode)


def test_the_rows_hold_what_those_of_the_original_did() -> None:
    plain = json.loads(schema.encode(captures.analysis(ON_GPU._replace(stages_ms=STAGES))))

    for name, wanted in OF_ROWS.items():
        rows = plain[name] if isinstance(plain[name], list) else [plain[name]]
        assert rows
        assert set() == wanted - rows[0].keys()


def test_the_configuration_says_what_was_asked_and_what_it_ran_under() -> None:
    """What a comparison guards against stands there, under the words of the options."""
    found = captures.analysis(
        INFERRED._replace(unused=["conf"], notes=["2 images were left out"]),
        precision="float16",
        runs=100,
    ).config

    assert {"precision": "float16", "runs": 100, "step": "plain", "item": "image", "batch": 4} == {
        each: found[each] for each in ("precision", "runs", "step", "item", "batch")
    }
    assert (["conf"], ["2 images were left out"]) == (found["unused"], found["notes"])
    assert ("AMD EPYC 7B13", "none", "torch 2.13.0") == tuple(
        found[each] for each in ("device", "driver", "framework")
    )
    on_gpu = captures.analysis(ON_GPU)
    assert ("H200", None) == (on_gpu.config["device"], on_gpu.config["driver"])
    assert "not_probed" == on_gpu.null_reasons["config.driver"]


# ── the numbers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.50")
def test_the_step_and_the_throughput_are_those_of_the_clean_pass() -> None:
    """C18: the traced step, of 10 ms, is another one; the rate comes from a pass of its own."""
    found = captures.analysis(INFERRED._replace(plain_ms=[5.0, 6.0, 9.0], rate=321.0))

    assert (6.0, "capture", 3) == (
        *(found.step_ms, found.metrics["step_ms_source"], found.metrics["plain_steps"]),
    )
    assert 0.3122 == pytest.approx(found.metrics["step_ms_cv"], abs=1e-4)
    assert 10.0 == pytest.approx(found.metrics["step_ms_mean"])
    assert [321.0] * 3 == [
        found.img_per_s,
        found.metrics["img_per_s"],
        found.metrics["throughput_img_s"],
    ]


def test_without_a_clean_step_the_traced_one_stands_and_is_called_so() -> None:
    """A step of 0 ms would be a number that nobody measured."""
    traced = captures.analysis(CASES["none"])
    nothing = captures.analysis(CASES["nothing"])

    assert (10.0, "cpu_step") == (traced.step_ms, traced.metrics["step_ms_source"])
    assert "step" not in traced.config
    assert (None, "unknown") == (nothing.step_ms, nothing.bound)


@pytest.mark.seed("S4.49", "S4.53")
def test_the_percentiles_are_of_all_runs() -> None:
    found = captures.analysis(INFERRED)

    assert (20.0, 20.8, 22.4, 100) == pytest.approx(
        (found.latency.p50_ms, found.latency.p90_ms, found.latency.p99_ms, found.latency.n)
    )
    assert found.latency.p99_ms == found.metrics["latency_p99_ms"]


@pytest.mark.seed("S4.51")
def test_the_stages_are_the_medians_of_their_timers() -> None:
    """Not those of the trace, whose spans are all of 3.3 ms here."""
    found = captures.analysis(INFERRED)

    assert {"preprocess": 1.0, "forward": 6.5, "postprocess": 0.5} == found.stages_ms
    walls = {each.phase: each.wall_ms_per_step for each in found.phases}
    assert found.stages_ms == {name: walls[name] for name in found.stages_ms}
    assert [1.0, 1.0, 0.5] == [
        found.metrics[each] for each in ("preprocess_ms", "preprocess_wall_ms", "nms_ms")
    ]


def test_the_wait_for_data_is_that_of_plain_steps() -> None:
    """The phase of the same name was timed apart, where no step kept the loader busy."""
    found = training(
        Taken(
            events=captures.host(captures.TRAINING),
            waits_ms=[1.0, 2.0, 3.0],
            stages_ms={"dataload": [7.0]},
        )
    )

    assert (2.0, 0.2) == (found.dataload_ms, found.dataload_frac)
    assert (2.0, 2.0) == (found.metrics["dataload_ms"], found.metrics["dataload_wall_ms"])


@pytest.mark.parametrize("mode", ["train", "inference"])
def test_what_was_traced_never_stands_for_what_was_timed(mode: str) -> None:
    """The spans of a trace are what the profiler made of a phase."""
    names = captures.TRAINING if mode == "train" else captures.INFERENCE
    found = captures.analysis(Taken(events=captures.host(names), stages_ms={}), mode)

    assert {None} == {each.wall_ms_per_step for each in found.phases}
    for at, each in enumerate(found.phases):
        assert found.null_reasons[f"phases.{at}.wall_ms_per_step"].startswith("not_probed")
        assert found.metrics[f"{each.phase}_wall_ms"] is None
    if mode == "inference":
        assert found.null_reasons["metrics.nms_ms"].startswith("not_probed")


def test_the_mean_step_is_told_beside_the_median() -> None:
    found = captures.analysis(INFERRED._replace(plain_ms=[1.0, 1.0, 7.0]))
    none = captures.analysis(CASES["none"])

    assert (1.0, 3.0) == (found.step_ms, found.metrics["plain_step_ms_mean"])
    assert (
        "not_requested: no clean step was taken"
        == (none.null_reasons["metrics.plain_step_ms_mean"])
    )


def test_without_a_card_everything_else_is_said() -> None:
    """A store may have lost it."""
    with_card = captures.analysis(INFERRED)
    profile, beside = (
        captures.profile(INFERRED, captures.job("inference")),
        captures.beside(INFERRED),
    )
    base = g8.analysis(g8.events())

    found = captured.dressed(base, profile, beside, card=None, asked={})

    assert (UNSET, with_card.img_per_s) == (found.card, found.img_per_s)
    assert not {"driver", "framework"} & set(found.config)
    assert {"driver", "framework"} <= set(with_card.config)
    schema.encode(found)


@pytest.mark.seed("S4.60")
def test_the_peak_is_that_of_the_allocator() -> None:
    """B34: it was reset after warming up; decimal MB, as the original's (C8)."""
    on_gpu, cpu = captures.analysis(ON_GPU), captures.analysis(INFERRED)

    assert 3221.225472 == on_gpu.peak_vram_mb == on_gpu.metrics["peak_vram_mb"]
    assert 4 * 2**30 == on_gpu.metrics["peak_reserved_bytes"]
    assert (None, "not_applicable: no GPU computed") == (
        cpu.peak_vram_mb,
        cpu.null_reasons["peak_vram_mb"],
    )


def test_numbers_have_an_interval_or_a_reason() -> None:
    """C4. That of the median needs several processes, and a tail needs many runs."""
    found = captures.analysis(INFERRED._replace(plain_ms=[10.0 + at % 7 for at in range(60)]))

    low, high = found.intervals["step_ms"]
    assert low <= found.step_ms <= high
    assert found.intervals["latency_p50_ms"] is None
    assert "single_repeat" == found.null_reasons["intervals.latency_p50_ms"]
    assert "below_resolution" == found.null_reasons["intervals.latency_p99_ms"]
    few = captures.analysis(INFERRED)
    assert "below_resolution" == few.null_reasons["intervals.step_ms"]


# ── doubts ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("traced", "slowed"), [(12.5, False), (12.6, True)])
def test_a_profiler_that_slows_a_step_by_a_quarter_is_told(traced: float, slowed: bool) -> None:
    found = captures.analysis(INFERRED._replace(traced_ms=[traced]))

    assert traced / 10 == pytest.approx(found.metrics["trace_overhead"])
    assert slowed == ("instrumented" in found.quality.flags)


@pytest.mark.parametrize(
    ("flags", "confidence"),
    [([], "high"), (["drifting"], "medium"), (["contended"], "low"), (["throttled"], "low")],
)
def test_the_doubts_about_the_profile_are_those_about_the_analysis(flags, confidence) -> None:
    found = captures.analysis(INFERRED._replace(flags=flags))

    assert (flags, confidence) == (found.quality.flags, found.confidence)


# ── the bound ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "forward", "after", "bound"),
    [
        (5.0, 4.0, 1.0, "preprocess"),
        (1.0, 3.5, 3.5, "postprocess"),
        (1.0, 3.4, 3.4, "compute"),  # 0.34 of the step
        (4.9, 5.0, 0.1, "compute"),  # shorter than forward
    ],
)
@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_stage_that_takes_longer_than_the_model_limits_an_inference(
    before: float, forward: float, after: float, bound: str, on_gpu: bool
) -> None:
    stages = {"preprocess": [before], "forward": [forward], "postprocess": [after]}
    taken = (ON_GPU if on_gpu else INFERRED)._replace(stages_ms=stages)

    untraced = captures.analysis(taken._replace(events=None))
    assert bound == captures.analysis(taken).bound
    assert ("unknown" if bound == "compute" else bound) == untraced.bound
    assert "compute" == training(taken).bound


@pytest.mark.parametrize(("wait", "bound"), [(1.99, "compute"), (2.0, "dataloader")])
def test_the_loader_limits_a_training_that_waits_a_fifth_of_a_plain_step(
    wait: float, bound: str
) -> None:
    """On a CPU; its traced pass waits a fifth as well, whatever the plain one does."""
    taken = Taken(events=captures.host(captures.TRAINING), waits_ms=[wait] * 3)

    assert bound == training(taken).bound
    assert ("unknown" if bound == "compute" else bound) == (
        training(taken._replace(events=None)).bound
    )


@pytest.mark.seed("S4.67")
@pytest.mark.parametrize(
    ("more", "pressed"),
    [
        ({"retries": 1}, True),
        ({"reserved": int(0.96 * captures.TOTAL_BYTES)}, True),
        ({"reserved": int(0.94 * captures.TOTAL_BYTES)}, False),
    ],
)
def test_the_allocator_tells_of_memory_pressure_with_and_without_a_trace(more, pressed) -> None:
    """Never from a utilisation: kernels run 90 % of the time in each of these."""
    taken = ON_GPU._replace(**more)

    for each in (taken, taken._replace(events=None)):
        found = training(each)
        assert pressed == found.memory_pressure == found.metrics["memory_pressure"]
        assert pressed == (found.bound == "memory-pressure")


def test_a_gpu_without_a_kernel_names_no_limit() -> None:
    """B18: the profiler saw nothing of it."""
    found = training(Taken(events=captures.host(captures.TRAINING), on_gpu=True))

    assert ("no-gpu-data", "it ran on a GPU and no kernel was recorded") == (
        found.bound,
        found.bound_why,
    )


@pytest.mark.seed("S4.10")
@pytest.mark.parametrize("busy", [1.0, 0.1])
def test_nothing_is_said_of_a_gpu_where_a_cpu_computed(busy: float) -> None:
    """C10, B16: no kernels and no launches, so the host must not be blamed for an idle device."""
    found = captures.analysis(INFERRED._replace(events=captures.host(busy=busy)))

    assert ("compute" if busy == 1.0 else "cpu") == found.bound
    for name in ("gpu_util", "gpu_busy_ms_per_step", "mean_kernel_us", "tensorcore_pct"):
        assert getattr(found, name) is None
        assert found.null_reasons[name].startswith("not_applicable")
    assert ([], []) == (found.kernels, found.categories)
    assert found.ops
