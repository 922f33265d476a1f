"""The verbs that read a trace, before hostile names, closed pipes and pipes that give once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.farm.trace import g8

FARM = Path(sys.executable).with_name("farm")
READING = (["summary"], ["get"], ["phases"], ["kernels"], ["ops"])


@pytest.fixture
def trace(here: Path) -> str:
    g8.file(here / "trace.json.gz")
    return "trace.json.gz"


def rows(out: str) -> list[list[str]]:
    """The rows of a table that a pipe gets: between its header and its notes."""
    return [line.split() for line in out.splitlines()[2:] if line[:1] == " "]


def test_names_of_a_file_never_steer_a_terminal_nor_break_a_line(here, farm):
    """Of kernels, ops and phases; some are as long as a page."""
    evil = ["\x1b[31mred", "a\ncut \rc\td", "\u202egnp", "x" * 20_000]
    made = [g8.span("ProfilerStep#1", 0, 90_000)]
    for at, name in enumerate(evil, start=1):
        made.append(g8.span(f"step/{name}", 1000 * at, 900))
        made.append(g8.launch(1000 * at, at))
        made.append(g8.kernel(name, 1000 * at + 9, 50, at))
        made.append(g8.span(name, 1000 * at, 30, cat="cpu_op"))
    g8.file(here / "evil\x1b.json", made)

    for verb in READING:
        said = farm("profile", *verb, "evil\x1b.json")
        assert 0 == said.code, said.err
        assert not {*"\x1b\r\t\u202e"} & {*said.out, *said.err}
        assert not [line for line in said.out.splitlines() if line.startswith("cut ")]
    listed = rows(farm("profile", "kernels", "evil\x1b.json").out)
    assert 4 == len(listed)


@pytest.mark.parametrize("verb", READING)
def test_a_reader_that_goes_away_ends_a_verb_quietly(here, trace, verb):
    read, write = os.pipe()
    os.close(read)
    said = subprocess.run([FARM, "profile", *verb, trace], stdout=write, stderr=subprocess.PIPE)
    os.close(write)

    assert (0, b"") == (said.returncode, said.stderr)


def test_a_trace_that_is_piped_in_is_read_whole_and_offered_no_more(here, trace):
    line = f"'{FARM}' profile summary <(zcat {trace}) | head -3"
    said = subprocess.run(["bash", "-c", line], cwd=here, capture_output=True, text=True)

    assert (0, "") == (said.returncode, said.stderr)
    assert "step         10.00 ms, median of 9" in said.stdout
