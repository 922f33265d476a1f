"""What an operator costs in floating-point operations: our formulas, and torch's own beside them.

A multiply-accumulate is two. Ours come first: torch has none for matrix times vector, recurrent
layers, the fused attention of a CPU or the fused encoder layer, and its formula for
`_slow_conv2d_forward` reads the wrong argument (torch 2.13).
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from torch._ops import OpOverload

Arguments = Sequence[object]
Formula = Callable[[Arguments, object], int]

_REAL_PER_COMPLEX: Final = 4  # a complex multiply-accumulate is four real ones


class Shapeless(Exception):
    """An argument has no regular shape to count by: a nested or a sparse tensor."""


def flops(
    operator: "OpOverload", args: Arguments, kwargs: Mapping[str, object], out: object
) -> int | None:
    """Return what one call of an operator costs, None where no formula fits it."""
    own = _OURS.get(f"{operator.namespace}::{operator.overloadpacket.__name__.removesuffix('_')}")
    try:
        found = _by_torch(operator, args, kwargs, out) if own is None else own(args, out)
    except Shapeless:
        return None
    if found is None or not _is_complex(out):
        return found
    return _REAL_PER_COMPLEX * found


def _by_torch(
    operator: "OpOverload", args: Arguments, kwargs: Mapping[str, object], out: object
) -> int | None:
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(operator.overloadpacket)
    if formula is None:
        return None
    try:
        return int(formula(*args, **kwargs, out_val=out))
    # shapes that its authors did not think of; then nobody knows what the call costs
    except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise Shapeless(str(error)) from error


def _is_complex(out: object) -> bool:
    import torch

    return isinstance(out, torch.Tensor) and out.is_complex()


def _shape(value: object) -> tuple[int, ...]:
    import torch

    if not isinstance(value, torch.Tensor):
        raise Shapeless(f"{type(value).__name__} has no shape")
    if value.is_nested or not (value.layout is torch.strided or value.is_mkldnn):
        raise Shapeless(f"a tensor of layout {value.layout} has no regular shape")
    return tuple(value.shape)


# ── products ─────────────────────────────────────────────────────────────────────────────────────


def _product(at: int) -> Formula:
    """Return the formula of (…, k) times anything: 2·k for every number of the output."""

    def formula(args: Arguments, out: object) -> int:
        return 2 * prod(_shape(out)) * _shape(args[at])[-1]

    return formula


def _summed_product(args: Arguments, out: object) -> int:
    """addbmm: a batch of products, added up."""
    batch, rows, inner = _shape(args[1])
    return 2 * batch * rows * inner * _shape(args[2])[-1]


def _outer(args: Arguments, out: object) -> int:
    return 2 * prod(_shape(out))


def _dot(args: Arguments, out: object) -> int:
    return 2 * prod(_shape(args[0]))


def _bilinear(args: Arguments, out: object) -> int:
    """Every output of every item weighs each pair of the two inputs: 2·n·out·in1·in2."""
    first, weight, second = (_shape(args[at]) for at in (0, 1, 2))
    return 2 * prod(first[:-1]) * prod(weight) if len(second) == len(first) else 0


# ── convolutions ─────────────────────────────────────────────────────────────────────────────────


def _convolution(args: Arguments, out: object) -> int:
    """2·n·out_h·out_w·(in/groups)·k_h·k_w·out; the weight has [out, in/groups, k_h, k_w]."""
    found, weight = _shape(out), _shape(args[1])
    return 2 * prod(found) // max(1, found[1]) * prod(weight)


def _transposed(args: Arguments, out: object) -> int:
    """Every input meets the whole kernel; the weight has [in, out/groups, k_h, k_w]."""
    given, weight = _shape(args[0]), _shape(args[1])
    return 2 * prod(given) // max(1, given[1]) * prod(weight)


def _any_convolution(args: Arguments, out: object) -> int:
    return _transposed(args, out) if args[6] else _convolution(args, out)


def _time_first_convolution(args: Arguments, out: object) -> int:
    """conv_tbc: time, batch, channels; the weight has [k, in, out]."""
    steps, batch, _ = _shape(out)
    return 2 * steps * batch * prod(_shape(args[1]))


# ── recurrent layers ─────────────────────────────────────────────────────────────────────────────


def _recurrent(first: int, last: int) -> Formula:
    """Return the formula of a recurrent layer: every matrix once for each step of each item."""

    def formula(args: Arguments, out: object) -> int:
        *steps, _ = _shape(args[0])
        given = args[first] if last == first else args[first : last + 1]
        if not isinstance(given, list | tuple):
            raise Shapeless("no list of weights")
        matrices = [shape for each in given if len(shape := _shape(each)) == 2]
        return 2 * prod(steps) * sum(map(prod, matrices))

    return formula


# ── attention ────────────────────────────────────────────────────────────────────────────────────


def attention(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    """Return the FLOPs of softmax(q·kᵀ)·v: 2·n·heads·q·k·(d + d_v); a causal mask is not halved.

    query [..., heads, q, d], key [..., any heads, k, d], value [..., any heads, k, d_v].
    """
    *items, queries, width = query
    return 2 * prod(items) * queries * key[-2] * (width + value[-1])


def _attention(args: Arguments, out: object) -> int:
    return attention(_shape(args[0]), _shape(args[1]), _shape(args[2]))


def _multi_head(args: Arguments, out: object) -> int:
    """_native_multi_head_attention: four projections of the width, and attention over it."""
    (batch, queries, width), (_, keys, _) = _shape(args[0]), _shape(args[1])
    projected = 2 * queries + 2 * keys
    return 2 * batch * width * (projected * width + 2 * queries * keys)


def _encoder_layer(args: Arguments, out: object) -> int:
    """_transformer_encoder_layer_fwd: attention of a sequence to itself, then two products."""
    batch, tokens, _ = _shape(args[0])
    wider = prod(_shape(args[14])) + prod(_shape(args[16]))
    return _multi_head((args[0], args[0]), out) + 2 * batch * tokens * wider


_SDPA: Final = (
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
    "_scaled_dot_product_attention_math_for_mps",
)
_CONVOLUTIONS: Final = (
    *("aten::_conv_depthwise2d", "aten::_nnpack_spatial_convolution", "aten::_slow_conv2d_forward"),
    *("aten::conv_depthwise3d", "aten::cudnn_convolution", "aten::cudnn_convolution_add_relu"),
    *("aten::cudnn_convolution_relu", "aten::miopen_convolution", "aten::mkldnn_convolution"),
    *("aten::miopen_convolution_add_relu", "aten::miopen_convolution_relu"),
    *("aten::miopen_depthwise_convolution", "aten::slow_conv3d_forward"),
    *("aten::slow_conv_dilated2d", "aten::slow_conv_dilated3d", "mkldnn::_convolution_pointwise"),
)
_TRANSPOSED: Final = (
    *("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose"),
    *("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d"),
    "mkldnn::_convolution_transpose_pointwise",
)
_PRODUCTS: Final = (
    *("aten::mm", "aten::bmm", "aten::mv", "aten::linear", "aten::mkldnn_linear"),
    *("aten::_weight_int8pack_mm", "aten::_weight_int4pack_mm", "aten::_mixed_dtypes_linear"),
    *("aten::_weight_int4pack_mm_for_cpu", "aten::_dyn_quant_matmul_4bit"),
    "mkldnn::_linear_pointwise",
)
_ADDED_PRODUCTS: Final = ("addmm", "baddbmm", "addmv", "_addmm_activation")
_OURS: Final[Mapping[str, Formula]] = {
    **dict.fromkeys(_PRODUCTS, _product(0)),
    **{f"aten::{name}": _product(1) for name in _ADDED_PRODUCTS},
    "aten::addbmm": _summed_product,
    "aten::addr": _outer,
    "aten::dot": _dot,
    "aten::vdot": _dot,
    "aten::_trilinear": _bilinear,
    "aten::convolution": _any_convolution,
    "aten::_convolution": _any_convolution,
    "aten::convolution_overrideable": _any_convolution,
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(_TRANSPOSED, _transposed),
    "aten::conv_tbc": _time_first_convolution,
    "aten::mkldnn_rnn_layer": _recurrent(1, 4),
    "aten::_cudnn_rnn": _recurrent(1, 1),
    "aten::miopen_rnn": _recurrent(1, 1),
    "aten::_lstm_mps": _recurrent(2, 2),
    **{f"aten::{name}": _attention for name in _SDPA},
    "aten::_native_multi_head_attention": _multi_head,
    "aten::_triton_multi_head_attention": _multi_head,
    "aten::_transformer_encoder_layer_fwd": _encoder_layer,
}
