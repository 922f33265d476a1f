"""Every module's `forward`, replaced by one that notes when it begins and ends, and put back.

A call of a module looks `forward` up on the instance first, so a function put there is called in
its place, and taking it away leaves the module as it was. That costs a third of a microsecond per
module; hooks cost 2 µs or more, and switch off the fused path of transformer encoders.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from workers.backends import NotOffered

if TYPE_CHECKING:
    from torch import nn

Push = Callable[[int], None]
Stamp = Callable[[], int]
Forward = Callable[..., object]


@dataclass(frozen=True)
class Site:
    """A module that is timed, under the first of its names; its calls go through the attribute."""

    name: str
    module: "nn.Module"
    attribute: Literal["forward", "_compiled_call_impl"] = "forward"

    @property
    def type(self) -> str:
        return _type(self.module)


def sites(target: "nn.Module") -> list[Site]:
    """Return the modules whose calls can be timed, the whole first, under the name of its class.

    What is compiled or scripted is one piece: a wrapper inside would make it compile anew, or
    would never be called. Raises NotOffered if that is the whole target, or if parts of it run in
    several threads, whose times would be mixed up.
    """
    from torch import nn

    if _is_compiled(target):
        raise NotOffered("not_supported", "a compiled model is one piece, its layers are fused")
    for each in target.modules():
        if isinstance(each, nn.DataParallel) and len(each.device_ids) > 1:
            raise NotOffered("not_supported", "its layers run in several threads at once")
    pieces = [each for each in target.modules() if _is_compiled(each) or _is_scripted(each)]
    inside = {id(inner) for each in pieces for inner in each.modules() if inner is not each}
    found = []
    for name, module in target.named_modules():
        if id(module) in inside:
            continue
        by_call = vars(module).get("_compiled_call_impl") is not None
        found.append(
            Site(
                name=name or _type(module),
                module=module,
                attribute="_compiled_call_impl" if by_call else "forward",
            )
        )
    return found


@contextmanager
def wrapped(found: Sequence[Site], push: Push, stamp: Stamp) -> Iterator[None]:
    """Note the calls of these modules until the end, and leave every module as it was.

    A call pushes its index in `found`, then a stamp; its end pushes the complement of a stamp, a
    negative number. push and stamp stand in the hot path: bound functions, and nothing around.
    """
    with ExitStack() as stack:
        for index, site in enumerate(found):
            _replace(stack, site, index, push, stamp)
        yield


def _replace(stack: ExitStack, site: Site, index: int, push: Push, stamp: Stamp) -> None:
    held: dict[str, Any] = vars(site.module)  # past a module's own __setattr__
    name = site.attribute
    before = held.get(name)
    timed = _timed(getattr(site.module, name), index, push, stamp)
    held[name] = timed

    def put_back() -> None:
        if held.get(name) is not timed:
            return  # the model itself has replaced it meanwhile
        if before is None:
            del held[name]
        else:
            held[name] = before

    stack.callback(put_back)


def _timed(forward: Forward, index: int, push: Push, stamp: Stamp) -> Forward:
    # `wraps`, because models look at the signature of a forward; without its attributes, which
    # tell a compiler how to treat that function.
    @functools.wraps(forward, updated=())
    def timed(*args: object, **kwargs: object) -> object:
        push(index)
        push(stamp())
        try:
            return forward(*args, **kwargs)
        finally:
            push(~stamp())

    return timed


def _type(module: "nn.Module") -> str:
    """Return the class of a module; a script remembers the one that it was made from."""
    return str(module.original_name if _is_scripted(module) else type(module).__name__)


def _is_scripted(module: "nn.Module") -> bool:
    import torch

    return isinstance(module, torch.jit.ScriptModule)


def _is_compiled(module: "nn.Module") -> bool:
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # importing it takes seconds
    if dynamo is not None and isinstance(module, dynamo.OptimizedModule):
        return True
    return vars(module).get("_compiled_call_impl") is not None
