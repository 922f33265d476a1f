"""`farm profile run` and `infer` with real models and processes, read back by every other verb."""

import json
from typing import Any

import pytest

from tests.integration.farm_here import Place

CPU = ("--device", "cpu")
SMALL = (*CPU, "--imgsz", "64", "--batch", "2", "--warmup", "2", "--steps", "4", "--workers", "0")
PHASES = ("dataload", "to_device", "forward", "backward", "optimizer")
CODE = """
import torch


def build():
    return torch.nn.Linear(8, 4)


def batches(batch):
    for number in range(40):
        if number == 9:
            raise OSError("the disk is gone")
        yield torch.randn(batch, 8), torch.randn(batch, 4)
"""


def read(place: Place, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place.folder / name).read_text())
    return found


def files(place: Place) -> list[str]:
    inside = (each for each in place.folder.rglob("*") if each.is_file())
    names = [str(each.relative_to(place.folder)) for each in inside]
    return sorted(each for each in names if not each.startswith("."))


def speaks_of_a_cpu(profile: dict[str, Any]) -> bool:
    """Its bound names nothing of a GPU, and the numbers of one are null (C10)."""
    gpu = ("gpu_util", "gpu_busy_ms_per_step", "tensorcore_pct", "peak_vram_mb", "mean_kernel_us")
    known = ("compute", "cpu", "dataloader", "preprocess", "postprocess")
    return profile["bound"] in known and [] == [each for each in gpu if profile[each] is not None]


@pytest.mark.seed("S4.4", "S4.6", "S4.10")
def test_a_training_is_captured_and_every_verb_reads_both_of_its_files(place: Place) -> None:
    """A resnet18 on a CPU: phases by their names, and a bound that speaks of the CPU alone."""
    said = place.farm("profile", "run", "synthetic-64", "--weights", "resnet18", *SMALL)

    folder = "runs/profile/prof"
    assert [f"{folder}/profile.json", f"{folder}/profile_trace.json"] == files(place)
    profile = read(place, f"{folder}/profile.json")
    assert speaks_of_a_cpu(profile)
    assert "training" == profile["mode"]
    assert list(PHASES) == [each["phase"] for each in profile["phases"]][:5]
    assert all(each["wall_ms_per_step"] > 0 for each in profile["phases"][:5])
    assert profile["ops_by_phase"]["backward"]
    assert (False, "fp32") == (profile["config"]["amp"], profile["config"]["precision"])
    assert "--amp is not applied" in said.err
    for verb in ("summary", "get", "phases", "kernels", "ops"):
        place.told("profile", verb, f"{folder}/profile.json", "--json")
    place.told("profile", "summary", f"{folder}/profile_trace.json", "--json")
    gone = ("profile", "what-if", f"{folder}/profile.json", "--remove-launches", "1")
    assert "without kernels" in place.told(*gone, code=2).err


@pytest.mark.seed("S4.99", "S4.49", "S4.51")
def test_the_example_of_the_page_runs(place: Place) -> None:
    """Infer with 5 and 20, read it; a second project at batch 4, set beside the first.

    It is the detector of the house, all of it, and n is the number of runs that was asked for.
    """
    infer = ("profile", "infer", *CPU, "--imgsz", "64", "--warmup", "5", "--runs", "20")
    place.farm(*infer, "--project", "one")
    place.farm(*infer, "--project", "two", "--batch", "4")

    profile = read(place, "one/infer/profile.json")
    latency = profile["latency"]
    assert speaks_of_a_cpu(profile)
    assert ("inference", 20) == (profile["mode"], latency["n"])
    assert 0 < latency["p50_ms"] <= latency["p90_ms"] <= latency["p99_ms"]
    assert profile["img_per_s"] > 0
    assert ["preprocess", "forward", "postprocess"] == list(profile["stages_ms"])
    assert all(each > 0 for each in profile["stages_ms"].values())
    text = place.told("profile", "summary", "one/infer/profile.json").out
    assert "latency      p50" in text
    assert "stages       preprocess" in text
    sides = ("profile", "compare", "one/infer/profile.json", "two/infer/profile.json")
    found = json.loads(place.told(*sides, "--json").out)
    assert found["verdict"] in ("inconclusive", "incomparable")  # a busy machine makes one invalid
    assert [("batch", 1, 4)] == [tuple(each.values()) for each in found["differs"]]
    assert "single run" in place.told(*sides).out


