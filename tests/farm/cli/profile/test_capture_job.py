"""What a capture asks for: each option with its default, where it goes, and what makes no sense."""

from pathlib import Path

import numpy as np
import pytest

from farm import models
from farm.captures import images
from farm.cli.profile import capture_job, capturing
from farm.cli.profile.capture_job import Wanted
from farm.errors import NoResult, Refused
from farm.schema import Data
from tests.farm.cli.profile.capture_worker import words
from tests.farm.graphs import drawn

FUNCTION = "import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 4)\n"


def wanted(here: Path, kind: str, *given: str, has_gpu: bool = True) -> Wanted:
    return capture_job.wanted(words(kind, *given), root=here, has_gpu=has_gpu)


def defaults(kind: str) -> dict[str, object]:
    """The defaults of a verb by the names that the page gives its options."""
    verb = capturing.run if kind == "run" else capturing.infer
    return {max(each.opts, key=len): each.default for each in verb.params}


def refusal(here: Path, kind: str, *given: str) -> Refused:
    with pytest.raises(Refused) as caught:
        wanted(here, kind, *given)
    return caught.value


# ── the options of a training ────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.11")
@pytest.mark.parametrize(("word", "count"), [("synthetic", None), ("synthetic-64", 64)])
def test_a_training_is_on_the_data_that_are_named(here, word, count) -> None:
    found = wanted(here, "run", word)

    assert Data(kind="synthetic", word=word, count=count) == found.capture.data
    assert ("train", word) == (found.job.workload.mode, found.config["data"])


@pytest.mark.seed("S4.12", "S4.13", "S4.14")
def test_a_training_is_of_the_small_detector_and_sixteen_images(here) -> None:
    plain, other = wanted(here, "run"), wanted(here, "run", "synthetic", "--batch", "3")
    mlp = wanted(here, "run", "synthetic", "--weights", "mlp")

    told = defaults("run")
    assert ("detector-t", "t", 16) == (told["--weights"], told["--size"], told["--batch"])
    assert ("detector-t", 16) == (plain.job.workload.model.name, plain.job.workload.batch)
    assert (3, "mlp") == (other.job.workload.batch, mlp.job.workload.model.name)


@pytest.mark.seed("S4.16", "S4.17")
def test_images_have_640_pixels_and_eight_processes_load_them(here) -> None:
    plain = wanted(here, "run")
    other = wanted(here, "run", "synthetic", "--imgsz", "96", "--workers", "0")

    assert (640, 8) == (plain.capture.imgsz, plain.capture.workers)
    assert (96, 0) == (other.capture.imgsz, other.capture.workers)
    spec = other.job.workload.inputs.spec
    assert spec is not None
    assert [("batch", 3, 96, 96)] == [each.shape for each in spec.values()]


@pytest.mark.seed("S4.18")
def test_autocast_is_on_for_a_training_on_a_gpu(here) -> None:
    on, off = (wanted(here, "run", "synthetic", "--device", "0", *no) for no in ((), ("--no-amp",)))

    assert ("float16", "") == (on.capture.autocast, off.capture.autocast)
    assert [(True, "float16"), (False, "fp32")] == [
        (each.config["amp"], each.config["precision"]) for each in (on, off)
    ]
    assert ((), ()) == (on.notes, off.notes)


@pytest.mark.seed("S4.18")
def test_autocast_on_a_cpu_is_not_applied_and_both_are_told(here) -> None:
    asked, plain = wanted(here, "run"), wanted(here, "run", "synthetic", "--no-amp")

    assert ("", False, "fp32") == (
        *(asked.capture.autocast, asked.config["amp"], asked.config["precision"]),
    )
    assert (("--amp is not applied on a CPU",), ()) == (asked.notes, plain.notes)


@pytest.mark.seed("S4.19", "S4.20", "S4.25")
def test_the_window_is_five_steps_and_twenty(here) -> None:
    """The worker gets both numbers, for the clean pass and for the traced one."""
    plain = wanted(here, "run")
    other = wanted(here, "run", "synthetic", "--warmup", "1", "--steps", "7")

    assert (5, 20) == (plain.capture.warmup, plain.capture.steps)
    assert (1, 7) == (other.capture.warmup, other.capture.steps)
    assert (1, 7) == (other.job.protocol.warmup, other.job.protocol.iterations)
    assert (1, 7) == (other.config["warmup"], other.config["steps"])


