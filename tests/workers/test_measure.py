"""One attempt with scripted children: which repeats run, which are tried again, what is stored."""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from farm import schema
from farm.schema import Failure, Order, Profile
from tests.workers import make, scripted
from tests.workers.test_readings import measured_roofs
from workers import folders
from workers.assembly import Attempt
from workers.folders import merged_log, merged_samples
from workers.launch import Ended
from workers.measure import Interrupted, measure
from workers.record import OUTPUT, TRACE, Assignment, Record

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)


def attempt(folder: Path, order: Order | None = None, **changes: Any) -> Attempt:
    made = Attempt(
        order=order or make.order(),
        run_id="r-1",
        attempt=1,
        fence=7,
        node="n1",
        worker="n1/cpu:0#a",
        device=make.device(),
        card=make.card(),
        card_id="c" * 64,
        threads=1,
        environment="default",
        flags=(),
        memory_limit="rlimit",
        queue_s=0.5,
        farm_version="0.1.0",
        folder=folder,
    )
    return Attempt(**{**made.__dict__, **changes})


class Children:
    """Scripted children: each answers the next repeat with what its script says."""

    def __init__(self, *scripts: Callable[[int], Ended]) -> None:
        self.scripts, self.asked = list(scripts), []

    def __call__(self, assignment: Assignment) -> tuple[Ended, tuple[str, ...]]:
        self.asked.append(assignment.index)
        ended = self.scripts[len(self.asked) - 1](assignment.index)
        if ended.record is not None and ended.record.failure is UNSET:
            data = dict(scripted.answer(assignment)[0])
            np.savez(Path(assignment.folder) / "samples.npz", **data)
        return ended, ("yes (pid 7), 98 % of a core",)


def ended(record: Record | None, **changes: Any) -> Ended:
    whole = Ended(
        cause="ended",
        exit_code=0,
        signal=None,
        record=record,
        phase="latency",
        output=b"hello\n",
        seconds=1.0,
    )
    return Ended(**{**whole.__dict__, **changes})


def good(index: int) -> Ended:
    return ended(make.record(index))


def contended(index: int) -> Ended:
    edges = (make.edge(1), make.edge(2, wait_ns=900_000_000))
    return ended(make.record(index, latency_edges=edges))


def killed(_index: int) -> Ended:
    return ended(None, exit_code=None, signal="SIGKILL")


def failing(kind: str) -> Callable[[int], Ended]:
    failure = Failure(kind=kind, phase="first", message="no")
    return lambda index: ended(make.record(index, failure=failure))


def run(
    folder: Path, *scripts: Callable[[int], Ended], **changes: Any
) -> tuple[Profile, list[int]]:
    children = Children(*scripts)
    profile = measure(attempt(folder, **changes), run=children, now=lambda: NOW)
    schema.encode(profile)  # finite, and every null has its reason
    return profile, children.asked


def test_a_job_is_measured_in_as_many_processes_as_asked(tmp_path: Path) -> None:
    """Three repeats, three children, one valid profile with everything that identifies it."""
    profile, asked = run(tmp_path, good, good, good)

    assert [0, 1, 2] == asked
    assert ("ok", 7, "r-1", 0.5) == (
        profile.status,
        profile.fence,
        profile.run_id,
        profile.execution.queue_s,
    )
    assert make.job().job_id == profile.job_id
    assert isinstance(profile.quality, schema.Quality)
    assert "valid" == profile.quality.validity


def test_a_contended_repeat_is_tried_once_more(tmp_path: Path) -> None:
    """One disturbed repeat costs one more; it stays listed and out of the headline."""
    profile, asked = run(tmp_path, good, contended, good, good)

    assert [0, 1, 2, 3] == asked
    assert [False, True, False, False] == ["contended" in r.flags for r in profile.repeats]
    assert isinstance(profile.quality, schema.Quality)
    assert ("valid", []) == (profile.quality.validity, profile.quality.neighbours)


