"""What `farm profile run` and `infer` come to: one job, its pipeline, and where it is measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType, structs

from farm import graphs, models, once
from farm.captures import dataset, images
from farm.cli.profile.capture_words import DEFAULT, Words, check_device, check_side, check_word
from farm.errors import NoResult, Refused
from farm.reading import Document, short
from farm.schema import Asked, Capture, Data, Effort, Job, Tensor
from farm.sweep import Sweep, expand
from farm.sweep.single import one_device
from farm.trace.analysis.record import Setting

DETECTOR: Final = "detector"
# A slow model is captured all the same; whoever has enough of it presses Ctrl-C.
_PATIENCE_S: Final = 7 * 86_400
_DRIVER: Final = Path("/dev/nvidiactl")
_SWEEP: Final = "measure it in a sweep, whose `inputs` say it"


class Wanted(NamedTuple):
    """A job and its pipeline. device: of the worker. notes: what is not done as it was asked.

    unused: options that the model has no use for, as far as that is known before it is loaded.
    """

    job: Job
    effort: Effort
    resolved: models.Resolved
    capture: Capture
    device: str
    config: Mapping[str, Setting]
    notes: tuple[str, ...]
    unused: tuple[str, ...] = ()


def wanted(words: Words, *, root: Path, has_gpu: bool | None = None) -> Wanted:
    """Return the job of a capture; nothing of a person runs for it.

    has_gpu: whether a GPU's driver is here, None for a look. Raises Refused for every word that
    makes no sense, NoResult where the GPU that was asked for is certainly not here.
    """
    check_word(words, root)
    check_side(words)
    device = one_device(words.device)
    on_gpu = device.startswith("cuda")
    notes = [*check_device(words, on_gpu=on_gpu)]
    data = _data(words, root, notes)
    pictures = _images(words, root, notes)
    resolved = models.resolve(_reference(words), root=root)
    inputs, imgsz = _inputs(resolved, words)
    _check_kind(words, resolved, pictures=bool(pictures), imgsz=imgsz)
    if on_gpu and not (_DRIVER.exists() if has_gpu is None else has_gpu):
        raise _no_device(device)  # at last: what makes no sense does so on every machine
    job, effort = _job(words, resolved, inputs, root=root, on_gpu=on_gpu)
    capture = Capture(
        data=data,
        images=pictures,
        imgsz=imgsz,
        workers=words.workers,
        autocast=words.dtype if words.autocast and on_gpu else "",
        conf=words.conf,
        iou=words.iou,
        max_det=words.max_det,
        warmup=words.warmup,
        steps=words.steps,
        trace=words.trace,
        experimental=words.experimental,
    )
    config = _config(words, capture, on_gpu=on_gpu)
    unused = () if words.weights == DEFAULT else ("size",)
    return Wanted(job, effort, resolved, capture, device, config, tuple(notes), unused)


def asked(found: Wanted, *, folder: Path) -> Asked:
    """Return what the worker is to do in a folder, for one trial."""
    work = folder / "work"
    work.mkdir()
    return Asked(
        job=found.job,
        effort=found.effort,
        folder=str(work),
        device=found.device,
        passes=("latency", "throughput", "memory"),
        instruments=("trace",),
        bundle=once.stage(found.resolved, folder),
        capture=found.capture,
    )


def fitting(found: Wanted, *, folder: Path) -> Asked:
    """Return what the worker is to do to find the batch that fits, and nothing else."""
    capture = structs.replace(found.capture, fit=True, trace=False)
    return structs.replace(asked(found, folder=folder), passes=(), capture=capture)


# ── what is refused before anything runs ─────────────────────────────────────────────────────────


def _no_device(device: str) -> NoResult:
    what = f"no CUDA device {device.partition(':')[2] or '0'} here"
    return NoResult(what, why="no driver of NVIDIA is loaded", hint="--device cpu")


def _data(words: Words, root: Path, notes: list[str]) -> Data | UnsetType:
    return dataset.parsed(words.what or "", root, notes=notes) if words.kind == "run" else UNSET


def _images(words: Words, root: Path, notes: list[str]) -> tuple[str, ...]:
    if words.kind == "run" or words.what is None:
        return ()
    if not words.what:
        raise Refused("no file ''", hint="without SOURCE, an image that comes along is taken")
    return tuple(
        str(each.absolute()) for each in images.found(Path(words.what), root=root, notes=notes)
    )


def _reference(words: Words) -> str:
    """Return the model: the detector in the size that was asked for, or another by its name."""
    if words.weights != DEFAULT or words.size == "t":
        return words.weights
    name = f"{DETECTOR}-{words.size}"
    sizes = [each.partition("-")[2] for each in models.zoo() if each.startswith(f"{DETECTOR}-")]
    if words.size not in sizes:
        raise Refused(
            f"no detector of size {short(words.size)}", why=f"there is {', '.join(sizes)}"
        )
    return name


def _inputs(resolved: models.Resolved, words: Words) -> tuple[dict[str, object] | None, int]:
    """Return the inputs of the job, None for those that the model knows, and the side of images.

    A model whose one input is a batch of images of three channels gets them in the size that was
    asked for, and so does a model of a person's own, about which nobody knows anything. Raises
    Refused for a graph that leaves open what no option says.
    """
    if resolved.graph is not None:
        return _of_graph(resolved.graph, words)
    known = resolved.defaults.inputs if resolved.defaults else UNSET
    if not isinstance(known, dict):
        return {"x": _square(words.imgsz)}, words.imgsz
    if len(known) != 1 or not _is_image(next(iter(known.values()))):
        return None, 0
    return {next(iter(known)): _square(words.imgsz)}, words.imgsz


def _of_graph(graph: graphs.Graph, words: Words) -> tuple[dict[str, object] | None, int]:
    """Return the inputs of a graph: images whose sides it leaves open get those that were asked."""
    images_of = [_open_image(each, words.imgsz) for each in graph.inputs]
    if len(images_of) == 1 and images_of[0] is not None:
        return {graph.inputs[0].name: images_of[0]}, words.imgsz
    try:
        known = graphs.spec(graph.inputs, model=words.weights)
    except Refused as error:
        raise Refused(error.what, why=error.why, hint=_SWEEP) from error
    for name, each in known.items():
        axis = next((x for x in each.shape if isinstance(x, str) and x != graphs.BATCH), "")
        if axis:
            what = f"input {name!r} of {words.weights} has the open axis {axis!r}"
            raise Refused(what, why="no option here says how long it is", hint=_SWEEP)
    return None, 0


def _square(side: int) -> dict[str, object]:
    return {"shape": ["batch", 3, side, side], "dtype": "float32"}


def _open_image(port: graphs.Port, side: int) -> dict[str, object] | None:
    """Return the images of an input that leaves their sides open, None for another input."""
    shape = list(port.shape or ())
    open_at = [at for at, axis in enumerate(shape) if at and not isinstance(axis, int)]
    colours = {"23": shape[1:2], "12": shape[3:]}.get("".join(map(str, open_at)))
    if colours != [3] or not ("float" in port.dtype or port.dtype == "uint8"):
        return None
    sized = [side if at in open_at else axis for at, axis in enumerate(shape)]
    return {"shape": [graphs.BATCH, *sized[1:]], "dtype": port.dtype}


def _is_image(tensor: Tensor) -> bool:
    shape = tensor.shape
    return len(shape) == 4 and shape[:2] == ("batch", 3) and tensor.dtype == "float32"


def _check_kind(words: Words, resolved: models.Resolved, *, pictures: bool, imgsz: int) -> None:
    name = resolved.model.name
    if words.kind == "run" and resolved.graph is not None:
        raise Refused(f"{name!r} cannot be trained", why="an ONNX file is run as it is")
    if resolved.model.kind == "step":
        why = "it is a function, and a capture needs a module"
        raise Refused(f"{name!r} has no pipeline", why=why, hint="`farm profile callable` times it")
    if pictures and resolved.graph is not None:
        raise Refused(f"{name!r} takes no images here", why="an ONNX file gets drawn inputs")
    if pictures and not imgsz:
        raise Refused(f"{name!r} takes no images", why="its inputs have another form")


# ── the job ──────────────────────────────────────────────────────────────────────────────────────


def _job(
    words: Words,
    resolved: models.Resolved,
    inputs: dict[str, object] | None,
    *,
    root: Path,
    on_gpu: bool,
) -> tuple[Job, Effort]:
    training = words.kind == "run"
    matrix: dict[str, object] = {
        "model": _reference(words),
        "batch": max(1, words.batch),
        "device": "gpu" if on_gpu else "cpu",
        "mode": "train" if training else "inference",
    }
    window = {"warmup": words.warmup, "iterations": words.steps, "repeats": 1}
    data: dict[str, object] = {"matrix": matrix, "measure": {"compat": "libreyolo", **window}}
    if inputs is not None:
        data["inputs"] = inputs
    flags = {
        "matrix.model": f"--weights {words.weights}",
        "matrix.batch": f"--batch {words.batch}",
        "measure.warmup": f"--warmup {words.warmup}",
        "measure.iterations": f"--{'steps' if training else 'runs'} {words.steps}",
    }
    name = f"farm profile {words.kind}"
    document = Document(name=name, data=data, sha256="", flags=flags)
    plan = expand([Sweep(document=document, beside=root, root=root)], effort="standard")
    effort = structs.replace(plan.effort, layers=False, flops=False, timeout_s=_PATIENCE_S)
    return plan.jobs[0].job, effort


def _config(words: Words, capture: Capture, *, on_gpu: bool) -> dict[str, Setting]:
    """Return what was asked for by the names of the options, and what came of it."""
    told: dict[str, Setting] = {
        "weights": words.weights,
        "size": words.size,
        **({"imgsz": capture.imgsz} if capture.imgsz else {}),
        "warmup": words.warmup,
        "precision": capture.autocast or "fp32",
    }
    if words.kind == "run":
        return {
            "data": words.what,
            **told,
            "steps": words.steps,
            "workers": words.workers,
            "amp": bool(capture.autocast),
        }
    return {
        "source": words.what,
        **told,
        "runs": words.steps,
        "half": bool(capture.autocast),
        "amp_dtype": words.dtype,
        "conf": words.conf,
        "iou": words.iou,
        "max_det": words.max_det,
    }
