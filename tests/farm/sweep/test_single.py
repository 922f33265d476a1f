"""The laws of one function as a job: every mistake that shows without running it is found here."""

import hashlib

import numpy as np
import pytest

from farm.errors import NoResult, Refused
from farm.schema import Protocol, Selector, Tensor
from farm.sweep.single import MOST_CALLS, one_device, single

MODEL = "predict.py:predict"
CODE = """
import json

open("it-ran", "w")  # a line that runs leaves a mark


def predict(rgb, *, scale=1):
    return rgb * scale


async def later(rgb): ...
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "predict.py").write_text(CODE)
    np.savez(tmp_path / "in.npz", rgb=np.zeros((4, 6, 3), "uint8"))
    return tmp_path


def asked(here, model=MODEL, npz="in.npz", **more):
    return single(model, npz, root=here, **more)


@pytest.mark.seed("S1.9")
def test_the_defaults_are_those_of_the_other_tool(here):
    """CPU, precision unspecified, unit request, ten untimed calls and a thousand timed ones."""
    found = asked(here)

    request = found.request
    assert ("cpu", "unspecified", "request", 10, 1000) == (
        request.device,
        request.precision,
        request.unit,
        request.warmup,
        request.repeats,
    )
    assert (
        Protocol(warmup=10, iterations=1000, gc="on", grad="function", compat="rpx")
        == found.job.protocol
    )
    assert (1, False, False) == (
        found.effort.repeats,
        found.effort.layers,
        found.effort.flops,
    )


@pytest.mark.seed("S1.11", "S1.27")
def test_each_array_is_an_input_by_its_name_with_shape_dtype_and_digest(here):
    np.savez(here / "two.npz", rgb=np.zeros((2, 2), "float16"), scale=np.array("half"))

    found = asked(here, npz="two.npz")

    assert {
        "rgb": Tensor(shape=(2, 2), dtype="float16"),
        "scale": Tensor(shape=(), dtype="str128"),
    } == found.job.workload.inputs.spec
    digest = hashlib.sha256((here / "two.npz").read_bytes()).hexdigest()
    assert digest == found.request.inputs_sha256 == found.job.workload.inputs.digest


@pytest.mark.seed("S1.16", "S1.17")
def test_a_declared_precision_is_no_order_to_cast(here):
    """The job says `unspecified`; the function decides on gradients as well."""
    found = asked(here, precision="fp16", unit="frame")

    workload = found.job.workload
    assert ("unspecified", "step", "frame") == (
        workload.precision,
        workload.model.kind,
        workload.item,
    )
    assert ("fp16", "function") == (found.request.precision, found.job.protocol.grad)


@pytest.mark.parametrize(
    ("word", "device", "selector"),
    [
        ("cpu", "cpu", "cpu"),
        ("cpu:0", "cpu:0", "cpu"),
        ("gpu", "cuda", "gpu"),
        ("cuda", "cuda", "gpu"),
        ("cuda:1", "cuda:1", "gpu"),
        ("0", "cuda:0", "gpu"),
        ("12", "cuda:12", "gpu"),
    ],
)
def test_a_device_is_the_cpu_or_a_cuda_index(here, word, device, selector):
    found = asked(here, device=word)

    assert device == found.request.device
    assert Selector(kind="class", value=selector) == found.job.selector


@pytest.mark.seed("S1.44")
@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"warmup": -1}, "--warmup -1 makes no sense"),
        ({"repeats": 0}, "--repeats 0 makes no sense"),
        ({"repeats": 10**9}, "--repeats 1000000000 makes no sense"),
        ({"precision": ""}, "--precision '' is no word"),
        ({"precision": "  "}, "--precision '  ' is no word"),
        ({"precision": "a\x1b[31m"}, "--precision 'a\\x1b[31m' is no word"),
        ({"unit": ""}, "--unit '' is no word"),
        ({"unit": "x" * 51}, f"--unit '{'x' * 51}' is no word"),
        ({"repeats": 10**400}, "--repeats a number too long to show makes no sense"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"device": ""}, "unknown device ''"),
        ({"visible": "\udcff"}, "CUDA_VISIBLE_DEVICES '\\udcff' names no device"),
        ({"npz": "gone.npz"}, "no file 'gone.npz'"),
    ],
)
def test_numbers_words_and_files_that_make_no_sense_are_refused(here, words, what):
    with pytest.raises(Refused) as caught:
        asked(here, **words)

    assert what == caught.value.what


@pytest.mark.parametrize(
    "word",
    [
        *("", " cpu", "CPU", "cpu:", "cpu:01", "cpu:x", "cpu0", "GPU", "gpu:0", "gpu0", "all"),
        *("cuda:", "cuda:01", "cuda:x", "cuda:-1", "cuda:1000", "cuda7", "01", "-1", "1.5", "٣"),
    ],
)
def test_a_word_that_is_no_device_is_refused_with_those_that_are(word):
    """One rule for every `--device` of `farm profile`."""
    with pytest.raises(Refused, match="unknown device") as caught:
        one_device(word)

    assert caught.value.why == (
        "known: cpu, cpu:0, gpu, cuda, cuda:1 or the number of a CUDA device"
    )


def test_as_many_calls_as_there_may_be_are_taken(here):
    """One more is a slip of the keyboard: ten million samples are a file of 200 MB already."""
    assert 10_000_000 == MOST_CALLS
    found = asked(here, warmup=MOST_CALLS, repeats=MOST_CALLS)
    assert (MOST_CALLS, MOST_CALLS) == (found.request.warmup, found.request.repeats)

    for name in ("warmup", "repeats"):
        with pytest.raises(Refused, match=f"--{name} 10000001 makes no sense") as caught:
            asked(here, **{name: MOST_CALLS + 1})
        assert "it is at most 10,000,000" == caught.value.why


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ("predict", "--model 'predict' is not MODULE:FUNCTION"),
        ("mlp", "--model 'mlp' is not MODULE:FUNCTION"),
        ("zoo:mlp", "--model 'zoo:mlp' is not MODULE:FUNCTION"),
        ("", "--model '' is not MODULE:FUNCTION"),
        ("predict.py:", "model 'predict.py:' names no callable"),
        ("gone.py:f", "no file 'gone.py'"),
        ("predict.py:predct", "model 'predict.py:predct': no 'predct' in predict.py"),
        ("no_such_module:f", "no module 'no_such_module'"),
        ("a:b:c", "model 'a:b:c' is neither a module nor a file"),
        ("predict.py:later", "predict.py:later is a coroutine function"),
    ],
)
def test_a_malformed_function_is_one_message(here, model, what):
    with pytest.raises((Refused, NoResult)) as caught:
        asked(here, model=model)

    assert (2, what) == (caught.value.exit_code, caught.value.what)


@pytest.mark.seed("S1.12")
def test_an_array_that_is_not_accepted_is_found_before_any_line_runs(here):
    np.savez(here / "other.npz", rgb=np.zeros(1), size=np.zeros(1))

    with pytest.raises(Refused, match=r"takes no .size.: it accepts rgb, scale"):
        asked(here, npz="other.npz")
    np.savez(here / "less.npz", scale=np.zeros(1))
    with pytest.raises(Refused, match="requires 'rgb', and the NPZ has none"):
        asked(here, npz="less.npz")

    assert not (here / "it-ran").exists()


def test_a_module_beside_us_and_an_installed_one_are_looked_into_as_well(here):
    np.savez(here / "wrong.npz", image=np.zeros(1))
    (here / "pack").mkdir()
    (here / "pack/__init__.py").write_text("def f(x): ...\n")

    for model in ("predict:predict", "workers.models.placeholder:demo_depth", "pack:f"):
        with pytest.raises(Refused, match="takes no 'image'"):
            asked(here, model=model, npz="wrong.npz")


def test_what_the_source_does_not_settle_is_left_to_the_worker(here):
    (here / "open.py").write_text("from predict import *\nrun = predict\n")

    assert asked(here, model="open.py:run").job.workload.model.bundled


def test_the_origin_is_told_by_all_of_somebodys_own_files_or_by_the_installed_one(here):
    (here / "predict.py").write_text(f"import beside\n{CODE}")
    (here / "beside.py").write_text("")

    own = asked(here)
    installed = asked(here, model="workers.models.placeholder:demo_depth")

    assert {"predict.py", "beside.py"} == {each.name for each in own.sources}
    assert ["placeholder.py"] == [each.name for each in installed.sources]


def test_a_slow_function_has_all_the_time_it_needs(here):
    """A thousand calls of five seconds outlast the ten minutes of a job."""
    assert asked(here).effort.timeout_s >= 86_400
