"""What `farm profile run` and `infer` were asked in words, and which words make no sense."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from farm.cli.group import as_option
from farm.errors import Refused
from farm.reading import short

DEFAULT: Final = "detector-t"  # of --weights
_CELL: Final = 32  # pixels of the coarsest map of the detector


class Words(NamedTuple):
    """What was asked in words. options: of the verb, as `farm.cli.group.options`; given: those of
    them that a person gave, as Python spells them.

    what: DATA of a training or SOURCE of an inference, None for what comes along. warmup, steps:
    iterations before and in the window. autocast: whether it was asked for, and its dtype.
    """

    kind: Literal["run", "infer"]
    what: str | None
    weights: str
    size: str
    batch: int
    imgsz: int
    warmup: int
    steps: int
    autocast: bool
    dtype: Literal["float16", "bfloat16"]
    repeat: int
    device: str
    project: Path
    workers: int = 0
    conf: float = 0.25
    iou: float = 0.45
    max_det: int = 300
    trace: bool = True
    experimental: bool = False
    options: Mapping[str, bool] = {}
    given: frozenset[str] = frozenset()


def check_word(words: Words, root: Path) -> None:
    """Refuse `weights=x.pt` where DATA or SOURCE stands: options have dashes here (S4.2)."""
    word = words.what or ""
    hint = as_option(word, words.options)
    if hint is None or os.path.lexists(root / word):
        return
    hint = hint or f"`farm profile {words.kind} -h` lists the options"
    raise Refused(f"{short(word)} is no option", why="an option has two dashes", hint=hint)


def check_device(words: Words, *, on_gpu: bool) -> tuple[str, ...]:
    """Return what is not done as it was asked; Refused for what means nothing there."""
    if words.batch == 0:
        raise Refused("--batch 0 is no batch", why="it is at least 1, or -1 for one that fits")
    if on_gpu:
        return _idle(words)
    if words.batch == -1:
        why = "it is fitted to the memory of a GPU"
        raise Refused("--batch -1 means nothing on a CPU", why=why, hint="say how many items")
    if words.kind == "infer" and words.autocast:
        raise Refused("--half means nothing on a CPU", why="autocast is for CUDA", hint="--no-half")
    if words.autocast:
        return ("--amp is not applied on a CPU",)
    return _idle(words)


def _idle(words: Words) -> tuple[str, ...]:
    """Return a note of the dtype that autocast would compute in, where it is off."""
    if "amp_dtype" not in words.given or words.autocast:
        return ()
    return ("--amp-dtype is for --half, which is off",)


def check_side(words: Words) -> None:
    """Refuse a side that the detector has no whole cells for."""
    if words.weights == DEFAULT and words.imgsz % _CELL:
        near = max(_CELL, round(words.imgsz / _CELL) * _CELL)
        why = f"a side of the detector's images is a multiple of {_CELL}"
        raise Refused(f"--imgsz {words.imgsz} fits no detector", why=why, hint=f"--imgsz {near}")
