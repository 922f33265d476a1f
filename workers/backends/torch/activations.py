"""How much memory the results of operators take at once, beside weights and inputs."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from workers.backends.torch.outputs import is_tensor, leaves
from workers.backends.torch.weights import dense

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload


class Lifetimes:
    """A listener that follows every storage an operator makes, from then until it is freed.

    What was there before the first operator, weights and inputs, does not count, and a kernel's
    own scratch memory is not seen.
    """

    def __init__(self) -> None:
        self._peak = 0
        self._is_whole = True
        self._living: dict[int, tuple[weakref.ref[object], int]] = {}
        self._bytes = 0

    @property
    def peak_bytes(self) -> int | None:
        """The most that lived at once; None if some of it has no storage of its own."""
        return self._peak if self._is_whole else None

    def heard(
        self,
        operator: "OpOverload",
        args: Sequence[object],
        kwargs: Mapping[str, object],
        out: object,
    ) -> None:
        given = {each.untyped_storage()._cdata for each in dense((args, kwargs))}
        made = [each.untyped_storage() for each in dense(out)]
        self._is_whole = self._is_whole and len(made) == sum(map(is_tensor, leaves(out)))
        for each in made:
            if each._cdata not in self._living and each._cdata not in given:
                self._born(each)

    def puzzled(self, name: str) -> None:
        """What it makes inside is not seen; what it returns is, when something is done with it."""

    def _born(self, storage: "torch.UntypedStorage") -> None:
        key, size = storage._cdata, storage.nbytes()
        self._living[key] = weakref.ref(storage, lambda _: self._died(key)), size
        self._bytes += size
        self._peak = max(self._peak, self._bytes)

    def _died(self, key: int) -> None:
        self._bytes -= self._living.pop(key)[1]


class Allocator(Protocol):
    """What is used of the module `torch.cuda`."""

    def synchronize(self, device: Any = None) -> None: ...
    def reset_peak_memory_stats(self, device: Any = None) -> None: ...
    def memory_allocated(self, device: Any = None) -> int: ...
    def max_memory_allocated(self, device: Any = None) -> int: ...


def cuda_peak(
    run: Callable[[], object], devices: "Sequence[torch.device]", *, cuda: Allocator
) -> int:
    """Return the most bytes that a call allocated on the devices beyond what was there before.

    As torch's allocator counts it, scratch memory included; the peaks of it are reset. It was not
    run on a GPU yet.
    """
    for each in devices:
        cuda.synchronize(each)
        cuda.reset_peak_memory_stats(each)
    before = [cuda.memory_allocated(each) for each in devices]
    run()
    for each in devices:
        cuda.synchronize(each)
    peaks = [cuda.max_memory_allocated(each) for each in devices]
    return sum(peak - start for peak, start in zip(peaks, before, strict=True))
