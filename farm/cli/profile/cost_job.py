"""What `farm profile cost MODEL` asks for: a job, its inputs, the devices to hold it against."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from farm import models, once
from farm.cli.profile import layer_job
from farm.errors import Refused
from farm.reading import Document, short
from farm.schema import Asked, Profile, Tensor
from farm.sweep import Sweep, expand

if TYPE_CHECKING:
    from farm.hardware import GPUSpec

_EXAMPLE: Final = "for example --input-shape 3,224,224"
# Shares are all that is wanted of the layers, so a look of two seconds does.
_ITERATIONS, _LAYER_BUDGET_MS = 100, 2_000
ALL: Final = "all"
# A nanosecond, and eleven days: outside of it no figure that is computed with it is one.
_SHORTEST_MS, _LONGEST_MS = 1e-6, 1e9


class Words(NamedTuple):
    """What was asked in words; shape: of one item, None for what the model is usually given.

    batch: None for what the inputs have, else 1. given_ms: a latency from elsewhere.
    """

    model: str
    given: str | None
    shape: str | None
    batch: int | None
    precision: str
    specs: tuple[str, ...]
    latency: bool
    given_ms: float | None


def check(words: Words) -> None:
    """Raise Refused for flags that contradict each other, or a latency that cannot be."""
    if words.given is not None and words.shape is not None:
        what = "--input and --input-shape exclude each other"
        raise Refused(what, why="one of them says what the model is given")
    if words.latency and words.given_ms is not None:
        what = "--latency and --latency-ms exclude each other"
        raise Refused(what, why="either it is measured here, or it is known already")
    if words.given_ms is not None and not _SHORTEST_MS <= words.given_ms <= _LONGEST_MS:
        what = f"--latency-ms {words.given_ms:g} is no latency"
        raise Refused(what, why=f"expected ms, from {_SHORTEST_MS:f} to {_LONGEST_MS:,.0f}")


def specs(names: Sequence[str]) -> "list[GPUSpec]":
    """Return the peaks of the devices that the words name, each once; `all` for every row.

    Raises Refused for a word that is no device, with the nearest one.
    """
    from farm import hardware

    rows = hardware.table()
    if ALL in names or not names:
        return [row.spec for row in rows.values()]
    chosen = dict.fromkeys(hardware.named(rows, name).key for name in names)
    return [rows[key].spec for key in chosen]


def wanted(words: Words, *, root: Path, folder: Path, level: str) -> layer_job.Wanted:
    """Return the job of one model on the CPU of this machine.

    Raises Refused for a model, inputs or a shape that make no sense.
    """
    if words.shape is not None:
        return _shaped(words, words.shape, root=root, level=level)
    same = as_layers(words)
    return layer_job.wanted(same, root=root, folder=folder, device="cpu", level=level)


def as_layers(words: Words) -> layer_job.Words:
    """Return the same question in the words of a layer pass, which takes the same models."""
    return layer_job.Words(
        model=words.model,
        given=words.given,
        output=None,
        force=False,
        iterations=_ITERATIONS,
        csv=Path(),
        benchmark=words.latency,
        precision=words.precision,
        batch=words.batch,
        device="cpu",
    )


def asked(found: layer_job.Wanted, words: Words, *, folder: Path) -> Asked:
    """Return what the worker is to do in a folder; without --latency no clean pass runs."""
    work = folder / "work"
    work.mkdir()
    return Asked(
        job=found.job,
        effort=structs.replace(found.effort, layer_budget_ms=_LAYER_BUDGET_MS),
        folder=str(work),
        passes=("latency", "memory") if words.latency else (),
        instruments=("layers", "weights", "flops"),
        bundle=once.stage(found.resolved, folder),
        npz=str(found.npz.absolute()) if found.npz else "",
    )


def check_taken(profile: Profile, words: Words) -> None:
    """Raise Refused where the model does not take its arrays or shape, to judge by its words."""
    layer_job.check_taken(profile, as_layers(words))
    why = layer_job.misfit(profile)
    if words.shape is not None and why:
        what = f"model {words.model!r} does not take items of shape {words.shape}"
        raise Refused(what, why=why)


def _shaped(words: Words, shape: str, *, root: Path, level: str) -> layer_job.Wanted:
    resolved = models.resolve(words.model, root=root)
    batch = words.batch or 1
    data: dict[str, object] = {
        "matrix": {
            "model": words.model,
            "precision": words.precision,
            "batch": batch,
            "device": "cpu",
        },
        "inputs": _inputs(resolved, words.model, _sizes(shape)),
    }
    flags = {
        "matrix.model": words.model,
        "matrix.precision": f"--precision {words.precision}",
        "matrix.batch": f"--batch {batch}",
        "inputs": f"--input-shape {shape}",
    }
    document = Document(name="farm profile cost", data=data, sha256="", flags=flags)
    plan = expand([Sweep(document=document, beside=root, root=root)], effort=level)
    return layer_job.Wanted(plan.jobs[0].job, plan.effort, resolved, None)


def _sizes(shape: str) -> list[int]:
    words = [each.strip() for each in shape.split(",")]
    if not all(re.fullmatch("[0-9]{1,10}", each) and 0 < int(each) <= 2**31 for each in words):
        what = f"--input-shape {short(shape)} is no shape"
        raise Refused(what, why="sizes of one item, without the batch", hint=_EXAMPLE)
    return [int(each) for each in words]


def _inputs(resolved: models.Resolved, model: str, sizes: Sequence[int]) -> dict[str, object]:
    """Return the one input of the model in another shape; a model of one's own takes floats."""
    known = resolved.defaults.inputs if resolved.defaults else None
    spec: dict[str, Tensor] = known if isinstance(known, dict) else {"x": Tensor(shape=())}
    if len(spec) != 1:
        why = f"it takes {', '.join(spec) or 'none'}; a shape is of one input"
        raise Refused(f"model {model!r} needs --input", why=why, hint="--input FILE.npz")
    ((name, tensor),) = spec.items()
    block: dict[str, object] = {"shape": ["batch", *sizes], "dtype": tensor.dtype}
    if isinstance(tensor.high, int):
        block |= {"low": tensor.low, "high": tensor.high}
    return {name: block}
