"""Precision: cast a module to what was declared, and see what it really computes in."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from workers.backends import LoadFailed

if TYPE_CHECKING:
    import torch

# Short words for the floating types, as a job declares them; other types keep their own name.
_WORDS = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
}
_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def word(dtype: object) -> str:
    """Return the short word of a torch or numpy dtype: float32 is fp32, int64 stays int64."""
    name = str(dtype).removeprefix("torch.")
    return _WORDS.get(name, name)


def words(dtypes: Iterable[object]) -> str:
    """Return the words of several dtypes as one, `none` if there is nothing to name."""
    return "+".join(sorted({word(each) for each in dtypes})) or "none"


def cast_module(module: "torch.nn.Module", precision: str) -> "torch.nn.Module":
    """Return the module with its floating parameters and buffers in the precision.

    `unspecified` leaves it alone. Raises LoadFailed if it holds numbers that cannot be cast.
    """
    if precision not in _TYPES:
        return module
    import torch

    for name, each in _state(module).items():
        if each.is_complex() or each.is_quantized:
            raise LoadFailed(
                "unsupported",
                f"{name!r} is {word(each.dtype)} and cannot be cast to {precision}",
                "a factory that accepts `precision` casts its module itself",
            )
    return module.to(getattr(torch, _TYPES[precision]))


def cast_inputs(inputs: "Mapping[str, torch.Tensor]", precision: str) -> "dict[str, torch.Tensor]":
    """Return the inputs with the floating ones in the precision, which a cast module expects."""
    import torch

    kind = getattr(torch, _TYPES[precision]) if precision in _TYPES else None
    return {
        name: each.to(kind) if kind is not None and each.is_floating_point() else each
        for name, each in inputs.items()
    }


def observed(module: "torch.nn.Module | None") -> dict[str, str]:
    """Return what torch says of itself, and of the module's parameters where there is one.

    matmul_fp32 below `highest` lets fp32 products run on fewer bits (TF32 and the like).
    """
    import torch

    seen = {}
    if module is not None:
        seen["parameters"] = words(parameter_types(module))
    on = torch.is_autocast_enabled("cpu")
    seen["autocast"] = word(torch.get_autocast_dtype("cpu")) if on else "off"
    seen["matmul_fp32"] = torch.get_float32_matmul_precision()
    return seen


def parameter_types(module: "torch.nn.Module") -> "set[torch.dtype]":
    """Return the dtypes of the floating parameters; empty for a graph that holds constants only."""
    return {each.dtype for each in module.parameters() if each.is_floating_point()}


def is_declared(precision: str, dtypes: Iterable[object]) -> bool:
    """Whether floating results agree with the declared precision; no floats, no verdict: True."""
    floating = {word(each) for each in dtypes} & set(_WORDS.values())
    return precision not in _TYPES or not floating or precision in floating


def _state(module: "torch.nn.Module") -> "dict[str, torch.Tensor]":
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}
