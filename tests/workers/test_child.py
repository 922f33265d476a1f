"""What a child says while it runs: its progress, and with it what the model has printed."""

import os
import subprocess
import sys

import pytest

SCRIPT = """if True:
    import os
    from workers.child import _Progress
    progress = _Progress(lambda: 0)
    progress("load", 0)
    print("while it loads")
    assert os.write(1, b"|") == 1
    progress("latency", 0)
    print("in a pass")
    assert os.write(1, b"|") == 1
    CLOSE
    progress("throughput", 0)
    os._exit(0)  # what is still in a buffer is lost
"""


@pytest.mark.parametrize(
    ("close", "out"),
    [("", "while it loads\n||in a pass\n"), ("import sys; sys.stdout.close()", None)],
)
def test_progress_lets_out_what_the_model_has_printed(close: str, out: str | None) -> None:
    """At once while it loads, between steps in a pass; a model that closed its output may."""
    read, write = os.pipe()
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("CLOSE", close)],
        env={**os.environ, "PYTHONUNBUFFERED": "", "FARM_PROGRESS_FD": str(write)},
        pass_fds=(write,),
        capture_output=True,
        text=True,
    )
    os.close(write)

    with os.fdopen(read) as progress:
        assert ["load", "latency", "throughput"] == [
            line.split('"')[3] for line in progress.read().splitlines()
        ]
    assert (0, "") == (said.returncode, said.stderr)
    assert out in (None, said.stdout)
