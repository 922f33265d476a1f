"""The verbs that ask the catalogue of a store, and hand its profiles to other tools."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from farm.cli import completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import NoResult, Refused

if TYPE_CHECKING:
    from farm.catalog.query import Catalog
    from farm.catalog.sql import Answer
    from farm.report.table import Table
    from farm.store import Store

_UNITS: Final = {
    "query": "row",
    "rows": "row",
    "documents": "document",
    "series": "point",
    "layers": "layer",
    "callable": "document",
    "analysis": "document",
}
# What a profile may lack, by what is exported.
_LACKING: Final = {
    "layers": "a layer table",
    "callable": "the samples of a latency",
    "analysis": "a trace",
}
_output = click.option(
    *("-o", "--output"), metavar="FILE", shell_complete=completing.file, help="Write it here."
)


@verb(
    examples=(
        "farm query 'SELECT model, device, p50_ms FROM winners ORDER BY p50_ms LIMIT 10'",
        "farm query 'DESCRIBE winners'",
        "farm query 'SELECT * FROM winners' --format parquet -o winners.parquet",
    )
)
@click.argument("sql")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="How to write it.  [table, or as FILE ends]",
)
@_output
@options.store
@click.pass_obj
def query(talk: Talk, sql: str, form: str | None, output: str | None, store: str | None) -> None:
    """Answer one SELECT over the views winners, profiles and nights.

    winners has the profile that counts of each job, system and repeat set; profiles every attempt;
    nights what nightly runs measured. SQL is that of DuckDB.
    """
    from farm import answers
    from farm.catalog import forms

    chosen = _form(form, output, known=("table", *forms.FORMS), bare="table")
    with _opened(talk, store) as (_, catalog):
        found = catalog.query(sql)
        if talk.as_json and output is None:
            talk.console().document(
                answers.Rows(
                    columns=list(found.columns),
                    rows=[[forms.plain(each) for each in row] for row in found.rows],
                    left_out=catalog.left_out,
                    missing=catalog.missing,
                )
            )
        elif chosen == "table":
            talk.console().show(_table(found))
        else:
            _write(talk, output, [forms.FORMS[chosen](found)])
            _tell_written(talk, "query", chosen, output, len(found.rows))


@verb(
    examples=(
        "farm export --as rows -w model=resnet18 -o resnet18.csv",
        "farm export --as series --metric throughput --since 90d -o history.parquet",
        "farm export --as documents -o profiles.jsonl",
        "farm export --as layers -w model=resnet18 -o layers.csv",
    )
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(["rows", "documents", "series", "layers", "callable", "analysis"]),
    required=True,
    help="What.",
)
@click.option("-w", "--where", "wheres", multiple=True, metavar="KEY=VALUE", help="Keep these.")
@click.option("--since", metavar="D", help="Taken within 7d, 12h, …")
@click.option("--metric", default="latency.p50", show_default=True, help="Of the series.")
@click.option("--format", "form", type=click.Choice(["csv", "json", "parquet"]))
@_output
@options.store
@click.pass_obj
def export(
    talk: Talk,
    kind: str,
    wheres: tuple[str, ...],
    since: str | None,
    metric: str,
    form: str | None,
    output: str | None,
    store: str | None,
) -> None:
    """Write profiles for other tools.

    rows: one flat line for each profile that counts. documents: the stored bytes, one a line.
    series: the history of a metric for tools that look for changes. layers: one line for each
    layer, whose shares count. callable: the JSON of `farm profile callable`, one a line. analysis:
    what the trace of each profile says, as `farm profile summary --json` does.
    """
    from farm import export as exporting
    from farm.profiles import earliest
    from farm.report.words import count

    if talk.as_json and output is None:
        raise Refused("--json tells what was written", hint="name a file for it: -o FILE")
    known = exporting.KINDS[kind]
    chosen = _form(form, output, known=known, bare=known[0])
    with _opened(talk, store) as (where, catalog):
        made = exporting.export(
            where,
            catalog,
            kind=kind,
            form=chosen,
            where=_pairs(wheres),
            since=earliest(since, datetime.now(UTC)) if since is not None else None,
            metric=metric,
        )
        if not made.rows:
            raise _nothing(kind, made.left_out)
        _write(talk, output, made.pieces)
        _tell_written(talk, kind, chosen, output, made.rows)
        if made.left_out:
            lacking = count(made.left_out, "profile")
            talk.console().warn(f"{lacking} without {_LACKING[kind]}: left out")


@contextmanager
def _opened(talk: Talk, store: str | None) -> "Iterator[tuple[Store, Catalog]]":
    """Yield the store and its catalogue as it stands; say afterwards what it could not read.

    Ends with 1 where profiles are missing: the answer was not the whole truth.
    """
    from farm.catalog.cache import default_folder
    from farm.catalog.query import open_catalog
    from farm.report.words import count
    from farm.store import check_there

    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    check_there(where)  # a folder that is not mounted has no profile, and that is no answer
    with open_catalog(where, cache=default_folder(os.environ)) as catalog:
        yield where, catalog
        for each in catalog.warnings:
            console.warn(each)
        for damage in catalog.unreadable:
            console.warn(f"unreadable: {damage.key}: {damage.reason}")
        if catalog.left_out:
            console.warn(
                f"{count(catalog.left_out, 'profile')} came lately and were not looked at; "
                "`farm store compact` takes them in"
            )
        if catalog.missing:
            lost = count(catalog.missing, "profile")
            console.warn(f"{lost} of the catalogue cannot be read; `farm store check` says which")
            raise click.exceptions.Exit(1)


def _nothing(kind: str, left_out: int) -> NoResult:
    """Return why nothing is written: nothing matches, or what does holds nothing of this kind."""
    if left_out:
        what = f"no profile that matches has {_LACKING[kind]}"
        return NoResult(what, why=f"{left_out} looked at")
    return NoResult("no profile matches", hint="`farm profiles list` shows what there is")


def _form(form: str | None, output: str | None, *, known: Sequence[str], bare: str) -> str:
    """Return how to write: as asked, else as the file's name ends; bare: without a file."""
    from farm.catalog.forms import form_of

    if form is not None and form not in known:
        raise Refused(f"this cannot be written as {form}", why=f"known: {', '.join(known)}")
    files = [each for each in known if each != "table"]
    chosen = form or (form_of(output, known=files) if output is not None else bare)
    if chosen == "parquet" and output is None:
        raise Refused("parquet is written to a file", hint="name one: -o FILE")
    if chosen == "table" and output is not None:
        raise Refused("a table is for a terminal", hint="write csv, json or parquet")
    return chosen


