"""Steps whose inputs start on the host, or whose output ends there: `input_scope`, `output_scope`.

The model runs on buffers that lie on its device all the time, so that a transfer is a copy and no
allocation stands in the timed region.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from workers.backends.torch import outputs

if TYPE_CHECKING:
    import torch


def on_host(tensors: "Iterable[torch.Tensor]", *, pinned: bool) -> "list[torch.Tensor]":
    """Return copies on the host; pinned ones can be copied while the host goes on."""
    copies = [each.detach().to("cpu", copy=True) for each in tensors]
    return [each.pin_memory() for each in copies] if pinned else copies


def uploading(
    run: Callable[[], object],
    pairs: "Sequence[tuple[torch.Tensor, torch.Tensor]]",
    *,
    pinned: bool,
) -> Callable[[], object]:
    """Return a step that first copies every host tensor into the buffer that `run` works on.

    pairs: (buffer on the device, tensor on the host), of one shape and dtype each.
    """

    def step() -> object:
        for buffer, host in pairs:
            buffer.copy_(host, non_blocking=pinned)
        return run()

    return step


def downloading(run: Callable[[], object]) -> Callable[[], object]:
    """Return a step that ends with its output on the host: the list of its tensors and arrays.

    A copy to pageable memory waits for the device, so such a step returns finished work.
    """

    def step() -> object:
        return [_fetched(each) for each in outputs.leaves(run())]

    return step


def _fetched(leaf: object) -> object:
    return leaf.to("cpu") if outputs.is_tensor(leaf) else leaf
