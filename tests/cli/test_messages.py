"""Every bad request has its exit code and one message, which a person has read.

The messages are golden files: `WRITE_MESSAGES=1 pytest tests/cli/test_messages.py` writes
them anew, for somebody to read what changed.
"""

import json
import os
import re
from pathlib import Path

import pytest

from farm.cli import cli
from tests.cli import world as place
from tests.cli.bad_requests import REQUESTS
from tests.cli.world import Said, World, with_json

GOLDEN = Path(__file__).parents[1] / "golden" / "messages"
EVERY = [(group, *request) for group, requests in REQUESTS.items() for request in requests]
# With --json these are other requests: good ones, or refused for another reason.
FORMS = {line for line, _ in REQUESTS["forms"]} | {"report --json --format csv", "scheduler"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return place.built(tmp_path_factory.mktemp("world"))


@pytest.fixture
def farm(world, capsys, monkeypatch):
    """Run a command line in the world, in this process."""
    place.enter(world, monkeypatch)

    def run(line: str, *, as_json: bool = False) -> Said:
        given, words = place.parted(line)
        words = with_json(words) if as_json else words
        return place.run(words, given=given, capsys=capsys, monkeypatch=monkeypatch)

    return run


@pytest.mark.parametrize("group", REQUESTS)
def test_every_bad_request_is_answered_as_it_was_read(farm, world, group):
    """Code and message, word for word."""
    told = "\n".join(transcript(line, farm(line), world.folder) for line, _ in REQUESTS[group])
    golden = GOLDEN / f"{group}.txt"
    if os.environ.get("WRITE_MESSAGES"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(told)

    assert golden.read_text() == told


PLAIN = [each for each in EVERY if "--json" not in each[1]]


@pytest.mark.parametrize(("group", "line", "code"), PLAIN, ids=[each[1] for each in PLAIN])
def test_a_bad_request_gets_its_code_and_one_message(farm, group, line, code):
    """Lower case, no full stop, nothing on stdout, no traceback; the hint after a blank line."""
    said = farm(line)

    assert (code, "") == (said.code, said.out)
    assert_well_said(said.err)


@pytest.mark.parametrize(
    ("group", "line", "code"),
    [each for each in EVERY if each[1] not in FORMS],
    ids=[each[1] or "''" for each in EVERY if each[1] not in FORMS],
)
def test_with_json_an_error_is_one_line_and_stdout_is_empty(farm, world, group, line, code):
    """The same code and the same next step, for a program."""
    said = farm(line, as_json=True)

    assert (code, "", 1) == (said.code, said.out, said.err.count("\n"))
    told = json.loads(said.err)
    assert ("farm.error/v1", code) == (told["schema"], told["code"])
    assert {"schema", "code", "what", "why", "hint"} == told.keys()
    assert told["what"]
    hint = told["hint"].replace(str(world.folder), "FOLDER")
    assert hint in (GOLDEN / f"{group}.txt").read_text()


def test_the_table_is_long_enough():
    """Every verb has its part in it, and the issues of every kind."""
    words = {place.parted(line)[1][0] for _, line, _ in EVERY if place.parted(line)[1]}

    assert len(EVERY) >= 60
    assert set(cli.commands) <= words | {"doctor"}


def test_nothing_is_left_behind_by_a_bad_request(farm, world):
    """No half file, no folder of a store that was only asked."""
    for _, line, _ in EVERY:
        farm(line)
    names = {str(each.relative_to(world.folder)) for each in world.folder.rglob("*")}

    assert not [each for each in names if each.endswith(".tmp")]
    assert not {"empty", "new.json", "x.csv", "x.json", "profile_layers.csv"} & names
    assert ".farm/broker" not in names


def assert_well_said(err: str) -> None:
    """The form of an error: one message, one hint, no secret and nothing that steers a terminal."""
    first, *more = err.splitlines()
    assert not first.endswith(".")
    # A message begins in lower case, but for the name of a variable.
    assert re.match(r"error: (FARM_[A-Z_]+: )?[^A-Z]", first)
    assert not [line for line in more if line.startswith(("error", "Traceback"))]
    hints = [at for at, line in enumerate(more) if line.startswith("hint: ")]
    assert [at for at in hints if more[at - 1] == ""] == hints
    assert len(hints) <= 1
    assert "hunter2" not in err
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", err)
    assert len(err) < 2000


def transcript(line: str, said: Said, folder: Path) -> str:
    """Return a request and its answer as they stand in a golden file."""
    shown = said.err.replace(str(folder), "FOLDER")
    shown = re.sub(r"farm-bug-\w+", "farm-bug-…", shown)
    # A file system that nobody may write to refuses a user in other words than root.
    shown = shown.replace("Permission denied", "Operation not permitted")
    given, words = "", line
    while words.startswith("FARM_"):
        first, _, words = words.partition(" ")
        given += f"{first} "
    return f"$ {given}farm {words}   (exit {said.code})\n{shown}"
