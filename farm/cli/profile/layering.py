"""`farm profile layers`: what takes the time."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from farm.cli import candidates, completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk, current_folder
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.trace.documents import LayersTaken

_EXAMPLES = (
    "farm profile layers resnet18 --benchmark",
    "farm profile layers model.py:build --input sample.npz --batch 8 --precision bf16",
    "farm profile layers trt_profile.json",
    "farm profile layers profile_layers.csv#1",
)
# What means something only where a model is run.
_OF_A_RUN = ("given", "output", "iterations", "benchmark", "precision", "batch", "device", "force")


@verb("layers", examples=_EXAMPLES)
@click.argument("model", shell_complete=candidates.subject)
@options.given
@click.option(
    *("--output",),
    metavar="NPZ",
    shell_complete=completing.file,
    help="Write what the model returns here.  [not written]",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 10_000_000),
    help="Profiled iterations; untimed ones come first.  [100, of a graph 200]",
)
@click.option(
    *("--profile-output",),
    metavar="CSV",
    default="profile_layers.csv",
    show_default=True,
    shell_complete=candidates.layer_csv,
    help="Append the table to this file.",
)
@click.option("--benchmark", is_flag=True, help="Take the latency too, in clean passes.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "bf16", "fp16", "unspecified"]),
    default="fp32",
    show_default=True,
    help="What weights and inputs are cast to.",
)
@click.option(
    "--batch", type=click.IntRange(1), help="Items of an iteration.  [as the input has, or 1]"
)
@click.option(
    "--device",
    metavar="SEL",
    shell_complete=candidates.device,
    help="cpu, cpu:0, cuda, cuda:1, 1.  [the first GPU, or cpu]",
)
@click.option("--force", is_flag=True, help="Replace the output if it is there.")
@click.pass_context
def layers(
    ctx: click.Context,
    model: str,
    given: str | None,
    output: str | None,
    iterations: int | None,
    profile_output: str,
    benchmark: bool,
    precision: str,
    batch: int | None,
    device: str | None,
    force: bool,
) -> None:
    """Find the layers of MODEL that take the time, and append their table to a CSV.

    MODEL is a name of the zoo, MODULE:FUNCTION, FILE.py:FUNCTION or FILE.onnx. A layer profile that
    TensorRT or ONNX Runtime wrote (.json) is imported into the CSV, and a block of such a CSV is
    shown.

    Shares are what counts: a layer profiler slows the model down, so never profile in production,
    and take no total of it for a latency. --benchmark takes that, apart and without a profiler.
    """
    from farm.cli.profile import layer_files, layer_job, layer_pass

    talk: Talk = ctx.obj
    if layer_files.is_file(model):
        _show_file(ctx, model, Path(profile_output))
        return
    words = layer_job.Words(
        model=model,
        given=given,
        output=Path(output) if output is not None else None,
        force=force,
        iterations=iterations or 0,
        csv=Path(profile_output),
        benchmark=benchmark,
        precision=precision,
        batch=batch,
        device=device,
    )
    from farm import once

    console = talk.console()
    found = layer_pass.taken(
        words,
        root=current_folder(),
        level=talk.settings().effort.value,
        has_gpu=Path("/dev/nvidiactl").exists(),
        measure=once.measure,
        say=console.say,
        warn=console.warn,
    )
    _show_taken(talk, found)
    console.next(layer_pass.next_step(found, words))


# ── what they print ──────────────────────────────────────────────────────────────────────────────


def _show_taken(talk: Talk, found: "LayersTaken") -> None:
    from farm import schema
    from farm.cli.profile import layer_views
    from farm.schema import Latency

    console = talk.console()
    if talk.as_json:
        console.document(schema.encode(found))
        return
    console.show(*layer_views.measured(found))
    console.show("", *layer_views.about(found.table))
    # A figure of its own, never among the columns of the pass that was slowed down.
    if isinstance(found.latency, Latency):
        console.show("", layer_views.latency(found.latency, found.flags))
    outputs = f"; outputs in {found.output}" if found.output else ""
    console.say(f"appended to {layer_views.where(found)}{outputs}")


def _show_file(ctx: click.Context, word: str, csv: Path) -> None:
    """Import a foreign profile into the CSV and show it; a block of a CSV is only shown."""
    from datetime import UTC, datetime

    from farm import schema
    from farm.cli.profile import layer_files, layer_views
    from farm.trace import shares

    idle = _OF_A_RUN if word.endswith(".json") else (*_OF_A_RUN, "profile_output")
    for param in ctx.command.params:
        given = ctx.get_parameter_source(str(param.name)) is not ParameterSource.DEFAULT
        if given and param.name in idle:
            why = "it was profiled before, and nothing is run"
            raise Refused(f"{param.opts[0]} means nothing for {word!r}", why=why)
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    found = layer_files.shown(word, csv, now=now)
    talk: Talk = ctx.obj
    console = talk.console()
    if talk.as_json:
        if wrong := shares.odd(found.chosen.rows):
            console.warn(f"{found.chosen.name}: {wrong}")
        console.document(schema.encode(layer_files.document(found)))
        return
    console.show(*layer_views.printed(found.chosen))
    if found.block:
        console.say(f"appended to {found.file}#{found.block}")
