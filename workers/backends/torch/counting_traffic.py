"""The bytes that the leaves of a module must at least read and write in one call.

Leaf by leaf: what its operators were given from outside, each element once, and what it made and
put out. An argument that nobody used, or of which nobody used more than a slice, counts as far as
it was used; so the sum is at most what really moves. Source: `measurement.md` §14.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from workers.backends.torch.counting_free import reads_nothing
from workers.backends.torch.counting_scopes import Ending, Scopes
from workers.backends.torch.weights import dense, packed_weights

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload

# They read of their first argument no more than they return.
_NEAREST: Final = [f"upsample_nearest{n}d" for n in (1, 2, 3)]
_CHOOSING: Final = frozenset(
    (
        *("index", "_unsafe_index", "embedding", "gather", "index_select", "take", "masked_select"),
        *("trace", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler", *_NEAREST),
        *(each.replace("upsample_nearest", "_upsample_nearest_exact") for each in _NEAREST),
    )
)
_BAGS: Final = ("_embedding_bag", "_embedding_bag_forward_only")  # a row for each index
# They write into some places of their first argument, and nobody knows into how many.
_INTO: Final = ("index_", "scatter_", "masked_", "put_", "_index_put_impl_")
_LARGEST_MASK: Final = 1 << 26  # 64 MiB; beyond it the largest of several overlapping views counts


@dataclass(frozen=True)
class _View:
    """Where a tensor lies in its storage, in elements; dimensions that repeat it are left out."""

    start: int
    lengths: tuple[tuple[int, int], ...]  # stride and size of each dimension, inner ones first
    itemsize: int

    @property
    def span(self) -> int:
        """How far it reaches from its start."""
        return 1 + sum(stride * (size - 1) for stride, size in self.lengths)

    @property
    def elements(self) -> int:
        """Its distinct elements, or fewer where its own windows overlap."""
        found = reach = 1
        for stride, size in self.lengths:
            if stride >= reach:
                found *= size
                reach = stride * (size - 1) + reach
        return found


@dataclass
class _Touched:
    """What the operators of a leaf were given, by its storage; rows: bytes of a choice from it."""

    views: dict[int, set[_View]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    is_puzzled: bool = False

    def take(self, tensor: "torch.Tensor", at_most: int | None = None) -> None:
        """Note a tensor; at_most: how many of its elements were read, None for all."""
        place = tensor.untyped_storage()._cdata
        if place in self.made or not tensor.numel():
            return
        view = _view(tensor)
        if at_most is None:
            self.views.setdefault(place, set()).add(view)
        else:
            read = min(at_most, view.elements) * view.itemsize
            self.rows[place] = max(read, self.rows.get(place, 0))

    def bytes(self) -> int:
        """Return the bytes of the distinct elements."""
        places = {**self.views, **self.rows}
        return sum(max(_union(self.views.get(at, ())), self.rows.get(at, 0)) for at in places)


class Traffic:
    """A listener that adds up, leaf by leaf, what must at least be read and written.

    A leaf in which no number was touched, such as an identity or a flattening, moves nothing.
    Buffers are left out. Of a table no more is read than a row for each index.
    """

    def __init__(self, scopes: Scopes) -> None:
        self.moved_bytes = 0
        self._scopes = scopes
        self._touched: dict[str, _Touched] = {}  # by the name of the module

    def heard(
        self,
        operator: "OpOverload",
        args: Sequence[object],
        kwargs: Mapping[str, object],
        out: object,
    ) -> None:
        if operator.is_view:
            return
        touched = self._touched.setdefault(self._scopes.here, _Touched())
        given, made = list(dense((args, kwargs))), list(dense(out))
        new = _places(made) - _places(given)
        name = operator.overloadpacket.__name__
        is_look = bool(made) and not new and not operator._schema.is_mutable  # `_unsafe_view`
        if not is_look and not reads_nothing(name):
            first = next(dense(args[:1]), None)
            for each in given:
                is_first = each is first
                touched.take(each, _read(name, args, made) if is_first else None)
        touched.made |= new

    def puzzled(self, name: str) -> None:
        self._touched.setdefault(self._scopes.here, _Touched()).is_puzzled = True

    def ended(self, leaf: Ending) -> None:
        touched = self._touched.pop(leaf.name, None)
        if touched is None:
            return
        buffers = _places(leaf.module.buffers())
        known = _places([*dense(leaf.given), *leaf.module.parameters()]) | buffers
        put_out = _Touched(views={at: touched.views[at] for at in touched.views.keys() - buffers})
        put_out.rows = {at: touched.rows[at] for at in touched.rows.keys() - buffers}
        for each in dense(leaf.output):
            at = each.untyped_storage()._cdata
            if at in touched.made or (touched.is_puzzled and at not in known):
                put_out.take(each)
        self.moved_bytes += put_out.bytes() + _packed_bytes(leaf.module)


def _read(name: str, args: Sequence[object], made: "Sequence[torch.Tensor]") -> int | None:
    """Return how many elements of its first argument an operator reads, None for all."""
    if name in _CHOOSING or name.endswith("_copy"):
        return sum(each.numel() for each in made[:1])
    if name in _BAGS:
        table, indices = list(dense(args[:2]))
        return int(indices.numel() * table.shape[-1])
    return 0 if name.endswith("_") and name.startswith(_INTO) else None


def _packed_bytes(module: "torch.nn.Module") -> int:
    """Return the bytes that a quantised layer keeps packed; of a table nobody knows the rows."""
    if type(module).__name__.startswith("Embedding"):
        return 0
    packed: dict[tuple[int, _View], int] = {}
    for each in dense(list(packed_weights(module))):
        view = _view(each)
        packed[each.untyped_storage()._cdata, view] = view.elements * view.itemsize
    return sum(packed.values())


def _view(tensor: "torch.Tensor") -> _View:
    lying = zip(tensor.stride(), tensor.shape, strict=True)
    dimensions = sorted((int(at), int(n)) for at, n in lying)
    lengths = tuple((stride, size) for stride, size in dimensions if stride and size > 1)
    return _View(int(tensor.storage_offset()), lengths, tensor.element_size())


def _union(views: Iterable[_View]) -> int:
    """Return the bytes of the elements that lie in any of the views of one storage."""
    found = list(views)
    sizes = {each.itemsize for each in found}
    if not found:
        return 0
    start, end = min(each.start for each in found), max(each.start + each.span for each in found)
    if len(found) == 1 or len(sizes) > 1 or end - start > _LARGEST_MASK:
        return max(each.elements * each.itemsize for each in found)
    mask = np.zeros(end - start, dtype=np.bool_)
    for each in found:
        strides, shape = [*zip(*each.lengths, strict=True)] or ((), ())
        np.lib.stride_tricks.as_strided(mask[each.start - start :], shape, strides)[...] = True
    return int(np.count_nonzero(mask)) * sizes.pop()


def _places(tensors: "Iterable[torch.Tensor]") -> set[int]:
    return {each.untyped_storage()._cdata for each in dense(list(tensors))}
