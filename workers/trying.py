"""Whether CUDA works on a device: shown by a child that is pinned to it, as a job's would be."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from workers.environment import child_environment
from workers.gpu import Board

LIMIT_S: Final = 120.0
_PROGRAM: Final = (sys.executable, "-P", "-m", "workers.backends.torch.trial")


def tried(board: Board, *, program: Sequence[str] = _PROGRAM, limit_s: float = LIMIT_S) -> str:
    """Return "" if CUDA works on it, else why not. program: what is run in a child's place."""
    with tempfile.TemporaryDirectory(prefix="farm-trial-") as folder:
        environment = child_environment(
            os.environ,
            threads=1,
            folder=Path(folder),
            accelerator="cuda",
            visible=board.uuid,
        )
        try:
            ended = subprocess.run(
                program,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no word from CUDA in {limit_s:g} s"
    lines = ended.stdout.decode(errors="replace").split("\n")
    said = lines[-2] if len(lines) > 1 else ""
    if ended.returncode or not said:
        return f"the child ended with {ended.returncode} and no word of CUDA"
    return "" if said == "ok" else said