@pytest.mark.long  # what it says is said by quicker tests too, piece by piece
@pytest.mark.seed("S4.27", "S4.21", "S4.54")
def test_trials_are_processes_of_their_own_and_their_means_are_one_document(place: Place) -> None:
    """A language model without any image: three phases less, and options without a use named."""
    words = ("profile", "infer", "--weights", "gpt_nano", *CPU, "--runs", "20", "--repeat", "2")
    said = place.farm(*words, "--conf", "0.5")

    names = [
        f"infer_{at}/{each}" for at in (0, 1) for each in ("profile.json", "profile_trace.json")
    ]
    assert [f"runs/profile/{each}" for each in (*names, "infer_repeat.json")] == files(place)
    trials = [read(place, f"runs/profile/infer_{at}/profile.json") for at in (0, 1)]
    whole = read(place, "runs/profile/infer_repeat.json")
    mean = sum(each["img_per_s"] for each in trials) / 2
    assert pytest.approx(mean) == whole["img_per_s"]
    assert (2, whole["img_per_s"]) == (whole["img_per_s_n"], whole["metrics"]["img_per_s"])
    assert ["size", "conf", "iou", "max_det", "imgsz"] == whole["config"]["unused"]
    assert "no use for --conf here" in said.err
    assert speaks_of_a_cpu(whole)


@pytest.mark.long  # what it says is said by quicker tests too, piece by piece
@pytest.mark.seed("S4.26", "S4.8")
def test_what_cannot_be_captured_leaves_no_file(place: Place) -> None:
    """Data that are too short, 3; code that breaks, 1, in its words; what makes no sense, 2."""
    place.write("mine.py", CODE)

    short = place.farm(*("profile", "run", "synthetic-8", *CPU, "--batch", "4"), code=3)
    broken = place.farm(
        *(
            "profile",
            "run",
            "mine.py:batches",
            "--weights",
            "mine.py:build",
            *SMALL,
            "--steps",
            "9",
        ),
        code=1,
    )
    place.farm("profile", "infer", "no.png", *CPU, code=2)

    assert "2 iterations at batch 4, and the window needs 25" in short.err
    assert "at least 100" in short.err
    assert "OSError: the disk is gone" in broken.err
    assert ["mine.py"] == files(place)


@pytest.mark.redis
def test_a_sweep_trains_and_traces_and_its_profiles_are_read_by_their_ids(place: Place) -> None:
    """`mode: train` and `measure.trace` are the same captures, in the store."""
    place.write(
        "sweep.yaml",
        "matrix: {model: mlp, mode: train, device: cpu}\n"
        "measure: {effort: quick, repeats: 1, trace: true, layers: false, flops: false}\n",
    )
    place.farm("run", "sweep.yaml", "--no-report")

    (profile,) = place.profiles()
    assert ("train", 10) == (profile["job"]["workload"]["mode"], profile["trace"]["iterations"])
    assert {"trace", "captured"} <= profile["artifacts"].keys()
    listed = json.loads(place.told("profiles", "list", "--json").out.splitlines()[0])
    phases = json.loads(place.told("profile", "phases", listed["profile_id"], "--json").out)
    assert ["forward", "backward", "optimizer"] == [each["phase"] for each in phases["rows"]][:3]
    summary = place.told("profile", "summary", listed["job_id"]).out
    assert "plain steps" in summary
