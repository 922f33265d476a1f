"""One function and one NPZ as a job: what `farm profile callable` asks, checked first."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from farm import imports, models, reading
from farm.errors import Refused
from farm.interchange import Request
from farm.interchange.document import Array, is_gpu
from farm.models import Resolved
from farm.schema import Effort, Inputs, Job, Protocol, Selector, Tensor, Workload
from farm.sweep import arrays
from farm.sweep.signature import check_inputs, signature

MOST_CALLS: Final = 10_000_000
# A slow function is measured all the same; whoever has enough of it presses Ctrl-C.
_PATIENCE_S: Final = 7 * 86_400
_NUMBER: Final = "(?:0|[1-9][0-9]{0,2})"
_DEVICE: Final = re.compile(rf"cpu(?::{_NUMBER})?|gpu|cuda(?::{_NUMBER})?|({_NUMBER})")
_DEVICES: Final = "cpu, cpu:0, gpu, cuda, cuda:1 or the number of a CUDA device"


class Single(Struct, frozen=True, kw_only=True):
    """A job, how long to try, what was asked in words, and the files that it needs.

    sources: the files that tell where the code came from. named: the NPZ as it was written.
    """

    job: Job
    effort: Effort
    request: Request
    resolved: Resolved
    sources: list[Path]
    npz: Path
    named: str


def single(
    model: str,
    npz: str,
    *,
    root: Path,
    device: str = "cpu",
    unit: str = "request",
    precision: str = "unspecified",
    warmup: int = 10,
    repeats: int = 1000,
    tags: Mapping[str, str] | None = None,
    visible: str | None = None,
) -> Single:
    """Return what is asked of the function `MODULE:FUNCTION` or `FILE.py:FUNCTION`.

    root: the current folder. visible: CUDA_VISIBLE_DEVICES if it is set. Raises Refused for every
    mistake that shows without running the function: words, numbers, files, and arrays that it does
    not take (S1.8–S1.12, S1.44).
    """
    for name, word in (("--precision", precision), ("--unit", unit)):
        if not word.strip() or not word.isprintable() or len(word) > 50:
            why = "expected 1 to 50 printable characters"
            raise Refused(f"{name} {reading.short(word)} is no word", why=why)
    _check_count("--warmup", warmup, least=0)
    _check_count("--repeats", repeats, least=1)
    if visible is not None and not visible.isprintable():
        what = f"CUDA_VISIBLE_DEVICES {reading.short(visible)} names no device"
        raise Refused(what, why="expected printable text")
    where = one_device(device)
    resolved = _function(model, root)
    file = root / npz
    given = arrays.load(file, name=npz)
    entry = _entry(resolved)
    if entry is not None:
        _check_signature(entry, resolved, list(given))
    digest = arrays.digest(file)
    shapes = {
        name: Array(shape=list(each.shape), dtype=each.dtype.name) for name, each in given.items()
    }
    return Single(
        job=_job(resolved, shapes, digest, unit=unit, warmup=warmup, repeats=repeats, device=where),
        effort=Effort(repeats=1, timeout_s=_PATIENCE_S, layers=False, flops=False),
        request=Request(
            model=model,
            inputs=shapes,
            inputs_sha256=digest,
            device=where,
            unit=unit,
            precision=precision,
            warmup=warmup,
            repeats=repeats,
            tags=dict(tags or {}),
            visible=visible,
        ),
        resolved=resolved,
        sources=_sources(resolved, entry),
        npz=file,
        named=npz,
    )


def one_device(word: str) -> str:
    """Return the device that a `--device` of `farm profile` names, as the worker knows it.

    `cpu`, `cpu:N`, `cuda` or `cuda:N`: a bare number is a CUDA index, and `gpu` the first of them.
    Raises Refused for any other word.
    """
    found = _DEVICE.fullmatch(word)
    if found is None:
        raise Refused(f"unknown device {reading.short(word)}", why=f"known: {_DEVICES}")
    if found[1]:
        return f"cuda:{found[1]}"
    return "cuda" if word == "gpu" else word


def _job(
    resolved: Resolved,
    shapes: Mapping[str, Array],
    digest: str,
    *,
    unit: str,
    warmup: int,
    repeats: int,
    device: str,
) -> Job:
    spec = {
        name: Tensor(shape=tuple(each.shape), dtype=each.dtype) for name, each in shapes.items()
    }
    return Job(
        workload=Workload(
            model=structs.replace(resolved.model, kind="step"),
            inputs=Inputs(spec=spec, digest=digest),
            # The farm casts nothing here, and must not take the declared word for an order.
            precision="unspecified",
            batch=1,
            backend="torch",
            backend_options={"arrays": "numpy"},
            item=unit,
        ),
        protocol=Protocol(
            warmup=warmup, iterations=repeats, gc="on", grad="function", compat="rpx"
        ),
        selector=Selector(kind="class", value="gpu" if is_gpu(device) else "cpu"),
    )


def _check_count(flag: str, value: int, *, least: int) -> None:
    if not least <= value <= MOST_CALLS:
        bound = f"at least {least}" if value < least else f"at most {MOST_CALLS:,}"
        raise Refused(f"{flag} {reading.short(value)} makes no sense", why=f"it is {bound}")


def _function(model: str, root: Path) -> Resolved:
    if ":" not in model.removeprefix("zoo:"):
        raise Refused(
            f"--model {reading.short(model)} is not MODULE:FUNCTION",
            why="a function is asked for, and called with the arrays by name",
            hint="for example --model workers.models.placeholder:demo_depth",
        )
    return models.resolve(model, root=root, kind="step")


def _entry(resolved: Resolved) -> Path | None:
    """Return the source that the function is defined in, None where there is none to read."""
    place = resolved.model.ref.rpartition(":")[0]
    stem = place if place.endswith(".py") else place.replace(".", "/")
    wanted = {stem, f"{stem}.py", f"{stem}/__init__.py"}
    found = next((path for name, path in resolved.files if name in wanted), None)
    return found if found is not None and found.suffix == ".py" else None


def _check_signature(entry: Path, resolved: Resolved, names: list[str]) -> None:
    reference = resolved.model.ref
    found = signature(imports.parsed(entry), reference.rpartition(":")[2])
    if found is not None:
        check_inputs(found, names, model=reference)


def _sources(resolved: Resolved, entry: Path | None) -> list[Path]:
    """Return the files whose commit is told: all of somebody's own code, else the entry alone."""
    if resolved.model.bundled or entry is None:
        return [path for _, path in resolved.files]
    return [entry]
