import numpy as np
import pytest
import torch

from workers.models import roofs

SIZES = (8, 16, 24)


def pairs() -> dict[str, torch.Tensor]:
    random = np.random.default_rng(0)
    return {
        f"{name}{size}": torch.from_numpy(random.standard_normal((size, size), dtype=np.float32))
        for size in SIZES
        for name in "ab"
    }


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_products_take_turns_by_size_from_the_first_call_on(precision, dtype):
    """Each pair for so many iterations, in the precision that was asked for."""
    inputs = pairs()
    step = roofs.products(inputs=inputs, precision=precision, batch=2)

    for index in range(4 * len(SIZES)):
        size = SIZES[index // 2 % len(SIZES)]
        found = step(**inputs)

        a, b = (inputs[f"{name}{size}"].to(dtype) for name in "ab")
        assert (size, size) == tuple(found.shape)
        assert dtype == found.dtype
        torch.testing.assert_close(found, a @ b)


def test_a_product_writes_where_its_last_one_did():
    """A fresh page costs more than a small product; the parent wants the product."""
    step = roofs.products(inputs=pairs(), precision="fp32", batch=1)

    first = [step().data_ptr() for _ in SIZES]

    assert first == [step().data_ptr() for _ in SIZES]


def test_streams_take_turns_of_triad_sum_and_dot_product():
    """0 + 1.25 + 3 · 0.5, 1.25 · n, 1.25 · 0.5 · n."""
    step = roofs.streams(batch=64)

    for _ in range(2):
        assert [[2.75], 80.0, 40.0] == [step().tolist() for _ in range(3)]


def test_a_triad_fills_the_whole_array():
    step = roofs.streams(batch=1000)

    whole = step().as_strided((1000,), (1,))

    assert torch.equal(torch.full((1000,), 2.75), whole)
