"""The least that moves is at most what does: slices, rows, and arguments that nobody used."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from workers.backends.torch import counting


class Leaf(nn.Module):
    def __init__(self, compute, *shape):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(shape or (1,)))
        self.compute = compute

    def forward(self, *given):
        return self.compute(self.w, *given)


def moved(compute, *given, w=()):
    model = Leaf(compute, *w)
    with torch.no_grad():
        return counting.count(model, lambda: model(*given)).moved_bytes


X = torch.zeros(4, 1000)
TOKENS = torch.tensor([1, 2])


@pytest.mark.parametrize(
    ("numbers", "compute", "given", "w"),
    [
        (4000 + 1000 + 4000, lambda w, x: (x + w[: x.shape[1]]).relu(), [X], (10**6,)),
        (4000 + 8000 + 4 * 8, lambda w, x: x @ w[3], [X], (10, 1000, 8)),
        (4 + 16 + 16, lambda w, i: F.embedding(i, w), [TOKENS], (10**5, 8)),
        (4 + 16 + 16, lambda w, i: w[i], [TOKENS], (10**5, 8)),
        (4 + 4, lambda _, x: x[:, -1].relu(), [X], ()),
        (4000 + 4000, lambda _, x, y: x.relu(), [X, torch.zeros(10**6)], ()),
        (4 * 6 + 4 * 5, lambda _, x: x[:, :5] + x[:, 1:6], [X], ()),
        (1000 + 4000, lambda _, x: x[:1].expand(4, 1000) * 2, [X], ()),
        (2000 + 2000 + 2000, lambda _, x: x[:, ::2] + x[:, 1::2], [X], ()),
        (1000, lambda w: torch.zeros_like(w), [], (1000,)),
        (4, lambda _, x: x[:, 0].mul_(2), [X.clone()], ()),
    ],
    ids=[
        *("slice", "row", "embedding", "index", "column", "unused", "windows", "expanded"),
        *("interleaved", "shape-only", "in-place"),
    ],
)
def test_no_more_counts_than_was_read_and_written(numbers, compute, given, w):
    """Numbers of four bytes; an index takes two of them."""
    assert 4 * numbers == moved(compute, *given, w=w)


def test_a_place_that_is_written_into_counts_as_nothing_but_what_is_put_there():
    """Nobody knows how many places of the whole are met."""
    into, at, value = torch.zeros(10**6), torch.tensor([5]), torch.ones(1)

    assert 8 + 4 == moved(lambda _, x, i, v: x.index_put_((i,), v), into, at, value)
