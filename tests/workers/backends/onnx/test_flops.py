"""The laws of counting an operator by its shapes: two for each multiply-accumulate, or unknown."""

import math

import pytest

from workers.backends.onnx.flops import ATTENTION, FREE, flops


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "wanted"),
    [
        # G3: a linear layer, and convolutions without and with padding
        ("Gemm", [(1, 128), (128, 64), (64,)], [(1, 64)], 16_384),
        ("Gemm", [(1, 128), (64, 128)], [(1, 64)], 16_384),
        ("Gemm", [(128, 5), (128, 64)], [(5, 64)], 5 * 16_384),  # the first one transposed
        ("MatMul", [(7, 128), (128, 64)], [(7, 64)], 7 * 16_384),
        ("Conv", [(1, 3, 32, 32), (16, 3, 3, 3)], [(1, 16, 30, 30)], 777_600),
        ("Conv", [(1, 3, 32, 32), (16, 3, 3, 3)], [(1, 16, 32, 32)], 884_736),
        ("FusedConv", [(1, 3, 224, 224), (64, 3, 7, 7)], [(1, 64, 109, 109)], 223_552_896),
        ("Conv", [(1, 3, 224, 224), (64, 3, 7, 7)], [(1, 64, 112, 112)], 236_027_904),
        # in groups: each filter sees its own channels alone
        ("Conv", [(2, 8, 9, 9), (8, 1, 3, 3)], [(2, 8, 9, 9)], 2 * 2 * 8 * 81 * 9),
        # transposed: every number of the input meets a filter
        ("ConvTranspose", [(1, 4, 5, 5), (4, 6, 3, 3)], [(1, 6, 11, 11)], 2 * 4 * 25 * 6 * 9),
        # on integers
        ("ConvInteger", [(1, 3, 32, 32), (16, 3, 3, 3)], [(1, 16, 32, 32)], 884_736),
        (
            "QLinearConv",
            [(1, 3, 32, 32), (), (), (16, 3, 3, 3), (), (), (), ()],
            [(1, 16, 32, 32)],
            884_736,
        ),
        ("MatMulInteger", [(1, 128), (128, 64)], [(1, 64)], 16_384),
        ("MatMulNBits", [(1, 128), (64, 4, 16), (256,)], [(1, 64)], 16_384),
        # products of batches, and of vectors
        ("MatMul", [(2, 4, 16, 32), (2, 4, 32, 16)], [(2, 4, 16, 16)], 2 * 8 * 16 * 16 * 32),
        ("MatMul", [(128,), (128,)], [()], 256),
        ("FusedMatMul", [(2, 32, 16), (2, 32, 8)], [(2, 16, 8)], 2 * 2 * 16 * 8 * 32),
        # recurrent: all gates, of what comes in and of the state
        (
            "LSTM",
            [(16, 2, 64), (1, 512, 64), (1, 512, 128)],
            [(16, 1, 2, 128)],
            2 * 16 * 2 * 512 * (64 + 128),
        ),
        (
            "GRU",
            [(5, 3, 7), (2, 33, 7), (2, 33, 11)],
            [(5, 2, 3, 11)],
            2 * 5 * 3 * 2 * 33 * (7 + 11),
        ),
        # attention: 4·B·H·S_q·S_k·D, in either layout
        ("Attention", [(2, 4, 16, 32)] * 3, [(2, 4, 16, 32)], 4 * 2 * 4 * 16 * 16 * 32),
        (
            "MultiHeadAttention",
            [(2, 16, 128), (2, 20, 128), (2, 20, 128)],
            [(2, 16, 128)],
            4 * 2 * 4 * 16 * 20 * 32,
        ),
        (
            "Attention",
            [(1, 4, 1, 32), (1, 4, 1, 32), (1, 4, 1, 32)],
            [(1, 4, 1, 32), (1, 4, 9, 32), (1, 4, 9, 32)],  # eight keys came before
            4 * 4 * 9 * 32,
        ),
    ],
)
def test_products_are_counted_twice_each(op, inputs, outputs, wanted):
    assert wanted == flops(op, inputs, outputs)


@pytest.mark.parametrize(
    ("equation", "inputs", "wanted"),
    [
        ("ij,jk->ik", [(2, 3), (3, 5)], 2 * 2 * 3 * 5),
        ("ij,jk", [(2, 3), (3, 5)], 2 * 2 * 3 * 5),
        ("bhqd, bhkd -> bhqk", [(2, 4, 16, 32), (2, 4, 20, 32)], 2 * 2 * 4 * 16 * 20 * 32),
        ("i,i->i", [(7,), (7,)], 0),
        ("ij->ji", [(2, 3)], 0),
        ("ij->", [(2, 3)], 0),
        ("...ij,jk->...ik", [(2, 3), (3, 5)], None),
        ("ij,jk,kl->il", [(2, 3), (3, 5), (5, 7)], None),
        ("", [(2, 3), (3, 5)], None),
        ("ijk,jk->i", [(2, 3), (3, 5)], None),
    ],
)
def test_an_einsum_is_counted_by_its_equation(equation, inputs, wanted):
    """Over every index where something is summed; what is not simple is unknown."""
    assert wanted == flops("Einsum", inputs, [()], equation=equation)


@pytest.mark.parametrize("op", ["Relu", "Softmax", "LayerNormalization", "MaxPool", "Gather", "If"])
def test_what_is_free_by_convention_counts_nothing(op):
    assert 0 == flops(op, [(2, 3)], [(2, 3)])


@pytest.mark.parametrize(
    ("op", "inputs", "outputs"),
    [
        ("Frobnicate", [(2, 3)], [(2, 3)]),
        ("Conv", [(1, 3, 32, 32)], [(1, 16, 32, 32)]),
        ("MatMul", [()], [()]),
        ("Gemm", [(0, 3), (3, 5)], [(0, 5)]),
        ("MultiHeadAttention", [(2, 16, 4, 3, 32), (2, 16, 128)], [(2, 16, 128)]),
        ("LSTM", [(16, 2, 64)], [(16, 1, 2, 128)]),
    ],
)
def test_what_cannot_be_counted_is_unknown(op, inputs, outputs):
    """Another operator, or one with fewer tensors than it has: never zero."""
    assert flops(op, inputs, outputs) is None


def test_no_operator_is_both_free_and_counted():
    counted = ("Conv", "Gemm", "MatMul", "LSTM", "Einsum", *ATTENTION)

    assert not [each for each in counted if each in FREE]


def test_a_count_grows_with_the_batch():
    one = flops("Conv", [(1, 3, 8, 8), (4, 3, 3, 3)], [(1, 4, 8, 8)])

    assert one is not None
    assert 8 * one == flops("Conv", [(8, 3, 8, 8), (4, 3, 3, 3)], [(8, 4, 8, 8)])
    assert one == 2 * math.prod((4, 8, 8)) * math.prod((3, 3, 3))
