"""A process that dies at its n-th step: at each call that opens, makes, names or removes a file.

Python tells an audit hook of each of them just before it is made, so no step is forgotten.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_CODE: Final = """if True:
    import os, signal, sys
    left = int(sys.argv[1])
    STEPS = ("open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree")

    def hook(event, words):
        global left
        if event in STEPS and left:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def begin():
        sys.addaudithook(hook)

{code}
    print("done", flush=True)
"""


def died(code: str, step: int) -> bool:
    """Run the code, which calls `begin()` first, until its n-th step; False if it had fewer."""
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    ran = subprocess.run(
        [sys.executable, "-c", _CODE.format(code=body), str(step)], capture_output=True, cwd=_ROOT
    )
    assert ran.returncode in (0, -9), ran.stderr.decode()
    return ran.returncode != 0
