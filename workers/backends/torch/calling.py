"""The model contract: what a reference names, a factory or a step, and what it is called with.

A factory receives those of device, precision, batch and inputs that its signature accepts, and
returns a module or a step. A step is called with the inputs by name. Where the signature leaves it
open, what the first call returns decides; `kind` settles it.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeGuard

from workers.backends import LoadFailed

if TYPE_CHECKING:
    import torch

Kind = Literal["auto", "factory", "step"]

_OFFERED = ("device", "precision", "batch", "inputs")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_DECLARE = "say `kind: factory` or `kind: step`, or change the signature"


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a reference came to: something to call once per iteration, and how it came about.

    kind: `module` where the reference names a module itself. casts: a factory that was told the
    precision; its result is left as it is.
    """

    target: Callable[..., object]
    kind: Literal["factory", "step", "module"]
    casts: bool = False


def make(
    named: object, kind: Kind, *, offer: Mapping[str, object], inputs: Mapping[str, object]
) -> Made:
    """Return what is to be called once per iteration.

    offer: device, precision, batch and inputs, of which a factory takes what it accepts. Raises
    LoadFailed naming the parameter that nobody fills, or the input that nobody takes.
    """
    if is_module(named):
        return Made(target=named, kind="module")
    if not callable(named):
        raise LoadFailed("model_error", f"{named!r} cannot be called")
    parameters = _parameters(named)
    why_no_factory, why_no_step = _no_factory(parameters), _no_step(parameters, inputs)
    if kind == "factory" and why_no_factory:
        raise LoadFailed("model_error", f"no factory: {why_no_factory}", _DECLARE)
    if kind == "step" and why_no_step:
        raise LoadFailed("model_error", f"no step: {why_no_step}", _DECLARE)
    if why_no_factory and why_no_step:
        raise LoadFailed(
            "model_error", f"neither factory ({why_no_factory}) nor step ({why_no_step})", _DECLARE
        )
    if kind == "step" or (kind == "auto" and why_no_factory):
        return Made(target=_checked_step(named), kind="step")
    if kind == "auto" and not why_no_step and not isinstance(named, type):
        result = _checked_step(named)(**inputs)
        if not (is_module(result) or callable(result)):
            return Made(target=named, kind="step")
    taken = _taken(parameters, offer)
    return _product(named(**taken), casts="precision" in parameters, inputs=inputs)


def bind(target: Callable[..., object], inputs: Mapping[str, object]) -> Callable[[], object]:
    """Return a call without arguments; inputs go by name, into a module else by their order."""
    function = target.forward if is_module(target) else target
    parameters = _parameters(function)
    named = {name for name, each in parameters.items() if each.kind in _NAMED}
    if is_module(target) and not set(inputs) <= named:
        return partial(target, *inputs.values())
    return partial(target, **inputs)


def is_module(value: object) -> "TypeGuard[torch.nn.Module]":
    """Whether it is a module, without importing torch: where there is one, somebody has."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _parameters(function: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    # functions of C and TorchScript have none; they are taken to accept what they are given
    except (TypeError, ValueError):
        return {"inputs": inspect.Parameter("inputs", inspect.Parameter.VAR_KEYWORD)}


def _takes_any(parameters: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


def _required(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, each in parameters.items()
        if each.default is inspect.Parameter.empty and each.kind not in variable
    ]


def _no_factory(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return why it cannot be called as a factory, or ""."""
    foreign = [name for name in _required(parameters) if name not in _OFFERED]
    return f"it requires {foreign[0]!r}" if foreign else ""


def _no_step(parameters: Mapping[str, inspect.Parameter], inputs: Mapping[str, object]) -> str:
    """Return why it cannot be called with the inputs by name, or ""."""
    for name, each in parameters.items():
        if each.kind is inspect.Parameter.POSITIONAL_ONLY:
            return f"its parameter {name!r} cannot be given by name"
    if missing := [name for name in _required(parameters) if name not in inputs]:
        return f"no input is called {missing[0]!r}"
    accepted = [name for name, each in parameters.items() if each.kind in _NAMED]
    unknown = [name for name in inputs if name not in accepted]
    if unknown and not _takes_any(parameters):
        known = ", ".join(accepted) or "nothing"
        return f"it takes no input {unknown[0]!r}, but {known}"
    return ""


def _taken(
    parameters: Mapping[str, inspect.Parameter], offer: Mapping[str, object]
) -> dict[str, object]:
    if _takes_any(parameters):
        return dict(offer)
    return {name: value for name, value in offer.items() if name in parameters}


def _product(result: object, *, casts: bool, inputs: Mapping[str, object]) -> Made:
    if is_module(result):
        return Made(target=result, kind="factory", casts=casts)
    if not callable(result):
        raise LoadFailed(
            "model_error",
            f"the factory returned {type(result).__name__}, neither a module nor a function",
            _DECLARE,
        )
    if why_not := _no_step(_parameters(result), inputs):
        raise LoadFailed("model_error", f"the factory returned a function: {why_not}")
    return Made(target=_checked_step(result), kind="factory", casts=casts)


def _checked_step(function: Callable[..., object]) -> Callable[..., object]:
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise LoadFailed("model_error", "the step is a coroutine function: nothing would await it")
    if inspect.isgeneratorfunction(called):
        raise LoadFailed("model_error", "the step is a generator: calling it runs none of it")
    return function