def _write(talk: Talk, output: str | None, pieces: Iterable[bytes]) -> None:
    from farm.writing import write

    if output is not None:
        write(Path(output), pieces)
        return
    console = talk.console()
    for each in pieces:
        console.data(each.decode())


def _tell_written(talk: Talk, kind: str, form: str, output: str | None, rows: int) -> None:
    """Say what is in the file; of what went to stdout there is nothing to say."""
    from farm import answers
    from farm.report.words import count

    if output is None:
        return
    if talk.as_json:
        told = answers.Exported(kind=kind, form=form, file=output, rows=rows)
        talk.console().document(told)
    talk.console().say(f"{count(rows, _UNITS[kind])} into {output}")


def _table(found: "Answer") -> "Table":
    from farm.catalog.forms import cell
    from farm.report import words
    from farm.report.table import Column, Datum, Table

    numbers = [
        all(isinstance(row[at], int | float | None) for row in found.rows)
        for at in range(len(found.columns))
    ]
    columns = tuple(
        Column(name, right=right, cut=not right)
        for name, right in zip(found.columns, numbers, strict=True)
    )

    def shown(value: object) -> str:
        if value is None:
            return words.UNKNOWN
        return f"{value:.7g}" if isinstance(value, float) else words.visible(cell(value))

    rows = tuple(tuple(Datum(shown(each)) for each in row) for row in found.rows)
    return Table("", columns, rows)


def _pairs(wheres: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for word in wheres:
        key, sign, value = word.partition("=")
        if not (key and sign):
            raise Refused(f"{word!r} is not KEY=VALUE", hint="for example -w model=mlp")
        if key in pairs:
            raise Refused(f"{key!r} is given twice", why="every pair must hold")
        pairs[key] = value
    return pairs
