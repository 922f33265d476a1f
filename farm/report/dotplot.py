"""The dot plot of a latency chart, as a Vega-Lite specification in plain dictionaries.

A specification names its data and holds none. Colours tell series apart on white and on #111827,
for every kind of sight, and never alone: each series has a shape as well. All other ink takes the
colour of the page, so that one drawing serves dark and light.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

COLOURS: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#9900FF", "#DD0044", "#8888EE", "#8855EE"),
)
SHAPES: Final = (
    *("circle", "square", "triangle-up", "diamond"),
    *("cross", "triangle-down", "triangle-right", "triangle-left"),
)
_LOG_FROM: Final = 8  # times the smallest: from there on a linear axis hides the small ones
_LINE_PX: Final = 14  # between two lines, beside what each of its dots takes
_DOT_PX: Final = 18
_LETTER_PX: Final = 7  # of a value right of the plot
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
# What is written into the plot, what a pointer shows, and what a screen reader says.
_TEXTS: Final = (
    {"calculate": "slice(datum.quality, 0, 1)", "as": "sign"},
    {
        "calculate": "isValid(datum.p50_ms) ? (datum.sign === '✓' ? '' : datum.sign + ' ')"
        " + datum.value : datum.quality + (datum.why ? ': ' + datum.why : '')",
        "as": "label",
    },
    {
        "calculate": "datum.cell + ': ' + (isValid(datum.p50_ms) ? datum.value + ' ms, ' : '')"
        " + datum.quality + (datum.why ? ': ' + datum.why : '')",
        "as": "said",
    },
)
_X_FIELDS: Final = ("p50_ms", "lo_ms", "hi_ms")

Row = dict[str, str | float | None]
Spec = dict[str, object]


def spec(rows: Sequence[Row], looks: Mapping[str, int], *, name: str, about: str) -> Spec:
    """Return the plot of these rows: a line for each `line`, in it a dot for each series.

    looks: the series of these rows, each with its place among all of the report, so that one
    series looks the same in every chart. The axis is logarithmic where a linear one would press
    the small values together. A row without a number is written out; an invalid one is hollow.
    """
    lines = len({row["line"] for row in rows}) or 1
    widest = max((len(str(row["value"])) for row in rows), default=0)
    y: Spec = {
        "field": "line",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelLimit": 150, "labelPadding": 8, "labelFontSize": 13},
    }
    encoding: Spec = {"y": y}
    if len(looks) > 1:
        encoding["yOffset"] = {"field": "series", "type": "nominal", "sort": list(looks)}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": about,
        "data": {"name": name},
        "transform": list(_TEXTS),
        "width": "container",
        "height": lines * (_LINE_PX + max(len(looks), 1) * _DOT_PX),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 4,
        "encoding": encoding,
        "layer": _layers(_axis(rows), looks, beside=_LETTER_PX * widest),
    }


def _axis(rows: Sequence[Row]) -> Spec:
    """Return the x channel: its range holds every interval, its ticks are 1, 2 and 5."""
    found = [value for row in rows for key in _X_FIELDS if isinstance(value := row[key], float)]
    low, high = (min(found), max(found)) if found else (1.0, 1.0)
    log = 0 < _LOG_FROM * low <= high
    if log:
        room = (high / low) ** 0.06
        domain = [_rounded(low / room), _rounded(high * room)]
        ticks = _ticks(*domain)
    else:
        room = (high - low) * 0.08 or high * 0.1 or 1.0
        domain, ticks = [_rounded(max(0.0, low - room)), _rounded(high + room)], []
    axis: Spec = {"labelFlush": False, "labelOverlap": True, "tickCount": 5}
    return {
        "field": "p50_ms",
        "type": "quantitative",
        "title": "p50 latency in ms" + (" (log scale)" if log else ""),
        "scale": {"type": "log", "domain": domain}
        if log
        else {"type": "linear", "domain": domain, "zero": False, "nice": False},
        "axis": axis | ({"values": ticks, "format": "~g"} if log else {}),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten in a range; of a wide range the powers alone."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    made = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [each for each in made if low <= each <= high]


def _layers(x: Spec, looks: Mapping[str, int], *, beside: int) -> list[Spec]:
    """Return interval, dot, value and excuse; beside: how much room the values take."""
    colour, shape = _series(looks)
    return [_interval(x, colour), _dot(x, colour, shape), _VALUE, _excuse(beside)]


_SAID: Final[Spec] = {"field": "said", "type": "nominal"}
_VALUE: Final[Spec] = {
    "transform": [{"filter": "isValid(datum.p50_ms)"}],
    "mark": {"type": "text", "align": "left", "dx": 10, "aria": False},
    "encoding": {"x": {"value": "width"}, "text": {"field": "label"}},
}


def _interval(x: Spec, colour: Spec) -> Spec:
    ends = {"x": x | {"field": "lo_ms"}, "x2": {"field": "hi_ms"}}
    return {
        "transform": [{"filter": "isValid(datum.lo_ms) && isValid(datum.hi_ms)"}],
        "mark": {"type": "rule", "strokeWidth": 6, "opacity": 0.35, "aria": False},
        "encoding": ends | {"stroke": colour},
    }


def _dot(x: Spec, colour: Spec, shape: Spec) -> Spec:
    hollow = {"condition": {"test": "datum.state === 'invalid'", "value": "transparent"}}
    return {
        "transform": [{"filter": "isValid(datum.p50_ms)"}],
        "mark": {"type": "point", "size": 80, "strokeWidth": 2, "opacity": 1},
        "encoding": {
            "x": x,
            "fill": colour | hollow,
            "stroke": colour,
            "shape": shape,
            "tooltip": _SAID,
            "description": _SAID,
        },
    }


def _excuse(beside: int) -> Spec:
    """Return why there is no number, written where the number would be."""
    limit = {"expr": f"width + {beside}"}
    return {
        "transform": [{"filter": "!isValid(datum.p50_ms)"}],
        "mark": {"type": "text", "align": "left", "dx": 6, "limit": limit},
        "encoding": {
            "x": {"value": 0},
            "text": {"field": "label"},
            "tooltip": _SAID,
            "description": _SAID,
        },
    }


def _series(looks: Mapping[str, int]) -> tuple[Spec, Spec]:
    """Return the encodings of colour and shape; a single series of a single kind needs no key."""
    if not looks:
        return {"value": COLOURS[0]}, {"value": SHAPES[0]}
    base: Spec = {"field": "series", "type": "nominal", "title": None}
    legend = {"orient": "top", "columns": 4, "labelLimit": 150, "symbolOpacity": 1}
    names, places = list(looks), list(looks.values())
    colours = {"domain": names, "range": [COLOURS[each] for each in places]}
    shapes = {"domain": names, "range": [SHAPES[each] for each in places]}
    return (
        base | {"legend": legend, "scale": colours},
        base | {"legend": legend, "scale": shapes},
    )


def config() -> Spec:
    """Return the ink of every plot: all but the series takes the colour of the page."""
    ink = {"labelColor": "currentColor", "titleColor": "currentColor"}
    return {
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "text": {"color": "currentColor", "fontSize": 12},
        "axis": ink
        | {
            "domain": False,
            "ticks": False,
            "gridColor": "currentColor",
            "gridOpacity": 0.16,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelOpacity": 0.9,
            "titleOpacity": 0.75,
        },
        "axisY": {"grid": False},
        "legend": ink | {"labelFontSize": 13, "symbolSize": 90, "symbolStrokeWidth": 2},
    }
