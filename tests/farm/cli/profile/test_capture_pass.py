"""A capture's trials and files: what is written, replaced, taken once more, or not written."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.errors import Bad, NoResult, Refused
from farm.trace import opening
from farm.trace.comparing import comparison
from farm.trace.comparing.comparison import Named
from tests.farm import make
from tests.farm.cli.profile.capture_worker import PLAIN, TRAINED, Worker, taken, words
from tests.farm.trace import captures

SMALL = ("--runs", "10", "--warmup", "2")


def files(here: Path) -> list[str]:
    """The files below the project, by their names in it."""
    folder = here / "runs/profile"
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def read(here: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((here / "runs/profile" / name).read_bytes())
    return found


class Heard:
    """What a capture said, and warned of."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def ears(self) -> dict[str, Any]:
        return {"say": self.said.append, "warn": self.warned.append}


# ── files ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.4", "S4.27")
def test_a_training_lies_in_prof_with_its_trace(here) -> None:
    found = taken(here, Worker(TRAINED), words("run"))

    assert ["prof/profile.json", "prof/profile_trace.json"] == files(here)
    assert Path("runs/profile/prof/profile.json") == found.file
    assert "runs/profile/prof/profile_trace.json" == read(here, "prof/profile.json")["trace"]


@pytest.mark.seed("S4.4", "S4.47")
def test_an_inference_lies_in_infer_of_the_project_that_was_named(here) -> None:
    taken(here, Worker())
    taken(here, Worker(), words("infer", "--project", "mine/p"))

    assert ["infer/profile.json", "infer/profile_trace.json"] == files(here)
    assert ["profile.json", "profile_trace.json"] == sorted(
        each.name for each in (here / "mine/p/infer").iterdir()
    )


@pytest.mark.seed("S4.21", "S4.27", "S4.54")
@pytest.mark.parametrize(
    ("kind", "folder", "whole"),
    [("run", "prof", "profile_repeat.json"), ("infer", "infer", "infer_repeat.json")],
)
def test_each_trial_is_a_measurement_of_its_own_and_one_document_is_of_all(
    here, kind, folder, whole
) -> None:
    """Each call of the worker is fresh processes, in a folder of its own."""
    worker = Worker(TRAINED if kind == "run" else PLAIN)
    data = ("synthetic",) if kind == "run" else ()

    found = taken(here, worker, words(kind, *data, "--repeat", "3"))

    assert 3 == len({each.folder for each in worker.asked}) == len(worker.asked)
    parts = [f"{folder}_{at}/{name}" for at in range(3) for name in ("profile", "profile_trace")]
    assert sorted([*(f"{each}.json" for each in parts), whole]) == files(here)
    assert Path("runs/profile") / whole == found.file
    told = read(here, whole)["aggregation"]
    assert [f"runs/profile/{folder}_{at}/profile.json" for at in range(3)] == told["profiles"]


@pytest.mark.seed("S4.41")
def test_of_one_trial_there_is_no_document_of_all(here) -> None:
    worker = Worker()

    taken(here, worker)

    assert 1 == len(worker.asked)
    assert "aggregation" not in read(here, "infer/profile.json")


def test_files_of_an_earlier_capture_are_replaced_whole_and_that_is_said(here) -> None:
    """C13. Neither is longer than what it holds, and nothing else is left."""
    taken(here, Worker(PLAIN._replace(events=captures.host(steps=40))))
    before, heard = read(here, "infer/profile.json"), Heard()

    taken(here, Worker(), **heard.ears())

    assert before != read(here, "infer/profile.json")
    assert 28 == len(read(here, "infer/profile_trace.json")["traceEvents"])
    assert [
        "replaced runs/profile/infer/profile_trace.json",
        "replaced runs/profile/infer/profile.json",
    ] == heard.said
    assert 2 == len(files(here))


@pytest.mark.seed("S4.46")
def test_without_a_trace_none_is_asked_for_and_that_of_an_earlier_capture_goes(here) -> None:
    """It would be read beside a profile that it is not of."""
    taken(here, Worker())
    worker, heard = Worker(), Heard()

    taken(here, worker, words("infer", "--no-trace"), **heard.ears())

    assert (False, ["infer/profile.json"]) == (worker.asked[0].capture.trace, files(here))
    gone = "removed runs/profile/infer/profile_trace.json, which was of an earlier capture"
    assert gone in heard.said
    assert read(here, "infer/profile.json")["trace"] is None


def test_the_trace_itself_says_what_its_profile_says_of_it(here) -> None:
    """S4.6: readers take both, and the profile needs its trace no more."""
    taken(here, Worker(TRAINED), words("run"))
    folder = here / "runs/profile/prof"

    profile, trace = (opening.opened(folder / f"profile{end}.json") for end in ("", "_trace"))

    assert [each.phase for each in trace.analysis.phases] == [
        each.phase for each in profile.analysis.phases
    ]
    assert profile.analysis.ops == trace.analysis.ops


