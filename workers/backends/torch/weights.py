"""What a module holds: parameters counted exactly, their bytes once, and how its weights lie."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from workers.backends.torch.outputs import is_tensor, leaves
from workers.backends.torch.precision import word

if TYPE_CHECKING:
    import torch

# Above this many weights the percentiles are those of every n-th: sorting would take longer than
# everything else that is asked about a model.
_EXACT: Final = 1 << 24
PERCENTILES: Final = (10, 25, 50, 75, 90)
_SMALL: Final = (0.001, 0.01, 0.1)


@dataclass(frozen=True, kw_only=True)
class Holdings:
    """Exact numbers: parameters, bytes of distinct storages, those by dtype.

    trainable_bytes: of the trainable ones, which is what their gradients take.
    """

    total: int
    trainable: int
    trainable_bytes: int
    unique_bytes: int
    buffers_bytes: int
    dtypes: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How the magnitudes of the weights lie: their percentiles, and the shares below a size.

    n: how many weights there are; used: how many of them the numbers are of, at even distances.
    """

    n: int
    used: int
    percentiles: dict[str, float]
    shares_below: dict[str, float]


def holdings(module: "torch.nn.Module") -> Holdings:
    """Return what a module holds; what is shared counts once (S1.49).

    A quantised layer keeps its weights packed and not as parameters; they count, untrainable.
    """
    own, packed = list(_distinct(module.parameters())), list(packed_weights(module))
    trained = [each for each in own if each.requires_grad]
    seen: set[int] = set()
    dtypes: dict[str, int] = {}
    for each in [*own, *packed]:
        name = word(each.dtype)
        dtypes[name] = dtypes.get(name, 0) + _new_bytes(each, seen)
    return Holdings(
        total=sum(each.numel() for each in [*own, *packed]),
        trainable=sum(each.numel() for each in trained),
        trainable_bytes=sum(each.numel() * each.element_size() for each in trained),
        unique_bytes=sum(dtypes.values()),
        buffers_bytes=sum(_new_bytes(each, seen) for each in module.buffers()),
        dtypes={name: dtypes[name] for name in sorted(dtypes)},
    )


def packed_weights(module: "torch.nn.Module") -> "Iterator[torch.Tensor]":
    """Yield what the quantised layers of a module keep in the form of their kernels, unpacked."""
    import torch

    for each in module.modules():
        # recurrent ones hand out by name what no other method shows
        if type(each).__module__.startswith("torch.ao.nn.quantized"):
            for name in ("get_weight", "get_bias"):
                yield from _tensors(getattr(each, name, dict)())
        for value in vars(each).values():
            if isinstance(value, torch.ScriptObject) and not hasattr(each, "get_weight"):
                yield from _tensors(value.unpack() if hasattr(value, "unpack") else None)


def spread(module: "torch.nn.Module", percentiles: Sequence[float] = PERCENTILES) -> Spread | None:
    """Return how |w| lies over all floating parameters, None without any (S2.25).

    percentiles: by linear interpolation, in [0, 100]. The shares are those strictly below 0.001,
    0.01 and 0.1. Beyond 16,777,216 weights all of it is of every n-th.
    """
    weights = [each for each in _distinct(module.parameters()) if each.is_floating_point()]
    n = sum(each.numel() for each in weights)
    if not n:
        return None
    step = -(-n // _EXACT)
    sizes = np.concatenate([_magnitudes(each, step) for each in weights])
    if not sizes.size:
        return None
    found = np.percentile(sizes, percentiles)
    return Spread(
        n=n,
        used=sizes.size,
        percentiles={f"p{q:g}": float(each) for q, each in zip(percentiles, found, strict=True)},
        shares_below={f"{limit:g}": float(np.mean(sizes < limit)) for limit in _SMALL},
    )


def dense(values: object) -> "Iterator[torch.Tensor]":
    """Yield every tensor inside that lies in a storage of its own: not sparse, nested or oneDNN."""
    import torch

    for each in leaves(values):
        if is_tensor(each) and each.layout is torch.strided and not each.is_nested:
            yield each


def identity(tensor: "torch.Tensor") -> tuple[object, ...]:
    """Return what tells a tensor from others: two that lie in the same place are the same."""
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())


def _magnitudes(
    weight: "torch.Tensor", step: int
) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    flat = weight.detach().reshape(-1)[::step]
    return np.asarray(flat.abs().float().cpu().numpy(), dtype=np.float32)


def _distinct(tensors: "Iterable[torch.Tensor]") -> "Iterator[torch.Tensor]":
    seen: set[tuple[object, ...]] = set()
    for each in tensors:
        key = identity(each)
        if key not in seen:
            seen.add(key)
            yield each


def _new_bytes(tensor: "torch.Tensor", seen: set[int]) -> int:
    """Return the bytes of the storage that a tensor lies in, 0 for one that was seen before."""
    storage = tensor.untyped_storage()
    if storage._cdata in seen:
        return 0
    seen.add(storage._cdata)
    return storage.nbytes()


def _tensors(values: object) -> "Iterator[torch.Tensor]":
    return (leaf for leaf in leaves(values) if is_tensor(leaf))
