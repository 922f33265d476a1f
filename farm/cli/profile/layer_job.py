"""What `farm profile layers MODEL` asks for: the one job of a sweep of one, and its files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from farm import models, npz, once
from farm.errors import Refused
from farm.reading import Document
from farm.schema import Asked, Effort, Failure, Job, Profile, Tensor
from farm.sweep import Sweep, arrays, expand
from farm.sweep.single import one_device

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

# A slow model is profiled all the same; whoever has enough of it presses Ctrl-C.
_PATIENCE_S: Final = 7 * 86_400
# How a model says that arrays do not fit it.
_MISFIT: Final = re.compile(
    r"^(?!ValueError|AssertionError|AttributeError|ZeroDivisionError|NameError)"
    r".*(shape|size|dimension|mat1|channels|expected|argument|dtype|\btype\b|index out of)",
    re.IGNORECASE,
)


class Words(NamedTuple):
    """What was asked in words. given: an NPZ with inputs, None for drawn ones. csv: of the table.

    batch: None for what the inputs have. device: None for the first GPU, else the CPU.
    """

    model: str
    given: str | None
    output: Path | None
    force: bool
    iterations: int
    csv: Path
    benchmark: bool
    precision: str
    batch: int | None
    device: str | None


class Wanted(NamedTuple):
    """A job with what it needs; npz: the input arrays under the names that the model knows."""

    job: Job
    effort: Effort
    resolved: models.Resolved
    npz: Path | None


def devices(word: str | None, *, has_gpu: bool) -> list[str]:
    """Return the devices to try in turn: the one that was named, else the first GPU, then the CPU.

    Raises Refused for a word that names none.
    """
    if word is not None:
        return [one_device(word)]
    return ["cuda", "cpu"] if has_gpu else ["cpu"]


def wanted(words: Words, *, root: Path, folder: Path, device: str, level: str) -> Wanted:
    """Return the job of one model on a device.

    folder: for a copy of the arrays where they bear other names than the model's inputs: then they
    go to these by their order (S0.2). level: the effort of a latency. Raises Refused for every word
    that makes no sense, for arrays of another number or rank, and where inputs are missing.
    """
    resolved = models.resolve(words.model, root=root)
    known = resolved.defaults.inputs if resolved.defaults else None
    spec = known if isinstance(known, dict) else {}
    batch = words.batch or 1
    inputs: dict[str, object] = {}
    npz: Path | None = None
    if words.given is not None:
        npz, found = _named(words, root, spec, folder=folder)
        lead = next((each.shape[0] for each in found.values() if each.ndim), 1)
        batch = words.batch or lead
        inputs = {"inputs": {"npz": str(npz), **_by_batch(found, lead)}}
    elif not isinstance(known, dict):
        why = "a model of your own does not say what it is called with"
        raise Refused(f"model {words.model!r} needs inputs", why=why, hint="--input FILE.npz")
    matrix = {
        "model": words.model,
        "precision": words.precision,
        "batch": batch,
        "device": "cpu" if device.startswith("cpu") else "gpu",
    }
    flags = {
        "matrix.model": words.model,
        "matrix.precision": f"--precision {words.precision}",
        "matrix.batch": f"--batch {batch}",
        "inputs": f"--input {words.given}",
    }
    data: dict[str, object] = {"matrix": matrix, **inputs}
    document = Document(name="farm profile layers", data=data, sha256="", flags=flags)
    plan = expand([Sweep(document=document, beside=root, root=root)], effort=level)
    return Wanted(plan.jobs[0].job, _patient(plan.effort, words.iterations), resolved, npz)


def asked(found: Wanted, words: Words, *, folder: Path, device: str) -> Asked:
    """Return what the worker is to do in a folder; without a benchmark no clean pass runs."""
    work = folder / "work"
    work.mkdir()
    return Asked(
        job=found.job,
        effort=found.effort,
        folder=str(work),
        device=device,
        passes=("latency",) if words.benchmark else (),
        instruments=("layers", "flops"),
        bundle=once.stage(found.resolved, folder),
        npz=str(found.npz.absolute()) if found.npz else "",
        output=words.output is not None,
    )


def check_taken(profile: Profile, words: Words) -> None:
    """Raise Refused where the model failed on the arrays of the NPZ, to judge by its words."""
    why = misfit(profile)
    if words.given is not None and why:
        what = f"model {words.model!r} does not take the arrays of {words.given!r}"
        raise Refused(what, why=why)


def misfit(profile: Profile) -> str:
    """Return how the model says that its inputs do not fit it; "" if it says nothing like it."""
    failure = profile.failure
    if not isinstance(failure, Failure) or failure.kind != "model_error":
        return ""
    early = failure.phase in ("load", "first", "warmup")
    return failure.message if early and _MISFIT.search(failure.message) else ""


def instead(reason: str) -> str:
    """Return what to do where a function was named that nobody sees into."""
    return "`farm profile callable` times a function" if "a function has no" in reason else ""


def _patient(effort: Effort, iterations: int) -> Effort:
    return structs.replace(
        effort,
        layers=True,
        flops=True,
        layer_iterations=iterations,
        layer_budget_ms=0,
        timeout_s=_PATIENCE_S,
    )


def _named(
    words: Words, root: Path, spec: Mapping[str, Tensor], *, folder: Path
) -> "tuple[Path, Arrays]":
    """Return the file that holds the arrays under the model's names, and these arrays."""
    shown = str(words.given)
    file = root / shown
    found = arrays.load(file, name=shown)
    if not spec:
        return file, found
    if len(found) != len(spec):
        why = f"{shown!r} holds {_listed(found)}"
        raise Refused(f"model {words.model!r} takes {_listed(spec)}", why=why)
    if set(found) != set(spec):
        found = dict(zip(spec, found.values(), strict=True))
        file = folder / "inputs.npz"
        npz.save(file, found)
    for name, tensor in spec.items():
        if found[name].ndim != len(tensor.shape):
            shape = f"[{', '.join(str(each) for each in tensor.shape)}]"
            what = f"input {name!r} of model {words.model!r} has the shape {shape}"
            raise Refused(what, why=f"the array in {shown!r} has {list(found[name].shape)}")
    return file, found


def _by_batch(found: "Arrays", lead: int) -> dict[str, object]:
    """Return which arrays have the items along their leading axis: those that agree about it."""
    return {
        name: {"shape": ["batch", *each.shape[1:]]}
        for name, each in found.items()
        if each.ndim and each.shape[0] == lead
    }


def _listed(names: Mapping[str, object]) -> str:
    return f"{len(names)} array{'' if len(names) == 1 else 's'}: {', '.join(names)}"
