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
METHOD = sorted(guide.FOLDER.with_name("method").glob("*.md"))  # they explain, and ask for nothing
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")


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
        (page.parent / name).resolve()
        for page in PAGES
        for name, _ in LINK.findall(page.read_text())
    }

    assert set(OPERATORS) <= named


def test_every_page_on_the_method_is_reached_from_the_readme_or_a_guide() -> None:
    named = {
        (page.parent / name).resolve()
        for page in (README, *PAGES)
        for name, _ in LINK.findall(page.read_text())
    }

    assert METHOD
    assert set(METHOD) <= named


@pytest.mark.parametrize("page", METHOD, ids=lambda each: each.stem)
def test_a_page_on_the_method_asks_for_nothing(page: Path) -> None:
    """Commands belong into a guide, where they are run."""
    assert [] == [each for each in guide.steps(page) if isinstance(each, guide.Command)]


@pytest.mark.parametrize("page", [README, *PAGES, *OPERATORS, *METHOD], ids=lambda each: each.stem)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """To a file, and to a heading of it where one is named."""
    for name, heading in LINK.findall(page.read_text()):
        target = page.parent / name if name else page
        assert target.exists(), name
        assert not heading or heading in anchors(target), f"{name}#{heading}"


def anchors(page: Path) -> set[str]:
    """Return the headings of a page as links name them."""
    titles = re.findall(r"^#+ +(.+?)\s*$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in titles}


def parsed(words: list[str]) -> None:
    """Parse words as `farm` does, and call nothing."""
    group: click.Command = cli
    # A command keeps the words for help that its first context has.
    with click.Context(cli, **cli.context_settings) as ctx:
        while isinstance(group, click.Group):
            name, *words = words
            group = group.commands[name]
        group.make_context(group.name, list(words), parent=ctx)
