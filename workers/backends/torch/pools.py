"""The settings of this process that a number depends on: thread pools and subnormal numbers."""

import ctypes
from contextlib import suppress
from pathlib import Path

import numpy as np

from workers.backends import LoadFailed


def prepare_torch(threads: int, *, flush: bool) -> str:
    """Import torch, size its pools and set how it treats subnormal numbers; return the latter.

    This comes before the first parallel operation: threads inherit the mode when they start.
    Raises LoadFailed if torch is not installed.
    """
    try:
        import torch
    except ImportError as error:
        raise LoadFailed(
            "environment",
            f"torch cannot be imported: {error}",
            "pip install 'profiling-farm[worker]'",
        ) from error
    done = torch.set_flush_denormal(flush)
    # A second call in one process is refused, whatever it asks for.
    if torch.get_num_interop_threads() != 1:
        with suppress(RuntimeError):
            torch.set_num_interop_threads(1)
    torch.set_num_threads(threads)
    if not flush:
        return "as_is"
    return "flush" if done else "not_supported"


def prepare_numpy(threads: int) -> None:
    """Size the pool of numpy's matrix products, where it is the one inside numpy's wheel."""
    if (library := _openblas()) is not None:
        library.scipy_openblas_set_num_threads64_(threads)


def effective(*, torch_too: bool) -> dict[str, int]:
    """Return the pool sizes as the libraries report them; a pool that cannot be read is absent."""
    found = {}
    if torch_too:
        import torch

        found["torch"] = torch.get_num_threads()
        found["torch_interop"] = torch.get_num_interop_threads()
    if (library := _openblas()) is not None:
        found["openblas"] = int(library.scipy_openblas_get_num_threads64_())
    return found


def check(threads: int, *, torch_too: bool) -> None:
    """Raise LoadFailed if a pool that the step uses is larger or smaller than asked."""
    pools = effective(torch_too=torch_too)
    wanted = {"torch": threads, "torch_interop": 1} if torch_too else {"openblas": threads}
    for name, size in wanted.items():
        if pools.get(name, size) != size:
            raise LoadFailed(
                "environment", f"the thread pool {name} has {pools[name]} threads, not {size}"
            )


def _openblas() -> ctypes.CDLL | None:
    """Return the library that numpy has loaded from its own wheel, None for any other build."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in folder.glob("libscipy_openblas64_*.so"):
        return ctypes.CDLL(str(path))
    return None
