"""What a change to a model would take or save: training it, keeping its weights as integers.

Everything here follows from counts by a formula, and nothing was measured: only doing it and
measuring again proves it.
"""

import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Final, Literal, NamedTuple

OPTIMISERS: Final[Mapping[str, int]] = {"sgd": 0, "adam": 2, "adamw": 2}
# A weight is kept in so many bits; scales and zero points come on top, and are few.
_BITS: Final[Mapping[str, int]] = {
    **{"fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16},
    **{"fp8": 8, "int8": 8, "fp4": 4, "int4": 4},
}
_FLOATS: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "unspecified")
_LEAST_SHARE: Final = 5.0
_OF: Final = {"time": "take at least {} % of the time", "FLOPs": "do at least {} % of the FLOPs"}
# By the whole name of a type, with what others put before it: `NoisyLinear`, `CausalConv1d`.
_MULTIPLYING: Final = re.compile(
    r".*(Linear|Bilinear|Attention|EncoderLayer|DecoderLayer|Conv(Transpose)?[123]d)"
    r"|(LSTM|GRU|RNN)(Cell)?|Conv(Transpose)?|Gemm|MatMul"
)
_INTEGERS: Final = re.compile(r"Quantized|Integer|^Q[A-Z]")

Bound = Literal["compute", "memory"]


class Part(NamedTuple):
    """A layer, its type, and its share of the time or of the FLOPs in percent."""

    layer: str
    type: str
    share_pct: float


def backward_flops(forward: float) -> float:
    """Return an estimate of the FLOPs of a backward pass: twice those of the forward pass.

    Every product needs one for the gradient of its input and one for that of its weight; the first
    layer needs no gradient of its input, and attention made of fused kernels computes some of the
    forward pass again. Source: S2.21.
    """
    return 2 * forward


def optimiser_bytes(gradient_bytes: int) -> dict[str, int]:
    """Return what each optimiser keeps beside gradients: SGD nothing, Adam and AdamW two moments.

    gradient_bytes: of all that is trained, in the dtype of the state. Source: S2.22.
    """
    return {name: factor * gradient_bytes for name, factor in OPTIMISERS.items()}


def modelled_bytes(weights: int, precision: str) -> int:
    """Return what so many weights take when they are packed in a precision.

    A model may keep its codes in wider numbers; then it holds more than this (S2.15). Raises
    KeyError for a word that is no precision.
    """
    return ceil(weights * _BITS[precision] / 8)


def multiplies(type: str) -> bool:
    """Whether layers of this type multiply by weights that are floating-point numbers."""
    return bool(_MULTIPLYING.fullmatch(type)) and not _INTEGERS.search(type)


def quantisation_rule(shares: Literal["time", "FLOPs"]) -> str:
    """Return in words which layers `candidates` takes, by what their shares are of. S2.11."""
    return (
        "candidates for quantisation are layers that multiply by floating-point weights (linear, "
        "convolution, recurrent, attention), where those of one type together "
        f"{_OF[shares].format(f'{_LEAST_SHARE:g}')}"
    )


def candidates(parts: Iterable[Part], *, precision: str) -> list[Part]:
    """Return the layers that `quantisation_rule` names, the largest share first. S2.11.

    Forty layers of a type are changed as easily as one, so they are judged together.
    """
    if precision not in _FLOATS:
        return []
    found = [each for each in parts if multiplies(each.type)]
    together = by_type(found)
    found = [each for each in found if together[each.type] >= _LEAST_SHARE]
    return sorted(found, key=lambda each: -each.share_pct)


def by_type(parts: Iterable[Part]) -> dict[str, float]:
    """Return the shares of all layers of a type together, the largest first."""
    found: dict[str, float] = {}
    for each in parts:
        found[each.type] = found.get(each.type, 0.0) + each.share_pct
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def bytes_saved(moved: float, weights: int, *, precision: str, to: str = "int8") -> float | None:
    """Return which share of the moved bytes goes away at most with weights in another precision.

    moved: bytes per batch, at least. weights: parameters, of which no more can have been read than
    bytes were moved. None where the precision has no fixed width, or where nothing is moved.
    """
    if precision not in _BITS or not moved:
        return None
    narrower = 1.0 - _BITS[to] / _BITS[precision]
    return max(0.0, narrower * min(1.0, modelled_bytes(weights, precision) / moved))
