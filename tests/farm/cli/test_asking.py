"""Questions and exports from the command line: what they print, and what they say beside it."""

import csv
import io
import json
import os

import pytest
from pyarrow import parquet as pq

from farm import schema
from tests.farm import make
from tests.farm.export import kept
from tests.farm.profiles.kept import with_trace

NIGHTS = ("2026-11-28", "2026-11-29", "2026-11-30")


@pytest.fixture(autouse=True)
def profiles(shelf, monkeypatch, tmp_path):
    """Three nights of one cell, another cell, a failure and a figure that is invalid."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shelf.probe()
    for at, night in enumerate(NIGHTS):
        made = make.profile(
            p50_ms=10.0 + at, repeat_set=f"n-{night}", started_at=f"{night}T03:00:00Z"
        )
        make.put(shelf, made, day=night)
    make.put(
        shelf,
        make.profile(make.job(batch=8), p50_ms=2.0),
        make.profile(make.job("cnn"), status="failed"),
        make.profile(make.job("lstm"), p50_ms=5.0, validity="invalid"),
    )


def lines(said):
    return [json.loads(each) for each in said.out.splitlines()]


def test_a_query_is_answered_as_a_table(farm):
    said = farm("query", "SELECT model, batch, p50_ms FROM winners WHERE batch = 8")

    assert 0 == said.code
    assert [["model", "batch", "p50_ms"], ["mlp", "8", "2"]] == [
        each.split() for each in said.out.splitlines()
    ]


def test_a_query_is_answered_in_every_form(farm, here):
    text = "SELECT model, p50_ms FROM winners WHERE batch = 8"

    assert "model,p50_ms\nmlp,2.0\n" == farm("query", text, "--format", "csv").out
    assert [{"model": "mlp", "p50_ms": 2.0}] == lines(farm("query", text, "--format", "json"))
    told = json.loads(farm("query", text, "--json").out)
    assert (["model", "p50_ms"], [["mlp", 2.0]], 0) == (
        told["columns"],
        told["rows"],
        told["missing"],
    )
    assert "" == farm("query", text, "-o", "found.parquet").out
    assert [{"model": "mlp", "p50_ms": 2.0}] == pq.read_table(here / "found.parquet").to_pylist()


def test_a_query_sees_what_is_in_the_catalogue_and_what_is_not(farm, shelf):
    """Compacted or not, the answer is the same; what comes later is seen at once."""
    text = "SELECT count(*) AS n FROM profiles"
    before = farm("query", text, "--format", "csv").out
    farm("store", "compact")

    assert ("n\n6\n", "n\n6\n") == (before, farm("query", text, "--format", "csv").out)
    make.put(shelf, make.profile(make.job(batch=64)))
    assert "n\n7\n" == farm("query", text, "--format", "csv").out


def test_what_cannot_be_read_is_said_beside_the_answer(farm, shelf):
    (shelf.root / "inbox/v1/date=2026-11-30/x.json").write_text("{")

    said = farm("query", "SELECT count(*) AS n FROM profiles", "--format", "csv")

    assert (0, "n\n6\n") == (said.code, said.out)
    assert "unreadable: inbox/v1/date=2026-11-30/x.json" in said.err


def test_rows_are_every_column_of_every_winner(farm, here):
    said = farm("export", "--as", "rows", "-w", "model=mlp", "-o", "rows.csv")

    assert "4 rows into rows.csv\n" == said.err
    rows = list(csv.DictReader(io.StringIO((here / "rows.csv").read_text())))
    assert ["mlp"] * 4 == [each["model"] for each in rows]
    assert {"2.0", "10.0", "11.0", "12.0"} == {each["p50_ms"] for each in rows}
    assert {"p50_lo_ms", "attempts", "null_reasons", "system_class"} <= rows[0].keys()


def test_documents_are_the_stored_bytes(farm, here, shelf):
    farm("export", "--as", "documents", "-w", "status=failed", "-o", "some.jsonl")

    (line,) = (here / "some.jsonl").read_bytes().splitlines()
    found = schema.decode(line, schema.Profile)
    assert ("cnn", "failed") == (found.job.workload.model.name, found.status)
    assert line in {each.read_bytes() for each in shelf.root.glob("inbox/v1/*/*.json")}


def test_a_series_is_a_good_figure_a_night_in_order(farm):
    """Of one cell after the other; failed and invalid ones are no points."""
    said = farm("export", "--as", "series", "--format", "json")

    points = lines(said)
    assert [2.0, 10.0, 11.0, 12.0] == sorted(each["value"] for each in points)
    nights = [each for each in points if each["batch"] == 1]
    assert [10.0, 11.0, 12.0] == [each["value"] for each in nights]
    assert [f"n-{night}" for night in NIGHTS] == [each["repeat_set"] for each in nights]
    assert {"latency.p50"} == {each["metric"] for each in points}
    assert all(each["lo"] < each["value"] < each["hi"] for each in points)


def test_a_series_of_a_metric_without_an_interval_has_none(farm):
    (first, *_) = lines(farm("export", "--as", "series", "--metric", "noise", "--format", "json"))

    assert (None, None) == (first["lo"], first["hi"])


def test_layers_are_a_table_and_profiles_without_are_counted_beside_it(farm, here, shelf):
    """Beside six others that hold none."""
    kept.put(shelf, make.profile(make.job("vit")), table=make.layer_table("a", "b"))

    said = farm("export", "--as", "layers", "-o", "layers.csv")

    assert (0, "") == (said.code, said.out)
    assert "2 layers into layers.csv\nwarning: 6 profiles without a layer table: left out\n" == (
        said.err
    )
    rows = list(csv.DictReader(io.StringIO((here / "layers.csv").read_text())))
    assert [("vit", "a", "50.0", ""), ("vit", "b", "50.0", "")] == [
        (each["model"], each["layer"], each["share_pct"], each["pct_of_peak"]) for each in rows
    ]


def test_callables_are_documents_one_a_line(farm, shelf):
    samples = kept.samples([5_000_000] * 8)
    kept.put(shelf, make.profile(make.job("vit"), repeats=1), arrays=samples)

    said = farm("export", "--as", "callable", "-w", "model=vit")

    (found,) = lines(said)
    assert (0, "") == (said.code, said.err)
    assert ("farm.callable/v1", [5.0] * 8) == (found["schema"], found["latency_samples_ms"])


def test_analyses_of_traces_are_documents_one_a_line(farm, here, shelf):
    make.put(shelf, with_trace(shelf, make.profile(make.job("vit"), repeats=1)))

    said = farm("export", "--as", "analysis", "-w", "model=vit", "-o", "some.jsonl")

    (found,) = [json.loads(each) for each in (here / "some.jsonl").read_text().splitlines()]
    assert (0, "1 document into some.jsonl\n") == (said.code, said.err)
    assert ("farm.analysis/v1", 10.0) == (found["schema"], found["step_ms"])


@pytest.mark.parametrize(
    ("kind", "lacking"),
    [
        ("layers", "a layer table"),
        ("callable", "the samples of a latency"),
        ("analysis", "a trace"),
    ],
)
def test_nothing_is_written_where_no_profile_holds_such_a_thing(farm, here, kind, lacking):
    """Other than where none matches."""
    said = farm("export", "--as", kind, "-o", "some.json")
    none = farm("export", "--as", kind, "-w", "model=nothing", "-o", "some.json")

    assert (3, 3) == (said.code, none.code)
    assert f"no profile that matches has {lacking}\n  6 looked at" in said.err
    assert "no profile matches" in none.err
    assert not (here / "some.json").exists()


@pytest.mark.parametrize(("kind", "folder"), [("layers", "layer_table"), ("callable", "samples")])
def test_a_damaged_artefact_stops_the_export_and_leaves_no_file(farm, here, shelf, kind, folder):
    table, samples = make.layer_table("a"), kept.samples([5_000_000] * 8)
    kept.put(shelf, make.profile(repeats=1, fence=9), table=table, arrays=samples)
    for each in (shelf.root / "blobs/v1" / folder).glob("*/*"):
        each.write_bytes(each.read_bytes()[:-1] + b" ")

    said = farm("export", "--as", kind, "-o", "some.json")

    assert 1 == said.code
    assert f"blobs/v1/{folder}" in said.err
    assert not (here / "some.json").exists()


def test_only_what_began_lately_is_exported_if_so_asked(farm):
    assert 3 == farm("export", "--as", "rows", "--since", "1s").code
    assert 0 == farm("export", "--as", "rows", "--since", "99999d").code


def test_a_damaged_document_stops_the_export_and_leaves_no_file(farm, here, shelf):
    """Half of it under the name of the whole would be taken for the whole."""
    farm("store", "compact")
    for each in shelf.root.glob("inbox/v1/*/*.json"):
        each.write_bytes(each.read_bytes()[:-1] + b" ")

    said = farm("export", "--as", "documents", "-o", "all.jsonl")

    assert 1 == said.code
    assert not (here / "all.jsonl").exists()


def test_a_store_that_is_not_there_is_no_empty_one(farm, tmp_path):
    """A slip of the pen, or a disk that is not mounted: no answer is better than a wrong one."""
    for words in (
        ("query", "SELECT count(*) FROM winners"),
        ("export", "--as", "rows"),
        ("store", "check"),
    ):
        said = farm(*words, "--store", str(tmp_path / "typo"))

        assert (4, "") == (said.code, said.out)
        assert "the store is not there" in said.err


def test_a_file_is_written_through_a_link_and_into_a_pipe(farm, here):
    """To rename over either would destroy it."""
    (here / "target.csv").write_text("old")
    (here / "link.csv").symlink_to(here / "target.csv")
    os.mkfifo(here / "pipe.csv")
    reader = os.open(here / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)

    for name in ("link.csv", "pipe.csv"):
        assert 0 == farm("query", "SELECT 1 AS a", "-o", name).code

    assert ((here / "link.csv").is_symlink(), "a\n1\n") == (
        True,
        (here / "target.csv").read_text(),
    )
    assert b"a\n1\n" == os.read(reader, 100)
    os.close(reader)
    assert (here / "pipe.csv").is_fifo()
    assert ["link.csv", "pipe.csv", "target.csv"] == sorted(
        each.name for each in here.iterdir() if not each.name.startswith(".farm")
    )
