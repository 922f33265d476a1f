"""The job of a layer pass: arrays, batch and device, and what of them makes no sense."""

import numpy as np
import pytest

from farm.cli.profile import layer_job
from farm.errors import Bad, NoResult, Refused
from farm.schema import Tensor
from farm.sweep.single import one_device
from tests.farm import make
from tests.farm.cli.profile.layer_worker import Worker, saved, taken, words

MODEL = "import torch\n\n\ndef build():\n    return torch.nn.ReLU()\n"


@pytest.mark.seed("S0.2")
def test_arrays_go_to_inputs_by_name_else_by_order(here) -> None:
    named, ordered = Worker(), Worker()
    x = np.arange(128, dtype="float32").reshape(2, 64)

    taken(here, named, words(given=saved("x.npz", x=x)))
    taken(here, ordered, words(given=saved("y.npz", mine=x)))

    for worker in (named, ordered):
        assert ["x"] == list(worker.inputs)
        assert np.array_equal(x, worker.inputs["x"])
        assert 2 == worker.asked[0].job.workload.batch


@pytest.mark.parametrize("name", ["file", "allow_pickle"])
def test_an_input_of_a_model_may_have_any_name(tmp_path, name) -> None:
    """A parameter of `numpy.savez` is one too: arrays go to it by their order all the same."""
    saved(str(tmp_path / "mine.npz"), x=np.arange(3.0))

    file, found = layer_job._named(
        words(given="mine.npz"), tmp_path, {name: Tensor(shape=(3,))}, folder=tmp_path
    )

    assert [name] == list(found)
    with np.load(file) as data:
        assert [0, 1, 2] == data[name].tolist()


@pytest.mark.seed("S0.2")
@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"a": (1, 64), "b": (1, 64)}, "takes 1 array: x"),
        ({"x": (64,)}, "has the shape [batch, 64]"),
    ],
)
def test_a_wrong_number_or_shape_is_refused_before_anything_runs(here, arrays, said) -> None:
    worker = Worker()
    given = saved("x.npz", **{name: np.zeros(shape) for name, shape in arrays.items()})

    with pytest.raises(Refused) as caught:
        taken(here, worker, words(given=given))

    assert said in caught.value.what
    assert [] == worker.asked
    assert not (here / "profile_layers.csv").exists()


@pytest.mark.seed("S0.2")
@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x63 and 64x64)", Refused),
        ("RuntimeError: the weights are gone", Bad),
    ],
)
def test_arrays_that_the_model_itself_refuses_are_the_asker_s_mistake(here, message, kind) -> None:
    """Only the model knows which sizes it takes."""

    class Fails(Worker):
        def profile(self, asked):
            failure = make.fault("model_error", phase="first", message=message)
            return make.profile(asked.job, status="failed", failure=failure)

    with pytest.raises(kind):
        taken(here, Fails(), words(given=saved("x.npz", x=np.zeros((4, 63), "float32"))))


def test_a_model_s_own_fault_is_none_of_the_asker(here) -> None:
    class Fails(Worker):
        def profile(self, asked):
            failure = make.fault("model_error", phase="first", message="shape: no")
            return make.profile(asked.job, status="failed", failure=failure)

    with pytest.raises(Bad):
        taken(here, Fails())


def test_a_batch_cuts_or_repeats_the_arrays(here) -> None:
    worker = Worker()

    taken(here, worker, words(given=saved("x.npz", x=np.zeros((2, 64), "float32")), batch=8))

    workload = worker.asked[0].job.workload
    assert (8, ("batch", 64)) == (workload.batch, workload.inputs.spec["x"].shape)


def test_a_model_of_one_s_own_travels_and_needs_inputs(here) -> None:
    (here / "net.py").write_text(MODEL)
    worker = Worker()

    with pytest.raises(Refused, match="needs inputs"):
        taken(here, worker, words("net.py:build"))
    taken(here, worker, words("net.py:build", given=saved("x.npz", input=np.zeros((3, 2)))))

    assert ["net.py"] == worker.code
    assert ["input"] == list(worker.asked[0].job.workload.inputs.spec)


@pytest.mark.seed("S0.37")
@pytest.mark.parametrize(
    ("word", "has_gpu", "tries"),
    [
        (None, False, ["cpu"]),
        (None, True, ["cuda", "cpu"]),
        ("cpu", True, ["cpu"]),
        ("1", True, ["cuda:1"]),
        ("gpu", False, ["cuda"]),
        ("cpu:0", True, ["cpu:0"]),
        ("cuda:0", False, ["cuda:0"]),
    ],
)
def test_the_first_gpu_is_taken_else_the_cpu(here, word, has_gpu, tries) -> None:
    """A device that was asked for is never replaced by another."""
    worker = Worker(lacks=[each for each in tries if each.startswith("cuda")])

    if tries[-1].startswith("cpu"):
        taken(here, worker, words(device=word), has_gpu=has_gpu)
    else:
        with pytest.raises(NoResult, match="no device"):
            taken(here, worker, words(device=word), has_gpu=has_gpu)

    assert tries == [each.device for each in worker.asked]
    kinds = [each.job.selector.value for each in worker.asked]
    assert ["cpu" if each.startswith("cpu") else "gpu" for each in tries] == kinds


@pytest.mark.parametrize("word", ["cpu", "cpu:0", "gpu", "cuda", "cuda:2", "3"])
def test_a_device_word_means_what_it_means_for_a_callable(word) -> None:
    assert [one_device(word)] == layer_job.devices(word, has_gpu=True)


@pytest.mark.parametrize("word", ["", "bogus", "all", "cuda7", "cuda:01"])
def test_a_word_that_is_no_device_is_refused_before_anything_starts(word) -> None:
    with pytest.raises(Refused, match="unknown device") as caught:
        layer_job.devices(word, has_gpu=True)

    assert caught.value.why.startswith("known: cpu, ")
