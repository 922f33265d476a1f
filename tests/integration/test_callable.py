"""`farm profile callable` with real processes: what a person gets, and what is left behind."""

import json

import numpy as np
import pytest

from farm import interchange
from tests.integration.farm_here import Place

pytestmark = pytest.mark.timing

DEMO = "workers.models.placeholder:demo_depth"
CODE = """
import sys
import time

calls = []


def steady(rgb):
    calls.append(rgb)
    return rgb.astype("float32")


def bare(rgb):
    assert "torch" not in sys.modules, "torch is here"
    return rgb


def prepares(rgb):
    time.sleep(0.004)
    found = rgb.astype("float32")
    time.sleep(0.004)
    return found


def fails(rgb):
    calls.append(rgb)
    if len(calls) > 5:
        raise ValueError("no such frame")
    return rgb


def wrapped(**given):
    return takes(**given)


def takes(rgb):
    return rgb


def built(name):
    return eval(name)


late = built("lambda image: image")
"""


@pytest.fixture
def there(place: Place) -> Place:
    place.write("model.py", CODE)
    np.savez(place.folder / "frame.npz", rgb=np.zeros((8, 6, 3), "uint8"))
    return place


def words(model: str, output: str, *more: str) -> list[str]:
    asked = ["--model", model, "--inputs", "frame.npz", "--output", output, "--repeats", "30"]
    return ["profile", "callable", *asked, *more]


@pytest.mark.seed("S1.10", "S1.5")
def test_the_placeholder_is_profiled_without_gpu_download_or_torch(there):
    """The same line as for a real model."""
    said = there.farm(*words(DEMO, "out/depth.json", "--unit", "frame", "-t", "scene=none"))

    found = interchange.read(there.folder / "out/depth.json")
    assert (30, 30, 10, "frame", {"scene": "none"}) == (
        found.measured_calls,
        len(found.latency_samples_ms),
        found.warmup_calls,
        found.unit,
        found.tags,
    )
    assert (DEMO, {"rgb": [8, 6, 3]}) == (
        found.model_callable,
        {name: each.shape for name, each in found.inputs.items()},
    )
    assert found.memory.cpu_process_lifetime_peak_mb > 10
    assert found.card.stable.frameworks.python == found.system_card.python_version
    assert "latency p50" in said.out
    assert "next: farm profile callable" in said.err


@pytest.mark.seed("S1.10")
def test_a_function_of_numpy_arrays_is_measured_in_a_process_without_torch(there):
    """Its memory is its own, and its start is short."""
    there.farm(*words("model.py:bare", "out.json"))

    assert (there.folder / "out.json").exists()


@pytest.mark.seed("S1.14")
def test_what_a_function_does_before_and_after_is_timed_with_it(there):
    """4 ms of preparation, and 4 ms of what follows: no call is shorter."""
    there.farm(*words("model.py:prepares", "out.json"))

    found = interchange.read(there.folder / "out.json")
    assert min(found.latency_samples_ms) >= 8.0
    assert found.latency.p50_ms >= 8.0


@pytest.mark.seed("S1.13", "S1.26")
def test_without_warm_up_the_first_call_is_a_sample_and_flagged(there):
    said = there.farm(*words("model.py:steady", "out.json", "--warmup", "0", "--json"))

    told = json.loads(said.out)
    assert ("farm.callable/v1", 30, 0) == (
        told["schema"],
        len(told["latency_samples_ms"]),
        told["warmup_calls"],
    )
    assert "first" in told["flags"]
    assert told == json.loads((there.folder / "out.json").read_text())


@pytest.mark.seed("S1.50", "S1.43")
def test_a_function_that_raises_in_the_middle_leaves_no_file(there):
    """And says what and where; a former file stays, also with --force."""
    (there.folder / "out.json").write_text("former")

    said = there.farm(*words("model.py:fails", "out.json", "--force"), code=1)

    assert "former" == (there.folder / "out.json").read_text()
    assert "error: model_error in phase warmup\n  ValueError: no such frame\n" in said.err
    assert ["frame.npz", "model.py", "out.json"] == sorted(
        each.name for each in there.folder.iterdir() if not each.name.startswith(".")
    )


@pytest.mark.seed("S1.12")
def test_a_signature_that_the_source_hides_is_found_by_the_worker_and_still_a_bad_request(there):
    """Before any call."""
    said = there.farm(*words("model.py:late", "out.json"), code=2)

    assert "error: no step: no input is called 'image'" in said.err
    assert not (there.folder / "out.json").exists()


@pytest.mark.seed("S1.18")
@pytest.mark.skipif("__import__('torch').cuda.is_available()", reason="a GPU is here")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "0"])
def test_cuda_that_is_not_here_stops_it_without_a_file(there, device):
    """No fallback to the CPU."""
    said = there.farm(*words(DEMO, "out/depth.json", "--device", device), code=3)

    assert "cuda" in said.err.lower()
    assert not (there.folder / "out/depth.json").exists()


def test_a_roster_joins_what_was_measured(there):
    for name in ("a", "b"):
        there.farm(*words("model.py:steady", f"out/{name}.json"))
    there.write(
        "roster.yaml",
        "schema: farm.roster/v1\nname: two\nmodels:\n"
        '  - {task: t, model: a, identity: "model.py:steady", cost: none}\n'
        '  - {task: t, model: b, identity: "model.py:steady", cost: none}\n',
    )
    asked = ["aggregate", "--roster", "roster.yaml", "out", "-o", "t.csv", "--validation", "v.json"]
    asked.append("--allow-invalid")  # whoever else works on this machine is not what this is about

    said = there.farm(*asked)
    (there.folder / "out/b.json").unlink()
    gone = there.farm(*asked, code=1)

    assert "two: PASS" in said.out
    assert "✗ b: no profile of 'model.py:steady', and no file b.json" in gone.out
    verdict = json.loads((there.folder / "v.json").read_text())
    assert ("FAIL", 2, 1) == (
        verdict["status"],
        verdict["expected_models"],
        verdict["profiles_found"],
    )
    assert 2 == len((there.folder / "t.csv").read_text().splitlines())
