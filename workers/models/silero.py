"""The speech detector of the package `silero-vad` (MIT), as the TorchScript file it ships.

The file is read where the package lies and the package itself is not imported: it needs torchaudio
for reading sound files, which nobody does here.
"""

import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

Find = Callable[[str], ModuleSpec | None]

RATE_HZ = 16_000
_PACKAGE = "silero_vad"
_FILE = "data/silero_vad.jit"


class Silero(nn.Module):
    """The detector without memory: each call forgets the one before, so equal calls do equal work.

    As shipped it keeps a recurrent state and the end of the last chunk between calls.
    """

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.script = script

    def forward(self, x: Tensor) -> Tensor:
        self.script.reset_states()
        chance: Tensor = self.script(x, RATE_HZ)
        return chance


def build(precision: str = "fp32", *, find: Find = find_spec) -> nn.Module:
    """Return the detector in eval mode; x float32[batch, 512] at 16 kHz gives float32[batch, 1].

    Raises ModuleNotFoundError if the package is not installed, and NotImplementedError for any
    precision but fp32: the file turns its spectrum into float32 whatever its weights are.
    """
    if precision not in ("fp32", "unspecified"):
        raise NotImplementedError(f"silero computes in fp32 only, not in {precision}")
    path = _package_folder(find) / _FILE
    with warnings.catch_warnings():
        # torch recommends torch.export instead; what is shipped is TorchScript.
        warnings.filterwarnings("ignore", "`torch.jit.load` is deprecated", DeprecationWarning)
        script = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    return Silero(script).eval()


def _package_folder(find: Find) -> Path:
    # the spec of a top-level name is found without running the package
    spec = find(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "silero-vad is not installed; run `pip install silero-vad==6.2.3`", name=_PACKAGE
        )
    return Path(spec.submodule_search_locations[0])
