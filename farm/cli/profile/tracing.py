"""`farm profile summary|get|phases|kernels|ops|what-if`: what a trace says, without running it."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from farm.cli import candidates
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.trace.analysis.choosing import Order, Told

_TRACE: Final = "trace.json.gz"
_argument = click.argument("trace", shell_complete=candidates.trace)
_top = click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Rows to show."
)
_phase = click.option(
    "--phase", metavar="PHASE", help="Only this phase.", shell_complete=candidates.phase
)


@verb(
    "summary",
    examples=(
        f"farm profile summary {_TRACE}",
        f"farm profile summary {_TRACE} --html > timeline.html",
    ),
)
@_argument
@click.option("--html", "as_page", is_flag=True, help="One page instead, with a timeline.")
@click.pass_obj
def summary(talk: Talk, trace: str, as_page: bool) -> None:
    """Tell how long a step of TRACE takes, where the time goes, and what limits it.

    TRACE is a Chrome trace as PyTorch writes it, plain or gzip, a profile.json, what another tool
    timed of layers, or the id of a profile or job of the store that kept a trace.
    """
    from farm import schema
    from farm.cli.profile import layered, sources, trace_lines, trace_page
    from farm.trace.importing.record import LayerProfile

    if talk.as_json and as_page:
        raise Refused("--json and --html are two forms", hint="give one of them")
    opened = sources.found(talk, trace)
    if isinstance(opened, LayerProfile):
        layered.summary(talk, opened, as_page=as_page)
        return
    found, console = opened.analysis, talk.console()
    if talk.as_json:
        console.document(schema.encode(found))
        return
    if as_page:
        console.data(trace_page.page(opened, name=trace))
        return
    console.show(*trace_lines.summary(found, name=trace))
    more = "kernels" if found.kernels else "ops" if found.ops else ""
    if more and not _is_pipe(trace):
        console.next(f"farm profile {more} {shlex.quote(trace)}")


@verb("get", examples=(f"farm profile get {_TRACE} gpu_util",))
@_argument
@click.argument("field", required=False)
@click.pass_obj
def get(talk: Talk, trace: str, field: str | None) -> None:
    """Print one bare metric of TRACE; without a FIELD, list them all with their units.

    What the trace does not tell is `null`.
    """
    from farm import schema
    from farm.cli.profile import sources, trace_views
    from farm.trace.analysis.answers import MetricsRead
    from farm.trace.importing.record import LayerProfile

    made = sources.found(talk, trace)
    found = made if isinstance(made, LayerProfile) else made.analysis
    console = talk.console()
    if field is not None:
        _one(talk, found, field)
    elif talk.as_json:
        told = MetricsRead(
            trace=trace,
            metrics=found.metrics,
            null_reasons=_reasons(found, "metrics", "metrics"),
        )
        console.document(schema.encode(told))
    else:
        console.show(trace_views.listing(found))


@verb("phases", examples=(f"farm profile phases {_TRACE}",))
@_argument
@click.pass_obj
def phases(talk: Talk, trace: str) -> None:
    """Show what each phase of a step launched: GPU and wall time, kernels, launches, ops.

    A kernel is of the phase that launched it, however late it ran.
    """
    from farm import schema
    from farm.cli.profile import sources, trace_views
    from farm.trace.analysis.answers import PhasesRead

    found = sources.analysis_of(talk, trace, needs="the phases of a step").analysis
    console = talk.console()
    if talk.as_json:
        told = PhasesRead(
            trace=trace,
            inferred_forward=found.inferred_forward,
            rows=found.phases,
            null_reasons=_reasons(found, "phases", "rows"),
        )
        console.document(schema.encode(told))
        return
    console.show(trace_views.phases(found))


@verb("kernels", examples=(f"farm profile kernels {_TRACE} --category gemm --phase backward",))
@_argument
@_top
@click.option(
    *("--category", "category"),
    metavar="TEXT",
    help="Only categories with this in their name.",
    shell_complete=candidates.category,
)
@click.option("--grep", metavar="REGEX", help="Only kernels whose name this is found in.")
@click.option("--tensorcore", is_flag=True, help="Only kernels whose name proves matrix units.")
@click.option(
    *("--sort", "order"),
    type=click.Choice(["time", "count", "name"]),
    default="time",
    show_default=True,
    help="By what.",
)
@_phase
@click.pass_obj
def kernels(
    talk: Talk,
    trace: str,
    top: int,
    category: str | None,
    grep: str | None,
    tensorcore: bool,
    order: "Order",
    phase: str | None,
) -> None:
    """Show the costliest kernels of TRACE; shares are of the phase, if one is named."""
    from farm import schema
    from farm.cli.profile import layered, sources, trace_views
    from farm.trace.analysis import choosing
    from farm.trace.analysis.answers import KernelsRead
    from farm.trace.importing.record import LayerProfile

    made = sources.found(talk, trace)
    if isinstance(made, LayerProfile):
        of_gpu = {
            "the category of a layer": category is not None,
            "which layers use matrix units": tensorcore,
            "the phases of a step": phase is not None,
        }
        layered.kernels(talk, made, top=top, pattern=grep, order=order, of_gpu=of_gpu)
        return
    found = made.analysis
    rows = choosing.kernels(
        found, phase=phase, category=category, pattern=grep, tensorcore=tensorcore, order=order
    )
    console = talk.console()
    if talk.as_json:
        told = KernelsRead(trace=trace, phase=phase or "", of=len(rows), rows=rows[:top])
        console.document(schema.encode(told))
        return
    console.show(trace_views.kernels(rows[:top], of=len(rows), phase=phase or ""))


@verb("ops", examples=(f"farm profile ops {_TRACE} --phase forward",))
@_argument
@_top
@_phase
@click.pass_obj
def ops(talk: Talk, trace: str, top: int, phase: str | None) -> None:
    """Show the costliest ops of TRACE by self time: their own on the host, without inner ops."""
    from farm import schema
    from farm.cli.profile import layered, sources, trace_views
    from farm.trace.analysis import choosing
    from farm.trace.analysis.answers import OpsRead
    from farm.trace.importing.record import LayerProfile

    made = sources.found(talk, trace)
    if isinstance(made, LayerProfile):
        layered.ops(talk, made, top=top, phase=phase)
        return
    found = made.analysis
    rows = choosing.ops(found, phase=phase)
    console = talk.console()
    if talk.as_json:
        told = OpsRead(trace=trace, phase=phase or "", of=len(rows), rows=rows[:top])
        console.document(schema.encode(told))
        return
    console.show(trace_views.ops(rows[:top], of=len(rows), phase=phase or ""))


@verb(
    "what-if",
    examples=(
        f"farm profile what-if {_TRACE} --remove-launches 100",
        f"farm profile what-if {_TRACE} --remove-category layout",
    ),
)
@_argument
@click.option(
    *("--remove-category", "category"),
    metavar="TEXT",
    help="Without the kernels of this category.",
    shell_complete=candidates.category,
)
@click.option(
    "--remove-launches", "launches", type=int, metavar="N", help="With so many fewer launch calls."
)
@click.pass_obj
def what_if(talk: Talk, trace: str, category: str | None, launches: int | None) -> None:
    """Project what a step would take without some of its work, and between which bounds.

    Only measuring again proves it.
    """
    from farm import schema
    from farm.cli.profile import sources, trace_lines
    from farm.trace import projecting

    if (category is None) == (launches is None):
        raise Refused(
            "nothing to remove" if category is None else "two things to remove",
            why="expected --remove-category or --remove-launches",
        )
    opened = sources.analysis_of(talk, trace, needs="kernels and their launches")
    found = projecting.projected(opened, category=category, launches=launches)
    console = talk.console()
    if talk.as_json:
        console.document(schema.encode(found))
        return
    console.show(*trace_lines.what_if(found))


# ── what they share ──────────────────────────────────────────────────────────────────────────────


def _one(talk: Talk, found: "Told", field: str) -> None:
    """Print one metric; why it is null is talk."""
    import msgspec

    from farm import answers
    from farm.trace.analysis import choosing

    value = choosing.metric(found, field)
    why = found.null_reasons.get(f"metrics.{field}", "")
    console = talk.console()
    if talk.as_json:
        console.document(answers.Value(field=field, value=value, why=why))
        return
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    console.data(f"{text}\n")
    if why:
        console.say(f"{field} is null: {why}")


def _reasons(found: "Told", part: str, called: str) -> dict[str, str]:
    """Return the reasons of the nulls in a part of what was read, by their place in an answer."""
    return {
        path.replace(part, called, 1): each
        for path, each in found.null_reasons.items()
        if path.startswith(f"{part}.")
    }


def _is_pipe(trace: str) -> bool:
    """Whether it can be read once only."""
    return os.path.lexists(trace) and not Path(trace).is_file() and not Path(trace).is_dir()
