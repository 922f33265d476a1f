"""Where a job computes: the CPU's leased cores, or one of the GPUs that this process sees."""

import os
from dataclasses import dataclass, field

from workers.backends import LoadFailed
from workers.backends.torch import cuda
from workers.host import Host
from workers.host.caches import cache_bytes
from workers.record import Assignment


@dataclass(frozen=True, kw_only=True)
class Place:
    """device: in torch's words. cache_bytes: of the last level of the cores, or L2 of the GPU; None
    if it is not shown. told: what a profile says of the GPU.
    """

    device: str
    accelerator: cuda.TorchCuda | None
    cache_bytes: int | None
    told: dict[str, str] = field(default_factory=dict)


def place(assignment: Assignment) -> Place:
    """Return where the assignment computes; `cuda` is the first visible GPU.

    Raises LoadFailed of kind `no_device` if that GPU is not here; nothing falls back (S1.18). Of
    kind `identity_mismatch` where a GPU is leased, and what this process sees is another.
    """
    if not assignment.accelerator:
        cache = cache_bytes(Host(), assignment.cores)
        return Place(device="cpu", accelerator=None, cache_bytes=cache)
    accelerator = cuda.opened()
    visible = accelerator.visible(os.environ)
    identity = _identity(assignment.device_uuid, visible)
    index = int(assignment.accelerator.partition(":")[2] or 0)
    if index >= len(visible):
        count = f"{len(visible)} visible, counted from 0"
        raise LoadFailed("no_device", f"device {assignment.accelerator!r} is not here: {count}")
    return Place(
        device=f"cuda:{index}",
        accelerator=accelerator,
        cache_bytes=accelerator.l2_bytes(index),
        told=_told(visible, index) | identity,
    )


def _identity(leased: str, visible: list[cuda.VisibleDevice]) -> dict[str, str]:
    """Return how sure it is that this process sees the GPU that is leased for it, and no other.

    CUDA_VISIBLE_DEVICES is no isolation: what a library or the model makes of it is looked at here,
    once CUDA runs and before a model does.
    """
    if not leased:
        return {}
    seen = visible[0].uuid if len(visible) == 1 else None
    if len(visible) != 1 or (seen is not None and _bare(seen) != _bare(leased)):
        what = f"{len(visible)} GPUs are visible" if len(visible) != 1 else "another GPU is visible"
        hint = "a model must leave CUDA_VISIBLE_DEVICES alone"
        raise LoadFailed("identity_mismatch", f"{what} than the one that is leased", hint)
    return {"identity": "verified" if seen is not None else "weak"}


def _bare(uuid: str) -> str:
    """The library of the driver puts `GPU-` or `MIG-` before it, and torch does not."""
    return uuid.lower().removeprefix("gpu-").removeprefix("mig-")


def _told(visible: list[cuda.VisibleDevice], index: int) -> dict[str, str]:
    import torch

    return {
        "cuda_device": visible[index].name,
        "cuda_devices": str(len(visible)),
        "cuda_memory_bytes": str(visible[index].memory_bytes),
        "cuda_version": str(torch.version.cuda),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES", "all"),
    }
