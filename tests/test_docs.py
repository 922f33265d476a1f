"""What the guides tell people to type exists: every verb and flag of every page parses."""

import re
from pathlib import Path

import click
import pytest

from farm.cli import cli
from tests.integration import guide

README = Path(__file__).parents[1] / "README.md"
PAGES = sorted(guide.FOLDER.glob("*.md"))
OPERATORS = sorted(guide.FOLDER.with_name("operator").glob("*.md"))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", [*PAGES, *OPERATORS], ids=lambda each: each.stem)
def test_every_command_of_a_page_parses(page: Path) -> None:
    """The long tests run them; a renamed flag is found here at once."""
    commands = [each for each in guide.steps(page) if isinstance(each, guide.Command)]

    assert commands
    for each in commands:
        if each.words[0] == "farm":
            parsed(each.words[1:])


def test_every_page_is_reached_from_the_readme() -> None:
    pages = {each.name for each in PAGES}
    found, left = {"README"}, [README.read_text()]
    while left:
        text = left.pop()
        for name in sorted(pages - found):
            if f"{name})" in text:
                found.add(name)
                left.append((guide.FOLDER / name).read_text())

    assert pages <= found


def test_every_page_for_operators_is_reached_from_a_guide() -> None:
    named = {
        (page.parent / name).resolve() for page in PAGES for name in LINK.findall(page.read_text())
    }

    assert set(OPERATORS) <= named


@pytest.mark.parametrize("page", [*PAGES, *OPERATORS], ids=lambda each: each.stem)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert [] == [
        name for name in LINK.findall(page.read_text()) if not (page.parent / name).exists()
    ]


def parsed(words: list[str]) -> None:
    """Parse words as `farm` does, and call nothing."""
    group: click.Command = cli
    with click.Context(cli) as ctx:
        while isinstance(group, click.Group):
            name, *words = words
            group = group.commands[name]
        group.make_context(group.name, list(words), parent=ctx)
