"""`farm aggregate`: a roster of models against their profiles, as a table and a verdict."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from farm.cli import candidates, completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk, check_place
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.report.table import Table
    from farm.roster import Aggregate, Report


@verb(
    examples=(
        "farm aggregate --roster configs/rosters/depth.yaml profiles/ -o depth.csv "
        "--validation depth.json",
        "farm aggregate --roster configs/rosters/depth.yaml",
    )
)
@click.option(
    "--roster",
    required=True,
    metavar="FILE",
    shell_complete=candidates.yaml_file,
    help="The models that are expected.",
)
@click.argument("paths", nargs=-1, metavar="[PATH…]", shell_complete=completing.file)
@click.option(
    *("-o", "--output"), metavar="CSV", shell_complete=completing.file, help="Write the table here."
)
@click.option(
    "--validation", metavar="JSON", shell_complete=completing.file, help="Write the verdict here."
)
@click.option(
    "--allow-incomplete-flops", is_flag=True, help="Keep rows without all FLOPs, with a note."
)
@click.option("--allow-invalid", is_flag=True, help="Keep rows with invalid figures, with a note.")
@options.store
@click.pass_obj
def aggregate(
    talk: Talk,
    roster: str,
    paths: tuple[str, ...],
    output: str | None,
    validation: str | None,
    allow_incomplete_flops: bool,
    allow_invalid: bool,
    store: str | None,
) -> None:
    """Check that every model of a roster has a sound profile, and join them in one table.

    PATH is a file or folder of callable JSONs or profiles; without one, the store is looked into.
    Of several that match, a valid one is taken before others, then the newest. Any problem ends it
    with 1; a degraded row is none.
    """
    import msgspec

    from farm import roster as rosters
    from farm.report.words import count
    from farm.writing import write

    if paths and store is not None:
        raise Refused("--store and PATH exclude each other", why="profiles come from one of them")
    if output is not None and validation is not None and Path(output) == Path(validation):
        raise Refused("-o and --validation name one file", why="each is written whole")
    expected = rosters.load(Path(roster), name=roster)
    for named in filter(None, (output, validation)):
        check_place(Path(named))
    reports = _reports(talk, paths, store)
    found = rosters.aggregate(
        expected,
        reports,
        allow_incomplete_flops=allow_incomplete_flops,
        allow_invalid=allow_invalid,
    )
    console, verdict = talk.console(), found.validation
    if output is not None:
        write(Path(output), [rosters.comma_separated(found.rows).encode()])
    if validation is not None:
        data = msgspec.json.format(msgspec.json.encode(verdict), indent=2)
        write(Path(validation), [data, b"\n"])
    if talk.as_json:
        console.document(verdict)
    else:
        console.show(*_shown(found))
        told = f"{verdict.profiles_found} of {count(verdict.expected_models, 'model')} found"
        wrote = f"; {count(len(found.rows), 'row')} into {output}" if output is not None else ""
        console.say(f"{told}{wrote}")
    if verdict.status == "FAIL":
        raise click.exceptions.Exit(1)


def _reports(talk: Talk, paths: tuple[str, ...], store: str | None) -> "list[Report]":
    from farm import roster as rosters
    from farm.store import check_there

    if paths:
        return rosters.in_files([Path(each) for each in paths])
    where = talk.store(talk.settings(store=store).store.value)
    check_there(where)
    return rosters.in_store(where)


def _shown(found: "Aggregate") -> "list[str | Table]":
    from farm.report import words
    from farm.report.table import Column, Datum, Table

    names = ("task", "model", "device", "p50_ms", "p95_ms", "parameters", "flops_per_item")
    columns = (
        *(Column("task"), Column("model", cut=True), Column("device")),
        *(Column("p50", "ms", right=True), Column("p95", "ms", right=True)),
        *(Column("parameters", right=True), Column("FLOPs an item", right=True), Column("quality")),
    )

    def text(value: object) -> str:
        if value is None:
            return words.UNKNOWN
        if isinstance(value, float):
            return f"{value:,.0f}" if value.is_integer() and value >= 1e4 else words.number(value)
        return f"{value:,}" if isinstance(value, int) else words.visible(str(value))

    rows = tuple(
        tuple(Datum(text(row[name])) for name in (*names, "validity")) for row in found.rows
    )
    lines = [f"✗ {each}" for each in found.validation.errors]
    lines += [f"! {each}" for each in found.validation.notes]
    verdict = f"{found.validation.roster}: {found.validation.status}"
    return [*([Table("", columns, rows)] if rows else []), *lines, verdict]
