"""What one call of a module costs: its FLOPs once, by module, and the bytes that its layers move.

The grand total is the sum over operators, so nested modules are counted once; a sum over modules
and their children would be 4.5 to 7.8 times too high. Source: `measurement.md` §14.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from workers.backends.torch.counting_calls import Listener, heard_by
from workers.backends.torch.counting_formulas import flops
from workers.backends.torch.counting_free import is_free
from workers.backends.torch.counting_scopes import Scopes
from workers.backends.torch.counting_threads import Company
from workers.backends.torch.counting_traffic import Traffic
from workers.backends.torch.outputs import is_tensor, leaves
from workers.backends.torch.weights import dense

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload

ELSEWHERE: Final = "operators of another thread"
_BATCHED: Final = ("bmm", "baddbmm")
_ENCODERS: Final = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")


@dataclass(frozen=True, kw_only=True)
class Count:
    """flops: of all operators. counted, unknown: calls with a formula, and without one by name.

    by_layer: FLOPs by the qualified name of the module that ran the operator itself, the root
    being "". moved_bytes: the least that the leaves read and wrote, None if operators ran and none
    of them in a leaf that could be watched. attention: what computed it, `none` if nothing did.
    is_elsewhere: whether other threads worked meanwhile, whose operators nobody hears. is_silent:
    whether it has put something out that was not given to it, although no operator ran.
    """

    flops: int
    counted: int
    unknown: Mapping[str, int]
    by_layer: Mapping[str, int]
    moved_bytes: int | None
    attention: str
    is_elsewhere: bool = False
    is_silent: bool = False

    @property
    def coverage(self) -> float:
        """The share of calls with a formula among those that may cost something; 1 without any."""
        outside = self.counted + sum(self.unknown.values())
        return self.counted / outside if outside else 1.0


def count(
    module: "torch.nn.Module",
    call: Callable[[], object],
    *listeners: Listener,
    inputs: object = None,
) -> Count:
    """Return what one call costs; other listeners hear of the same operators.

    module: whose qualified names are used, and which the call runs. inputs: those of the call.
    Compiled parts of it run uncompiled this once, since generated kernels are no operators that
    anybody could hear of.
    Whatever the call raises goes through, and no hook stays.
    """
    scopes = Scopes(module)
    tally, traffic, company = _Tally(scopes), Traffic(scopes), Company()
    following = scopes.followed(traffic.ended)
    with company.watched(), following, _uncompiled(), heard_by(tally, traffic, *listeners):
        output = call()
    is_elsewhere = scopes.elsewhere or company.has_worked
    if is_elsewhere:
        tally.unknown[ELSEWHERE] += 1
    known = [inputs, *module.parameters(), *module.buffers()]
    is_seen = traffic.moved_bytes or not (tally.counted or tally.unknown)
    return Count(
        flops=sum(tally.by_layer.values()),
        counted=tally.counted,
        unknown=dict(sorted(tally.unknown.items())),
        by_layer=dict(tally.by_layer),
        moved_bytes=traffic.moved_bytes if is_seen else None,
        attention="+".join(sorted(tally.attention)) or "none",
        is_elsewhere=is_elsewhere,
        is_silent=not tally.has_heard and _is_new(output, known),
    )


def _is_new(output: object, known: object) -> bool:
    """Whether anything in an output lies elsewhere than what was known before the call."""
    places = {each.untyped_storage()._cdata for each in dense(known)}
    arrays = {id(each) for each in leaves(known)}
    made = {id(each) for each in leaves(output) if not is_tensor(each)}
    return bool(made - arrays or {each.untyped_storage()._cdata for each in dense(output)} - places)


@contextmanager
def _uncompiled() -> Iterator[None]:
    if "torch._dynamo" not in sys.modules:  # then nothing is compiled, and importing it is slow
        yield
        return
    import torch

    with warnings.catch_warnings(), torch.compiler.set_stance("force_eager"):
        # a compiled part hears our hooks twice; it is not among the modules that we look at
        warnings.filterwarnings("ignore", "Using `torch.compile.module.` when there are global")
        yield


class _Tally:
    """Adds up formulas by module, and notes which operators have none."""

    def __init__(self, scopes: Scopes) -> None:
        self.counted = 0
        self.has_heard = False  # an operator that does more than look at a tensor otherwise
        self.unknown: Counter[str] = Counter()
        self.by_layer: Counter[str] = Counter()
        self.attention: set[str] = set()
        self._scopes = scopes
        self._softmax: str | None = None  # between two batched products: attention by hand
        self._after_product = False

    def heard(
        self,
        operator: "OpOverload",
        args: Sequence[object],
        kwargs: Mapping[str, object],
        out: object,
    ) -> None:
        self.has_heard = self.has_heard or not operator.is_view
        found = flops(operator, args, kwargs, out)
        name = operator.overloadpacket.__name__
        self._note(name, is_counted=found is not None)
        if found is not None:
            self.counted += 1
            self.by_layer[self._scopes.here] += found
        elif not is_free(operator):
            self.unknown[f"{operator.namespace}::{name}"] += 1

    def puzzled(self, name: str) -> None:
        self.has_heard = True
        self.unknown[name] += 1

    def _note(self, name: str, *, is_counted: bool) -> None:
        """Note attention: an operator for it, or a softmax between two batched products."""
        if name.startswith("_scaled_dot_product") or name in _ENCODERS:
            self.attention.add(name.removeprefix("_"))
        elif name in _BATCHED:
            if self._softmax is not None:
                self.attention.add(self._softmax)
            self._after_product, self._softmax = True, None
        elif "softmax" in name and self._after_product:
            # torch's own attention without a fused kernel uses a softmax that nobody else uses
            safe = name == "_safe_softmax"
            self._softmax = "scaled_dot_product_attention_math" if safe else "matrix_products"
        elif is_counted:
            self._after_product, self._softmax = False, None
