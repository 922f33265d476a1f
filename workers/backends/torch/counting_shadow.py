"""The shadow of a module: the same code on tensors without numbers, so that nothing is computed.

The module itself stays as it is, and its weights are not copied: a deep copy takes a meta tensor
wherever the module holds one, the same for the same, so that shared weights stay shared.
"""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workers.backends.torch.outputs import is_tensor, leaves

if TYPE_CHECKING:
    import torch


def shadow(module: "torch.nn.Module") -> "torch.nn.Module":
    """Return a copy of the module on meta tensors, also of those that it keeps unregistered.

    Raises whatever a part of it raises that cannot be copied; TypeError for TorchScript, whose
    constants would stay real.
    """
    import torch

    tensors: dict[int, object] = {}
    for each in module.modules():
        if isinstance(each, torch.jit.ScriptModule):
            raise TypeError("TorchScript has no shadow")
        for leaf in leaves(vars(each)):
            if is_tensor(leaf) and id(leaf) not in tensors:
                tensors[id(leaf)] = _without_numbers(leaf)
    return copy.deepcopy(module, tensors)


def shadows(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return the inputs with a meta tensor in place of each tensor."""
    return {
        name: _without_numbers(each) if is_tensor(each) else each for name, each in inputs.items()
    }


def _without_numbers(tensor: "torch.Tensor") -> "torch.Tensor":
    import torch

    empty = torch.empty_strided(
        tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta"
    ).requires_grad_(tensor.requires_grad)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(empty.detach(), requires_grad=tensor.requires_grad)
    return empty
