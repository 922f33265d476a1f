"""A training step as stages: forward with its loss, backward, optimiser and gradient reset.

The learning rate is 0. An optimiser does the same work for it, and the model stays as it is: every
step is like the last one, and a random model cannot run away from its random data. The gradients
are reset within the step, as a training does it (`measurement.md` §2).
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from workers.backends import LoadFailed
from workers.backends.torch import outputs
from workers.backends.torch.stages import Stage

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_MOMENTUM = 0.9
_STAND_IN = (
    "it brings no loss, and its data none that fits: the mean square of its output stands in"
)


class Batch(NamedTuple):
    """What a model is called with, by order or by name, and what its output is held against."""

    args: tuple[Any, ...]
    named: Mapping[str, Any]
    target: Any = None


class _Learns(Protocol):
    """A model that knows its own loss."""

    def loss(self, raw: Any, targets: Any) -> "Tensor": ...


def sample(module: "nn.Module", inputs: Mapping[str, Any], *, batch: int) -> Batch:
    """Return what a step trains on where no data are: its inputs, and a target where one is needed.

    A model with a loss of its own gets one box per item: class, centre and size in 0..1.
    """
    import torch

    names = set(_parameters(module))
    by_name = set(inputs) <= names
    args, named = ((), dict(inputs)) if by_name else (tuple(inputs.values()), {})
    if not callable(getattr(module, "loss", None)):
        return Batch(args, named)
    device = next((each.device for each in module.parameters()), torch.device("cpu"))
    box = torch.tensor([[0.0, 0.5, 0.5, 0.5, 0.5]], device=device)
    return Batch(args, named, [box] * batch)


def learning(
    module: "nn.Module",
    given: Batch | None,
    *,
    autocast: str,
    device: str,
    stand_in: bool,
    notes: list[str],
) -> list[Stage]:
    """Return forward, backward and optimiser of this module, which is set to train.

    given: what every step runs on, None where a stage before hands over a batch. autocast: the
    dtype of the forward pass, "" for none; float16 gets its loss scaled. stand_in: whether a model
    without a loss may be trained on the mean square of its output, of which the notes learn. Raises
    LoadFailed if the module has nothing to train; its first step does where no loss fits.
    """
    import torch

    weights = [each for each in module.train().parameters() if each.requires_grad]
    if not weights:
        raise LoadFailed("unsupported", "the model has no parameter to train")
    optimizer = torch.optim.SGD(weights, lr=0.0, momentum=_MOMENTUM)
    loss_of = _loss(module, stand_in=stand_in, notes=notes)
    scaler = _scaler(device) if autocast == "float16" else None

    def forward(batch: Batch | None) -> "Tensor":
        one = given if batch is None else batch
        assert one is not None, "a batch is given once or by the stage before"
        with casting(autocast, device):
            return loss_of(module(*one.args, **one.named), one.target)

    def backward(loss: "Tensor") -> "Tensor":
        scaled = loss if scaler is None else scaler.scale(loss)
        torch.autograd.backward(scaled)
        return loss.detach()

    def optimise(loss: "Tensor") -> "Tensor":
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return [("forward", forward), ("backward", backward), ("optimizer", optimise)]


def casting(dtype: str, device: str) -> AbstractContextManager[object]:
    """Return the context in which a forward pass computes in this dtype; "" changes nothing."""
    import torch

    if not dtype:
        return nullcontext()
    return torch.autocast(device.partition(":")[0], dtype=getattr(torch, dtype))


def _parameters(module: "nn.Module") -> list[str]:
    try:
        return list(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):  # a script has none
        return []


def _scaler(device: str) -> "torch.amp.GradScaler":
    import torch

    return torch.amp.GradScaler(device.partition(":")[0])


def _loss(
    module: "nn.Module", *, stand_in: bool, notes: list[str]
) -> Callable[[Any, Any], "Tensor"]:
    """Return the model's own loss, else one that fits what it returns and its target.

    stand_in: whether the mean square of the output may stand for a loss where nothing fits, which
    is a note then: whatever the loss says, its gradient goes through the model.
    """
    own = getattr(module, "loss", None)
    if callable(own):
        learns: _Learns = module  # type: ignore[assignment]
        return learns.loss

    def fitting(raw: Any, target: Any) -> "Tensor":
        import torch

        said = getattr(raw, "loss", None)
        if isinstance(said, torch.Tensor):  # a model that was given its labels
            return said
        leaves = [
            each
            for each in outputs.leaves(raw)
            if outputs.is_tensor(each) and each.is_floating_point()
        ]
        if not leaves:
            raise LoadFailed("unsupported", "the model returns no number to train it by")
        found = _of_target(leaves[0], target) if isinstance(target, torch.Tensor) else None
        if found is not None:
            return found
        if not stand_in:
            raise _unfit(leaves[0], target)
        if _STAND_IN not in notes:
            notes.append(_STAND_IN)
        return torch.stack([each.float().square().mean() for each in leaves]).sum()

    return fitting


def _of_target(output: "Tensor", target: "Tensor") -> "Tensor | None":
    """Return the loss of an output against a target, None where none fits the two.

    Whole numbers without the axis of the classes are classes, of an item or of each of its pixels;
    a target of the output's own shape is a value for each number.
    """
    from torch.nn import functional

    classes = (output.shape[0], *output.shape[2:]) if output.ndim > 1 else ()
    if not target.is_floating_point() and not target.is_complex() and target.shape == classes:
        return functional.cross_entropy(output.float(), target.long())
    if target.shape == output.shape and not target.is_complex():
        return functional.mse_loss(output.float(), target.float())
    return None


def _unfit(output: "Tensor", target: Any) -> LoadFailed:
    """Return the failure of a model without a loss whose data do not tell one either."""
    import torch

    shapes = f"it returns {list(output.shape)}"
    if isinstance(target, torch.Tensor):
        dtype = str(target.dtype).removeprefix("torch.")
        shapes += f", and the target is {dtype} {list(target.shape)}"
    else:
        shapes += ", and its data yield no target"
    return LoadFailed(
        "experimental",
        f"the model brings no `loss`, and none fits: {shapes}",
        "give it a `loss(output, target)`; or --allow-experimental trains it on the mean square of "
        "its output",
    )
