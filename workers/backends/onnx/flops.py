"""FLOPs of an ONNX operator, by the shapes that it was seen to work on: 2 per multiply-accumulate.

Padding is counted, causal masks are not halved, and what is neither counted nor free by convention
is unknown. Integer products count like floating ones. Source: `measurement.md` §14; operators and
the order of their inputs as in the ONNX specification and in ONNX Runtime's own domain.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

Shapes = Sequence[tuple[int, ...]]

# Elementwise work, norms, softmax, pooling, resampling, indexing, copying.
_FREE: Final = """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization
    Bernoulli BiasAdd BiasGelu BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike
    Ceil Celu CenterCropPad Clip Col2Im Compress Concat ConcatFromSequence Constant ConstantOfShape
    Cos Cosh CumSum DepthToSpace DequantizeLinear Div Dropout DynamicQuantizeLinear Elu
    EmbedLayerNormalization Equal Erf Exp Expand EyeLike FastGelu Flatten Floor Gather
    GatherElements GatherND Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual
    GridSample GroupNorm GroupNormalization HardSigmoid HardSwish Hardmax Identity If
    InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Less LessOrEqual Log
    LogSoftmax Loop LpNormalization LpPool Max MaxPool MaxRoiPool MaxUnpool Mean
    MeanVarianceNormalization Min Mish Mod Mul Multinomial Neg NonMaxSuppression NonZero Not OneHot
    Optional OptionalGetElement OptionalHasElement Or PRelu Pad Pow QLinearAdd QLinearAveragePool
    QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid
    QLinearSoftmax QuantizeLinear QuickGelu RMSNormalization RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu
    ReorderInput ReorderOutput Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round Scan
    Scatter ScatterElements ScatterND Selu SequenceAt SequenceConstruct SequenceEmpty SequenceErase
    SequenceInsert SequenceLength SequenceMap Shape Shrink Sigmoid Sign SimplifiedLayerNormalization
    Sin Sinh Size SkipLayerNormalization SkipSimplifiedLayerNormalization Slice Softmax Softplus
    Softsign SpaceToDepth Split SplitToSequence Sqrt Squeeze Sub Sum Swish Tan Tanh TensorScatter
    ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze Upsample Where Xor
"""
FREE: Final = frozenset(_FREE.split())
ATTENTION: Final = ("Attention", "MultiHeadAttention")


def flops(op: str, inputs: Shapes, outputs: Shapes, equation: str = "") -> int | None:
    """Return the FLOPs of one call, 0 for a free operator, None for one that nobody knows.

    equation: of an Einsum.
    """
    if op in FREE:
        return 0
    try:
        if op == "Einsum":
            return _einsum(equation, inputs)
        formula = _FORMULAS.get(op)
        return None if formula is None else formula(inputs, outputs)
    except (IndexError, ZeroDivisionError):
        return None  # it was called with fewer tensors or axes than the operator has


def _convolution(inputs: Shapes, outputs: Shapes) -> int:
    """Each number of the output takes one product for each number of a filter."""
    return 2 * math.prod(outputs[0]) * math.prod(inputs[1][1:])


def _quantised_convolution(inputs: Shapes, outputs: Shapes) -> int:
    return 2 * math.prod(outputs[0]) * math.prod(inputs[3][1:])


def _transposed_convolution(inputs: Shapes, outputs: Shapes) -> int:
    """Each number of the input takes one product for each number of a filter."""
    return 2 * math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _gemm(inputs: Shapes, outputs: Shapes) -> int:
    """Of [M, N]; the first matrix is M × K or its transpose."""
    return 2 * math.prod(outputs[0]) * (math.prod(inputs[0]) // outputs[0][0])


def _matmul(inputs: Shapes, outputs: Shapes) -> int:
    return 2 * math.prod(outputs[0]) * inputs[0][-1]


def _fused_matmul(inputs: Shapes, outputs: Shapes) -> int:
    """As a matrix product; the first one may be transposed."""
    left = inputs[0]
    inner = left[-1] if len(left) < 2 else left[-1] * left[-2] // outputs[0][-2]
    return 2 * math.prod(outputs[0]) * inner


def _recurrent(inputs: Shapes, outputs: Shapes) -> int:
    """X is [steps, batch, width] or [batch, steps, width]; W and R hold every gate."""
    return 2 * inputs[0][0] * inputs[0][1] * (math.prod(inputs[1]) + math.prod(inputs[2]))


def _attention(inputs: Shapes, outputs: Shapes) -> int | None:
    """Queries with keys, then weights with values; [B, S, H·D] or [B, H, S, D] alike."""
    query, key = inputs[0], inputs[1]
    if len(query) not in (3, 4) or len(key) not in (3, 4):
        return None
    keys = key[-2]
    if len(outputs) > 1 and len(outputs[1]) == 4:  # with those of earlier calls
        keys = outputs[1][-2]
    return 2 * keys * (math.prod(query) + math.prod(outputs[0]))


def _einsum(equation: str, inputs: Shapes) -> int | None:
    """Return the products of two operands over every index; 0 where nothing is summed."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not left or "." in equation or len(terms) != len(inputs) or len(terms) > 2:
        return None
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, inputs, strict=True):
        if len(term) != len(shape):
            return None
        lengths |= {each: max(lengths.get(each, 1), n) for each, n in zip(term, shape, strict=True)}
    if not arrow:
        count = Counter(re.sub(r"\W", "", left))
        right = "".join(each for each in lengths if count[each] == 1)
    if len(terms) == 1 or not set(lengths) - set(right):
        return 0
    return 2 * math.prod(lengths.values())


_FORMULAS: Final[dict[str, Callable[[Shapes, Shapes], int | None]]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger", "DeformConv"), _convolution),
    **dict.fromkeys(("QLinearConv",), _quantised_convolution),
    **dict.fromkeys(("ConvTranspose",), _transposed_convolution),
    **dict.fromkeys(("Gemm", "FusedGemm", "QGemm"), _gemm),
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), _fused_matmul),
    **dict.fromkeys(("MatMul", "MatMulInteger", "MatMulIntegerToFloat", "QLinearMatMul"), _matmul),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulNBits"), _matmul),
    **dict.fromkeys(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"), _recurrent),
    **dict.fromkeys(ATTENTION, _attention),
}
