"""Layer profiles of other tools: what each form tells, and what is refused."""

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Bad, FarmError, NoResult, Refused
from farm.trace import blocks, files, importers
from tests.farm.graphs.test_profile import run, written
from tests.farm.trace.test_files import appended

SHARED = Path(__file__).parents[4] / "shared/data/traces"
LAYERS = [
    {"name": "/conv/Conv + /relu/Relu", "timeMs": 30.0, "averageMs": 0.3, "medianMs": 0.29},
    {"name": "{ForeignNode[/a.../b]}", "timeMs": 10.0, "averageMs": 0.1, "medianMs": 0.1},
    {"name": "copy", "timeMs": 0.0, "averageMs": 0.0, "medianMs": 0.0},
]


def saved(path: Path, data: object) -> Path:
    path.write_text(json.dumps(data))
    return path


def test_a_newer_export_tells_medians(tmp_path: Path) -> None:
    """Names stay, shares are computed anew, and a layer that took no time stays."""
    found = importers.read(saved(tmp_path / "trt.json", [{"count": 100}, *LAYERS]))

    assert [("/conv/Conv + /relu/Relu", 75.0), ("{ForeignNode[/a.../b]}", 25.0), ("copy", 0.0)] == [
        (each.layer, each.share_pct) for each in found.rows
    ]
    assert [0.29, 0.1, 0.0] == [each.median_ms for each in found.rows]
    assert {None} == {each.std_ms for each in found.rows}
    assert (100, "device", None) == (found.iterations, found.clock, found.warmup)


def test_an_older_export_tells_none(tmp_path: Path) -> None:
    old = [{key: each[key] for key in ("name", "timeMs", "averageMs")} for each in LAYERS]

    found = importers.read(saved(tmp_path / "trt.json", [{"count": 100}, *old]))

    assert {None} == {each.median_ms for each in found.rows}
    text = blocks.text(found.rows, iterations=found.iterations)
    assert "/conv/Conv + /relu/Relu,75.0,0.3000,,,30.0000" == text.splitlines()[1]


def test_names_that_come_again_are_numbered(tmp_path: Path) -> None:
    twice = [{"count": 1}, LAYERS[0], LAYERS[0]]

    found = importers.read(saved(tmp_path / "trt.json", twice))

    assert "/conv/Conv + /relu/Relu#2" == found.rows[1].layer


def test_half_a_character_in_a_name_can_still_be_written(tmp_path: Path) -> None:
    path = tmp_path / "trt.json"
    path.write_text(
        '[{"count": 1}, {"name": "a\\ud800", "timeMs": 1, "averageMs": 1, "medianMs": 1}]'
    )

    assert "a?" == importers.read(path).rows[0].layer


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([{"count": 0}, *LAYERS], Bad),
        ([{"count": True}, *LAYERS], Bad),
        ([{"count": 9}], Bad),
        ([{"count": 9}, {"name": "a", "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": "1", "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": -1, "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": float("nan"), "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": 1e300, "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": 10**400, "averageMs": 1}], Bad),
        ([{"count": 9}, {"name": "a", "timeMs": 1, "averageMs": float("inf")}], Bad),
        ([{"count": 2**53 + 1}, *LAYERS], Bad),
        ([{"count": 9}, LAYERS[2]], Bad),
        ([{"count": 9}, 7], Refused),
        ([], Refused),
        ({}, Refused),
        ("x", Refused),
        ([{"cat": "kernel", "name": "x"}], Refused),
    ],
)
def test_what_is_no_layer_profile_is_refused(
    tmp_path: Path, data: object, kind: type[FarmError]
) -> None:
    with pytest.raises(kind):
        importers.read(saved(tmp_path / "x.json", data))


@pytest.mark.parametrize(("text", "kind"), [("{", Bad), ("[" * 100_000, Bad), (None, Refused)])
def test_what_cannot_be_read_is_told(
    tmp_path: Path, text: str | None, kind: type[FarmError]
) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(kind):
        importers.read(path)


def test_the_longest_times_that_are_imported_can_be_read_again(tmp_path: Path) -> None:
    """Just below the bound: what is written is read, and every share is a number."""
    longest = {"name": "a", "timeMs": 9e299, "averageMs": 9e299, "medianMs": 9e299}
    csv = tmp_path / "f.csv"
    trt = saved(tmp_path / "trt.json", [{"count": 2**53}, *[longest] * 4])
    found = importers.opened(str(trt))
    assert found.about is not None

    files.append(csv, found.rows, found.about)

    assert [25.0] * 4 == [each.share_pct for each in files.read(files.address(str(csv))).rows]


@pytest.mark.parametrize(
    ("field", "value"), [("dur", 9 * 10**15), ("dur", 10**17), ("dur", -50), ("ts", -1)]
)
def test_a_profile_of_times_that_cannot_be_is_bad(tmp_path: Path, field: str, value: int) -> None:
    """Two nodes of 9e15 µs had shares of -2014.6 %, and a run of -50 µs took less than nothing."""
    events = run(0, ("conv", "Conv", 60), ("relu", "Relu", 5))
    odd = events[-1] if value == -50 else events[0]
    path = written(
        tmp_path / "ort.json", [{**each, field: value} if each is odd else each for each in events]
    )

    with pytest.raises(Bad, match=r"ort\.json: line \d is no event"):
        importers.opened(str(path))


