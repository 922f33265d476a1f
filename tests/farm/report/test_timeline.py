"""The page of a trace is whole, closed and honest; how it looks is for the browser tests."""

import base64
import hashlib
import json
import re
from itertools import pairwise

import msgspec
import pytest

from farm.cli.profile import trace_page
from farm.trace.analysis.quality import Quality
from farm.trace.opening import Opened
from tests.farm.report.test_html import Read
from tests.farm.report.traces import hostile, small
from tests.farm.trace import captures
from tests.farm.trace.captures import Taken

PAGE = trace_page.page(small(), name="runs/small.json")
ENEMY = trace_page.page(hostile(), name="</title><script>alert(0)</script>\udcff.json")


def block(page: str) -> dict:
    (body,) = [body for given, body in Read(page).scripts if given.get("id") == "timeline-data"]
    return json.loads(body)


def test_the_same_trace_gives_the_same_bytes_in_ascii() -> None:
    assert PAGE == trace_page.page(small(), name="runs/small.json")
    assert PAGE.isascii()
    assert ENEMY.isascii()


def test_the_page_asks_for_nothing_and_runs_only_what_its_policy_names() -> None:
    read = Read(PAGE)
    outside = [
        value
        for _, given in read.elements
        for name, value in given.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    ]
    (policy,) = [str(each["content"]) for each in read.all("meta") if "http-equiv" in each]
    running = [body for given, body in read.scripts if "type" not in given]
    hashes = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in running}

    assert all(str(each).startswith(("#", "data:")) for each in outside)
    assert hashes == set(re.findall(r"'sha256-([^']+)'", policy))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert re.findall(r"@import|url\(|\beval\(|https?://|\bfetch\b", PAGE) == []


def test_hostile_names_are_text_everywhere() -> None:
    """No element, attribute or script more than a page of good names has."""
    good, bad = Read(PAGE), Read(ENEMY)

    def kinds(read: Read) -> set[tuple[str, str]]:
        return {(tag, name) for tag, found in read.elements for name in found}

    assert kinds(bad) <= kinds(good) | {("td", "title"), ("th", "title")}
    assert len(good.scripts) == len(bad.scripts)
    assert "<script>alert" not in ENEMY
    assert "</script><script>alert(1)</script>" in bad.text
    assert any("</script><script>alert(1)</script>" in each for each in block(ENEMY)["names"])
    assert not re.search("[\ud800-\udfff\u202e]", ENEMY)
    assert "\\udcff.json" in bad.text


def test_the_first_screen_tells_the_bound_with_its_reasons_and_how_sure_it_is() -> None:
    text = Read(PAGE).text
    found = small().analysis

    assert found.bound in text
    assert found.bound_why in text
    for each in found.reasons:
        assert each.metric in text
    assert f"{found.confidence} confidence" in text


def test_all_that_the_summary_says_is_there_without_scripts() -> None:
    text = re.sub(r"\s+", " ", Read(PAGE).text)
    told = trace_page.told(small(), name="x")

    for _, parts in told.facts:
        assert all(re.sub(r"\s+", " ", each) in text for each in parts)
    for table in (told.phases, told.kernels, told.ops):
        assert table.rows
        assert all(cell.text in text for row in table.rows for cell in row)
    assert "<noscript>" in PAGE


def test_what_is_not_to_be_trusted_stands_above_the_numbers() -> None:
    given = small()
    doubtful = msgspec.structs.replace(
        given.analysis,
        memory_pressure=True,
        quality=Quality(flags=["throttled"], repaired={"bom": 3}, dropped={"no_ts": 1}),
    )

    page = trace_page.page(Opened("x", doubtful, given.made), name="x")
    text = Read(page.partition("</head>")[2]).text

    assert 2 == text.count("NOT TRUSTWORTHY: ")
    assert text.index("NOT TRUSTWORTHY") < text.index(given.analysis.bound)
    assert re.search(r"bom\s*repaired\s*3", text)
    assert re.search(r"no ts\s*dropped\s*1", text)


def test_an_analysis_that_was_kept_says_why_it_has_no_timeline_and_names_the_trace() -> None:
    kept = msgspec.structs.replace(small().analysis, trace="my runs/t.json")

    page = trace_page.page(Opened("profile.json", kept, None), name="profile.json")

    assert "farm profile summary &#39;my runs/t.json&#39; --html" in page
    assert "which holds no single event" in page
    assert not [each for each in Read(page).elements if each[1].get("id") == "timeline-data"]
    assert "<canvas" not in page


def test_a_capture_without_a_trace_says_that_none_was_taken() -> None:
    bare = captures.analysis(Taken(events=None))

    text = Read(trace_page.page(Opened("profile.json", bare, None), name="profile.json")).text

    assert "There is no timeline: no trace was taken." in text
    assert "TRACE" not in text


def test_the_page_of_a_capture_is_called_by_what_was_captured() -> None:
    """Its file has the same name each time."""
    found = captures.analysis(Taken(), "training")
    more = {"imgsz": 160, "precision": "fp32", "device": "a CPU"}
    named = msgspec.structs.replace(found, config=found.config | more)

    page = trace_page.page(Opened("p.json", named, None), name="runs/prof/p.json")

    assert "<h1>detector-t, training</h1>" in page
    assert f"<title>detector-t, training: {found.bound}</title>" in page
    assert "batch 4, 160 × 160, fp32, a CPU, from runs/prof/p.json" in Read(page).text


def test_the_name_of_a_kernel_and_of_an_op_heads_its_row() -> None:
    """On a narrow screen it stays while the figures are scrolled."""
    told = trace_page.told(small(), name="x")

    assert ["kernel", "op"] == [each.columns[0].header for each in (told.kernels, told.ops)]
    assert {each[0].text for each in told.ops.rows} == {each.op for each in small().analysis.ops}


def test_the_drawing_holds_every_event_and_the_page_says_what_each_lane_does() -> None:
    data, text = block(PAGE), Read(PAGE).text
    made = small().made
    assert made is not None

    gpu, (begin, end) = made.found.gpu, [each + made.found.window.begin for each in data["view"]]
    seen = int(((gpu.start < end) & (gpu.end >= begin)).sum())
    streams = [each for each in data["lanes"] if each["place"] == "stream"]
    assert 10 < seen == sum(len(each["start"]) for each in streams)
    assert all(each["title"] in text for each in data["lanes"])


def test_what_is_merged_is_said() -> None:
    from farm.report import timeline
    from farm.trace.timeline import drawing

    given = small()
    assert given.made is not None
    drawn = drawing.drawn(given.made, most=20)
    told = trace_page.told(given, name="x")

    text = Read(timeline.page(given.analysis, told, drawn)).text

    assert f"{drawn.merged:,} events shorter than" in text
    assert "blocks of neighbours" not in Read(PAGE).text


@pytest.mark.parametrize("page", [PAGE, ENEMY])
def test_headings_are_in_order_and_all_that_is_named_exists(page: str) -> None:
    read = Read(page)
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    ids = [str(each["id"]) for _, each in read.elements if each.get("id")]
    named = {
        str(value)
        for _, given in read.elements
        for name, value in given.items()
        if name in ("aria-labelledby", "aria-describedby", "for")
    }

    assert 1 == levels.count(1) == levels[0]
    assert all(later - before <= 1 for before, later in pairwise(levels))
    assert len(ids) == len(set(ids))
    assert named <= set(ids)
    assert {"col", "row"} == {each.get("scope") for each in read.all("th")}
