"""`farm profile callable`: one function, timed with arrays of one's own, as a JSON file."""

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import click

from farm.cli import candidates, completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk, current_folder
from farm.errors import NoResult, Refused

if TYPE_CHECKING:
    from farm.interchange import CallableProfile
    from farm.once import Measured
    from farm.schema import Asked
    from farm.sweep.single import Single

    Measure = Callable[..., Measured]

# How the worker begins to say that a function cannot be called with these arrays.
_NOT_CALLABLE: Final = ("no step: ", "the step is a ")
_NOT_HERE: Final = ("environment", "no_device")


@verb(
    "callable",
    examples=(
        "farm profile callable --model workers.models.placeholder:demo_depth "
        "--inputs frame.npz --output depth.json",
        "farm profile callable --model predict.py:predict --inputs clip.npz --output out/clip.json "
        "--device cuda --precision fp16 --unit clip -t frames=16",
    ),
)
@click.option(
    "--model",
    required=True,
    metavar="MODULE:FUNCTION",
    shell_complete=candidates.function,
    help="Called with each array by name; FILE.py:FUNCTION works too.",
)
@click.option(
    "--inputs",
    required=True,
    metavar="NPZ",
    shell_complete=candidates.arrays,
    help="Its arrays are the arguments.",
)
@click.option(
    "--output",
    required=True,
    metavar="JSON",
    shell_complete=completing.file,
    help="The file to write; its folder is made.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    metavar="cpu|cuda[:N]",
    shell_complete=candidates.device,
    help="Where it computes.",
)
@click.option(
    "--precision",
    default="unspecified",
    show_default=True,
    metavar="WORD",
    help="Noted as it is said; nothing is cast.",
)
@click.option(
    "--unit", default="request", show_default=True, metavar="WORD", help="What one call handles."
)
@click.option("--warmup", type=int, default=10, show_default=True, help="Untimed calls first.")
@click.option("--repeats", type=int, default=1000, show_default=True, help="Timed calls.")
@options.tag
@click.option("--force", is_flag=True, help="Replace the output if it is there.")
@click.pass_obj
def callable_(
    talk: Talk,
    model: str,
    inputs: str,
    output: str,
    device: str,
    precision: str,
    unit: str,
    warmup: int,
    repeats: int,
    marks: tuple[str, ...],
    force: bool,
) -> None:
    """Time a Python function, and record memory, hardware and software with the times.

    It is called in a process of its own with the arrays of the NPZ by their names. It decides on
    its own about placement, gradients and precision; all that it does inside is timed.
    """
    import msgspec

    from farm import interchange, once
    from farm.profiles import callables
    from farm.report import words
    from farm.sweep.single import single
    from farm.writing import write

    asked = single(
        model,
        inputs,
        root=current_folder(),
        device=device,
        unit=unit,
        precision=precision,
        warmup=warmup,
        repeats=repeats,
        tags=options.tags(marks),
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )
    path = Path(output)
    check_output(path, force=force, keeps=[Path(inputs), *asked.sources])
    console = talk.console()
    document = profiled(asked, measure=once.measure, say=console.say, run=_program)
    data = interchange.encode(document)
    write(path, [data])
    if talk.as_json:
        console.document(msgspec.json.format(data, indent=-1))
        return
    console.show(*callables.screen(document))
    console.say(f"{words.count(len(document.latency_samples_ms), 'sample')} into {output}")
    console.next(next_step(asked, path))


def check_output(path: Path, *, force: bool, keeps: Sequence[Path] = ()) -> None:
    """Make the folder of the output; raise Refused if the file could not be, or must not be.

    keeps: what the run itself reads, which is replaced by nothing.
    """
    from farm.writing import write

    is_there = os.path.isfile(path)
    if any(is_there and os.path.exists(each) and path.samefile(each) for each in keeps):
        raise Refused(f"{str(path)!r} is read by this very run", hint="name another output")
    if is_there and not force:
        raise Refused(
            f"{str(path)!r} is there already",
            why="a former result is not overwritten",
            hint="--force replaces it",
        )
    write(path, (), trial=True)


def profiled(
    asked: "Single",
    *,
    measure: "Measure",
    say: Callable[[str], None],
    run: Callable[[Sequence[str], Path], str | None],
) -> "CallableProfile":
    """Return what a function's calls came to.

    measure: as `once.measure`. run: a program for its output. Raises Refused if the function turns
    out not to take its arguments, Bad if it raises, NoResult if its device is not here.
    """
    from farm import identity, interchange, once, schema

    came_from = interchange.origin(asked.sources, run=run)
    with TemporaryDirectory(prefix="farm-callable-") as name:
        folder = Path(name)
        measured = measure(_document(asked, folder), say=say)
        check_called(measured)
        check_here(measured)
        found = once.whole(measured)
        process = interchange.that_counts(found.profile, found.samples())
        return interchange.of_profile(
            found.profile,
            [process.samples_ms],
            asked.request,
            origin=came_from,
            card=found.card,
            profile_id=identity.content_id(schema.encode(found.profile)),
            quality=process.quality,
        )


def check_called(measured: "Measured") -> None:
    """Raise Refused where the worker found that the function cannot be called as asked.

    It looks at the function itself, where the source does not settle what it accepts.
    """
    from farm.schema import Failure

    failure = measured.profile.failure
    if not isinstance(failure, Failure) or failure.phase != "load":
        return
    place = measured.profile.job.workload.model.ref.rpartition(":")[0]
    if failure.message.startswith((*_NOT_CALLABLE, f"{place} has no ")):
        raise Refused(failure.message, hint=failure.hint)


def check_here(measured: "Measured") -> None:
    """Raise NoResult where what the function needs is not here: a device, a framework."""
    from farm.schema import Failure

    failure = measured.profile.failure
    if isinstance(failure, Failure) and failure.kind in _NOT_HERE:
        raise NoResult(failure.message, hint=failure.hint)


def next_step(asked: "Single", path: Path) -> str:
    """Return the command that says more: a second run, or how it stands to the first one."""
    first = path.with_name(path.name.replace("-2.json", ".json"))
    if first != path and first.is_file():
        return shlex.join(["farm", "profile", "compare", str(first), str(path)])
    second = path.with_name(f"{path.stem}-2.json")
    request = asked.request
    words = ["--model", request.model, "--inputs", asked.named, "--output", str(second)]
    usual = {"device": "cpu", "precision": "unspecified", "unit": "request"}
    for name, value in [*usual.items(), ("warmup", 10), ("repeats", 1000)]:
        if getattr(request, name) != value:
            words += [f"--{name}", str(getattr(request, name))]
    words += [word for key, value in request.tags.items() for word in ("-t", f"{key}={value}")]
    return shlex.join(["farm", "profile", "callable", *words])


def _document(asked: "Single", folder: Path) -> "Asked":
    from farm import once
    from farm.schema import Asked

    work = folder / "work"
    work.mkdir()
    return Asked(
        job=asked.job,
        effort=asked.effort,
        folder=str(work),
        device=asked.request.device,
        passes=("latency",),
        bundle=once.stage(asked.resolved, folder),
        npz=str(asked.npz.absolute()),
        tags=asked.request.tags,
    )


def _program(words: Sequence[str], folder: Path) -> str | None:
    """Return what a program printed; None if it is not here, fails, or takes over five seconds."""
    try:
        said = subprocess.run(
            list(words),
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout if said.returncode == 0 else None
