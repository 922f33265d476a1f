"""A capture's step as stages, from its data to what it returns.

A model that brings its own `preprocess` and `postprocess`, or its own `loss`, is run as the
pipeline that it is; any other one is a forward pass on what it takes, and uses nothing else.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from farm.captures import images
from farm.schema import Capture, Data
from workers.backends import LoadFailed
from workers.backends.torch import batching, training
from workers.backends.torch.calling import bind
from workers.backends.torch.stages import Feed, Stage
from workers.backends.torch.training import Batch, casting

if TYPE_CHECKING:
    from torch import Tensor, nn

_MOST_IMAGES: Final = 256  # kept in memory, in turns: decoding files is no part of a step
_THRESHOLDS: Final = ("conf", "iou", "max_det")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Stages of an iteration. feed: what waits for the data, None where nothing does. loaders:
    processes of its own that read them.

    kind, unused, notes: as of `farm.schema.Captured`; notes may grow while the data are read.
    """

    stages: Sequence[Stage]
    feed: Feed | None = None
    loaders: int = 0
    kind: Literal["detection", "plain"] = "plain"
    unused: tuple[str, ...] = ()
    notes: Sequence[str] = ()


class Passes(Protocol):
    """What yields one pass of batches over data; notes: what is to be said of it."""

    def __iter__(self) -> Iterator[Any]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...


class Loading(Protocol):
    """Where batches come from: the module `loading`, which brings torch along."""

    def batches(self, data: Data, *, batch: int, imgsz: int, workers: int) -> Passes: ...
    def length(self, data: Data, batch: int) -> int | None: ...
    def takes(self, data: Data) -> Collection[str]: ...


class _Detects(Protocol):
    """What a detection-style model brings besides its forward pass."""

    def __call__(self, x: Any, /) -> Any: ...
    def preprocess(self, images: list["Tensor"], size: int) -> "Tensor": ...
    def postprocess(self, raw: Any, conf: float, iou: float, max_det: int) -> Any: ...


def of_training(
    module: "nn.Module",
    inputs: Mapping[str, Any],
    asked: Capture,
    *,
    loading: Loading,
    batch: int,
    device: str,
    clock: Callable[[], int],
    again: bool,
    stand_in: bool,
) -> Pipeline:
    """Return the pipeline of `farm profile run`.

    loading: where its batches come from. inputs: drawn ones on the host, for a model that takes no
    images. again: whether the data begin anew when they end; a pass may be of any length then.
    stand_in: as of `training.learning`.
    Raises LoadFailed of kind `window_not_filled` where one pass over the data is known to be too
    short, and where the data are of another kind than the model's inputs.
    """
    assert isinstance(asked.data, Data), "a training has data"
    data = asked.data
    notes: list[str] = []
    drawn = training.sample(module, inputs, batch=batch)
    fresh, count = _source(data, drawn, asked, loading=loading, batch=batch, notes=notes)
    if not again and count is not None and count < asked.warmup + asked.steps:
        raise unfilled(count, asked, batch=batch)
    feed = Feed(
        fresh,
        clock=clock,
        again=again,
        ended=lambda done: unfilled(done, asked, batch=batch),
    )
    learn = training.learning(
        module, None, autocast=asked.autocast, device=device, stand_in=stand_in, notes=notes
    )
    takes = loading.takes(data)
    unused = [each for each in ("workers", "imgsz") if each not in takes or not asked.imgsz]
    return Pipeline(
        stages=[("dataload", feed), ("to_device", partial(batching.placed, device=device)), *learn],
        feed=feed,
        loaders=0 if "workers" in unused else asked.workers,
        kind="detection" if callable(getattr(module, "loss", None)) else "plain",
        unused=tuple(unused),
        notes=notes,
    )


def unfilled(count: int, asked: Capture, *, batch: int) -> LoadFailed:
    """Return the failure of so many iterations that do not fill the window, and three ways out.

    Each of them is enough: more items, fewer steps, or smaller batches. Where not even a batch of 1
    makes enough iterations of the data, fewer steps go with it.
    """
    wanted = asked.warmup + asked.steps
    known = asked.data.count if isinstance(asked.data, Data) else None
    items = count * batch if known is None else known
    ways = [
        f"a data set of at least {wanted * batch} items",
        _shorter(count, asked.warmup) if count else "",
    ]
    if items >= wanted:
        ways.append(f"--batch {items // wanted} or less")
    elif batch > 1 and items:
        ways.append(f"--batch 1 with {_shorter(items, asked.warmup)}")
    return LoadFailed(
        "window_not_filled",
        f"one pass over the data is {count} iterations at batch {batch}, and the window needs "
        f"{wanted}: {asked.warmup} before it and {asked.steps} in it",
        "; or ".join(each for each in ways if each),
    )


