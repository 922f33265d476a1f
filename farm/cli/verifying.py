"""`farm verify`: a stored job held against what one expects of it."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from farm.cli import candidates, completing, options
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import Refused

if TYPE_CHECKING:
    from farm.report.table import Table
    from farm.verify import Verified

_SHOWN: Final = 12  # rows of a layer table on a screen
_HOW: Final = "farm profiles pull -o DIR --artifacts output writes one"


@verb(
    examples=(
        "farm verify @last/mlp-fp32-b1-cpu",
        "farm verify @last/mlp-bf16-b1-cpu --reference fp32.npz --max-p50-ms 5",
    )
)
@click.argument("job", shell_complete=completing.profile)
@click.option(
    "--reference",
    metavar="NPZ",
    shell_complete=candidates.arrays,
    help="Outputs to compare with, as `farm profiles pull --artifacts output` writes them.",
)
@click.option(
    "--atol",
    type=click.FloatRange(0),
    metavar="X",
    help="Absolute; default relative to the largest reference value.  [by precision, integers 0]",
)
@click.option(
    "--rtol",
    type=click.FloatRange(0),
    metavar="X",
    help="Relative to each reference value.  [by precision, integers 0]",
)
@click.option(
    "--max-p50-ms", type=click.FloatRange(0, min_open=True), metavar="X", help="FAIL above it."
)
@options.store
@click.pass_obj
def verify(
    talk: Talk,
    job: str,
    reference: str | None,
    atol: float | None,
    rtol: float | None,
    max_p50_ms: float | None,
    store: str | None,
) -> None:
    """Hold what is stored of JOB against a reference; nothing runs.

    JOB is a job id, RUN/LABEL or a profile. Accuracy, latency and the captured layer table come
    from the store. Ends with 1 on FAIL, with 5 where something that was asked for cannot be told,
    and with 3 where the job came to an answer, such as out of memory, and there is nothing to hold.
    """
    from farm import profiles as shelf
    from farm import schema
    from farm import verify as verifying
    from farm.profiles.showing import label

    _check({"--atol": atol, "--rtol": rtol, "--max-p50-ms": max_p50_ms})
    if reference is None and (atol is not None or rtol is not None):
        raise Refused("--atol and --rtol mean nothing without --reference", hint=_HOW)
    if reference == "":
        raise Refused("a reference without a name", hint=_HOW)
    where, console = talk.store(talk.settings(store=store).store.value), talk.console()
    row = shelf.find(where, job)
    found = verifying.verify(
        where,
        row,
        label=label(row.profile),
        reference=None if reference is None else Path(reference),
        atol=atol,
        rtol=rtol,
        max_p50_ms=max_p50_ms,
    )
    if talk.as_json:
        console.document(schema.encode(found))
    else:
        console.show(f"{found.label}   profile {found.profile_id[:12]}   {found.status}")
        console.show(_checks(found), *_layers(found))
    if code := verifying.ending(found):
        raise click.exceptions.Exit(code)


def _check(numbers: Mapping[str, float | None]) -> None:
    """Raise Refused for a number that is none: click lets NaN and infinity pass."""
    for flag, value in numbers.items():
        if value is not None and not math.isfinite(value):
            raise Refused(f"{flag} {value:g} bounds nothing", why="expected a finite number")


def _checks(found: "Verified") -> "Table":
    from farm.report.table import Column, Datum, Table

    marks: dict[str, Datum] = {
        "PASS": Datum("✓ PASS", tone="good"),
        "FAIL": Datum("✗ FAIL", tone="bad"),
        "UNKNOWN": Datum("– unknown", tone="quiet"),
    }
    rows = tuple(
        (Datum(each.name), marks[each.status], Datum(each.detail)) for each in found.checks
    )
    return Table("", (Column("check"), Column("answer"), Column("because", cut=True)), rows)


def _layers(found: "Verified") -> list["Table | str"]:
    """Return the largest rows of the captured table; only shares mean something."""
    from farm.report.table import Column, Datum, Table
    from farm.trace.layers import by_share

    table = found.layers
    if table is None:
        return []
    rows = tuple(
        (Datum(each.layer), Datum(each.type), Datum(f"{each.share_pct:.1f}", each.share_pct))
        for each in by_share(table)[:_SHOWN]
    )
    title = f"layers by share, {len(rows)} of {len(table.rows)}; captured in a profiled pass"
    columns = (Column("layer", cut=True), Column("type"), Column("share %", right=True))
    return [Table(title, columns, rows)]
