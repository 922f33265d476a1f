"""Charts draw exactly their rows, alike in every chart, for every kind of sight."""

import itertools
import json

import pytest

from farm import schema
from farm.catalog.winners import winners
from farm.report import charts, dotplot, model
from farm.report.record import Figures
from tests.farm import make
from tests.farm.report import hostile, sample
from tests.farm.report.test_model import NOW, build


def test_the_charts_are_as_they_were_when_a_person_looked_at_them():
    """A change of a chart is seen; `python -m tests.farm.report.sample` accepts it."""
    golden = (sample.GOLDEN / "charts.json").read_text("utf-8")

    assert golden == sample.forms()["charts.json"]


def test_every_cell_is_drawn_once_and_the_twin_has_the_same_rows():
    """No cell disappears because it has no number; the table says what is drawn."""
    report = sample.report()

    drawn = charts.latency(report)

    assert len(report.cells) == sum(len(each.rows) for each in drawn)
    for each in drawn:
        table = charts.twin(each)
        assert [row["cell"] for row in each.rows] == [row[0].text for row in table.rows]
        assert [row["p50_ms"] for row in each.rows] == [row[1].value for row in table.rows]


def test_a_row_has_the_number_of_its_cell():
    """What is drawn is what was measured, to six digits."""
    report = sample.report()
    measured = {each.title: each.figures for each in report.cells}

    for chart in charts.latency(report):
        for row in chart.rows:
            figures = measured[f"{chart.title} {row['cell']}"]
            expected = figures.p50_ms if isinstance(figures, Figures) else None
            assert expected == (row["p50_ms"] and pytest.approx(row["p50_ms"], rel=1e-5))


def test_one_series_looks_the_same_in_every_chart():
    """fp8 is missing in most charts, and takes no other's colour for it."""
    looks = {}
    for chart in charts.latency(sample.report()):
        for name, colour in _scale(chart.spec, "stroke"):
            looks.setdefault(name, set()).add(colour)

    assert {"fp32": {"#0072B2"}, "bf16": {"#D55E00"}, "fp8": {"#009E73"}} == looks


def test_a_wide_range_has_a_logarithmic_axis_and_a_narrow_one_has_not():
    """Linear where differences are small, so that they can be seen; never from a broken zero."""
    jobs = [make.job(batch=1), make.job(batch=8)]

    def axis(*values: float) -> dict:
        made = [make.profile(job, p50_ms=each) for job, each in zip(jobs, values, strict=True)]
        (chart,) = charts.latency(build(jobs, *made))
        return chart.spec["layer"][1]["encoding"]["x"]

    wide, narrow = axis(1.0, 50.0), axis(1.0, 1.5)

    assert ("log", "linear") == (wide["scale"]["type"], narrow["scale"]["type"])
    assert [1.0, 2.0, 5.0, 10.0, 20.0, 50.0] == wide["axis"]["values"]
    assert wide["scale"]["domain"][0] < 1.0 < 50.0 < wide["scale"]["domain"][1]


def test_one_cell_per_model_is_one_chart():
    """Twenty models with a dot each are compared side by side."""
    jobs = [make.job(name) for name in ("mlp", "cnn", "lstm")]

    drawn = charts.latency(build(jobs, *map(make.profile, jobs)))

    assert [["mlp", "cnn", "lstm"]] == [[row["line"] for row in each.rows] for each in drawn]


@pytest.mark.parametrize("batches", [(1,), (1, 8)])
@pytest.mark.parametrize("names", [("mlp",), ("mlp", "cnn")])
def test_a_training_and_an_inference_share_no_chart(names, batches):
    """On one axis a training would read as a slow inference."""
    told, profiles = [], []
    for mode in ("inference", "train"):
        for name, batch in itertools.product(names, batches):
            job = make.job(name, batch=batch, ref=f"{name}:{mode}")  # another job for each mode
            job_id, labels = job.job_id, make.labels(job, mode=mode)
            told.append(schema.Labelled(job_id=job_id, labels=labels))
            profiles.append(make.row(make.profile(job)))
    manifest = make.manifest(jobs=told)

    drawn = charts.latency(model.build(manifest, winners(profiles), cards={}, now=NOW))

    modes = [{row["cell"].split()[-1] for row in each.rows} for each in drawn]
    assert [{"inference"}, {"train"}] == [modes[0], modes[-1]]
    assert {1} == {len(each) for each in modes}
    assert all(each.title.endswith(tuple(mode)) for each, mode in zip(drawn, modes, strict=True))
    assert len(told) == sum(len(each.rows) for each in drawn)


def test_more_series_than_colours_become_lines():
    """A ninth colour could not be told apart."""
    jobs = [make.job(batch=batch, device=f"d{at}") for at in range(9) for batch in (1, 8)]

    (chart,) = charts.latency(build(jobs, *map(make.profile, jobs)))

    assert {""} == {row["series"] for row in chart.rows}
    assert 18 == len({row["line"] for row in chart.rows})


def test_a_chart_of_nothing_measured_still_says_what_became_of_it():
    """Every cell failed: the chart holds the reasons, and no axis of infinity."""
    jobs = [make.job(batch=1), make.job(batch=8)]

    (chart,) = charts.latency(build(jobs, *(make.profile(each, status="failed") for each in jobs)))

    assert {None} == {row["p50_ms"] for row in chart.rows}
    json.dumps(chart.spec, allow_nan=False)


def test_above_the_limit_a_chart_says_that_it_is_cut():
    """5,000 marks are the most that a chart draws."""
    jobs = [make.job(batch=each + 1) for each in range(charts.MOST_ROWS + 1)]

    (chart,) = charts.latency(build(jobs))

    assert charts.MOST_ROWS == len(chart.rows)
    assert f"the first {charts.MOST_ROWS} of {len(jobs)} cells" in chart.caption


def test_hostile_names_stay_data():
    """A name reaches no expression of a specification, only the rows."""
    for chart in charts.latency(hostile.report()):
        expressions = json.dumps([chart.spec["transform"], *_tests(chart.spec)])
        assert "alert" not in expressions
        assert "\u202e" not in json.dumps([chart.spec, chart.rows], ensure_ascii=False)


@pytest.mark.parametrize("paper", ["#ffffff", "#111827"])
def test_every_colour_stands_out_on_light_and_dark_paper(paper):
    """WCAG asks 3:1 of graphical objects."""
    assert all(_contrast(each, paper) >= 3 for each in dotplot.COLOURS)


def test_every_colour_has_a_shape_of_its_own():
    """Colour is never alone."""
    assert len(dotplot.COLOURS) == len(set(dotplot.SHAPES)) == len(set(dotplot.COLOURS))


def test_a_skipped_cell_of_its_own_model_does_not_break_the_charts():
    """A model that only ever was skipped has a chart with its reason."""
    skipped = [schema.Skipped(labels={"model": "b", "batch": "1"}, reason="no")]
    jobs = [make.job(batch=1), make.job(batch=8)]

    drawn = charts.latency(build(jobs, skipped=skipped))

    assert ["mlp", "b"] == [each.title for each in drawn]
    assert "no" == drawn[1].rows[0]["why"]


def _scale(spec: dict, channel: str) -> list[tuple[str, str]]:
    scale = spec["layer"][1]["encoding"][channel].get("scale", {"domain": [], "range": []})
    return list(zip(scale["domain"], scale["range"], strict=True))


def _tests(spec: dict) -> list[object]:
    return [each.get("transform") for each in spec["layer"]]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
