"""The random source of the simulations: they hold for any seed, by margins of five deviations."""

import numpy as np
import pytest


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)
