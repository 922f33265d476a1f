"""The verbs that read what was measured: reports and profiles."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farm.cli import options
from farm.cli.group import Verbs
from farm.cli.talk import Talk, write_whole
from farm.errors import NoResult, NoVerdict, Refused

if TYPE_CHECKING:
    from farm.report.record import Report

_FORMATS = ("table", "md", "html", "csv", "json")


@click.command()
@click.argument("run_id", metavar="[RUN]", default="@last")
@options.store
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="How to write it.  [table, or by the ending of -o]",
)
@click.option("-o", "--output", metavar="FILE", help="Write it here.")
@click.option(
    "--fail-on",
    type=click.Choice(["failed", "missing", "invalid", "never"]),
    default="never",
    show_default=True,
    help="End with 1 (invalid: 5) if there is such a cell.",
)
@options.json
@click.pass_obj
def report(
    talk: Talk,
    run_id: str,
    store: str | None,
    form: str | None,
    output: str | None,
    fail_on: str,
    as_json: bool,
) -> None:
    """Show what RUN found: the last one, unless it is named."""
    from farm import schema
    from farm.report import html, making, text
    from farm.runs import find_run

    talk = talk.with_json(as_json)
    if as_json and form not in (None, "json"):
        raise Refused(f"--json and --format {form} are two forms", hint="give one of them")
    chosen = talk.settings(store=store)
    where, console = talk.store(chosen.store.value), talk.console()
    found = making.made(where, find_run(where, run_id), now=_now())
    form = form or ("json" if as_json else _form_of(output))
    if form == "table" and output is None:
        console.show(*text.blocks(found))
    else:
        forms: dict[str, Any] = {
            "table": text.markdown,
            "md": text.markdown,
            "csv": text.comma_separated,
            "html": html.page,
            "json": lambda each: schema.encode(each).decode() + "\n",
        }
        data = forms[form](found)
        if output is None:
            console.data(data)
        else:
            write_whole(Path(output), data)
            console.say(f"report: {output}")
    _judge(found, fail_on)


@click.group(cls=Verbs)
def profiles() -> None:
    """Search the profiles of the store."""


@profiles.command("list")
@click.option("-w", "--where", "wheres", multiple=True, metavar="KEY=VALUE", help="Keep these.")
@click.option("--since", metavar="D", help="Taken within 7d, 12h, …")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Show so many."
)
@click.option("--all-attempts", is_flag=True, help="Also those that did not win.")
@options.store
@options.json
@click.pass_obj
def list_(
    talk: Talk,
    wheres: tuple[str, ...],
    since: str | None,
    limit: int,
    all_attempts: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """List profiles, newest first; with --json one line each."""
    from farm import profiles as shelf

    talk = talk.with_json(as_json)
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    found = shelf.listed(where, wheres, since=since, all_attempts=all_attempts, now=_now())
    for damage in found.unreadable:
        console.warn(f"unreadable: {damage.key}: {damage.reason}")
    if not found.rows:
        raise NoResult("no profile matches", hint="`farm status` lists the runs of this store")
    if as_json:
        for each in found.rows[:limit]:
            console.document(shelf.document(each))
    else:
        console.show(shelf.table(found.rows[:limit], of=len(found.rows)))


@profiles.command()
@click.argument("profile")
@options.store
@options.json
@click.pass_obj
def show(talk: Talk, profile: str, store: str | None, as_json: bool) -> None:
    """Show one PROFILE: figures, quality and why, artefacts, and the command to measure it again.

    PROFILE is an id or its unique beginning, RUN/LABEL, or a job id.
    """
    from farm import profiles as shelf
    from farm import schema

    talk = talk.with_json(as_json)
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    row = shelf.find(where, profile)
    if as_json:
        console.document(schema.encode(row.profile))
        return
    console.show(*shelf.screen(row))


@profiles.command()
@click.argument("profile")
@click.argument("field", required=False)
@options.store
@options.json
@click.pass_obj
def get(talk: Talk, profile: str, field: str | None, store: str | None, as_json: bool) -> None:
    """Print one bare value of PROFILE; without a FIELD, list the fields.

    FIELD is a metric such as latency.p50, a dotted path, job, card or log.
    """
    from farm import profiles as shelf

    talk = talk.with_json(as_json)
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    row = shelf.find(where, profile)
    if field is None:
        names = shelf.fields(row)
        if as_json:
            console.document({"schema": "farm.fields/v1", "fields": names})
        else:
            console.show(*names)
        return
    value = shelf.value(where, row, field)
    if as_json:
        console.document({"schema": "farm.value/v1", "field": field, **value.document()})
    else:
        console.data(value.text)
    if value.reason:
        console.say(f"{field} is null: {value.reason}")


def _form_of(output: str | None) -> str:
    if output is None:
        return "table"
    ending = Path(output).suffix.removeprefix(".")
    ending = {"htm": "html", "markdown": "md", "txt": "md"}.get(ending, ending)
    if ending not in _FORMATS:
        raise Refused(
            f"{output!r} has no ending that names a format",
            why=f"known: {', '.join(_FORMATS)}",
            hint="give --format",
        )
    return ending


def _judge(found: "Report", fail_on: str) -> None:
    """End with the code of the answer; documents that cannot be read are damage, whoever asks."""
    from farm.report import record

    if found.unreadable:
        raise click.exceptions.Exit(1)
    if fail_on == "never":
        return
    if record.bad(found):
        raise click.exceptions.Exit(1)
    if fail_on in ("missing", "invalid") and not found.complete:
        raise click.exceptions.Exit(1)
    if fail_on == "invalid" and found.counts["invalid"]:
        raise NoVerdict("a cell is invalid", hint="`farm report` says which and why")


def _now() -> datetime:
    return datetime.now(UTC)
