"""`farm profile summary --html`: one page on stdout, and nothing else."""

from pathlib import Path

import pytest
from msgspec import structs

from farm import schema
from farm.trace import trials
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken


@pytest.fixture
def trace(here: Path) -> str:
    """Ten steps of 10 ms that are half busy."""
    g8.file(here / "trace.json.gz")
    return "trace.json.gz"


def test_the_page_is_all_that_is_said(farm, trace):
    said = farm("profile", "summary", trace, "--html")

    assert (0, "") == (said.code, said.err)
    assert said.out.startswith("<!doctype html>\n")
    assert said.out.endswith("</html>\n")
    assert 'id="timeline-data"' in said.out
    assert said.out == farm("profile", "summary", trace, "--html").out


def test_a_page_and_a_document_are_two_forms(farm, trace):
    said = farm("profile", "summary", trace, "--html", "--json")

    assert (2, "") == (said.code, said.out)
    assert "--json and --html are two forms" in said.err


def test_a_kept_analysis_is_drawn_by_its_trace_where_that_lies_beside_it(here, farm, trace):
    """Where it lay, or beside the document: a folder of a capture may be moved."""
    (here / "moved").mkdir()
    (here / "moved/profile.json").write_text(farm("profile", "summary", trace, "--json").out)
    drawn = farm("profile", "summary", "moved/profile.json", "--html")
    Path(trace).rename(here / "moved" / Path(trace).name)

    moved = farm("profile", "summary", "moved/profile.json", "--html")

    assert 'id="timeline-data"' in drawn.out
    assert drawn.out == moved.out


@pytest.mark.parametrize("left", ["nothing", "another", "none"])
def test_a_kept_analysis_without_its_trace_has_a_page_that_names_it(here, farm, trace, left):
    """A file of that name that holds another trace, or none, is not drawn in its place."""
    (here / "profile.json").write_text(farm("profile", "summary", trace, "--json").out)
    Path(trace).unlink()
    if left == "another":
        g8.file(Path(trace), g8.events(steps=3))
    elif left == "none":
        Path(trace).write_text("no trace")

    said = farm("profile", "summary", "profile.json", "--html")

    assert (0, "") == (said.code, said.err)
    assert 'id="timeline-data"' not in said.out
    assert f"farm profile summary {trace} --html &gt; timeline.html" in said.out


@pytest.fixture
def repeated(here: Path) -> Path:
    """Two trials as a capture leaves them, the second one slower, and the document of both."""
    found, files = [], []
    for at, busy in enumerate((0.5, 0.4)):
        folder = here / f"runs/prof_{at}"
        folder.mkdir(parents=True)
        files.append(f"runs/prof_{at}/profile.json")
        events = g8.events(steps=4 + at, busy=busy)
        g8.file(folder / "profile_trace.json", events)
        made = captures.analysis(Taken(events=events, on_gpu=True), "training")
        found.append(structs.replace(made, trace=f"runs/prof_{at}/profile_trace.json"))
        (here / files[-1]).write_bytes(schema.encode(found[-1]))
    path = here / "runs/profile_repeat.json"
    path.write_bytes(schema.encode(trials.together(found, files=files)))
    return path


def test_of_several_trials_the_trace_of_the_last_is_drawn_and_said(here, farm, repeated):
    """Also where the folder was moved."""
    lay = farm("profile", "summary", "runs/profile_repeat.json", "--html").out
    (here / "runs").rename(here / "moved")

    moved = farm("profile", "summary", "moved", "--html").out

    for page in (lay, moved):
        assert 'id="timeline-data"' in page
        assert "drawn is the trace of the last trial, " in page
        assert "prof_1/profile_trace.json; the numbers are of all trials" in page


def test_the_trace_of_a_later_capture_is_not_drawn_for_an_earlier_repeat(here, farm, repeated):
    for name in ("profile.json", "profile_trace.json"):
        (here / "runs/prof_1" / name).write_bytes((here / "runs/prof_0" / name).read_bytes())

    page = farm("profile", "summary", "runs/profile_repeat.json", "--html").out

    assert 'id="timeline-data"' not in page
    assert "There is no timeline: what was read is a kept analysis" in page


def test_a_trace_that_no_file_can_be_called_is_not_there(here, farm, trace):
    long = farm("profile", "summary", trace, "--json").out.replace(trace, "x" * 300)
    (here / "profile.json").write_text(long)

    assert 0 == farm("profile", "summary", "profile.json", "--html").code


def test_what_cannot_be_read_leaves_stdout_empty(here, farm):
    (here / "broken.json").write_text("no trace")

    assert (1, "") == farm("profile", "summary", "broken.json", "--html")[:2]
    assert (2, "") == farm("profile", "summary", "missing.json", "--html")[:2]


def test_a_trace_of_a_cpu_has_lanes_of_its_threads_alone(here, farm):
    g8.file(here / "cpu.json", g8.host())

    page = farm("profile", "summary", "cpu.json", "--html").out

    assert '"place":"thread"' in page
    assert '"place":"stream"' not in page
