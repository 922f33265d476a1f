"""The laws of axes: what a device word means, and how a job is called."""

import pytest

from farm.errors import Refused
from farm.reading import Document, Place
from farm.schema import Selector
from farm.sweep import axes

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
