"""What a function of a person yields: how many items it has, and how a model is called on it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from farm.schema import Data
from workers.backends import LoadFailed
from workers.backends.torch.training import Batch

_END: Final = object()


def counted(batches: Iterable[Any], data: Data, batch: int) -> Iterator[Any]:
    """Yield the batches of a function, each of as many items as every figure counts on.

    A smaller one at the very end is what was left of a pass, as loaders yield it, and is left out.
    Raises LoadFailed of kind `bad_data` for any other size.
    """
    source = iter(batches)
    for index, each in enumerate(source):
        size = items(each)
        if size is None or size == batch:
            yield each
            continue
        if size < batch and index:
            if next(source, _END) is _END:
                return
            what = f"{data.reference} yields batches of {size} among those of {batch}"
            raise LoadFailed("bad_data", what, "let each of them have as many items")
        what = f"{data.reference} yields a batch of {size}, and --batch is {batch}"
        raise LoadFailed("bad_data", what, f"--batch {size}" if size else "")


def items(batch: Any) -> int | None:
    """Return how many items go into the model; None where that cannot be told.

    It is the leading axis of an array, or the length of a list with an array for each item, as
    detectors take images of several sizes. A target may have another length.
    """
    if isinstance(batch, Mapping):
        wanted = [each for name, each in batch.items() if name != "target"]
    elif isinstance(batch, tuple | list):
        wanted = [batch[0]] if len(batch) == 2 else list(batch)
    else:
        wanted = [batch]
    return next((n for each in wanted if (n := _length(each)) is not None), None)


def _length(given: Any) -> int | None:
    if isinstance(given, tuple | list):
        return len(given) if any(_length(each) is not None for each in given) else None
    return len(given) if getattr(given, "ndim", 0) else None


def placed(given: Any, *, device: str) -> Batch:
    """Return a batch on the device, images as floats from 0 to 1.

    A mapping goes in by its names, but for `target`; of a pair the second is the target; any other
    sequence goes in by its order.
    """
    moved = _moved(given, device)
    if isinstance(moved, Batch):
        return moved
    if isinstance(moved, Mapping):
        named = {name: _scaled(each) for name, each in moved.items() if name != "target"}
        return Batch((), named, moved.get("target"))
    if isinstance(moved, tuple | list) and len(moved) == 2:
        return Batch((_scaled(moved[0]),), {}, moved[1])
    if isinstance(moved, tuple | list):
        return Batch(tuple(_scaled(each) for each in moved), {})
    return Batch((_scaled(moved),), {})


def _moved(given: Any, device: str) -> Any:
    """Return every tensor and array in it as a tensor on the device."""
    import numpy as np
    import torch

    if isinstance(given, np.ndarray):
        given = torch.from_numpy(given)
    if isinstance(given, torch.Tensor):
        return given.to(device, non_blocking=True)
    if isinstance(given, Mapping):
        return {name: _moved(each, device) for name, each in given.items()}
    if isinstance(given, tuple | list):
        made = getattr(given, "_make", type(given))  # a named tuple takes no list
        return made([_moved(each, device) for each in given])
    return given


def _scaled(x: Any) -> Any:
    import torch

    return x.float() / 255 if isinstance(x, torch.Tensor) and x.dtype == torch.uint8 else x
