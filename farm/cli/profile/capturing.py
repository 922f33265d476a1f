"""`farm profile run` and `infer`: a short training or inference, measured clean and then traced."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from farm.cli import candidates, completing
from farm.cli.group import options, verb
from farm.cli.talk import Talk, current_folder
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.cli.profile.capture_words import Words

F = TypeVar("F", bound=Callable[..., Any])
_MOST = 1_000_000


_model = click.option(
    "--weights",
    default="detector-t",
    show_default=True,
    shell_complete=candidates.model,
    help="A name of the zoo, MODULE:FUNCTION, FILE.py:FUNCTION or FILE.onnx.",
)
_size = click.option("--size", default="t", show_default=True, help="Of the detector.")
_imgsz = click.option(
    "--imgsz",
    type=click.IntRange(32, 8192),
    default=640,
    show_default=True,
    help="Pixels of a side of an image.",
)
_repeat = click.option(
    "--repeat",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Trials, each in processes of its own; two or more can be compared.",
)
_device = click.option(
    "--device",
    metavar="SEL",
    default="0",
    show_default=True,
    shell_complete=candidates.device,
    help="cpu, cuda:1, or the number of a CUDA device.",
)
_project = click.option(
    "--project",
    metavar="DIR",
    default="runs/profile",
    show_default=True,
    shell_complete=completing.folder,
    help="Where the files go; those of an earlier capture are replaced.",
)


def _batch(default: int, *, least: int, said: str) -> Callable[[F], F]:
    kind = click.IntRange(least, _MOST)
    return click.option("--batch", type=kind, default=default, show_default=True, help=said)


def _warmup(default: int) -> Callable[[F], F]:
    kind, said = click.IntRange(0, _MOST), "Iterations before the window."
    return click.option("--warmup", type=kind, default=default, show_default=True, help=said)


@verb(
    "run",
    examples=(
        "farm profile run synthetic-400 --device cpu --batch 4 --imgsz 160",
        "farm profile run data.yaml --steps 40 --repeat 3",
        "farm profile run synthetic --weights resnet18 --imgsz 64 --device cpu",
    ),
)
@click.argument("data", shell_complete=candidates.data)
@_model
@_size
@_batch(16, least=-1, said="Items of an iteration; -1 fits about 70 % of a GPU's memory.")
@_imgsz
@_warmup(5)
@click.option(
    "--steps",
    type=click.IntRange(1, _MOST),
    default=20,
    show_default=True,
    help="Iterations in the window.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, 256),
    default=8,
    show_default=True,
    help="Loader processes.",
)
@click.option("--amp/--no-amp", default=True, show_default=True, help="Autocast, on CUDA.")
@_repeat
@_device
@_project
@click.option(
    "--allow-experimental",
    is_flag=True,
    help="Train a model of your own that brings no loss: on a stand-in.",
)
@click.pass_context
def run(ctx: click.Context, /, **_: Any) -> None:
    """Profile a short training on DATA: where a step's time goes, and what limits it.

    DATA is `synthetic` (endless), synthetic-N (N generated images), a dataset YAML, or
    MODULE:FUNCTION that yields batches. One pass over it has to hold warm-up and steps. Nothing is
    learnt: the learning rate is 0, so that every step is like the last.
    """
    _capture(ctx, words(ctx))


@verb(
    "infer",
    examples=(
        "farm profile infer --device cpu --warmup 5 --runs 20",
        "farm profile infer images/ --batch 4 --repeat 3",
        "farm profile infer --weights model.onnx --device cpu --no-trace",
    ),
)
@click.argument("source", required=False, shell_complete=candidates.picture)
@_model
@_size
@_batch(1, least=1, said="Images of a forward pass.")
@_imgsz
@_warmup(20)
@click.option(
    "--runs",
    "steps",
    type=click.IntRange(1, _MOST),
    default=100,
    show_default=True,
    help="Iterations that are timed.",
)
@click.option("--half/--no-half", default=False, show_default=True, help="Autocast, on CUDA.")
@click.option(
    "--amp-dtype",
    "dtype",
    type=click.Choice(["float16", "bfloat16"]),
    default="float16",
    show_default=True,
    help="What autocast computes in.",
)
@click.option(
    "--conf",
    type=click.FloatRange(0, 1),
    default=0.25,
    show_default=True,
    help="Least score of a detection.",
)
@click.option(
    "--iou",
    type=click.FloatRange(0, 1),
    default=0.45,
    show_default=True,
    help="Overlap from which the weaker of two detections goes.",
)
@click.option(
    "--max-det",
    type=click.IntRange(1, 100_000),
    default=300,
    show_default=True,
    help="Most detections of an image.",
)
@click.option(
    "--trace/--no-trace", default=True, show_default=True, help="Trace kernels and ops as well."
)
@_repeat
@_device
@_project
@click.pass_context
def infer(ctx: click.Context, /, **_: Any) -> None:
    """Profile an inference on SOURCE: latency, throughput, stages, and what limits it.

    SOURCE is an image or a folder of images, PPM, PGM, NPY or NPZ, and JPEG and PNG where Pillow is
    installed; without it an image that comes along is taken.
    """
    _capture(ctx, words(ctx))


def words(ctx: click.Context) -> "Words":
    """Return what a command line of either verb asks for, and which of its options it gave."""
    from farm.cli.profile.capture_words import Words

    if not ctx.params["project"]:
        raise Refused("--project '' is no folder", hint="--project . is the current one")
    params = [each for each in ctx.command.params if isinstance(each, click.Option)]
    given = frozenset(
        each.opts[0].lstrip("-").replace("-", "_")
        for each in params
        if ctx.get_parameter_source(str(each.name)) is not ParameterSource.DEFAULT
    )
    more = ctx.params | {"project": Path(ctx.params["project"])}
    if "data" in more:
        named = {"data": "what", "amp": "autocast", "allow_experimental": "experimental"}
        own: dict[str, Any] = {"kind": "run", "dtype": "float16"}
    else:
        named = {"source": "what", "half": "autocast"}
        own = {"kind": "infer"}
    own |= {named.get(name, name): each for name, each in more.items()}
    return Words(**own, options=options(ctx.command), given=given)


def _capture(ctx: click.Context, words: "Words") -> None:
    import shlex

    from farm import once, schema
    from farm.cli.profile import capture_pass, trace_lines

    talk: Talk = ctx.obj
    console = talk.console()
    found = capture_pass.taken(
        words, root=current_folder(), measure=once.measure, say=console.say, warn=console.warn
    )
    if talk.as_json:
        console.document(schema.encode(found.found))
        return
    console.show(*trace_lines.summary(found.found, name=str(found.file)))
    verb = "phases" if found.found.phases else "get"
    console.next(f"farm profile {verb} {shlex.quote(str(found.file))}")
