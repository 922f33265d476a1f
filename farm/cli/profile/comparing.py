"""`farm profile compare`: two traces, two layer tables or two callable JSONs, side by side."""

from typing import TYPE_CHECKING, Final

import click

from farm.cli import candidates
from farm.cli.group import verb
from farm.cli.talk import Talk
from farm.errors import NoVerdict, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farm.cli.profile.layer_files import Source
    from farm.cli.profile.sides import Side

_NOT_PAIRED: Final = "the two were not measured in turns"


@verb(
    "compare",
    examples=(
        "farm profile compare before.json.gz after.json.gz",
        "farm profile compare old/profile_repeat.json new/profile_repeat.json",
        "farm profile compare profile_layers.csv#1 profile_layers.csv#2",
        "farm profile compare fp32.csv trt_profile.json",
        "farm profile compare before.json after.json --fail-on incomparable",
    ),
)
@click.argument("before", shell_complete=candidates.comparable)
@click.argument("after", shell_complete=candidates.comparable)
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "incomparable", "never"]),
    default="never",
    show_default=True,
    help="incomparable: end with 5 where there is no verdict; worse: only pairs can show that.",
)
@click.pass_obj
def compare(talk: Talk, before: str, after: str, fail_on: str) -> None:
    """Compare two traces or analyses, two layer tables, or two callable JSONs.

    Of traces it tells the step, where its time goes, and which kernels came and went. FILE#2 is
    the second block of a layer CSV; without a number it is the last. Stored figures were not
    measured in turns, so no verdict follows from them: they show where to look.
    """
    from farm.cli.profile import sides

    found = sides.looked([before, after])
    try:
        if any(each.is_trace for each in found):
            verdict, why = _traces(talk, found)
        else:
            verdict, why = _tables(talk, found), _NOT_PAIRED
    finally:
        sides.close(found)
    if fail_on == "incomparable":
        raise NoVerdict(f"{verdict}: no verdict", why=why)


def _traces(talk: Talk, sides: "Sequence[Side]") -> tuple[str, str]:
    """Compare two analyses; return the verdict, and why there is none."""
    from farm import schema
    from farm.cli.profile import comparing_views
    from farm.cli.profile.sides import analyses
    from farm.trace.comparing.comparison import Named, compare

    before, after = [
        Named(side.word, each) for side, each in zip(sides, analyses(talk, sides), strict=True)
    ]
    found = compare(before, after)
    console = talk.console()
    for each in found.warnings:
        console.warn(each)
    if talk.as_json:
        console.document(schema.encode(found))
    else:
        console.show(*comparing_views.compared(found))
    apart = found.verdict == "incomparable"
    return found.verdict, "; ".join(comparing_views.reasons(found)) if apart else _NOT_PAIRED


def _tables(talk: Talk, sides: "Sequence[Side]") -> str:
    """Compare two layer tables, or two callable JSONs."""
    from farm.cli.profile import layer_files

    given = {each.where.path: each.file for each in sides if each.where and each.file}
    sources = layer_files.opened([each.word for each in sides], given=given)
    kinds = [each.is_callable and each.where.number is None for each in sources]
    if any(kinds) and not all(kinds):
        one, other = sources if kinds[0] else sources[::-1]
        why = f"{one.word!r} is a callable JSON, and {other.word!r} is {layer_files.kind(other)}"
        raise Refused("these two cannot be compared", why=why)
    return _callables(talk, sources) if all(kinds) else _layers(talk, sources)


def _layers(talk: Talk, sides: "list[Source]") -> str:
    from farm import schema
    from farm.cli.profile import layer_files, layer_views
    from farm.trace import matching, shares

    base, head = [layer_files.table(each) for each in sides]
    found = matching.compare(base, head)
    console = talk.console()
    for each in (base, head):
        if wrong := shares.odd(each.rows):
            console.warn(f"{each.name}: {wrong}")
    if differs := matching.other_work(base, head):
        console.warn(f"these are shares of different work: {differs}")
    if talk.as_json:
        console.document(schema.encode(found))
    else:
        console.show(*layer_views.compared(found))
    return found.verdict


def _callables(talk: Talk, sides: "list[Source]") -> str:
    from farm import interchange, schema
    from farm.cli.profile import layer_views

    documents = [interchange.of_bytes(each.data, name=str(each.where.path)) for each in sides]
    found = interchange.compare_callables(*documents)
    console = talk.console()
    if talk.as_json:
        console.document(schema.encode(found))
    else:
        console.show(*layer_views.callables(found))
    return found.verdict
