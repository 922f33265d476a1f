"""What a trace says as one page that is whole: its summary, and its timeline to look into.

The page asks for nothing and runs only the scripts written into it. It is in ASCII, so that it
is the same bytes wherever it is written to; without scripts only the drawing is missing.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from farm import __version__
from farm.report import closed, inks, packing, words
from farm.report.table import Column, Datum, Table
from farm.trace.analysis.record import Analysis
from farm.trace.timeline.record import Timeline

_SCRIPTS: Final = ("page.js", "timeline_data.js", "timeline_drawing.js", "timeline.js")
_STYLES: Final = ("page.css", "timeline.css")
_TONES: Final = {"high": "good", "medium": "warn", "low": "bad"}
_SIGNS: Final = {"high": "✓", "medium": "!", "low": "✗"}


@dataclass(frozen=True, slots=True)
class Told:
    """What the page says beside the drawing, in words. name: of the file that was read.

    distrusted: what stands above all numbers. facts: names with what is said of each; without a
    name it says more of the one before. doubts: flags in words. last: the trace that is drawn where
    the numbers are of several trials.
    """

    name: str
    distrusted: Sequence[str]
    facts: Sequence[tuple[str, Sequence[str]]]
    doubts: Sequence[str]
    phases: Table
    kernels: Table
    ops: Table
    last: str = ""


def page(found: Analysis, told: Told, drawn: Timeline | None) -> str:
    """Return the whole page; drawn: None where the file holds no events. Same input, same bytes."""
    scripts = [closed.script(name) for name in _SCRIPTS]
    template = closed.environment().get_template("timeline.html.j2")
    block = closed.data_block(packing.packed(drawn), only_ascii=True) if drawn else ""
    made = template.render(
        found=found,
        told=told,
        drawn=drawn,
        version=__version__,
        title=_title(found, told.name),
        setup=_setup(found),
        facts=_grouped(told.facts),
        cards=_cards(found, dict(told.facts)),
        tone=_TONES[found.confidence],
        sign=_SIGNS[found.confidence],
        notes=[*_last(told), *_notes(drawn)] if drawn else [],
        lanes=_lanes(drawn) if drawn else None,
        mix=[
            (each, words.share(each.pct / 100), inks.CATEGORIES.get(each.name, inks.OTHER))
            for each in found.categories
        ],
        mended=_mended(found),
        original=shlex.quote(found.trace) if found.trace else "",
        again=shlex.quote(told.name),
        number=words.number,
        policy=closed.policy(scripts),
        styles=[closed.markup(closed.asset(each)) for each in _STYLES],
        scripts=[closed.markup(each) for each in scripts],
        block=closed.markup(block),
    )
    return made.encode("ascii", "xmlcharrefreplace").decode()


def _title(found: Analysis, name: str) -> str:
    """Return what was measured, as far as that is known: a capture has the same name each time."""
    if found.model:
        return ", ".join(each for each in (found.model, found.mode) if each)
    return PurePath(name).name or name


def _setup(found: Analysis) -> list[str]:
    """Return under what it was measured, in words."""
    known = {name: each for name, each in found.config.items() if each is not None}
    said = {"batch": "batch {}", "imgsz": "{0} × {0}", "precision": "{}", "device": "{}"}
    return [form.format(known[name]) for name, form in said.items() if name in known]


def _last(told: Told) -> list[str]:
    if not told.last:
        return []
    return [f"drawn is the trace of the last trial, {told.last}; the numbers are of all trials"]


def _grouped(facts: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[list[str]]]]:
    """Return each name with the lines that are said of it."""
    made: list[tuple[str, list[list[str]]]] = []
    for name, parts in facts:
        if name or not made:
            made.append((name, []))
        made[-1][1].append(list(parts))
    return made


def _cards(found: Analysis, facts: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str, str]]:
    """Return the figures of the first screen: name, value, unit, and what is said below."""
    first, *more = facts.get("step", [""])
    made = [("Step", words.number(found.step_ms), "ms", first.partition(", ")[2] or more[-1])]
    if isinstance(p50 := found.metrics.get("latency_p50_ms"), float):
        made.append(("Latency", words.number(p50), "ms", "median, synchronised"))
    if found.img_per_s is not None:
        unit = f"{found.config.get('item', 'image')}s/s"
        made.append(("Throughput", words.number(found.img_per_s), unit, "without a profiler"))
    return made + (_of_host(found) if found.gpu_util is None else _of_gpu(found))


def _of_host(found: Analysis) -> list[tuple[str, str, str, str]]:
    cover = found.metrics.get("op_cover")
    if not isinstance(cover, float):
        return []
    return [("Host", words.percent(cover), "%", "of its time is in ops of the framework")]


def _of_gpu(found: Analysis) -> list[tuple[str, str, str, str]]:
    busy = f"kernels run for {words.number(found.gpu_busy_ms_per_step)} ms of a step"
    made = [("GPU busy", words.percent(found.gpu_util), "%", busy)]
    if found.tensorcore_pct is not None:
        units = words.share(found.tensorcore_pct / 100)
        made.append(("Matrix units", units, "%", "of kernel time, as far as names tell"))
    overhead = f"{words.number(found.host_overhead_ms_per_step)} ms of host overhead"
    launches = words.whole(found.launches_per_step)
    return [*made, ("Launches", launches, "per step", overhead)]


def _notes(drawn: Timeline) -> list[str]:
    """Return what has to be known about the drawing; first what it does not show one by one."""
    made = []
    if drawn.merged:
        finest = words.number(max(each.resolution for each in drawn.lanes) / 1e3)
        made.append(
            f"{drawn.merged:,} events shorter than {finest} µs are drawn as {drawn.blocks:,} "
            "blocks of neighbours; each says how many it stands for, and their time"
        )
    if drawn.unmarked:
        made.append(f"{drawn.unmarked:,} steps are too many to be marked")
    made.append(
        "time counts from the start of the window; what is paler lies outside the window, and in "
        "no number of this page"
    )
    if any(each.place == "idle" for each in drawn.lanes):
        made.append("a gap of the device is hatched in the colour of what the next work waited for")
    return made


def _lanes(drawn: Timeline) -> Table:
    """Return what each lane of the drawing holds."""
    columns = (
        Column("lane"),
        Column("events", right=True),
        Column("of them in blocks", right=True),
        Column("rectangles", right=True),
        Column("sum", "ms", right=True),
    )
    rows = [
        (
            Datum(each.title),
            Datum(words.whole(each.events)),
            Datum(words.whole(each.merged)),
            Datum(words.whole(len(each.rects.start))),
            Datum(f"{sum(each.rects.took) / 1e6:.3f}"),
        )
        for each in drawn.lanes
    ]
    notes = ["sum: of all lengths, nested ones as often as they are nested; also beside the window"]
    if drawn.longest and any(len(each) >= drawn.longest for each in drawn.names):
        notes.append(f"names of more than {drawn.longest} characters are cut in the drawing")
    return Table("lanes of the drawing", columns, tuple(rows), tuple(notes))


def _mended(found: Analysis) -> Table:
    """Return what was wrong with the file, and how often."""
    quality = found.quality
    done = (("repaired", quality.repaired), ("dropped", quality.dropped))
    rows = [
        (Datum(name.replace("_", " ")), Datum(what), Datum(words.whole(count)))
        for what, each in done
        for name, count in each.items()
    ]
    columns = (Column("what"), Column("done"), Column("times", right=True))
    return Table("repairs of the file", columns, tuple(rows))
