"""`farm profile cost`: what a model needs, what hardware makes of it, and what it takes here."""

import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from farm.cli import candidates, options
from farm.cli.group import verb
from farm.cli.talk import Talk, current_folder
from farm.errors import Bad, NoResult

if TYPE_CHECKING:
    from farm.cli.profile.cost_job import Words
    from farm.costs.record import CostReport
    from farm.once import Measured

    Measure = Callable[..., Measured]

_EXAMPLES = (
    "farm profile cost resnet18 --input-shape 3,224,224 --latency",
    "farm profile cost model.py:build --input sample.npz --spec A100-SXM4-80GB --spec L4",
    "farm profile cost vit_tiny --batch 8 --spec L4 --latency-ms 12.5",
)


@verb("cost", examples=_EXAMPLES)
@click.argument("model", shell_complete=candidates.model)
@options.given
@click.option(
    *("--input-shape", "shape"),
    metavar="3,224,224",
    help="Size of one item instead, without the batch.",
)
@click.option(
    "--batch", type=click.IntRange(1), help="Items of an iteration.  [as the input has, or 1]"
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "bf16", "fp16", "unspecified"]),
    default="fp32",
    show_default=True,
    help="What weights and inputs are cast to.",
)
@click.option(
    *("--spec", "specs"),
    multiple=True,
    metavar="DEVICE",
    shell_complete=candidates.spec,
    help="Hold it against the peaks of these devices; all for every one.  [all]",
)
@click.option("--latency", is_flag=True, help="Measure the latency here as well.")
@click.option(
    "--latency-ms", "given_ms", type=float, metavar="X", help="A latency that is known already."
)
@click.pass_obj
def cost(
    talk: Talk,
    model: str,
    given: str | None,
    shape: str | None,
    batch: int | None,
    precision: str,
    specs: tuple[str, ...],
    latency: bool,
    given_ms: float | None,
) -> None:
    """Tell what MODEL needs, what limits it on each device, and what a change would save.

    MODEL is a name of the zoo, MODULE:FUNCTION, FILE.py:FUNCTION or FILE.onnx.

    Parameters, FLOPs and bytes come from the model, in a process of its own here. What a device
    makes of them is computed from its peaks and not measured; --latency measures on this machine.
    """
    from farm import once, schema
    from farm.cli.profile import cost_job, cost_views

    words = cost_job.Words(
        model=model,
        given=given,
        shape=shape,
        batch=batch,
        precision=precision,
        specs=specs,
        latency=latency,
        given_ms=given_ms,
    )
    console = talk.console()
    found = reported(
        words,
        root=current_folder(),
        level=talk.settings().effort.value,
        measure=once.measure,
        say=console.say,
    )
    if talk.as_json:
        console.document(schema.encode(found))
        return
    console.show(*cost_views.screen(found))
    if step := next_step(words):
        console.next(step)


def reported(
    words: "Words", *, root: Path, level: str, measure: "Measure", say: Callable[[str], None]
) -> "CostReport":
    """Return the report of a model; measure: as `once.measure`.

    Everything that may be refused is refused before anything runs. Raises Bad if the model fails,
    NoResult if nobody can look into it.
    """
    from farm import costs, once
    from farm.cli.profile import cost_job, layer_job

    cost_job.check(words)
    specs = cost_job.specs(words.specs)
    with TemporaryDirectory(prefix="farm-cost-") as name:
        folder = Path(name)
        job = cost_job.wanted(words, root=root, folder=folder, level=level)
        measured = measure(cost_job.asked(job, words, folder=folder), say=say)
        cost_job.check_taken(measured.profile, words)
        found = once.whole(measured)
    if found.profile.cost is None:
        code, _, detail = found.profile.null_reasons.get("cost", "not_probed").partition(": ")
        kind = Bad if code in ("phase_failed", "timed_out", "error") else NoResult
        why = f"{code}: {detail}" if detail else code
        raise kind(f"no cost of {words.model!r}", why=why, hint=layer_job.instead(detail))
    return costs.report(found.profile, found.layers, specs, given_ms=words.given_ms)


def next_step(words: "Words") -> str:
    """Return the command that says more: how long it takes here, then where the time goes.

    It asks about the same inputs; "" where a layer pass could not, which takes no shape.
    """
    known = words.latency or words.given_ms is not None
    again = ["farm", "profile", "layers" if known else "cost", words.model]
    if known and words.shape is not None:
        return ""
    precision = None if words.precision == "fp32" else words.precision
    given = [("--input", words.given), ("--input-shape", words.shape), ("--precision", precision)]
    for flag, value in (*given, ("--batch", words.batch)):
        again += [flag, str(value)] if value is not None else []
    if known:
        return shlex.join([*again, "--benchmark"])
    again += [word for each in words.specs for word in ("--spec", each)]
    return shlex.join([*again, "--latency"])
