import sys
from importlib.util import find_spec

import pytest
import torch

from workers.models import silero

needs_package = pytest.mark.skipif(
    find_spec("silero_vad") is None, reason="silero-vad is not installed"
)


@needs_package
def test_equal_calls_give_equal_outputs():
    """The state of one call does not reach the next, also after another batch."""
    model, x = silero.build(), torch.randn(2, 512)

    with torch.inference_mode():
        first, second = model(x), model(x)
        _, third = model(torch.randn(5, 512)), model(x)

    assert (2, 1) == tuple(first.shape)
    assert torch.equal(first, second)
    assert torch.equal(first, third)


@needs_package
def test_the_package_itself_is_not_imported():
    """Only its file is read; another test of this process may have imported it."""
    before = "silero_vad" in sys.modules

    silero.build()

    assert before == ("silero_vad" in sys.modules)


@needs_package
def test_it_tells_speech_by_its_trained_weights():
    """Silence is no speech: the chance is small, and that is no accident of random weights."""
    chance = silero.build()(torch.zeros(1, 512)).item()

    assert 0 < chance < 0.1


def test_another_precision_is_refused():
    """Its spectrum is float32 whatever the weights are."""
    for precision in ("bf16", "fp16"):
        with pytest.raises(NotImplementedError, match=f"fp32 only, not in {precision}"):
            silero.build(precision)


def test_a_missing_package_says_what_to_install():
    """An error at once, with the command and the name."""
    with pytest.raises(ModuleNotFoundError, match=r"pip install silero-vad==6\.2\.3") as caught:
        silero.build(find=lambda name: None)

    assert "silero_vad" == caught.value.name
