"""The guides, taken at their word: their files are written, their commands run as they stand."""

import re
from pathlib import Path

import pytest

from tests.integration.farm_here import Place

pytestmark = [pytest.mark.redis, pytest.mark.long]

GUIDES = sorted((Path(__file__).parents[2] / "docs" / "user").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda each: each.stem)
def test_every_command_of_a_guide_works_as_written(place: Place, guide: Path) -> None:
    """A block that begins with a file's name is that file; one without a language is commands."""
    commands = 0
    for language, text in BLOCK.findall(guide.read_text()):
        first, _, rest = text.partition("\n")
        if language and (name := first.removeprefix("# ")) != first and "." in name:
            place.write(name, rest)
        if not language:
            for line in filter(None, text.splitlines()):
                assert line.startswith("farm "), line
                place.farm(*line.split()[1:])
                commands += 1

    assert commands
