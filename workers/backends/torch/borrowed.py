"""A module that somebody else holds, called in their process and given back as it was.

For notebooks and programs of one's own: nothing is cast, pinned or kept. Gradients are off by
`no_grad` and not by inference mode, because a module that keeps a tensor of the call could not be
trained with it afterwards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farm.errors import Refused
from workers.backends.torch import cost, pools, weights
from workers.backends.torch.calling import bind, is_module
from workers.backends.torch.naming import printable
from workers.backends.torch.outputs import is_tensor, leaves
from workers.record import CostReading

if TYPE_CHECKING:
    import torch

_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Borrowed:
    """A module with its inputs in place: call it for one iteration.

    sync: waits for the device, None where a call returns finished work. batch: leading dimension.
    threads: pool sizes as they are.
    """

    module: "torch.nn.Module"
    call: Callable[[], object]
    sync: Callable[[], None] | None
    inputs: Mapping[str, object]
    batch: int
    threads: Mapping[str, int]

    def cost(self) -> CostReading:
        """Return what the module needs for one call."""
        return cost.read(self.module, self.call, self.inputs, batch=self.batch)


@contextmanager
def borrowed(model: object, given: object) -> Iterator[Borrowed]:
    """Call a module in evaluation mode and without gradients; afterwards it is as it was.

    given: a tensor or array, several in order, a mapping of them by name, or the shape of one,
    which is `drawn`. Raises Refused for anything else, and for an empty batch.
    """
    module = checked(model)
    inputs = _inputs(module, given)
    batch = batch_of(inputs)
    tensors = [each for each in leaves(inputs) if is_tensor(each)]
    with _evaluating(module):
        yield Borrowed(
            module=module,
            call=bind(module, inputs),
            sync=_sync([*module.parameters(), *tensors]),
            inputs=inputs,
            batch=batch,
            threads=pools.effective(torch_too=True),
        )


def checked(model: object) -> "torch.nn.Module":
    """Return the module, or raise Refused for what is none: nobody can look into a function.

    Refused as well is one with lazy layers, whose weights have no shape before its first call.
    """
    if is_module(model):
        if lazy := _lazy(model):
            raise Refused(
                f"the weights of {lazy!r} have no shape yet",
                why="it is lazy, and was not called",
                hint="call the model once first",
            )
        return model
    name = getattr(model, "__name__", type(model).__name__)
    raise Refused(f"{name!r} is no torch module", why="its parameters and layers are asked for")


def batch_of(given: object) -> int:
    """Return the leading dimension of the first tensor or array that has one (C15); 1 without any.

    Raises Refused for an empty batch: nothing can be told of an item of it.
    """
    shape = next((tuple(each.shape) for each in leaves(given) if each.ndim), (1,))
    if shape[0] < 1:
        raise Refused("the batch is empty", why=f"an input has the shape {shape}")
    return int(shape[0])


def drawn(module: "torch.nn.Module", shape: Sequence[int]) -> "torch.Tensor":
    """Return an input of that shape from a standard normal, in the dtype of the weights.

    It is where they are, and the same each time; the caller's random numbers stay what they were.
    """
    import torch

    first = next((each for each in module.parameters() if each.is_floating_point()), None)
    found = torch.randn(tuple(shape), generator=torch.Generator().manual_seed(_SEED))
    return found if first is None else found.to(first.device, first.dtype)


def types(model: object) -> dict[str, str]:
    """Return the type of every module by its qualified name; that of the whole by ""."""
    modules = checked(model).named_modules()
    return {printable(name): printable(type(each).__name__) for name, each in modules}


def holdings(model: object) -> weights.Holdings:
    """Return what a module holds."""
    return weights.holdings(checked(model))


def spread(model: object, percentiles: Sequence[float]) -> weights.Spread | None:
    """Return how the magnitudes of its weights lie; None without any."""
    return weights.spread(checked(model), percentiles)


@contextmanager
def _evaluating(module: "torch.nn.Module") -> Iterator[None]:
    """Keep a module in evaluation mode and without gradients; afterwards its modes are back."""
    import torch

    trained = [each for each in module.modules() if each.training]
    try:
        for each in trained:
            each.training = False
        with torch.no_grad():
            yield
    finally:
        for each in trained:
            each.training = True


def _lazy(module: "torch.nn.Module") -> str:
    """Return the name, or the class of the whole, of the first part that is lazy still, or ""."""
    from torch.nn.parameter import is_lazy

    for name, each in module.named_modules():
        held = [*each.parameters(recurse=False), *each.buffers(recurse=False)]
        if any(map(is_lazy, held)):
            return printable(name or type(each).__name__)
    return ""


def _inputs(module: "torch.nn.Module", given: object) -> dict[str, object]:
    if isinstance(given, Mapping):
        named = {str(name): each for name, each in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        is_shape = bool(given) and all(isinstance(each, int) and each > 0 for each in given)
        several = [drawn(module, given)] if is_shape else given
        named = {f"input_{at}": each for at, each in enumerate(several)}
    else:
        named = {"input_0": given}
    if next(leaves(named), None) is None:
        raise Refused(
            f"{given!r} is no input"[:200],
            why="a tensor, several, or the shape of one: (1, 3, 32, 32)",
        )
    return {name: _tensor(each) for name, each in named.items()}


def _tensor(value: object) -> object:
    import torch

    return torch.as_tensor(value) if isinstance(value, np.ndarray) else value


def _sync(tensors: "Sequence[torch.Tensor]") -> Callable[[], None] | None:
    import torch

    kinds = {each.device.type for each in tensors} - {"cpu", "meta"}
    waits = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}
    return next((waits[kind] for kind in sorted(kinds) if kind in waits), None)
