"""`farm profile summary --html`: one page on stdout, and nothing else."""

from pathlib import Path

import pytest

from tests.farm.trace import g8


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


def test_a_kept_analysis_has_a_page_that_names_its_trace(here, farm, trace):
    (here / "profile.json").write_text(farm("profile", "summary", trace, "--json").out)

    said = farm("profile", "summary", "profile.json", "--html")

    assert (0, "") == (said.code, said.err)
    assert 'id="timeline-data"' not in said.out
    assert f"farm profile summary {trace} --html &gt; timeline.html" in said.out


def test_what_cannot_be_read_leaves_stdout_empty(here, farm):
    (here / "broken.json").write_text("no trace")

    assert (1, "") == farm("profile", "summary", "broken.json", "--html")[:2]
    assert (2, "") == farm("profile", "summary", "missing.json", "--html")[:2]


def test_a_trace_of_a_cpu_has_lanes_of_its_threads_alone(here, farm):
    g8.file(here / "cpu.json", g8.host())

    page = farm("profile", "summary", "cpu.json", "--html").out

    assert '"place":"thread"' in page
    assert '"place":"stream"' not in page
