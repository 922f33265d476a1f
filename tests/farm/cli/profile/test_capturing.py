"""`farm profile run` and `infer` as a person uses them: words, files, and what is shown."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from farm import once, schema
from farm.cli.profile import capturing
from farm.trace.analysis.record import Analysis
from tests.farm import make
from tests.farm.cli.profile.capture_worker import PLAIN, TRAINED, Worker, words
from tests.farm.trace import g8

CPU = ("--device", "cpu")
FILES = {
    ("run", "1"): "prof/profile.json",
    ("run", "2"): "profile_repeat.json",
    ("infer", "1"): "infer/profile.json",
    ("infer", "2"): "infer_repeat.json",
}


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    """Let a worker answer in place of the program; a verb takes no argument for that."""

    def set_to(worker: Worker) -> Worker:
        monkeypatch.setattr(once, "measure", worker)
        return worker

    return set_to


# ── what is shown ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.49", "S4.50", "S4.66")
def test_an_inference_is_shown_and_leads_to_its_phases(here, farm, works) -> None:
    works(Worker())

    said = farm("profile", "infer", *CPU)

    shown = said.out.splitlines()
    assert (0, "runs/profile/infer/profile.json") == (said.code, shown[0])
    names = [line.split("  ")[0] for line in shown if re.match(r"\w[\w ]{2,12}  ", line)]
    assert ["what", "step", "latency", "throughput", "stages", "GPU"] == names[:6]
    assert "latency      p50 20.00 ms · p90 20.80 ms · p99 22.40~ ms" in shown
    assert "throughput   64.00 images/s" in shown
    assert "wrote runs/profile/infer/profile.json" in said.err


@pytest.mark.parametrize("project", ["runs/profile", "my project"])
def test_the_next_step_can_be_pasted(here, farm, works, project) -> None:
    works(Worker(TRAINED))

    said = farm("profile", "run", "synthetic", *CPU, "--project", project)
    (line,) = [each for each in said.err.splitlines() if each.startswith("next: ")]
    command = shlex.split(line.removeprefix("next: "))
    after = farm(*command[1:])

    assert ["farm", "profile", "phases", f"{project}/prof/profile.json"] == command
    assert (0, True) == (after.code, "backward" in after.out)


@pytest.mark.seed("S4.24", "S4.48", "S4.7")
@pytest.mark.parametrize("kind", ["run", "infer"])
@pytest.mark.parametrize("repeat", ["1", "2"])
def test_with_json_it_is_one_document_and_without_it_none(here, farm, works, kind, repeat) -> None:
    """That of the file."""
    works(Worker(TRAINED if kind == "run" else PLAIN))
    data = ("synthetic",) if kind == "run" else ()

    said = farm("profile", kind, *data, *CPU, "--repeat", repeat, "--json")
    kept = (here / "runs/profile" / FILES[kind, repeat]).read_bytes()
    plain = farm("profile", kind, *data, *CPU)

    found = schema.decode(said.out.encode(), Analysis)
    assert (0, kept) == (said.code, said.out.rstrip("\n").encode())
    assert ("training" if kind == "run" else "inference") == found.mode
    assert not plain.out.startswith("{")


def test_a_repeat_is_shown_as_one_and_leads_to_it(here, farm, works) -> None:
    works(Worker(PLAIN, PLAIN._replace(plain_ms=[20.0] * 3)))

    said = farm("profile", "infer", *CPU, "--repeat", "2")

    assert said.out.startswith("runs/profile/infer_repeat.json\n")
    assert "step         15.00 ms, mean of 2 trials" in said.out
    assert "trial 2 of 2" in said.err
    assert "next: farm profile phases runs/profile/infer_repeat.json" in said.err


@pytest.mark.seed("S4.52")
def test_the_thresholds_of_a_command_line_are_in_its_file(here, farm, works) -> None:
    worker = works(Worker())

    farm("profile", "infer", *CPU, "--conf", "0.01", "--iou", "0.9", "--max-det", "9")

    config = json.loads((here / "runs/profile/infer/profile.json").read_bytes())["config"]
    assert [0.01, 0.9, 9] == [config[each] for each in ("conf", "iou", "max_det")]
    assert 0.01 == worker.asked[0].capture.conf


@pytest.mark.seed("S4.18")
def test_a_warning_stands_beside_the_numbers_and_is_no_failure(here, farm, works) -> None:
    works(Worker(TRAINED))

    said = farm("profile", "run", "synthetic", *CPU)

    assert 0 == said.code
    assert "warning: --amp is not applied on a CPU" in said.err.splitlines()


def test_a_disturbed_capture_says_so_above_its_numbers(here, farm, works) -> None:
    """B35: exit 0, since the figure is shown, and nobody takes it for a good one."""
    works(Worker(PLAIN._replace(flags=["contended"])))

    said = farm("profile", "infer", *CPU)

    assert 0 == said.code
    assert said.out.startswith("NOT TRUSTWORTHY: other work ran on its cores\n")


# ── codes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.8", "S4.26")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("window_not_filled", 3),
        ("oom", 3),
        ("unsupported", 3),
        ("experimental", 2),
        ("model_error", 1),
        ("crashed", 1),
    ],
)
def test_a_capture_without_a_profile_has_the_code_of_its_cause(
    here, farm, works, kind, code
) -> None:
    works(Worker(TRAINED._replace(failure=make.fault(kind, hint="do this"))))

    said = farm("profile", "run", "synthetic", *CPU)

    assert (code, "") == (said.code, said.out)
    assert "needed 91 of 80 GiB" in said.err
    assert "hint: do this" in said.err
    assert not list(Path("runs").rglob("*.json"))


@pytest.mark.seed("S4.2")
@pytest.mark.parametrize(
    "given",
    [
        ("run", "weights=x.pt"),
        ("infer", "weights=x.pt"),
        ("run", "synthetic", "weights=x.pt"),
        ("infer", "images", "batch=4", "weights=x.pt"),
        ("infer", "images", "wieghts=x.pt"),
    ],
)
def test_a_setting_in_any_place_is_told_how_it_is_written(here, farm, works, given) -> None:
    """Also where a word too many is what click complains about."""
    worker = works(Worker())

    said = farm("profile", *given, *CPU)

    assert (2, []) == (said.code, worker.asked)
    assert re.search(r"hint: .*`--(weights x\.pt|batch 4)`", said.err)


@pytest.mark.seed("S4.11")
def test_a_training_needs_data(farm) -> None:
    said = farm("profile", "run", *CPU)

    assert (2, True) == (said.code, "missing argument 'DATA'" in said.err)


def test_a_bad_value_of_any_option_is_refused(farm, works) -> None:
    """Each with the option in its message, and nothing is asked of the worker."""
    worker = works(Worker())
    bad = {
        "run": ["--batch -2", "--imgsz 8", "--warmup -1", "--steps 0", "--workers -1"],
        "infer": ["--batch 0", "--runs 0", "--conf 2", "--iou x", "--max-det 0", "--imgsz 9000"],
    }
    both = ["--repeat 0", "--repeat x", "--device tpu"]

    for kind, wrong in bad.items():
        for each in (*wrong, *both):
            data = ("synthetic",) if kind == "run" else ()
            said = farm("profile", kind, *data, *CPU, *each.split())
            assert (2, "") == (said.code, said.out), each
            assert each.split()[0] in said.err or "device" in said.err, each
    assert (2, []) == (farm("profile", "infer", "--amp-dtype", "int8").code, worker.asked)


# ── the verbs beside it ──────────────────────────────────────────────────────────────────────────

READERS = (
    ("summary",),
    ("get",),
    ("phases",),
    ("kernels",),
    ("ops",),
    ("compare", "runs/profile/prof/profile.json"),
    ("what-if", "--remove-launches", "1"),
)


@pytest.mark.seed("S4.1", "S4.3")
def test_without_a_verb_the_verbs_are_listed(farm) -> None:
    said = farm("profile")

    assert 0 == said.code
    for verb in ("run", "infer", *(each[0] for each in READERS)):
        assert re.search(rf"^  {verb}  ", said.out, re.MULTILINE), verb


@pytest.mark.seed("S4.5", "S4.6")
@pytest.mark.parametrize("name", ["profile.json", "profile_trace.json"])
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_every_verb_that_reads_a_capture_prints_and_leaves_all_files_alone(
    here, farm, works, name, as_json
) -> None:
    """Both of its files, as lines and as JSON."""
    works(Worker(TRAINED._replace(events=g8.events(), on_gpu=True)))
    farm("profile", "run", "synthetic", *CPU)
    before = contents(here)

    for verb, *more in READERS:
        said = farm("profile", verb, f"runs/profile/prof/{name}", *more, *as_json)
        assert (0, True) == (said.code, len(said.out) > 20), said

    assert before == contents(here)


def contents(here: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in here.rglob("*") if each.is_file()}


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def test_every_option_of_the_page_is_there_and_no_other() -> None:
    """`traces.md` §12."""
    both = {"weights", "size", "batch", "imgsz", "warmup", "repeat", "device", "project", "json"}
    run = {"steps", "workers", "amp", "no-amp", "allow-experimental"}
    infer = {"runs", "half", "no-half", "amp-dtype", "conf", "iou", "max-det", "trace", "no-trace"}

    for verb, own in ((capturing.run, run), (capturing.infer, infer)):
        told = {
            name.removeprefix("--")
            for each in verb.params
            for name in (*each.opts, *each.secondary_opts)
            if name.startswith("--")
        }
        assert both | own == told - {"quiet", "verbose"}


def test_the_words_know_what_a_person_gave() -> None:
    """Whoever did not ask for a threshold is not told that it had no use."""
    given = words("infer", "--max-det", "300", "--runs", "5", "--no-half").given

    assert {"max_det", "runs", "half", "device"} == given
    assert {"device"} == words("infer").given