def test_a_project_that_cannot_be_written_is_refused_before_anything_is_measured(here) -> None:
    (here / "runs/profile/infer_repeat.json").mkdir(parents=True)
    (here / "taken").write_text("a file")
    worker = Worker()

    for given in (("--repeat", "2"), ("--project", "taken")):
        with pytest.raises(Refused, match="cannot write"):
            taken(here, worker, words("infer", *given))

    assert [] == worker.asked


@pytest.mark.seed("S4.32")
@pytest.mark.parametrize(("kind", "source"), [("detection", "sample"), ("plain", "drawn")])
def test_without_a_source_the_profile_says_what_ran(here, kind, source) -> None:
    """The image that comes along is for a detector; others ran on what was drawn."""
    taken(here, Worker(PLAIN._replace(pipeline=kind)), words("infer"))

    assert source == read(here, "infer/profile.json")["config"]["source"]


# ── no profile ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.8", "S4.26")
def test_data_that_do_not_fill_the_window_are_no_profile_and_nothing_is_written(here) -> None:
    failure = make.fault(
        "window_not_filled",
        phase="first",
        message="one pass over the data is 2 iterations at batch 4, and the window needs 25",
        hint="a data set of at least 100 items; or --warmup 0 --steps 2 or fewer",
    )

    with pytest.raises(NoResult, match="one pass over the data is 2 iterations") as caught:
        taken(here, Worker(TRAINED._replace(failure=failure)), words("run"))

    assert ("no profile was written", failure.hint) == (caught.value.why, caught.value.hint)
    assert [] == files(here)


@pytest.mark.parametrize(
    ("kind", "error"), [("model_error", Bad), ("crashed", Bad), ("oom", NoResult)]
)
def test_a_model_that_fails_leaves_nothing_but_its_words(here, kind, error) -> None:
    """What the device has no room for is an answer: exit 3; what breaks is bad: exit 1."""
    failure = make.fault(kind, message="it broke", log_tail="line one\nline two\n")

    with pytest.raises(error, match=f"{kind} in phase warmup") as caught:
        taken(here, Worker(PLAIN._replace(failure=failure)))

    assert "it broke\n| line one\n| line two" == caught.value.why
    assert [] == files(here)


def test_a_failure_leaves_an_earlier_profile_as_it_was(here) -> None:
    taken(here, Worker())
    before = (here / "runs/profile/infer/profile.json").read_bytes()

    with pytest.raises(Bad):
        taken(here, Worker(PLAIN._replace(failure=make.fault("model_error"))))

    assert before == (here / "runs/profile/infer/profile.json").read_bytes()


def test_a_trial_that_fails_ends_the_others_and_there_is_no_document_of_all(here) -> None:
    worker = Worker(PLAIN, PLAIN._replace(failure=make.fault("model_error")))

    with pytest.raises(Bad):
        taken(here, worker, words("infer", "--repeat", "3"))

    assert 2 == len(worker.asked)
    assert ["infer_0/profile.json", "infer_0/profile_trace.json"] == files(here)


@pytest.mark.seed("S4.31b")
def test_trials_of_an_earlier_capture_do_not_stay_beside_fewer_new_ones(here) -> None:
    """What somebody else keeps in their folders stays."""
    taken(here, Worker(), words("infer", "--repeat", "3"))
    (here / "runs/profile/infer_2/notes.txt").write_text("mine")

    heard = Heard()
    taken(here, Worker(), words("infer", "--repeat", "2"), say=heard.said.append)

    assert ["notes.txt"] == [each.name for each in (here / "runs/profile/infer_2").iterdir()]
    assert 2 == read(here, "infer_repeat.json")["aggregation"]["n"]
    assert any("infer_2/profile.json, which was of an earlier" in each for each in heard.said)


def test_where_a_trial_fails_no_earlier_document_of_all_stays_beside_it(here) -> None:
    taken(here, Worker(), words("infer", "--repeat", "2"))

    with pytest.raises(Bad):
        taken(
            here,
            Worker(PLAIN, captures.Taken(failure=make.fault("model_error"))),
            words("infer", "--repeat", "2"),
        )

    assert not (here / "runs/profile/infer_repeat.json").exists()


def test_data_that_are_none_are_a_slip_of_the_request(here) -> None:
    broken = make.fault("bad_data", message="labels/a.txt:3: six numbers", hint="five")

    with pytest.raises(Refused, match=r"labels/a\.txt:3") as caught:
        taken(here, Worker(captures.Taken(failure=broken)), words("run"))

    assert (2, "five") == (caught.value.exit_code, caught.value.hint)


def test_a_model_that_nobody_tried_is_refused_with_the_word_that_admits_it(here) -> None:
    """B31: nothing is skipped in silence."""
    failure = make.fault(
        "experimental", message="'net' brings no loss", hint="--allow-experimental"
    )

    with pytest.raises(Refused, match="brings no loss") as caught:
        taken(here, Worker(TRAINED._replace(failure=failure)), words("run"))

    assert "--allow-experimental" == caught.value.hint