def test_a_machine_that_stays_busy_is_shown_with_its_mark(tmp_path: Path) -> None:
    """A job on a busy machine ends: once more than asked, marked, the neighbour named."""
    profile, asked = run(tmp_path, *[contended] * 4)

    assert 4 == len(asked)
    assert "ok" == profile.status
    assert isinstance(profile.quality, schema.Quality)
    assert "invalid" == profile.quality.validity
    assert ["yes (pid 7), 98 % of a core"] == profile.quality.neighbours


def test_a_child_that_was_killed_is_started_again(tmp_path: Path) -> None:
    """One unexplained signal costs one repeat, not the job."""
    profile, asked = run(tmp_path, good, killed, good, good)

    assert [0, 1, 2, 3] == asked
    assert ("ok", 3) == (profile.status, len(profile.repeats))


def test_a_child_that_dies_twice_is_the_answer(tmp_path: Path) -> None:
    """A model that kills its process is a failure with the signal, the phase and the last words."""
    profile, asked = run(tmp_path, killed, killed)

    assert [0, 1] == asked
    assert isinstance(profile.failure, Failure)
    assert ("failed", "crashed", "SIGKILL", "latency") == (
        profile.status,
        profile.failure.kind,
        profile.failure.signal,
        profile.failure.phase,
    )
    assert "hello" in profile.failure.log_tail


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("model_error", "failed"),
        ("host_oom", "failed"),
        ("unsupported", "failed"),
        ("environment", "infra"),
    ],
)
def test_what_the_child_says_is_the_failure(tmp_path: Path, kind: str, status: str) -> None:
    """A failure of the job is stored as said and not tried again; one of the node is ours."""
    profile, asked = run(tmp_path, failing(kind))

    assert [0] == asked
    assert isinstance(profile.failure, Failure)
    assert (status, kind) == (profile.status, profile.failure.kind)


def test_a_time_out_names_the_phase_and_the_limit(tmp_path: Path) -> None:
    """A job past its limit failed with `timeout`, wherever it hung."""
    hang = lambda _i: ended(None, cause="timeout", exit_code=None, signal="SIGTERM")  # noqa: E731
    profile, _ = run(tmp_path, hang)

    assert isinstance(profile.failure, Failure)
    assert "timeout" == profile.failure.kind
    assert "still in phase latency after 600 s" in profile.failure.message


def test_repeats_that_ended_before_a_failure_are_kept(tmp_path: Path) -> None:
    """What was measured before the failure stands in the profile."""
    profile, _ = run(tmp_path, good, failing("model_error"))

    assert ("failed", 1) == (profile.status, len(profile.repeats))


def test_a_stopped_child_stores_nothing(tmp_path: Path) -> None:
    """A lost lease or a drain is no answer."""
    with pytest.raises(Interrupted):
        run(tmp_path, good, lambda _i: ended(None, cause="stopped", signal="SIGTERM"))


@pytest.mark.seed("S1.50")
def test_the_next_attempt_takes_over_finished_repeats(tmp_path: Path) -> None:
    """A crash costs the repeat in hand: two that ended are not measured again."""
    with pytest.raises(Interrupted):
        run(tmp_path, good, good, lambda _i: ended(None, cause="stopped"))

    profile, asked = run(tmp_path, good)

    assert [2] == asked
    assert [0, 1, 2] == [each.index for each in profile.repeats]


def test_a_half_written_repeat_is_measured_again(tmp_path: Path) -> None:
    """A record without its samples is no repeat."""
    with pytest.raises(Interrupted):
        run(tmp_path, good, lambda _i: ended(None, cause="stopped"))
    (tmp_path / "repeat-0" / "samples.npz").write_bytes(b"PK\x03\x04 cut")

    _, asked = run(tmp_path, good, good, good)

    assert [0, 1, 2] == asked