@pytest.mark.seed("S4.21", "S4.22", "S4.23")
def test_a_training_is_taken_once_on_the_first_gpu_and_kept_below_runs() -> None:
    told = defaults("run")

    assert (1, "0", "runs/profile") == (told["--repeat"], told["--device"], told["--project"])
    assert Path("runs/profile") == words("run").project


@pytest.mark.seed("S4.31b")
def test_a_model_that_nobody_tried_is_admitted_by_a_word(here) -> None:
    """The worker decides, who alone can load it: nothing is skipped here."""
    (here / "net.py").write_text(FUNCTION)

    no, yes = (
        wanted(here, "run", "synthetic", "--weights", "net.py:build", *each)
        for each in ((), ("--allow-experimental",))
    )

    assert (False, True) == (no.capture.experimental, yes.capture.experimental)


# ── the options of an inference ──────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.33", "S4.34", "S4.35")
def test_an_inference_is_of_the_small_detector_and_one_image(here) -> None:
    plain, other = wanted(here, "infer"), wanted(here, "infer", "--batch", "4", "--size", "t")
    cnn = wanted(here, "infer", "--weights", "cnn")

    told = defaults("infer")
    assert ("detector-t", "t", 1) == (told["--weights"], told["--size"], told["--batch"])
    assert ("detector-t", 1) == (plain.job.workload.model.name, plain.job.workload.batch)
    assert (4, "cnn") == (other.job.workload.batch, cnn.job.workload.model.name)


@pytest.mark.seed("S4.36", "S4.39", "S4.40")
def test_an_inference_warms_up_twenty_times_and_takes_a_hundred(here) -> None:
    plain = wanted(here, "infer").capture
    other = wanted(here, "infer", "--imgsz", "64", "--warmup", "2", "--runs", "9")

    assert (640, 20, 100) == (plain.imgsz, plain.warmup, plain.steps)
    assert (64, 2, 9) == (other.capture.imgsz, other.capture.warmup, other.capture.steps)
    assert (9, 9) == (other.config["runs"], other.job.protocol.iterations)


@pytest.mark.seed("S4.37", "S4.38")
def test_half_precision_is_off_and_in_one_of_two_dtypes(here) -> None:
    gpu = ("--device", "0")
    given = ((), ("--no-half",), ("--half",), ("--half", "--amp-dtype", "bfloat16"))

    found = [wanted(here, "infer", *gpu, *each) for each in given]

    assert ["", "", "float16", "bfloat16"] == [each.capture.autocast for each in found]
    assert ["fp32", "fp32", "float16", "bfloat16"] == [each.config["precision"] for each in found]
    assert "float16" == defaults("infer")["--amp-dtype"]


def test_a_dtype_without_autocast_is_told(here) -> None:
    assert ("--amp-dtype is for --half, which is off",) == (
        wanted(here, "infer", "--amp-dtype", "bfloat16").notes
    )
    assert () == wanted(here, "infer", "--device", "0", "--half", "--amp-dtype", "bfloat16").notes


@pytest.mark.seed("S4.42", "S4.43", "S4.44")
def test_the_thresholds_reach_the_worker_and_the_configuration(here) -> None:
    plain = wanted(here, "infer").capture
    given = ("--conf", "0.5", "--iou", "0.1", "--max-det", "7")
    other = wanted(here, "infer", *given)

    assert (0.25, 0.45, 300) == (plain.conf, plain.iou, plain.max_det)
    assert (0.5, 0.1, 7) == (other.capture.conf, other.capture.iou, other.capture.max_det)
    assert (0.5, 0.1, 7) == tuple(other.config[each] for each in ("conf", "iou", "max_det"))


@pytest.mark.seed("S4.41", "S4.45", "S4.47")
def test_an_inference_is_taken_once_on_the_first_gpu_and_kept_below_runs(here) -> None:
    told = defaults("infer")

    assert (1, "0", "runs/profile") == (told["--repeat"], told["--device"], told["--project"])
    assert "cuda:0" == wanted(here, "infer", "--device", told["--device"]).device


@pytest.mark.seed("S4.46")
def test_a_trace_is_taken_unless_somebody_wants_none(here) -> None:
    yes, no = wanted(here, "infer"), wanted(here, "infer", "--no-trace")

    assert (True, False) == (yes.capture.trace, no.capture.trace)


