"""The page is whole, closed, and hostile names stay text; how it looks is for the browser tests."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from farm.errors import Refused
from farm.report import html, text
from farm.report.record import Report
from tests.farm import make
from tests.farm.report import hostile, sample
from tests.farm.report.test_model import build

ASSETS = Path(html.__file__).parent / "assets"


class Read(HTMLParser):
    """What a browser would make of a page: elements, their attributes, and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif self._inside != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> str:
    return html.page(sample.report())


@pytest.fixture(scope="module")
def enemy() -> str:
    return html.page(hostile.report())


def test_the_same_report_gives_the_same_bytes(page):
    """Two people who render one run can compare their files."""
    assert page == html.page(sample.report())


def test_the_page_asks_for_nothing(page):
    """No element points outside; the only address is inside the scripts, as a name space."""
    read = Read(page)

    given = {
        value
        for _, attributes in read.elements
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    }

    assert all(str(each).startswith(("#", "data:")) for each in given)
    assert "@import" not in page
    assert "sourceMappingURL" not in page
    assert "url(" not in (ASSETS / "page.css").read_text("utf-8")


def test_the_policy_names_each_script_that_runs_and_no_other(page):
    """A script that somebody smuggles in has no hash there."""
    read = Read(page)
    policy = next(
        str(each["content"])
        for each in read.all("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )

    running = [body for attributes, body in read.scripts if "type" not in attributes]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))

    hashes = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in running}
    assert 4 == len(running)
    assert allowed == hashes
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_vendored_scripts_are_the_published_ones():
    """Their bytes have the digests that were written down, and their licences are there."""
    listed = [
        each.split()
        for each in (ASSETS / "SHA256SUMS").read_text("utf-8").splitlines()
        if not each.startswith("#")
    ]

    assert 3 == len(listed)
    for digest, name in listed:
        assert digest == hashlib.sha256((ASSETS / name).read_bytes()).hexdigest()
        assert f"{name.removesuffix('.min.js')} " in (ASSETS / "LICENSES.txt").read_text("utf-8")


def test_the_page_carries_the_licences_of_what_it_carries(page):
    """Whoever passes the page on passes the notices on."""
    kept = next(
        body for attributes, body in Read(page).scripts if attributes.get("id") == "licences"
    )

    assert "University of Washington" in kept


def test_every_number_is_there_without_scripts(page):
    """The static tables hold every cell, figure, reason and command."""
    report = sample.report()

    read = Read(page)

    for cell in report.cells:
        assert cell.title in read.text or cell.model in read.text
        assert cell.reason in read.text
    for row in text.tables.overview(report, wide=True).rows:
        assert all(each.text in read.text for each in row)


def test_headings_are_in_order_and_regions_are_named(page):
    """No level is jumped over; a screen reader can list the page."""
    read = Read(page)

    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    labelled = {each["aria-labelledby"] for each in read.all("section")}
    ids = [str(each["id"]) for _, each in read.elements if each.get("id")]

    assert 1 == levels.count(1)
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert labelled <= set(ids)
    assert len(ids) == len(set(ids))
    assert "#answers" == read.all("a")[0]["href"]


def test_every_table_has_headers_with_a_scope(page):
    """A cell can be read out with its column and its row."""
    heads = Read(page).all("th")

    assert heads
    assert {"col", "row"} == {each.get("scope") for each in heads}


def test_hostile_names_make_no_element_and_no_script(page, enemy):
    """The same kinds of elements and attributes as in a page of good names; text is text."""

    def kinds(source: str) -> set[tuple[str, str]]:
        return {(tag, name) for tag, found in Read(source).elements for name in found}

    assert kinds(enemy) <= kinds(page) | {("td", "title"), ("th", "title")}
    assert len(Read(enemy).scripts) == len(Read(page).scripts)
    assert "<script>alert" not in enemy
    assert [] == Read(enemy).all("img")
    assert "onerror" not in {name for _, found in Read(enemy).elements for name in found}


def test_hostile_names_are_shown_as_they_are(enemy):
    """A name that looks like markup is a name; what steers direction is spelled out."""
    read = Read(enemy)

    assert "</script><script>alert(1)</script>" in read.text
    assert "{{7*7}}" in read.text
    assert "\\u202egnp.exe" in read.text
    assert "\u202e" not in enemy
    assert "\x1b" not in enemy


def test_the_data_block_cannot_end_its_element(enemy):
    """`<` never stands in it, and it still is the JSON that the charts draw."""
    body = next(
        body for attributes, body in Read(enemy).scripts if attributes.get("id") == "report-data"
    )

    assert "<" not in body
    assert hostile.NAMES[0] in json.dumps(json.loads(body), ensure_ascii=False)


def test_a_page_of_too_many_cells_is_refused():
    """Nobody reads it; the message says what else there is."""
    report: Report = msgspec.structs.replace(
        sample.report(), cells=sample.report().cells[:1] * (html.MOST_CELLS + 1)
    )

    with pytest.raises(Refused, match="2001 cells") as caught:
        html.page(report)

    assert "csv" in caught.value.hint


def test_a_page_of_a_thousand_cells_is_under_a_megabyte_and_a_half():
    """It can be mailed, and it opens at once."""
    axes = [
        (f"model_{name:02d}", precision, batch, device)
        for name in range(20)
        for precision in ("fp32", "bf16")
        for batch in (1, 2, 4, 8, 16)
        for device in ("a100", "h100", "h200", "l4", "cpu")
    ]
    jobs = [make.job(m, precision=p, batch=b, device=d) for m, p, b, d in axes]
    made = [make.profile(job, p50_ms=1.2345 * (at % 97 + 1)) for at, job in enumerate(jobs)]

    size = len(html.page(build(jobs, *made)).encode())

    assert size < 1_500_000


@pytest.mark.parametrize("ends", [[], [{"status": "failed"}], [{}]])
def test_a_page_of_little_is_still_a_page(ends):
    """Nothing expected, nothing good, one cell: the page says so."""
    jobs = [make.job(batch=at + 1) for at in range(len(ends))]
    profiles = [make.profile(job, **end) for job, end in zip(jobs, ends, strict=True)]

    read = Read(html.page(build(jobs, *profiles)))

    assert "What came out" in read.text
