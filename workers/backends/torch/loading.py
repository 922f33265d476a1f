"""Batches of a captured training: read, resized and stacked by loader processes, as trainings do.

Each image is made from its index alone, so the batches are the same whoever makes them. A loader
process computes on one thread, minds no Ctrl-C, and ends with the process that started it.
"""

import inspect
import signal
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from farm.captures import images, labels, scenes
from farm.errors import FarmError, Refused
from farm.schema import Data
from workers.backends import LoadFailed
from workers.backends.torch import outputs, usercode
from workers.models import detector_boxes

Item = tuple[Tensor, Tensor]


class Batches:
    """One pass over the data; its processes end with it, by `close` or when it is dropped.

    notes: what torch had to say when the loader was made, as text. A batch is uint8[batch, 3,
    imgsz, imgsz] on the host and float32[k, 5] per image: class, centre x, centre y, width,
    height; a function's batches are what it yields. Iterating raises FarmError for an image or a
    box that cannot be read.
    """

    def __init__(self, source: Iterator[object], *, notes: Sequence[str] = ()) -> None:
        self._source: Iterator[object] | None = source
        self.notes = tuple(notes)

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        if self._source is None:
            raise StopIteration
        try:
            made = next(self._source)
        except BaseException:
            self.close()
            raise
        if isinstance(made, FarmError):
            self.close()
            raise made
        return made

    def close(self) -> None:
        """Drop what is still to come; loader processes have ended when it returns."""
        source, self._source = self._source, None
        # torch does it where the iterator goes, which a traceback may keep
        end = getattr(source, "_shutdown_workers", None)
        if end is not None:
            end()

    def __enter__(self) -> "Batches":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def batches(data: Data, *, batch: int, imgsz: int, workers: int, seed: int = 0) -> Batches:
    """Return one pass over the data; what does not fill a batch is left out.

    workers: loader processes, 0 for none beside this one; a function of a person runs here
    whatever they are. Memory is pinned where this process uses CUDA. Raises LoadFailed for a
    function that is not there, returns nothing to iterate over, or yields no array.
    """
    if data.kind == "callable":
        return Batches(_of_function(data, batch=batch, imgsz=imgsz))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loader = DataLoader(
            _Images(data, imgsz, seed),
            sampler=count() if data.count is None else range(data.count),
            batch_size=batch,
            drop_last=True,
            num_workers=workers,
            collate_fn=_stacked,
            worker_init_fn=_settle if workers else None,
            pin_memory=torch.cuda.is_initialized(),  # type: ignore[no-untyped-call]
        )
        source = iter(loader)
    notes = [_told(" ".join(str(each.message).split()), workers) for each in said]
    return Batches(source, notes=list(dict.fromkeys(notes)))


def _told(warning: str, workers: int) -> str:
    """Return what torch said as we would say it."""
    if "max number of worker" in warning:
        return f"{workers} loader processes are more than the cores that this process may use"
    return warning


def length(data: Data, batch: int) -> int | None:
    """Return how many batches one pass has; None where it is endless or nobody knows."""
    return None if data.count is None else data.count // batch


def takes(data: Data) -> Collection[str]:
    """Return which of `workers` and `imgsz` make a difference for these data."""
    if data.kind != "callable":
        return ("workers", "imgsz")
    with suppress(Exception):  # which is told where its first batch is wanted
        function = _fetched(data.reference, data.root)
        return _taken(function, {"imgsz": 0}) if callable(function) else ()
    return ()


# ── images ───────────────────────────────────────────────────────────────────────────────────────


class _Images(Dataset[Item | FarmError]):
    """The images of a data set by their index; an error is handed over in place of one.

    What torch makes of an error in another process is a text with its traceback.
    """

    def __init__(self, data: Data, imgsz: int, seed: int) -> None:
        self._data, self._imgsz, self._seed = data, imgsz, seed

    def __getitem__(self, index: int) -> Item | FarmError:
        try:
            if self._data.kind == "synthetic":
                side = self._imgsz
                made = scenes.scene(index, height=side, width=side, seed=self._seed)
                # a batch of images that lie colour by colour would keep that order
                picture = torch.from_numpy(made.image).permute(2, 0, 1).contiguous()
                return picture, torch.from_numpy(made.boxes)
            return _labelled(Path(self._data.files[index]), self._data.classes, self._imgsz)
        except FarmError as error:
            return error


def _labelled(path: Path, classes: int | None, size: int) -> Item:
    """Return an image of a person in a square, with its boxes where they have come to lie."""
    picture, *more = images.read(path)
    if more:
        what = f"{str(path)!r} holds {1 + len(more)} images"
        raise Refused(what, why="one image of a data set is one file, with its boxes")
    at = labels.beside(path)
    rows = labels.read(at, classes=classes) if at else []
    boxes = torch.tensor(rows, dtype=torch.float32).reshape(-1, 5)
    height, width = picture.shape[:2]
    fitted = detector_boxes.fit(height, width, size=size)
    scale = torch.tensor([fitted.width, fitted.height] * 2) / size
    start = torch.tensor([fitted.left, fitted.top, 0, 0]) / size
    boxes[:, 1:] = boxes[:, 1:] * scale + start
    return detector_boxes.squared(torch.from_numpy(picture), size=size), boxes


def _stacked(items: Sequence[Item | FarmError]) -> tuple[Tensor, list[Tensor]] | FarmError:
    pictures, boxes = [], []
    for each in items:
        if isinstance(each, FarmError):
            return each
        pictures.append(each[0])
        boxes.append(each[1])
    return torch.stack(pictures), boxes


def _settle(_worker: int) -> None:
    """Leave Ctrl-C to the process that started this one; torch sets one thread already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# ── a function ───────────────────────────────────────────────────────────────────────────────────


def _of_function(data: Data, *, batch: int, imgsz: int) -> Iterator[object]:
    function = _fetched(data.reference, data.root)
    if not callable(function):
        raise LoadFailed("bad_data", f"{data.reference!r} cannot be called")
    made = function(**_taken(function, {"batch": batch, "imgsz": imgsz}))
    if not (isinstance(made, Iterable) or hasattr(type(made), "__getitem__")):
        what = f"{data.reference!r} returned {type(made).__name__}, which yields no batches"
        raise LoadFailed("bad_data", what)
    source: Iterator[object] = iter(made)
    for first in source:
        if not any(True for _ in outputs.leaves(first)):
            what = f"{data.reference!r} yielded {type(first).__name__}, which holds no array"
            raise LoadFailed("bad_data", what)
        return chain([first], source)
    return source


@cache
def _fetched(reference: str, root: str) -> object:
    """Return what a reference names; a pass over its data is no reason to import it anew."""
    return usercode.fetch(reference, bundle=root)


def _taken(function: Callable[..., object], offer: dict[str, int]) -> dict[str, int]:
    """Return what its signature accepts by name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # functions of C have none
        return {}
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return offer
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = {each.name for each in parameters if each.kind in named}
    return {name: value for name, value in offer.items() if name in known}
