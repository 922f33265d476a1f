"""What a child sees of its parent's environment: an allow-list, and what pins it to its device."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

# What a child gets of its parent's environment: names, and beginnings of names.
_KEPT: Final = frozenset({"PATH", "LANG", "LD_LIBRARY_PATH", "NVIDIA_TF32_OVERRIDE"})
_KEPT_PREFIXES: Final = (
    *("CUDA_", "OMP_", "MKL_", "OPENBLAS_"),
    *("TORCH_", "PYTORCH_", "TRITON_", "NCCL_"),
)
_SECRET_WORDS: Final = ("token", "secret", "passw", "credential", "api_key", "access_key")
_THREAD_COUNTS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# Kept, but said elsewhere on a card, or no matter of numbers.
_NOT_SHOWN: Final = {*_THREAD_COUNTS, "PATH", "LANG", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"}


def child_environment(
    parent: Mapping[str, str],
    *,
    threads: int,
    folder: Path,
    cache: Path | None = None,
    accelerator: str = "",
    visible: str = "",
) -> dict[str, str]:
    """Return the whole environment of a child: an allow-list, and what pins it.

    folder: private to the child, its HOME and TMPDIR. cache: of the slot, for compiled code; in the
    folder, hence cold, if None. Names that look like a secret are dropped even if they are allowed.
    accelerator: `cuda` or `cuda:N` for a child on a GPU, "" for one that sees none. visible: the
    uuid of the one that it is pinned to; without it, it sees those of its parent (S1.21).
    """
    kept = {name: value for name, value in parent.items() if _is_kept(name)}
    store = cache if cache is not None else folder / "cache"
    return {
        **kept,
        **dict.fromkeys(_THREAD_COUNTS, str(threads)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **_visible(parent, accelerator, visible),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(store),
        "TORCHINDUCTOR_CACHE_DIR": str(store / "inductor"),
        "TRITON_CACHE_DIR": str(store / "triton"),
        "HF_HUB_OFFLINE": "1",
    }


def _visible(parent: Mapping[str, str], accelerator: str, visible: str) -> dict[str, str]:
    """Return what says which GPUs the child sees: none, its own, or those its parent was given."""
    if not accelerator or visible:
        return {"CUDA_VISIBLE_DEVICES": visible if accelerator else ""}
    given = parent.get("CUDA_VISIBLE_DEVICES")
    return {} if given is None else {"CUDA_VISIBLE_DEVICES": given}


def measuring_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a child that change its numbers: what a system card shows of it.

    Thread counts and device visibility are stated elsewhere; a value that holds a path stays out,
    because it may name a person.
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if _is_kept(name) and name not in _NOT_SHOWN and "/" not in value
    }


def _is_kept(name: str) -> bool:
    lower = name.lower()
    allowed = name in _KEPT or name.startswith(_KEPT_PREFIXES)
    return allowed and not any(word in lower for word in _SECRET_WORDS)
