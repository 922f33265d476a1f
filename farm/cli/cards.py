"""`farm cards`: what a machine's numbers depend on, and how two machines differ in it."""

from pathlib import Path

import click

from farm.cli import options
from farm.cli.group import Verbs, verb
from farm.cli.talk import Talk


@click.group(cls=Verbs)
def cards() -> None:
    """Look into the system cards of the store."""


@verb(
    examples=(
        "farm cards diff gpu-03 gpu-04",
        "farm cards diff @last/resnet18-fp32-b1-cpu card.json",
        "farm cards diff 5d41402abc 7d793037a0 --json",
    )
)
@click.argument("a")
@click.argument("b")
@options.store
@click.pass_obj
def diff(talk: Talk, a: str, b: str, store: str | None) -> None:
    """Show how two cards differ: A and B are files, ids of cards, profiles or nodes."""
    from farm import answers
    from farm import cards as known

    where = talk.store(talk.settings(store=store).store.value)
    left, right = (known.find(where, each, root=Path()) for each in (a, b))
    found, console = known.differences(left, right), talk.console()
    said = known.verdict(left, right, found)
    if talk.as_json:
        systems = [left.system_id, right.system_id]
        console.document(answers.CardsDiff(systems=systems, differences=found, verdict=said))
        return
    blocks = [known.table(found, (a, b))] if found else []
    console.show(*blocks, said)


cards.add("Cards", diff)
