"""The page in a real browser, from a file, as people open it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from farm.report import charts, html
from farm.report.record import Report
from tests.browser.browsing import DARK, LIGHT, MARKS, Opened, answer, browse, probed, told, within
from tests.farm import make
from tests.farm.report import hostile, sample
from tests.farm.report.test_model import build

pytestmark = MARKS


@pytest.fixture
def opened(tmp_path: Path):
    """Open a page from a file and return its DOM once the charts are drawn."""
    return lambda page, *flags: browse(tmp_path, page, *flags)


class Dom(HTMLParser):
    """The parts of a dumped page that the tests ask about."""

    def __init__(self, dom: str) -> None:
        super().__init__(convert_charrefs=True)
        self.marks: dict[str, list[str]] = {}
        self.twins: dict[str, list[list[str]]] = {}
        self._chart = ""
        self._groups: list[str] = []
        self._figure = ""
        self._cell = False
        self.feed(dom)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "figure":
            self._figure = str(given["aria-labelledby"]).removesuffix("-title")
            self.twins[self._figure] = []
            self.marks[self._figure] = []
        if given.get("aria-roledescription") in ("point", "text mark") and self._figure:
            self.marks[self._figure].append(str(given["aria-label"]))
        if tag == "tr" and self._figure:
            self.twins[self._figure].append([])
        if tag in ("td", "th") and self._figure:
            self._cell = True
            self.twins[self._figure][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._cell = False
        if tag == "figure":
            self._figure = ""

    def handle_data(self, data: str) -> None:
        if self._cell and self._figure:
            self.twins[self._figure][-1][-1] += data


@pytest.fixture(scope="module")
def page() -> str:
    return html.page(sample.report())


def assert_drawn(report: Report, found: Opened) -> None:
    """Every chart has a mark for each row of its twin, saying the same, and nothing complained."""
    dom = Dom(found.dom)

    assert [] == found.console
    assert [each.name for each in charts.latency(report)] == list(dom.twins)
    for name, (_, *rows) in dom.twins.items():
        expected = [
            f"{cell}: {quality}" if p50 == "–" else f"{cell}: {p50} ms, {quality}"
            for cell, p50, _, _, quality in rows
        ]
        assert sorted(expected) == sorted(dom.marks[name])


def test_every_chart_draws_the_rows_of_its_table_and_nothing_complains(page, opened):
    """No error, no blocked request, no warning: the policy would have said so on the console."""
    assert_drawn(sample.report(), opened(page))


def test_hostile_names_are_drawn_and_do_nothing(opened):
    """They get through escaping, JSON, expressions and SVG as what they are."""
    report = hostile.report()

    found = opened(html.page(report))

    assert_drawn(report, found)
    assert not re.search(r"<img\b|<script>alert", re.sub(r"(?s)<script.*?</script>", "", found.dom))


@pytest.mark.parametrize(
    "ends", [[], [{"status": "failed"}] * 2, [{}], [{"half_rel": None}, {"p50_ms": 0.00003}]]
)
def test_a_chart_of_little_draws_without_complaint(ends, opened):
    """No cell, no number, one number, no interval: no axis of infinity."""
    jobs = [make.job(batch=at + 1) for at in range(len(ends))]
    profiles = [make.profile(job, **end) for job, end in zip(jobs, ends, strict=True)]
    report = build(jobs, *profiles)

    assert_drawn(report, opened(html.page(report)))


def test_tables_sort_by_keyboard_and_say_how(page, opened):
    """A button in the header: ascending, descending, as it was; what is missing stays last."""
    script = """
      const table = document.getElementById('cells-table');
      const head = [...table.tHead.rows[0].cells].find((each) => /^p50/.test(each.textContent));
      const at = head.cellIndex, button = head.querySelector('button'), seen = [];
      const look = () => seen.push([head.getAttribute('aria-sort'),
        [...table.tBodies[0].rows].map((row) => row.cells[at].textContent)]);
      look();
      for (let i = 0; i < 3; i++) { button.focus(); document.activeElement.click(); look(); }
    """

    found = opened(probed(page, script + told("seen")))

    seen = answer(found)
    before, up, down, after = (each[1] for each in seen)
    assert ["none", "ascending", "descending", "none"] == [each[0] for each in seen]
    assert before == after
    numbers = [float(each.rstrip("~")) for each in before if each != "–"]
    assert sorted(numbers) == [float(each.rstrip("~")) for each in up if each != "–"]
    assert sorted(numbers, reverse=True) == [float(x.rstrip("~")) for x in down if x != "–"]
    assert {"–"} == set(up[len(numbers) :]) == set(down[len(numbers) :])


def test_the_filter_shows_the_rows_with_all_words_and_counts_them(page, opened):
    """A native input; the count is spoken."""
    script = """
      const input = document.getElementById('filter');
      input.value = 'MLP bf16'; input.dispatchEvent(new Event('input'));
      const rows = [...document.getElementById('cells-table').tBodies[0].rows];
      const shown = rows.filter((row) => row.getClientRects().length);
      const said = document.getElementById('filter-count').textContent;
    """

    found = opened(probed(page, script + told("[said, shown.map((row) => row.textContent)]")))

    said, shown = answer(found)
    assert "3 of 19" == said
    assert 3 == len(shown)
    assert all("mlp" in each and "bf16" in each for each in shown)


def test_dark_and_light_have_ink_of_their_own_in_charts_too(page, opened):
    """One drawing serves both: its letters take the colour of the page."""
    script = told(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.chart svg .role-axis-label text')).fill]"
    )
    asked = probed(page, script)

    light = answer(opened(asked, LIGHT))
    dark = answer(opened(asked, DARK))

    assert light[0] == light[2]
    assert dark[0] == dark[2]
    assert light[0] != dark[0]
    assert light[1] != dark[1]


@pytest.mark.parametrize("source", [sample.report, hostile.report])
def test_a_telephone_needs_no_sideways_scroll(source, opened, tmp_path):
    """At 360 px everything is reached by scrolling down; wide tables scroll by themselves."""
    measure = "[document.documentElement.scrollWidth, innerWidth]"
    outer = within(tmp_path, html.page(source()), measure, width=360)

    width, window = answer(opened(outer))

    assert 350 <= window <= 360
    assert width <= window


def test_printing_opens_what_is_folded(page, opened):
    """Paper has nothing to click: every table is on it."""
    script = "dispatchEvent(new Event('beforeprint'));"
    count = "[...document.querySelectorAll('details')].map((each) => each.open)"

    found = answer(opened(probed(page, script + told(count))))

    assert found
    assert all(found)
