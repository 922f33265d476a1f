"""Which module is running: its qualified name while an operator runs, and word when one ends.

Global hooks, in place for the length of a call: hooks on a module itself would switch off the
fused encoder layer, and count another model than the one that runs.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch

Ended = Callable[["Ending"], None]
_FAILED: Final = object()


@dataclass(frozen=True)
class Ending:
    """A module that has run without running another one: its name, arguments and output."""

    name: str
    module: "torch.nn.Module"
    given: object
    output: object


@dataclass
class _Running:
    key: int
    is_leaf: bool = True


class Scopes:
    """The modules that are running: `here` is the innermost one's name while a call is followed.

    A module that is not registered counts as its parent, a shared one goes by its first name; the
    root is "". elsewhere: whether modules ran in another thread, where nobody hears operators.
    """

    def __init__(self, module: "torch.nn.Module") -> None:
        self._names = {id(each): name for name, each in module.named_modules()}
        self._running: list[_Running] = []
        self._ended: Ended = _nothing
        self._thread = 0
        self.elsewhere = False

    @property
    def here(self) -> str:
        return self._names[self._running[-1].key] if self._running else ""

    @contextmanager
    def followed(self, ended: Ended) -> Iterator[None]:
        """Follow every module call inside the block; ended hears of each that had no other in it.

        A fused layer is such a one, although it has parts.
        """
        from torch.nn.modules import module as registry

        self._running, self._ended, self._thread = [], ended, threading.get_ident()
        hooks = [
            registry.register_module_forward_pre_hook(self._begin),
            registry.register_module_forward_hook(self._end, with_kwargs=True, always_call=True),
        ]
        try:
            yield
        finally:
            for each in hooks:
                each.remove()
                # removing a hook leaves this mark of it behind (torch 2.13)
                registry._global_forward_hooks_with_kwargs.pop(each.id, None)

    def _begin(self, module: "torch.nn.Module", args: Any) -> None:
        if not self._is_ours(module):
            return
        if self._running:
            self._running[-1].is_leaf = False
        self._running.append(_Running(id(module)))

    def _end(
        self, module: "torch.nn.Module", args: Any, kwargs: Any, output: Any = _FAILED
    ) -> None:
        """Note an end; after an exception torch passes one argument fewer."""
        if not self._is_ours(module):
            return
        ended = self._running.pop()
        if ended.is_leaf and output is not _FAILED:
            self._ended(Ending(self._names[ended.key], module, (args, kwargs), output))

    def _is_ours(self, module: "torch.nn.Module") -> bool:
        here = threading.get_ident() == self._thread
        self.elsewhere = self.elsewhere or (id(module) in self._names and not here)
        return here and id(module) in self._names


def _nothing(ending: Ending) -> None:
    """Hear nothing."""
