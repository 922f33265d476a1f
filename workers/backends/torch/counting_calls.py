"""Every operator that a call runs, told to whoever listens, as the dispatcher sees it.

In inference mode composite operators such as `linear` reach the dispatcher whole; they are taken
apart here by the kernels that run anyway, so that both gradient modes show the same operators.
Inside one that is a single kernel, such as the fused encoder layer, nothing is seen.
"""

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch._ops import OpOverload

# What a subclass that keeps its own sizes asks about itself; it answers best without us.
_OWN_SIZES = frozenset(
    (
        *("dim", "is_contiguous", "is_non_overlapping_and_dense", "is_strides_like_format"),
        *("layout", "numel", "size", "storage_offset", "stride"),
        *("sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride"),
    )
)


class Listener(Protocol):
    """Who wants to know of operators; what it is given it must not keep, or memory stays taken."""

    def heard(
        self,
        operator: "OpOverload",
        args: Sequence[object],
        kwargs: Mapping[str, object],
        out: object,
    ) -> None:
        """Hear of one operator that has run."""

    def puzzled(self, name: str) -> None:
        """Hear of one that is no plain operator, such as a whole compiled region."""


def heard_by(*listeners: Listener) -> AbstractContextManager[object]:
    """Return a context in which every operator that ends is told to the listeners, in order."""
    made: AbstractContextManager[object] = _mode()(listeners)
    return made


@functools.cache
def _mode() -> Any:
    """Return the dispatch mode; torch is imported for it, and not before."""
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

    class Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
        supports_higher_order_operators = True

        def __init__(self, listeners: Sequence[Listener]) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.listeners = listeners

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> object:
            given = kwargs or {}
            if not isinstance(func, OpOverload):
                for each in self.listeners:
                    each.puzzled(str(func))
                return func(*args, **given)
            if types and func.overloadpacket.__name__ in _OWN_SIZES:
                return NotImplemented
            if _is_composite(func) and not _is_special(args):
                with self:
                    return func._op_dk(_composite(), *args, **given)
            out = func(*args, **given)
            for each in self.listeners:
                each.heard(func, args, given, out)
            return out

    return Calls


def _composite() -> Any:
    import torch

    return torch._C.DispatchKey.CompositeImplicitAutograd


@functools.cache
def _is_composite(operator: "OpOverload") -> bool:
    """Whether the kernel that runs is made of other operators.

    It must be torch's own kernel: some composite operators have a second form in Python, for
    tracing, which does other work; that of dropout copies its input outside training.
    """
    import torch

    schema = operator._schema
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, _composite()))


def _is_special(args: Sequence[object]) -> bool:
    """Whether a tensor has kernels of its own for composite operators: nested, or oneDNN's."""
    import torch

    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    return any(each.is_nested or each.is_mkldnn or each.is_quantized for each in tensors)
