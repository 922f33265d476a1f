"""The verbs that look into profiles one by one: list, show, get, pull."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli import completing, options
from farm.cli.group import Verbs, verb
from farm.cli.talk import Talk
from farm.errors import NoResult, Refused, Stopped

if TYPE_CHECKING:
    from farm.console import Console
    from farm.profiles import Listed

_wheres = click.option(
    *("-w", "--where", "wheres"), multiple=True, metavar="KEY=VALUE", help="Keep these."
)
_profile = click.argument("profile", shell_complete=completing.profile)


@click.group(cls=Verbs)
def profiles() -> None:
    """Search the profiles of the store."""


@verb(
    "list",
    examples=(
        "farm profiles list -w model=resnet18 -w precision=fp16 --since 7d",
        "farm profiles list --sort latency.p50 --limit 10",
        "farm profiles list --json | jq .p50_ms",
    ),
)
@_wheres
@click.option("--since", metavar="D", help="Taken within 7d, 12h, …")
@click.option(
    "--sort",
    metavar="METRIC",
    shell_complete=completing.metric,
    help="The smallest first: latency.p50, throughput, …  [the newest first]",
)
@options.limit("profiles", 50)
@click.option("--all-attempts", is_flag=True, help="Also those that did not win.")
@options.store
@click.pass_obj
def list_(
    talk: Talk,
    wheres: tuple[str, ...],
    since: str | None,
    sort: str | None,
    limit: int,
    all_attempts: bool,
    store: str | None,
) -> None:
    """List profiles, newest first; with --json one line each."""
    from farm import profiles as shelf

    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    found = shelf.listed(
        where, wheres, since=since, all_attempts=all_attempts, now=datetime.now(UTC)
    )
    rows = shelf.by(found.rows, sort) if sort is not None else found.rows
    _complain(console, found)
    if talk.as_json:
        for each in rows[:limit]:
            console.document(shelf.document(each))
    else:
        console.show(shelf.table(rows[:limit], of=len(rows)))


@verb(
    examples=(
        "farm profiles show @last/mlp-fp32-b1-cpu",
        "farm profiles show 3f9a61c04b77",
    )
)
@_profile
@options.store
@click.pass_obj
def show(talk: Talk, profile: str, store: str | None) -> None:
    """Show one PROFILE: figures, repeats, quality, artefacts, and how to measure it again.

    PROFILE is an id or its unique beginning, RUN/LABEL, or a job id.
    """
    from farm import profiles as shelf
    from farm import schema

    row = shelf.find(talk.store(talk.settings(store=store).store.value), profile)
    console = talk.console()
    if talk.as_json:
        console.document(schema.encode(row.profile))
    else:
        console.show(*shelf.screen(row))


@verb(
    examples=(
        "farm profiles get @last/mlp-fp32-b1-cpu latency.p50",
        "farm profiles get @last/mlp-fp32-b1-cpu layers",
        "farm profiles get 3f9a61c04b77",
    )
)
@_profile
@click.argument("field", required=False, shell_complete=completing.field)
@options.store
@click.pass_obj
def get(talk: Talk, profile: str, field: str | None, store: str | None) -> None:
    """Print one bare value of PROFILE; without a FIELD, list the fields.

    FIELD is a metric such as latency.p50, a dotted path, job, card, or an artefact such as layers
    or log.
    """
    from farm import answers
    from farm import profiles as shelf

    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    row = shelf.find(where, profile)
    if field is None:
        names = shelf.fields(row)
        console.document(answers.Fields(fields=names)) if talk.as_json else console.show(*names)
        return
    value = shelf.value(where, row, field)
    if talk.as_json:
        console.document(answers.Value(field=field, value=value.data, why=value.reason))
    else:
        console.data(value.text)
    if value.reason:
        console.say(f"{field} is null: {value.reason}")


@verb(
    examples=(
        "farm profiles pull -w run=r-7f3a91 -o night/",
        "farm profiles pull -w model=mlp --artifacts samples --artifacts log -o mlp/",
    )
)
@_wheres
@click.option(
    *("-o", "--output"),
    metavar="DIR",
    required=True,
    shell_complete=completing.folder,
    help="The folder; it is made.",
)
@click.option(
    *("--artifacts", "kinds"), multiple=True, metavar="KIND", help="Also these: samples, log, …"
)
@click.option("--force", is_flag=True, help="Write anew what is there.")
@options.store
@click.pass_obj
def pull(
    talk: Talk,
    wheres: tuple[str, ...],
    output: str,
    kinds: tuple[str, ...],
    force: bool,
    store: str | None,
) -> None:
    """Copy profiles into a folder, one file each; what is there already is kept."""
    from farm import answers
    from farm import profiles as shelf
    from farm.report.words import count

    if not output:
        raise Refused("cannot write ''", why="a folder without a name")
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    found = shelf.listed(where, wheres, since=None, all_attempts=False, now=datetime.now(UTC))
    _complain(console, found)
    try:
        done = shelf.pull(where, found.rows, Path(output), kinds=kinds, force=force)
    except KeyboardInterrupt as error:
        raise Stopped("interrupted", hint="the same command copies the rest") from error
    for each in done.damaged:
        console.warn(str(each))
    if talk.as_json:
        told = {"profiles": done.profiles, "artifacts": done.artifacts, "kept": done.kept}
        console.document(answers.Pulled(folder=output, damaged=len(done.damaged), **told))
    kept = f"; {count(done.kept, 'file')} kept, --force writes them anew" if done.kept else ""
    beside = f" and {count(done.artifacts, 'artefact')}" if kinds else ""
    wrote = f"{count(done.profiles, 'profile')}{beside}"
    console.say(f"{wrote} into {output}{kept}")
    if done.damaged:
        raise click.exceptions.Exit(1)


profiles.add("Commands", list_, show, get, pull)


def _complain(console: "Console", found: "Listed") -> None:
    """Warn of what could not be read; raise NoResult if nothing is left."""
    for damage in found.unreadable:
        console.warn(f"unreadable: {damage.key}: {damage.reason}")
    if not found.rows:
        raise NoResult("no profile matches", hint="`farm status` lists the runs of this store")
