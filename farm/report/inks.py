"""The colours of a timeline, and what each kind of rectangle is called.

Each is at least 3:1 against the paper, light and dark, and stands for one thing: a gap in which the
host waited for the device has the colour of that wait. None is told by colour alone: gaps are
hatched, every rectangle with room has its name in it, and the legend picks out one kind.
"""

from collections.abc import Mapping, Sequence
from typing import Final

OTHER: Final = "#7c8594"
CATEGORIES: Final[Mapping[str, str]] = {
    "gemm": "#0072b2",
    "attention": "#9900ff",
    "comm": "#d55e00",
    "memcpy": "#dd0044",
    "elementwise": "#009e73",
    "norm": "#b8638f",
    "layout": "#8888ee",
    "reduction": "#3f8fd0",
    "optimizer": "#9a7b00",
    "embedding": "#008b9a",
    "softmax": "#a0522d",
    "pool": "#6b8e23",
    "indexing": "#b05fc8",
}
CAUSES: Final[Mapping[str, str]] = {
    "host": "#ff3ca5",
    "sync": "#ff4b5a",
    "dataload": "#c30096",
    "kernel_wait": "#3c78ff",
    "graph": "#784bd2",
    "unknown": "#b48769",
    "skewed": "#ff00ff",
}
HOST: Final[Mapping[str, str]] = {
    "phase": "#3c4bff",
    "span": "#785a96",
    "op": "#69695a",
    "launch": "#00784b",
    "wait": "#ff4b5a",
    "call": "#c31ee1",
}
IDLE: Final[Mapping[str, str]] = {
    "host": "the host was late",
    "sync": "the host waited for the device",
    "dataload": "the host waited for data",
    "kernel_wait": "queued, not started",
    "graph": "inside graphs",
    "unknown": "launch not recorded",
}
_SAID: Final[Mapping[str, Mapping[str, str]]] = {
    "stream": {"memcpy": "copies and fills", "comm": "communication"},
    "idle": {**IDLE, "skewed": "the clocks disagree, so nobody knows why"},
    "thread": {
        "phase": "phase of a step",
        "span": "other span",
        "op": "op",
        "launch": "launch call",
        "wait": "waits for the device",
        "call": "other call",
    },
}
_INKS: Final = {"stream": CATEGORIES, "idle": CAUSES, "thread": HOST}


def kinds(place: str, words: Sequence[str]) -> list[tuple[str, str]]:
    """Return what each kind of a place is called, and its colour."""
    said, inks = _SAID[place], _INKS[place]
    return [(said.get(each, each), inks.get(each, OTHER)) for each in words]