def test_flags_of_the_slot_are_in_the_profile(tmp_path: Path) -> None:
    """What holds for every job of a slot is said in every profile of it."""
    profile, _ = run(tmp_path, good, good, good, flags=("no_housekeeping_core",))

    assert isinstance(profile.quality, schema.Quality)
    assert ["no_housekeeping_core"] == profile.quality.flags


def test_artefacts_hold_every_repeat(tmp_path: Path) -> None:
    """Samples and output of all repeats, also of the disturbed one."""
    run(tmp_path, good, contended, good, good)

    archive = tmp_path / "all.npz"
    archive.write_bytes(merged_samples(tmp_path))
    with np.load(archive) as found:
        assert {f"latency_ns_{i}" for i in range(4)} <= set(found.files)
    assert 4 == merged_log(tmp_path).count(b"hello")


def test_an_unknown_waiting_time_has_its_reason(tmp_path: Path) -> None:
    """By hand there is no queue: null, with a reason."""
    profile, _ = run(tmp_path, good, good, good, queue_s=None)

    assert "not_probed" == profile.null_reasons["execution.queue_s"]
    assert msgspec.json.decode(schema.encode(profile))["execution"]["queue_s"] is None


# ── the output ───────────────────────────────────────────────────────────────────────────────────


class Keeping(Children):
    """Children that write what they were asked to keep, and their index into it."""

    def __call__(self, assignment: Assignment) -> tuple[Ended, tuple[str, ...]]:
        if assignment.output:
            (Path(assignment.folder) / OUTPUT).write_text(str(assignment.index))
        return super().__call__(assignment)


def outputs(folder: Path, *scripts: Callable[[int], Ended], **changes: Any) -> tuple[str, str]:
    """Return which children were asked for the output, and which one's is taken."""
    children = Keeping(*scripts)
    measure(attempt(folder, output=True, **changes), run=children, now=lambda: NOW)
    asked = [each for each in children.asked if (_folder(folder, each) / OUTPUT).exists()]
    kept = folders.output(folder)
    return "".join(map(str, asked)), kept.read_text() if kept else ""


def _folder(folder: Path, index: int) -> Path:
    return folder / (folders.repeat(index) if index >= 0 else folders.INSTRUMENTED)


def test_an_output_is_that_of_the_first_repeat_that_ends_well(tmp_path: Path) -> None:
    """One that broke may have written its own, which is of no repeat that counts."""
    assert ("0", "0") == outputs(tmp_path / "a", good, good, good)
    assert ("01", "1") == outputs(tmp_path / "b", killed, good, good, good)
    assert ("0", "0") == outputs(tmp_path / "c", contended, good, good, good)
    alone = {"passes": (), "instruments": ("layers", "flops")}
    assert ("-1", "-1") == outputs(tmp_path / "d", instrumented, **alone)
    both = {"instruments": ("layers", "flops")}
    assert ("0", "0") == outputs(tmp_path / "e", good, good, good, instrumented, **both)


