"""What else this machine does, for tests that measure real time."""

import time
from pathlib import Path

import pytest

_FILE = Path("/proc/pressure/cpu")
_MOST_PCT = 20.0


def skip_under_pressure(most_s: float = 30.0) -> None:
    """Wait until what ran before has calmed down; skip where the machine stays busy.

    A kernel without pressure stall information counts as quiet.
    """
    deadline = time.monotonic() + most_s
    while _FILE.exists() and (found := _some_pct()) > _MOST_PCT:
        if time.monotonic() > deadline:
            pytest.skip(f"the machine is under pressure: {found} %")
        time.sleep(1)


def _some_pct() -> float:
    """Return the part of the last ten seconds in which a task waited for a CPU, in percent."""
    return float(_FILE.read_text().split("avg10=")[1].split()[0])
