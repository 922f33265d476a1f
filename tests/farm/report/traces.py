"""Small traces that have a page: one of good names, and one of names that want to be code."""

from functools import cache
from typing import Any

from farm.trace.opening import Opened
from tests.farm.trace.analysis.traces import (
    GEMM,
    Event,
    copy,
    launch,
    launched,
    made,
    op,
    repeated,
    span,
)

NAMES = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "--><!--<b>&amp;\"'`{{7*7}}${8*8}",
    "\u202egnp.exe\u0007\u2028",
)


def _opened(events: list[Event], **keys: Any) -> Opened:
    found = made(events, **keys)
    return Opened("small.json", found.analysis, found)


@cache
def small() -> Opened:
    """Four steps with phases, ops, two streams, and gaps of several causes."""

    def one(number: int, at: float) -> list[Event]:
        n = 10 * number
        return [
            *(span("step/dataload", at, 20), span("step/forward", at + 20, 40)),
            *(op("aten::mm", at + 22, 10), *launched(at + 30, 20, n + 2, before=3, name=GEMM)),
            *launched(at + 52, 8, n + 3, before=25, name="vectorized_elementwise_kernel"),
            *(launch(at + 60, n + 4), copy(at + 66, 14, n + 4)),
            *(span("step/optimizer", at + 62, 20), op("aten::add_", at + 63, 6)),
            *launched(at + 84, 5, n + 5, before=4, name="multi_tensor_apply_kernel"),
        ]

    return _opened(repeated(4, 100, one))


@cache
def hostile() -> Opened:
    """The same in names that are markup, script, template or direction marks."""

    def one(number: int, at: float) -> list[Event]:
        events: list[Event] = []
        for place, name in enumerate(NAMES):
            n, begin = 10 * number + place + 1, at + 20 * place
            events += [op(name, begin, 15), span(name, begin, 18, thread=name)]
            events += launched(begin + 8, 6, n, before=4, name=name, stream=name)
        return [*events, span(f"step/{NAMES[0]}", at, 90)]

    return _opened(repeated(4, 100, one))