def _shorter(iterations: int, warmup: int) -> str:
    """Return the words for a window of so many iterations, the most of it for its steps."""
    before = min(warmup, iterations // 5)
    return f"--warmup {before} --steps {iterations - before} or fewer"


def of_inference(
    module: "nn.Module",
    inputs: Mapping[str, Any],
    asked: Capture,
    *,
    batch: int,
    device: str,
) -> Pipeline:
    """Return the pipeline of `farm profile infer`; inputs: drawn ones on the device."""
    detects = all(callable(getattr(module, each, None)) for each in ("preprocess", "postprocess"))

    def forward(x: Any) -> Any:
        with casting(asked.autocast, device):
            return module(x)

    if detects and asked.imgsz:
        model: _Detects = module  # type: ignore[assignment]
        batches, notes = _pictures(asked, batch=batch)

        def before(_: object) -> Any:
            return model.preprocess(next(batches), asked.imgsz)

        def after(raw: Any) -> Any:
            return model.postprocess(raw, asked.conf, asked.iou, asked.max_det)

        stages: list[Stage] = [
            ("preprocess", before),
            ("forward", forward),
            ("postprocess", after),
        ]
        return Pipeline(stages=stages, kind="detection", notes=notes)
    unused = _THRESHOLDS if asked.imgsz else (*_THRESHOLDS, "imgsz")
    if asked.images:
        batches, notes = _pictures(asked, batch=batch)

        def resize(_: object) -> Any:
            return _resized(next(batches), asked.imgsz).to(device)

        stages = [("preprocess", resize), ("forward", forward)]
        return Pipeline(stages=stages, unused=unused, notes=notes)
    run = bind(module, inputs)

    def plain(_: object) -> Any:
        with casting(asked.autocast, device):
            return run()

    return Pipeline(stages=[("forward", plain)], unused=unused)


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def _source(
    data: Data,
    drawn: Batch,
    asked: Capture,
    *,
    loading: Loading,
    batch: int,
    notes: list[str],
) -> tuple[Callable[[], Iterator[Any]], int | None]:
    """Return what begins one pass over the data, and how many iterations it has, if known.

    drawn: the inputs of a model that takes no images, which a function may still yield. notes:
    learns what is said of the data.
    """
    if data.kind == "callable" or asked.imgsz:
        count = loading.length(data, batch)

        def fresh() -> Iterator[Any]:
            made = loading.batches(
                data, batch=batch, imgsz=asked.imgsz or 640, workers=asked.workers
            )
            notes.extend(each for each in made.notes if each not in notes)
            return batching.counted(made, data, batch) if data.kind == "callable" else iter(made)

        return fresh, count
    if data.kind != "synthetic":
        raise LoadFailed("bad_data", "the data are images, and the model takes none")
    if data.count is None:
        return lambda: repeat(drawn), None
    count = data.count // batch
    return lambda: repeat(drawn, count), count


def _pictures(asked: Capture, *, batch: int) -> tuple[Iterator[list["Tensor"]], tuple[str, ...]]:
    """Return batches of images without end, read beforehand, and what is to be said of them."""
    import torch

    every = (each for file in asked.images for each in images.read(Path(file)))
    arrays = list(islice(every, _MOST_IMAGES)) or [images.sample()]
    tensors = [torch.from_numpy(each.copy()) for each in arrays]  # and not the file around it
    more = len(arrays) == _MOST_IMAGES and next(every, None) is not None
    notes = (f"only the first {_MOST_IMAGES} images are taken, in turns",) if more else ()
    turns = cycle(tensors)
    return iter(lambda: list(islice(turns, batch)), None), notes


def _resized(pictures: list["Tensor"], size: int) -> "Tensor":
    """Return images as one batch of floats from 0 to 1, stretched to a square."""
    import torch
    from torch.nn import functional

    made = [each.permute(2, 0, 1)[None].float() / 255 for each in pictures]
    square = [functional.interpolate(each, size=(size, size), mode="bilinear") for each in made]
    return torch.cat(square)