NUMBERS = st.one_of(
    st.integers(),
    st.integers(0, 2**43 + 1),
    st.floats(),
    st.sampled_from([10**17, 1e299, 1e300, 2**53, 2**53 + 1, 10**400, None, True, "1"]),
)


@given(st.booleans(), st.lists(NUMBERS, min_size=4, max_size=4))
def test_whatever_a_profile_tells_is_refused_or_can_be_read_again(
    tmp_path_factory: pytest.TempPathFactory, is_ort: bool, numbers: list[object]
) -> None:
    """An append leaves a file that takes more, and says which run each of its blocks is."""
    folder = tmp_path_factory.mktemp("import")
    one, two, three, four = numbers
    if is_ort:
        node, end = run(0, ("a", "Conv", 30))
        events = [{**node, "ts": one, "dur": two}, {**end, "ts": three, "dur": four}]
        path = written(folder / "x.json", events)
    else:
        layer = {"name": "a", "timeMs": two, "averageMs": three, "medianMs": four}
        path = saved(folder / "x.json", [{"count": one}, layer, LAYERS[0]])
    csv = folder / "f.csv"

    with suppress(FarmError):
        found = importers.opened(str(path))
        assert found.about is not None
        for number in (1, 2):
            assert number == files.append(csv, found.rows, found.about)
            back = files.read(files.Address(csv, number))
            assert back.about is not None
            assert all(0 <= each.share_pct <= 100 for each in back.rows)


def test_a_name_too_long_to_be_read_again_is_shown_and_not_appended(tmp_path: Path) -> None:
    """A name stays as it is, so the file is left alone instead."""
    csv = tmp_path / "f.csv"
    appended(csv, "a")
    before = csv.read_bytes()
    trt = saved(tmp_path / "trt.json", [{"count": 1}, {**LAYERS[0], "name": "x" * 200_000}])
    found = importers.opened(str(trt))
    assert found.about is not None

    with pytest.raises(Bad, match="field larger than field limit"):
        files.append(csv, found.rows, found.about)

    assert (200_000, before) == (len(found.rows[0].layer), csv.read_bytes())


@pytest.mark.parametrize("kind", ["csv", "tensorrt", "onnxruntime"])
def test_what_a_pipe_holds_is_told_by_its_content(tmp_path: Path, kind: str) -> None:
    """It has no ending, and gives its bytes once."""
    events = [{"cat": "Session", "name": "x"}, *run(0, ("a", "Conv", 60))]
    texts = {
        "csv": f"{blocks.HEADER}\na,100.0,1,1,1,1\n",
        "tensorrt": json.dumps([{"count": 1}, {**LAYERS[0], "name": "a"}]),
        "onnxruntime": written(tmp_path / "ort.json", events).read_text(),
    }
    pipe = tmp_path / "63"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(texts[kind],))
    writer.start()

    found = importers.opened(str(pipe))

    writer.join(10)
    assert [("a", 100.0)] == [(each.layer, each.share_pct) for each in found.rows]


def test_a_word_means_a_block_or_a_foreign_profile(tmp_path: Path) -> None:
    csv = tmp_path / "f.csv"
    for name in "ab":
        appended(csv, name)
    trt = saved(tmp_path / "trt.json", [{"count": 5}, *LAYERS])

    first, imported = importers.opened(f"{csv}#1"), importers.opened(str(trt))

    assert "a" == first.rows[0].layer
    assert imported.about is not None
    assert ("imported", "device", 5, None, "trt.json") == (
        *(imported.about.method, imported.about.clock, imported.about.iterations),
        *(imported.about.precision, imported.about.model),
    )
    with pytest.raises(NoResult, match="it has 1"):
        importers.opened(f"{trt}#2")


def test_an_imported_table_is_appended_like_any_other(tmp_path: Path) -> None:
    """What its tool does not tell is null with that reason."""
    csv = tmp_path / "f.csv"
    found = importers.opened(str(saved(tmp_path / "trt.json", [{"count": 5}, *LAYERS])))
    assert found.about is not None

    files.append(csv, found.rows, found.about, why="not_supported: no word of it")

    back = files.read(files.address(str(csv)))
    assert back.about is not None
    assert ("imported", None) == (back.about.method, back.about.job_id)
    reasons = json.loads((tmp_path / "f.json").read_text())["null_reasons"]
    assert "not_supported: no word of it" == reasons["blocks.0.precision"]


@pytest.mark.parametrize(
    "name", ["tensorrt_profile.json", "tensorrt_profile_old.json", "onnxruntime_profile.json"]
)
def test_the_shared_profiles_give_the_expected_numbers(name: str) -> None:
    if not SHARED.exists():
        pytest.skip("the shared data are not here")
    expected = json.loads((SHARED / "expected.json").read_text())["import"][name]

    found = importers.read(SHARED / "import" / name)

    averages = {each.layer: each.average_ms for each in found.rows}
    assert expected["layers"] == len(found.rows)
    assert expected["layer_sum_ms"] == pytest.approx(sum(averages.values()))
    assert expected.get("layer_ms", averages) == pytest.approx(averages)
    assert expected.get("count", expected.get("n_steps")) == found.iterations
    if "median_ms_known" in expected:
        assert expected["median_ms_known"] == (found.rows[0].median_ms is not None)
        assert expected["std_dev_known"] == (found.rows[0].std_ms is not None)
