from pathlib import Path

import numpy as np
import pytest

from farm.cli.profile import cost_job
from farm.cli.profile.cost_job import Words
from farm.errors import Refused


def asking(model="mlp", **more) -> Words:
    fields = {
        "given": None,
        "shape": None,
        "batch": None,
        "precision": "fp32",
        "specs": (),
        "latency": False,
        "given_ms": None,
    }
    return Words(model=model, **(fields | more))


def wanted(words: Words, folder: Path):
    return cost_job.wanted(words, root=folder, folder=folder, level="quick")


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"given": "a.npz", "shape": "3"}, "--input and --input-shape exclude each other"),
        ({"latency": True, "given_ms": 3.0}, "--latency and --latency-ms exclude each other"),
        ({"given_ms": 0.0}, "--latency-ms 0 is no latency"),
        ({"given_ms": float("nan")}, "--latency-ms nan is no latency"),
        ({"given_ms": float("inf")}, "--latency-ms inf is no latency"),
        ({"given_ms": 9.9e-7}, "--latency-ms 9.9e-07 is no latency"),
        ({"given_ms": 1e-320}, "--latency-ms 9.99989e-321 is no latency"),
        ({"given_ms": 1.1e9}, "--latency-ms 1.1e+09 is no latency"),
    ],
)
def test_flags_that_make_no_sense_together_are_refused(more, what) -> None:
    with pytest.raises(Refused) as caught:
        cost_job.check(asking(**more))

    assert what == caught.value.what
    assert caught.value.why


def test_every_device_of_the_table_is_meant_unless_some_are_named() -> None:
    """By key or whole name, whatever the case, each once."""
    every = [each.name for each in cost_job.specs(())]

    assert every == [each.name for each in cost_job.specs(("L4", "all"))]
    assert {"L4", "H100-SXM"} < set(every)
    assert ["L4", "L40S"] == [each.name for each in cost_job.specs(("l4", "L40S", "L4"))]


def test_a_word_that_is_no_device_names_the_nearest() -> None:
    with pytest.raises(Refused, match="unknown device 'L40Z'") as caught:
        cost_job.specs(("L40Z",))

    assert "did you mean" in caught.value.hint


def test_a_shape_is_that_of_one_item(tmp_path: Path) -> None:
    """The input keeps its name and its dtype."""
    work = wanted(asking("resnet18", shape="3, 64,32", batch=4), tmp_path).job.workload

    assert {"x": ("batch", 3, 64, 32)} == {n: each.shape for n, each in work.inputs.spec.items()}
    assert (4, "fp32") == (work.batch, work.precision)


def test_a_shape_of_integers_keeps_their_range(tmp_path: Path) -> None:
    tensor = wanted(asking("gpt_nano", shape="32"), tmp_path).job.workload.inputs.spec["x"]

    assert (("batch", 32), "int64", 0, 1024) == (
        tensor.shape,
        tensor.dtype,
        tensor.low,
        tensor.high,
    )


def test_a_model_of_ones_own_takes_floats_of_any_shape(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def build():\n    return None\n")

    work = wanted(asking("mine.py:build", shape="8"), tmp_path).job.workload

    assert ("x", ("batch", 8), "float32") == next(
        (name, each.shape, each.dtype) for name, each in work.inputs.spec.items()
    )


@pytest.mark.parametrize("given_ms", [1e-6, 1e9])
def test_a_latency_of_a_nanosecond_or_eleven_days_is_one(given_ms: float) -> None:
    cost_job.check(asking(given_ms=given_ms))


@pytest.mark.parametrize(
    "shape", ["", "3x2", "3,,2", "0", "-1", "3,a", "2147483649", "9" * 11, "9" * 5000, "٣"]
)
def test_what_is_no_shape_is_refused_with_an_example(shape: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is no shape") as caught:
        wanted(asking(shape=shape), tmp_path)

    assert "3,224,224" in caught.value.hint


def test_an_npz_gives_its_arrays_and_its_batch(tmp_path: Path) -> None:
    np.savez(tmp_path / "some.npz", x=np.zeros((5, 64), dtype=np.float32))

    found = wanted(asking(given="some.npz"), tmp_path)

    assert 5 == found.job.workload.batch
    assert found.npz is not None


@pytest.mark.parametrize("latency", [False, True])
def test_what_is_asked_keeps_the_passes_apart(latency: bool, tmp_path: Path) -> None:
    """Counting and layers never share a child with the latency."""
    words = asking(latency=latency)

    asked = cost_job.asked(wanted(words, tmp_path), words, folder=tmp_path)

    assert (("latency", "memory") if latency else ()) == asked.passes
    assert ("layers", "weights", "flops") == asked.instruments
    assert 2_000 == asked.effort.layer_budget_ms
