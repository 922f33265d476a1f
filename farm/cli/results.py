"""The verbs that read what a run found, and give it a name."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from farm.cli import completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk, write_whole
from farm.errors import NoResult, NoVerdict, Refused

if TYPE_CHECKING:
    from farm.report.record import Report
    from farm.store import Store

_FORMATS = ("table", "md", "html", "csv", "json")


@verb(examples=("farm report", "farm report @last-good -o page.html", "farm report base --json"))
@click.argument("run_id", metavar="[RUN]", default="@last", shell_complete=completing.run)
@options.store
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="How to write it.  [table, or by the ending of -o]",
)
@click.option(
    "-o", "--output", metavar="FILE", shell_complete=completing.file, help="Write it here."
)
@click.option(
    "--fail-on",
    type=click.Choice(["failed", "missing", "invalid", "never"]),
    default="never",
    show_default=True,
    help="End with 1 (invalid: 5) if there is such a cell.",
)
@click.pass_obj
def report(
    talk: Talk,
    run_id: str,
    store: str | None,
    form: str | None,
    output: str | None,
    fail_on: str,
) -> None:
    """Show what RUN found: the last one, unless it is named."""
    from farm import schema
    from farm.report import html, making, text
    from farm.runs import find_run

    if talk.as_json and form not in (None, "json"):
        raise Refused(f"--json and --format {form} are two forms", hint="give one of them")
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    found = making.made(where, find_run(where, run_id), now=_now())
    form = form or ("json" if talk.as_json else _form_of(output))
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


@verb(examples=("farm tag base @last-good", "farm tag release-2 r-7f3a91", "farm tag"))
@click.argument("name", required=False, shell_complete=completing.tag)
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=completing.run)
@options.store
@click.pass_context
def tag(ctx: click.Context, name: str | None, run_id: str | None, store: str | None) -> None:
    """Let NAME mean RUN from now on, in every command; without words, list the names."""
    from farm import answers, tags
    from farm.runs import find_run

    talk: Talk = ctx.obj
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    if name is None:
        _list_tags(talk, where)
        return
    if run_id is None:
        raise click.UsageError("missing argument 'RUN'", ctx)
    tags.check_name(name)
    chosen = find_run(where, run_id).run_id
    where.probe()
    before = tags.point(where, name, chosen)
    if talk.as_json:
        console.document(answers.Tagged(tag=name, run_id=chosen, before=before))
    changed = f"; before: {before}" if before not in ("", chosen) else ""
    already = "already names" if before == chosen else "now names"
    console.say(f"tag {name} {already} {chosen}{changed}")


def _list_tags(talk: Talk, store: "Store") -> None:
    from farm import answers, tags
    from farm.report.table import Column, Datum, Table
    from farm.runs import manifests

    console, found = talk.console(), tags.read(store)
    for error in found.damaged.values():
        console.warn(str(error))
    if not found.run_ids:
        raise NoResult("no tag in this store yet", hint="`farm tag NAME RUN` sets one")
    runs = {each.run_id: each for each in manifests(store)}
    named = [
        answers.NamedRun(
            tag=name,
            run_id=run_id,
            name=runs[run_id].name if run_id in runs else None,
            submitted_at=runs[run_id].submitted_at if run_id in runs else None,
        )
        for name, run_id in found.run_ids.items()
    ]
    if talk.as_json:
        console.document(answers.Tags(tags=named))
        return
    columns = (Column("tag"), Column("run"), Column("sweep", cut=True), Column("submitted"))
    rows = []
    for each in named:
        at = each.submitted_at
        submitted = at[:16].replace("T", " ") if at else "not in this store"
        cells = (each.tag, each.run_id, each.name or "–", submitted)
        rows.append(tuple(Datum(text) for text in cells))
    console.show(Table("", columns, tuple(rows)))


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
