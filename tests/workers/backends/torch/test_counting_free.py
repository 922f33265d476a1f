import pytest
import torch

from workers.backends.torch.counting_formulas import flops
from workers.backends.torch.counting_free import is_free

aten = torch.ops.aten


@pytest.mark.parametrize(
    "operator",
    [
        *(
            aten.add.Tensor,
            aten.add.Scalar,
            aten.relu_.default,
            aten.gelu.default,
            aten.exp.default,
        ),
        *(aten.native_layer_norm.default, aten.native_batch_norm.default, aten._softmax.default),
        *(aten.max_pool2d_with_indices.default, aten.upsample_bilinear2d.default, aten.mean.dim),
        *(aten.embedding.default, aten.cat.default, aten.view.default, aten.clone.default),
        *(
            aten.empty.memory_format,
            aten.native_dropout.default,
            aten._thnn_fused_lstm_cell.default,
        ),
        *(aten.threshold_backward.default, aten._softmax_backward_data.default),
        aten._local_scalar_dense.default,
    ],
    ids=str,
)
def test_moving_drawing_and_elementwise_work_is_free(operator):
    """So are norms, softmax, pooling and lookups, by convention; and what derives them."""
    assert is_free(operator)


@pytest.mark.parametrize(
    "operator",
    [
        *(aten.mm.default, aten.convolution.default, aten.mkldnn_rnn_layer.default),
        *(aten._fft_r2c.default, aten._linalg_svd.default, aten._cdist_forward.default),
        *(
            aten.linalg_inv_ex.default,
            aten._sparse_sparse_matmul.default,
            aten.convolution_backward,
        ),
        *(aten.quantized_lstm.input, torch.ops.quantized.linear_dynamic.default),
    ],
    ids=str,
)
def test_what_costs_something_is_never_free(operator):
    """Known or not: what is free is named, and everything else lowers the coverage."""
    overload = operator if hasattr(operator, "overloadpacket") else operator.default

    assert not is_free(overload)


def test_no_operator_of_torch_has_a_formula_and_is_free():
    """It would be counted all the same, so one of the two would be a mistake."""
    from torch.utils.flop_counter import flop_registry

    packets = [each for each in flop_registry if hasattr(each, "overloads")]
    free = [each for each in packets if is_free(getattr(each, each.overloads()[0]))]

    assert [] == free


def test_an_operator_of_somebody_else_is_neither_free_nor_counted():
    """Its name says nothing about what it does."""
    library = torch.library.Library("farm_test", "DEF")
    library.define("relu(Tensor x) -> Tensor")
    operator = torch.ops.farm_test.relu.default
    x = torch.ones(2)

    assert not is_free(operator)
    assert flops(operator, (x,), {}, x) is None
