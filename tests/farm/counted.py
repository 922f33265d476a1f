"""How much work a call does, counted and not timed, so that it is the same on every machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(act: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs."""
    count = 0

    def tracer(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
