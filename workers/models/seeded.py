"""Weights that are the same in every process, without touching anybody's random numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a fresh CPU generator inside the block; the caller's continues afterwards.

    `torch.manual_seed` would also reseed every CUDA device, which a fork of the CPU state does not
    give back, so only the CPU generator is set: weights are drawn there and moved later.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
