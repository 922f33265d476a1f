import hashlib
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import workers
from workers.models.seeded import seeded

NAMES = ("mlp", "cnn", "resnet18", "vit_tiny", "lstm", "gpt_nano", "detector")


def weights(name, **options):
    """A digest of every number that a model of the zoo holds."""
    model = import_module(f"workers.models.{name}").build(**options)
    found = hashlib.sha256()
    for key, each in model.state_dict().items():
        found.update(key.encode() + each.numpy().tobytes())
    return found.hexdigest()


def test_the_same_seed_draws_the_same_numbers():
    """Inside the block, whatever was drawn before."""
    drawn = []
    for before in (1, 2):
        torch.manual_seed(before)
        with seeded(5):
            drawn.append(torch.rand(8).tolist())

    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", NAMES)
def test_building_leaves_the_callers_random_numbers_alone(name):
    """The state of the global generator is bit for bit what it was."""
    before = torch.get_rng_state()

    weights(name)

    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_weights(name):
    """The seed is an argument, and it counts."""
    assert weights(name) != weights(name, seed=1)


def test_weights_are_equal_in_every_process():
    """A fresh interpreter that has drawn numbers before builds the same models."""
    lines = (
        "import sys, hashlib, torch\nfrom importlib import import_module\ntorch.rand(3)\n"
        "for name in sys.argv[1:]:\n"
        "    model = import_module('workers.models.' + name).build()\n"
        "    found = hashlib.sha256()\n"
        "    for key, each in model.state_dict().items():\n"
        "        found.update(key.encode() + each.numpy().tobytes())\n"
        "    print(found.hexdigest())\n"
    )
    root = str(Path(workers.__file__).parents[1])

    done = subprocess.run(
        [sys.executable, "-P", "-c", lines, *NAMES],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert [weights(name) for name in NAMES] == done.stdout.split()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_comes_in_eval_mode(name):
    """Dropout and batch statistics are off without asking."""
    assert not import_module(f"workers.models.{name}").build().training