@pytest.mark.seed("S4.32")
def test_the_images_are_those_of_a_file_or_a_folder_else_one_that_comes_along(here) -> None:
    (here / "pictures").mkdir()
    for name in ("b.npy", "a.npy"):
        np.save(here / "pictures" / name, np.zeros((4, 6, 3), np.uint8))

    folder, one = wanted(here, "infer", "pictures"), wanted(here, "infer", "pictures/b.npy")
    none = wanted(here, "infer")

    paths = [str(here / "pictures" / name) for name in ("a.npy", "b.npy")]
    assert (tuple(paths), (paths[1],), ()) == (
        *(folder.capture.images, one.capture.images, none.capture.images),
    )
    assert ["pictures", "pictures/b.npy", None] == [
        each.config["source"] for each in (folder, one, none)
    ]
    assert (480, 640, 3) == images.sample().shape


def test_a_side_that_the_detector_has_no_whole_cells_for_is_refused_with_the_nearest(here) -> None:
    """Of another model nobody knows what it takes."""
    with pytest.raises(Refused, match="--imgsz 100 fits no detector") as caught:
        wanted(here, "infer", "--imgsz", "100")

    assert "--imgsz 96" == caught.value.hint
    assert 100 == wanted(here, "infer", "--weights", "resnet18", "--imgsz", "100").capture.imgsz


# ── options that a model has no use for ──────────────────────────────────────────────────────────


def test_a_size_is_of_the_detector_alone(here) -> None:
    """Of any other model it is an option without use, and told as such."""
    found = wanted(here, "infer", "--weights", "cnn", "--size", "huge")

    assert (("size",), ()) == (found.unused, wanted(here, "infer").unused)


def test_a_model_that_takes_no_images_gets_its_own_inputs(here) -> None:
    found = wanted(here, "infer", "--weights", "lstm", "--imgsz", "64")

    assert (0, "sequence") == (found.capture.imgsz, found.job.workload.item)
    assert "imgsz" not in found.config
    row = models.zoo()["lstm"]
    assert row.inputs == found.job.workload.inputs.spec


# ── what makes no sense ──────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.2")
@pytest.mark.parametrize(
    ("kind", "word", "hint"),
    [
        ("infer", "weights=x.pt", "write `--weights x.pt`"),
        ("run", "weights=x.pt", "write `--weights x.pt`"),
        ("infer", "wieghts=x.pt", "did you mean `--weights x.pt`?"),
        ("infer", "max_det=7", "write `--max-det 7`"),
        ("infer", "weights=my model.onnx", "write `--weights 'my model.onnx'`"),
        ("infer", "Batch=4", "write `--batch 4`"),
        ("run", "amp=False", "write `--no-amp`"),
        ("run", "amp=true", "write `--amp`"),
        ("infer", "zzz=1", "`farm profile infer -h` lists the options"),
        ("infer", f"weights={'x' * 300}", f"write `--weights {'x' * 300}`"),
    ],
)
def test_a_setting_is_no_data_and_the_option_is_spelt_out(here, kind, word, hint) -> None:
    """B32: it was taken as the path of an image."""
    found = refusal(here, kind, word)

    assert found.what.endswith("is no option")
    assert hint == found.hint


@pytest.mark.seed("S4.2")
def test_a_file_that_is_called_like_a_setting_is_that_file(here) -> None:
    np.save(here / "weights=x.npy", np.zeros((4, 6, 3), np.uint8))

    found = wanted(here, "infer", "weights=x.npy")

    assert (str(here / "weights=x.npy"),) == found.capture.images


@pytest.mark.seed("S4.15")
def test_a_batch_is_not_fitted_to_a_cpu(here) -> None:
    found = refusal(here, "run", "synthetic", "--batch", "-1")

    assert ("--batch -1 means nothing on a CPU", "say how many items") == (found.what, found.hint)
    assert -1 == words("run", "synthetic", "--batch", "-1", "--device", "0").batch


def test_a_batch_of_nothing_is_none(here) -> None:
    """It lies between -1 and 1, which both mean something."""
    assert "--batch 0 is no batch" == refusal(here, "run", "synthetic", "--batch", "0").what


@pytest.mark.seed("S4.37")
def test_half_precision_is_refused_on_a_cpu(here) -> None:
    found = refusal(here, "infer", "--half")

    assert ("--half means nothing on a CPU", "--no-half") == (found.what, found.hint)


