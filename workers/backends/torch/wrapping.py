"""Every module's `forward`, replaced by one that notes when it begins and ends, and put back.

A call of a module looks `forward` up on the instance first, so a function put there is called in
its place, and taking it away leaves the module as it was. That costs a third of a microsecond per
module; hooks cost 2 µs or more, and switch off the fused path of transformer encoders.
"""

import copy
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Literal

from workers.backends import NotOffered
from workers.backends.torch.naming import printable

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
                name=printable(name) or _type(module),
                module=module,
                attribute="_compiled_call_impl" if by_call else "forward",
            )
        )
    return found


@contextmanager
def wrapped(
    found: Sequence[Site], push: Push, stamp: Stamp, stray: Callable[[], object] = int
) -> Iterator[None]:
    """Note the calls of these modules until the end, and leave every module as it was.

    A call pushes its index in `found`, then a stamp; its end pushes the complement of a stamp, a
    negative number. push and stamp stand in the hot path: bound functions, and nothing around.
    stray: called for a call in another thread than the one that has wrapped. A copy of a module,
    deep, shallow or pickled, has none of this and calls nothing of the original.
    """
    with ExitStack() as stack:
        for index, site in enumerate(found):
            forward = getattr(site.module, site.attribute)
            timed = _timed(forward, index, push, stamp, stray)
            stack.callback(_Replaced(site, timed).put_back)
        yield


class _Replaced:
    """What stands in the instance of a module while it is wrapped, and what stood there before.

    `copy` and `pickle` ask the instance for these two methods; without them a copy would take the
    function along, which calls the original.
    """

    def __init__(self, site: Site, timed: Forward) -> None:
        self._module = site.module
        self._held: dict[str, Any] = vars(site.module)  # past a module's own __setattr__
        self._ours: dict[str, object] = {
            site.attribute: timed,
            "__deepcopy__": self._deep_copy,
            "__getstate__": self._state,
        }
        self._before = {name: self._held[name] for name in self._ours if name in self._held}
        self._held.update(self._ours)

    def put_back(self) -> dict[str, object]:
        """Put back what stood there, but where the model itself has replaced ours meanwhile."""
        taken = {name: ours for name, ours in self._ours.items() if self._held.get(name) is ours}
        for name in taken:
            if name in self._before:
                self._held[name] = self._before[name]
            else:
                del self._held[name]
        return taken

    @contextmanager
    def _plain(self) -> Iterator[None]:
        taken = self.put_back()
        try:
            yield
        finally:
            self._held.update(taken)

    def _deep_copy(self, memo: dict[int, object]) -> object:
        with self._plain():
            return copy.deepcopy(self._module, memo)

    def _state(self) -> object:
        with self._plain():
            ask: Callable[[], object] = self._module.__getstate__
            state = ask()
            if isinstance(state, tuple):  # with slots
                return tuple(dict(each) if isinstance(each, dict) else each for each in state)
            return dict(state) if isinstance(state, dict) else state


def _timed(
    forward: Forward, index: int, push: Push, stamp: Stamp, stray: Callable[[], object]
) -> Forward:
    own = get_ident()

    # `wraps`, because models look at the signature of a forward; without its attributes, which
    # tell a compiler how to treat that function.
    @functools.wraps(forward, updated=())
    def timed(*args: object, **kwargs: object) -> object:
        if get_ident() != own:
            stray()
        push(index)
        push(stamp())
        try:
            return forward(*args, **kwargs)
        finally:
            push(~stamp())

    return timed


def _type(module: "nn.Module") -> str:
    """Return the class of a module; a script remembers the one that it was made from."""
    return printable(str(module.original_name if _is_scripted(module) else type(module).__name__))


def _is_scripted(module: "nn.Module") -> bool:
    import torch

    return isinstance(module, torch.jit.ScriptModule)


def _is_compiled(module: "nn.Module") -> bool:
    dynamo = sys.modules.get("torch._dynamo.eval_frame")  # importing it takes seconds
    if dynamo is not None and isinstance(module, dynamo.OptimizedModule):
        return True
    return vars(module).get("_compiled_call_impl") is not None