def test_an_output_that_was_kept_before_a_crash_is_taken_over(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        outputs(tmp_path, good, lambda _i: ended(None, cause="stopped"))

    assert ("", "0") == outputs(tmp_path, good, good)


def test_why_an_output_was_not_kept_is_a_warning_of_the_profile(tmp_path: Path) -> None:
    reasons = {"output": "error: it cannot be written: No space left on device"}

    def without(index: int) -> Ended:
        return ended(make.record(index, reasons=reasons))

    none, _ = run(tmp_path / "a", without, without, without)
    some, _ = run(tmp_path / "b", good, good, good)

    assert [f"the output was not kept: {reasons['output']}"] == none.warnings
    assert [] == some.warnings


# ── a trace ──────────────────────────────────────────────────────────────────────────────────────


class Answering(Children):
    """Children that end as they were asked to, a trace among it."""

    def __call__(self, assignment: Assignment) -> tuple[Ended, tuple[str, ...]]:
        self.scripts.append(lambda _index: ended(scripted.answer(assignment)[1]))
        return super().__call__(assignment)


@pytest.mark.seed("S4.46")
def test_a_trace_is_a_block_of_the_profile_and_lies_in_the_folder(tmp_path: Path) -> None:
    profile = measured(attempt(tmp_path, instruments=("trace",)), Answering())

    assert schema.Traced(iterations=3, bytes=len(scripted.TRACED)) == profile.trace
    trace = folders.trace(tmp_path)
    assert trace is not None
    assert scripted.TRACED == trace.read_bytes()
    beside = schema.decode((tmp_path / folders.CAPTURED).read_bytes(), schema.Captured)
    assert ([10, 20], [30, 31, 32]) == (beside.plain_ns, beside.traced_ns)
    assert schema.decode(schema.encode(profile), Profile) == profile


def test_an_attempt_that_is_resumed_has_its_trace_all_the_same(tmp_path: Path) -> None:
    """A worker died when all was measured, before anything was sent."""
    asked = attempt(tmp_path, instruments=("trace",))
    first = measured(asked, Answering())
    (tmp_path / folders.CAPTURED).unlink()

    again = measured(asked, Children())

    assert first.trace == again.trace
    assert folders.trace(tmp_path) is not None


def test_a_trace_that_could_not_be_had_is_null_with_its_reason(tmp_path: Path) -> None:
    """A graph of ONNX Runtime, or a single step beyond the limit: the profile is one."""
    why = "not_supported: a graph runs outside of torch's profiler"

    def without(_index: int) -> Ended:
        return ended(make.instrumented(layers=None, cost=None, reasons={"trace": why}))

    profile, _ = run(tmp_path, good, good, good, without, instruments=("trace",))

    assert (None, why) == (profile.trace, profile.null_reasons["trace"])
    assert ("ok", None) == (profile.status, folders.trace(tmp_path))


def test_an_instrumented_child_that_dies_leaves_no_trace(tmp_path: Path) -> None:
    """Also where the file of it is there: nobody knows how much of it."""

    class Dying(Answering):
        def __call__(self, assignment: Assignment) -> tuple[Ended, tuple[str, ...]]:
            said = super().__call__(assignment)
            dead = ended(None, exit_code=None, signal="SIGSEGV")
            return (dead, ()) if assignment.instruments else said

    profile = measured(attempt(tmp_path, instruments=("trace",)), Dying())

    assert (tmp_path / folders.INSTRUMENTED / TRACE).exists()
    assert (None, None) == (profile.trace, folders.trace(tmp_path))
    assert "phase_failed: crashed in phase latency" == profile.null_reasons["trace"]
    assert isinstance(profile.latency, schema.Latency)


def test_a_profile_says_nothing_of_a_trace_that_nobody_asked_for(tmp_path: Path) -> None:
    """Nor is anything beside it left."""
    profile = measured(attempt(tmp_path, instruments=("layers", "flops")), Answering())

    assert (UNSET, False) == (profile.trace, (tmp_path / folders.CAPTURED).exists())
    assert "trace" not in profile.null_reasons


# ── the instrumented child ───────────────────────────────────────────────────────────────────────


def with_instruments(folder: Path, **changes: Any) -> Attempt:
    return attempt(folder, instruments=("layers", "flops"), **changes)


def measured(attempt: Attempt, children: Children) -> Profile:
    return measure(attempt, run=children, now=lambda: NOW)


def instrumented(_index: int) -> Ended:
    return ended(make.instrumented())


def test_one_instrumented_child_follows_the_clean_ones(tmp_path: Path) -> None:
    """Its blocks stand beside theirs, and its table lies in the attempt's folder."""
    children = Children(good, good, good, instrumented)

    profile = measured(with_instruments(tmp_path), children)

    assert [0, 1, 2, -1] == children.asked
    assert isinstance(profile.layers, schema.Layers)
    assert isinstance(profile.cost, schema.Cost)
    assert (tmp_path / "layers.csv").read_text().startswith("layer,time_pct,")
    assert schema.decode(schema.encode(profile), Profile) == profile


def test_an_instrumented_child_that_dies_costs_no_latency(tmp_path: Path) -> None:
    children = Children(good, good, good, lambda _: ended(None, exit_code=None, signal="SIGSEGV"))

    profile = measured(with_instruments(tmp_path), children)

    assert ("ok", 3, None) == (profile.status, len(profile.repeats), profile.layers)
    assert "phase_failed: crashed in phase latency" == profile.null_reasons["layers"]
    assert profile.null_reasons["cost"] == profile.null_reasons["layers"]


def test_a_gpu_that_was_used_by_hand_is_not_judged_by_the_peaks_of_the_cpu(tmp_path: Path) -> None:
    """The slot is a CPU, and so are its roofs; the child says what computed."""

    def on_gpu(_index: int) -> Ended:
        return ended(make.instrumented(resolved={"cuda_device": "no such GPU"}))

    beside = {"accelerator": "cuda:0", "roofs": measured_roofs()}
    gpu = measured(with_instruments(tmp_path / "a", **beside), Children(*[good] * 3, on_gpu))
    cpu = measured(
        with_instruments(tmp_path / "b", roofs=measured_roofs()),
        Children(*[good] * 3, instrumented),
    )

    assert isinstance(cpu.estimate, schema.Estimate)
    table = schema.decode((tmp_path / "a" / folders.LAYER_TABLE).read_bytes(), schema.LayerTable)
    assert (None, "no such GPU") == (gpu.estimate, table.device)
    assert "farm-worker roofs" not in gpu.null_reasons["estimate"]
    assert "not_probed: no trace" == gpu.null_reasons["bounds.measured_bound"]


def test_a_job_that_failed_gets_no_instrumented_child(tmp_path: Path) -> None:
    fault = Failure(kind="oom", phase="load", message="no")
    children = Children(lambda i: ended(make.record(i, failure=fault)))

    profile = measured(with_instruments(tmp_path), children)

    assert ([0], "failed") == (children.asked, profile.status)


def test_an_instrumented_child_that_ended_is_taken_over(tmp_path: Path) -> None:
    """A crash after it costs nothing: the next attempt finds all four."""
    measured(with_instruments(tmp_path), Children(good, good, good, instrumented))

    again = measured(with_instruments(tmp_path), Children())

    assert isinstance(again.layers, schema.Layers)


def test_the_arrays_of_the_layer_pass_are_kept_once(tmp_path: Path) -> None:
    measured(with_instruments(tmp_path), Children(good, good, good, instrumented))

    with np.load(io.BytesIO(merged_samples(tmp_path))) as found:
        assert (2, 20) == found["layer_ns"].shape
        assert "latency_ns_2" in found.files


def test_alone_its_failure_is_that_of_the_job(tmp_path: Path) -> None:
    fault = Failure(kind="model_error", phase="load", message="no such thing")
    children = Children(lambda i: ended(make.record(i, failure=fault)))

    profile = measured(with_instruments(tmp_path, passes=()), children)

    assert ("failed", "model_error") == (profile.status, profile.failure.kind)


def test_a_preset_that_counts_calls_takes_no_repeat_anew(tmp_path: Path) -> None:
    """A disturbed one is marked, and the function is called no more often than was asked."""
    order = make.order(1)
    protocol = msgspec.structs.replace(order.job.protocol, compat="rpx")
    job = msgspec.structs.replace(order.job, protocol=protocol)
    asked = msgspec.structs.replace(order, job=job)

    profile, ran = run(tmp_path, contended, order=asked)

    assert ([0], "invalid") == (ran, profile.quality.validity)
