"""The laws of axes: what a device word means, and how a job is called."""

from dataclasses import fields
from typing import get_args

import pytest

from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Selector
from farm.sweep import axes
from workers.backends import BACKENDS, LoadFailed, fake
from workers.backends.onnx import session
from workers.backends.torch import load, usercode

PLACE = Place(Document(name="a.yaml", data={}, sha256=""), "matrix.device")


@pytest.mark.parametrize(
    ("word", "kind", "value"),
    [
        ("any", "any", ""),
        ("cpu", "class", "cpu"),
        ("gpu", "class", "gpu"),
        ("h100-sxm-80g_epyc-9654", "class", "h100-sxm-80g_epyc-9654"),
        ("node:gpu-03", "node", "gpu-03"),
        ("node:gpu-03/2", "device", "gpu-03/2"),
    ],
)
def test_a_device_word_says_who_may_take_the_job(word: str, kind: str, value: str) -> None:
    """Any slot, a class, a node, or one slot of a node."""
    assert word == axes.value("device", word, PLACE)
    found = axes.selector(word, environment="default")

    assert Selector(kind=kind, value=value) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "word", ["A100", "a b", "node:", "node:x/", "node:x/-1", "node:x/01", "x/0", "cpu:0", "x" * 65]
)
def test_a_device_word_without_meaning_is_refused(word: str) -> None:
    """A class and a node are lower-case names; a slot is a number."""
    with pytest.raises(Refused, match="unknown device"):
        axes.value("device", word, PLACE)


def test_a_job_is_known_by_its_labels() -> None:
    """Model, precision, batch and device in this order, then every other axis by its name."""
    labels = {"device": "cpu", "batch": "8", "model": "resnet18", "precision": "fp32"}

    assert "resnet18/fp32/b8/cpu" == axes.label_text(labels)
    assert "resnet18/fp32/b8/cpu/seq=128" == axes.label_text({"seq": "128", **labels})
    assert "m.py:build/b1" == axes.label_text({"model": "m.py:build", "batch": "1"})
    assert "" == axes.label_text({})


OPTIONS = Place(Document(name="a.yaml", data={}, sha256=""), "backend_options")


@pytest.mark.parametrize(
    ("backend", "given", "said"),
    [
        ("torch", {"nonsense": 1}, "backend 'torch' has no option 'nonsense': "),
        ("torch", {"arays": "numpy"}, "backend 'torch' has no option 'arays': "),
        ("torch", {"mode": "spin"}, "backend 'torch' has no option 'mode': "),
        ("onnx", {"arrays": "numpy"}, "backend 'onnx' has no option 'arrays': "),
        ("torch", {"arrays": "nunpy"}, "unknown value of arrays 'nunpy': "),
        ("torch", {"arrays": 3}, "expected a value of arrays, got the number 3: "),
        ("onnx", {"provider": True}, "expected text, got true: "),
        ("fake", {"duration_us": "1"}, "expected a whole number, got '1': "),
        ("fake", {"work": True}, "expected a whole number, got true: "),
        ("fake", {"fail_at": "frist"}, "unknown value of fail_at 'frist': "),
    ],
)
def test_an_option_that_its_backend_does_not_take_is_refused(backend, given, said) -> None:
    """When it is planned, and not in every child that was started for it."""
    with pytest.raises(Refused) as caught:
        axes.check_options(backend, given, OPTIONS)

    (key,) = given
    assert str(caught.value).startswith(f"a.yaml: {said}at backend_options.{key}")


def test_an_option_with_a_typo_is_answered_with_the_nearest() -> None:
    with pytest.raises(Refused) as caught:
        axes.check_options("fake", {"duration_ms": 1}, OPTIONS)

    assert "did you mean `duration_us`?" == caught.value.hint


@pytest.mark.parametrize("backend", ["torch", "onnx", "fake"])
def test_no_option_at_all_is_taken(backend) -> None:
    axes.check_options(backend, {}, OPTIONS)


def test_the_table_of_options_is_that_of_the_backends() -> None:
    """The control plane imports no worker, so what it knows is written down a second time."""
    given = {each.name: each for each in fields(fake.Options)}

    assert set(BACKENDS) == set(axes.OPTIONS)
    assert list(given) == list(axes.OPTIONS["fake"])
    for name, takes in axes.OPTIONS["fake"].items():
        assert given[name].type is (str if isinstance(takes, tuple) else takes)
    assert (fake._MODES, fake._PHASES) == (
        axes.OPTIONS["fake"]["mode"],
        axes.OPTIONS["fake"]["fail_at"],
    )
    assert tuple(axes.OPTIONS["torch"]) == load._OPTIONS
    assert {"auto", *get_args(usercode.Arrays)} == set(axes.OPTIONS["torch"]["arrays"])
    with pytest.raises(LoadFailed, match="has no option"):
        session.check_provider({"not": "there"})
    session.check_provider(dict.fromkeys(axes.OPTIONS["onnx"], session.PROVEN))


def test_options_are_checked_for_the_backend_of_each_job(ask) -> None:
    """A sweep over several backends says to each what it takes, or nothing."""
    with pytest.raises(Refused, match="backend 'torch' has no option 'mode'"):
        ask("matrix: {model: net, backend: [fake, torch]}\nbackend_options: {mode: sleep}")