# ── what is not as it was asked ──────────────────────────────────────────────────────────────────


def test_a_disturbed_measurement_is_taken_once_more_and_the_quiet_one_counts(here) -> None:
    disturbed = PLAIN._replace(flags=["drifting", "contended", "repeats_missing"])
    worker, heard = Worker(disturbed, PLAIN), Heard()

    taken(here, worker, **heard.ears())

    assert 2 == len({each.folder for each in worker.asked}) == len(worker.asked)
    assert "other work ran on its cores: it is taken once more" in heard.said
    assert "contended" not in read(here, "infer/profile.json")["quality"]["flags"]


def test_a_machine_that_stays_busy_is_shown_with_its_mark(here) -> None:
    """B35: once more at most."""
    worker = Worker(PLAIN._replace(flags=["contended"]))

    found = taken(here, worker).found

    assert 2 == len(worker.asked)
    assert ("low", True) == (found.confidence, "contended" in found.quality.flags)


def test_a_doubt_that_is_no_disturbance_is_not_measured_again(here) -> None:
    worker = Worker(PLAIN._replace(flags=["drifting"]))

    assert "drifting" in taken(here, worker).found.quality.flags
    assert 1 == len(worker.asked)


def test_options_without_use_are_kept_and_those_that_somebody_gave_are_told(here) -> None:
    heard = Heard()
    asked = words("infer", "--weights", "mlp", "--max-det", "7", "--size", "t")

    found = taken(
        here, Worker(PLAIN._replace(unused=["conf", "iou", "max_det"])), asked, **heard.ears()
    )

    assert ["size", "conf", "iou", "max_det"] == found.found.config["unused"]
    assert ["no use for --size, --max-det here"] == heard.warned


@pytest.mark.seed("S4.18")
def test_what_is_known_before_is_told_before_and_only_once(here) -> None:
    heard = Heard()

    found = taken(
        here, Worker(TRAINED._replace(notes=["8 of 9 images"])), words("run"), **heard.ears()
    )

    notes = ["--amp is not applied on a CPU", "8 of 9 images"]
    assert (notes, notes) == (heard.warned, found.found.config["notes"])


def test_a_trace_that_came_to_nothing_is_told_with_its_reason(here) -> None:
    """B31: the profile is there, and is not taken for a complete one."""
    heard = Heard()
    lost = PLAIN._replace(events=None, untraced="phase_failed: RuntimeError: CUPTI")

    found = taken(here, Worker(lost), **heard.ears()).found

    assert ["no trace was kept: phase_failed: RuntimeError: CUPTI"] == heard.warned
    assert "phase_failed: RuntimeError: CUPTI" == found.null_reasons["launches_per_step"]


@pytest.mark.seed("S4.15")
def test_the_batch_that_fits_is_found_first_and_then_measured(here) -> None:
    """In processes of their own; the one that looks measures and traces nothing."""
    worker, heard = Worker(TRAINED._replace(on_gpu=True)), Heard()
    asked = words("run", "synthetic", "--batch", "-1", "--device", "0")

    found = taken(here, worker, asked, **heard.ears()).found

    fit, measured = worker.asked
    assert (True, (), False) == (fit.capture.fit, fit.passes, fit.capture.trace)
    assert (False, 24, 24) == (
        *(measured.capture.fit, measured.job.workload.batch, found.config["batch"]),
    )
    assert "a batch of 24 fits" in heard.said


# ── several trials compared ──────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.30", "S4.86", "S4.87")
@pytest.mark.parametrize(("repeats", "call", "exceeds"), [(2, "worse", True), (1, "none", None)])
def test_repeats_are_what_makes_a_difference_count(here, repeats, call, exceeds) -> None:
    """Two trials of 10 and 10.2 ms beside two of 20 and 20.4 ms: 10.1 apart, twice the combined
    standard error is 0.447; a single one of each supports nothing."""
    for name, scale in (("a", 1.0), ("b", 2.0)):
        trials = [PLAIN._replace(plain_ms=[scale * each] * 3) for each in (10.0, 10.2)]
        given = ("--project", name, "--repeat", str(repeats))
        taken(here, Worker(*trials), words("infer", *given))
    file = "infer_repeat.json" if repeats > 1 else "infer/profile.json"

    one, other = (Named(each, opening.opened(here / each / file).analysis) for each in ("a", "b"))
    found = comparison.compare(one, other)

    (row,) = [each for each in found.rows if each.metric == "step_ms"]
    assert (call, exceeds, repeats) == (row.call, row.rule.exceeds, found.before.trials)
    assert "plain" == found.after.step
    if repeats > 1:
        assert (0.4472, 10.1) == pytest.approx((row.rule.two_se, row.change), rel=1e-3)