@pytest.mark.seed("S4.10")
@pytest.mark.parametrize("device", ["0", "cuda:1", "gpu"])
def test_without_a_gpu_there_is_no_profile_and_a_cpu_is_named(here, device) -> None:
    with pytest.raises(NoResult, match="no CUDA device") as caught:
        wanted(here, "infer", "--device", device, has_gpu=False)

    assert "--device cpu" == caught.value.hint


@pytest.mark.parametrize(
    "given",
    [("gone.npy",), ("--weights", "gone.onnx"), ("--size", "huge"), ("weights=x.pt",)],
)
def test_what_makes_no_sense_is_refused_on_a_machine_without_a_gpu_too(here, given) -> None:
    with pytest.raises(Refused):
        wanted(here, "infer", *given, "--device", "0", has_gpu=False)


@pytest.mark.seed("S4.32")
@pytest.mark.parametrize(("name", "what"), [("empty", "no image in"), ("gone.npy", "no file")])
def test_without_an_image_nothing_is_asked(here, name, what) -> None:
    (here / "empty").mkdir()

    assert what in refusal(here, "infer", name).what


def test_a_source_without_a_name_is_not_the_current_folder(here) -> None:
    np.save(here / "a.npy", np.zeros((4, 6, 3), np.uint8))

    assert "no file ''" == refusal(here, "infer", "").what


@pytest.mark.seed("S4.12", "S4.33")
@pytest.mark.parametrize("kind", ["run", "infer"])
@pytest.mark.parametrize("name", ["gone.onnx", "LibreYOLO9t.pt", "gone.py:build"])
def test_missing_weights_are_refused_at_once(here, kind, name) -> None:
    """B33: a download was tried, and then there was a traceback."""
    data = ("synthetic",) if kind == "run" else ()

    assert name.partition(":")[0] in refusal(here, kind, *data, "--weights", name).what


def test_a_size_that_there_is_not_names_those_that_there_are(here) -> None:
    found = refusal(here, "infer", "--size", "huge")

    assert ("no detector of size 'huge'", "there is t") == (found.what, found.why)


def test_a_graph_is_not_trained(here) -> None:
    drawn.mlp(here / "net.onnx")

    found = refusal(here, "run", "synthetic", "--weights", "net.onnx")

    assert "'net.onnx' cannot be trained" == found.what


@pytest.mark.parametrize("shape", [(None, 3, "h", "w"), ("batch", "h", "w", 3), (2, 3, None, None)])
def test_a_graph_of_images_of_any_size_gets_those_that_were_asked_for(here, shape) -> None:
    relu = drawn.node("Relu", "x", "y")
    values = [("x", drawn.FLOAT, shape)], [("y", drawn.FLOAT, shape)]
    drawn.save(here / "net.onnx", [relu], inputs=values[0], outputs=values[1])

    found = wanted(here, "infer", "--weights", "net.onnx", "--imgsz", "96", "--batch", "2")

    sized = tuple(3 if each == 3 else 96 for each in shape[1:])
    assert ("batch", *sized) == found.job.workload.inputs.spec["x"].shape
    assert (96, 96) == (found.capture.imgsz, found.config["imgsz"])


@pytest.mark.parametrize("shape", [("batch", "length"), ("batch", None), ("batch", 3, 48, "w")])
def test_a_graph_that_leaves_open_what_no_option_says_is_measured_in_a_sweep(here, shape) -> None:
    relu = drawn.node("Relu", "x", "y")
    values = [("x", drawn.FLOAT, shape)], [("y", drawn.FLOAT, shape)]
    drawn.save(here / "net.onnx", [relu], inputs=values[0], outputs=values[1])

    found = refusal(here, "infer", "--weights", "net.onnx")

    assert "input 'x' of net.onnx has" in found.what
    assert "measure it in a sweep, whose `inputs` say it" == found.hint


def test_a_graph_is_given_no_images(here) -> None:
    drawn.mlp(here / "net.onnx")
    np.save(here / "a.npy", np.zeros((4, 6, 3), np.uint8))

    found = refusal(here, "infer", "a.npy", "--weights", "net.onnx")

    assert "'net.onnx' takes no images here" == found.what


def test_a_model_that_takes_no_images_is_given_none(here) -> None:
    np.save(here / "a.npy", np.zeros((4, 6, 3), np.uint8))

    assert "'lstm' takes no images" == refusal(here, "infer", "a.npy", "--weights", "lstm").what
