"""The layers of many profiles as one table: every row of every one that counts, and no other."""

import csv
import io
import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from farm.catalog import forms
from farm.catalog.query import open_catalog
from farm.errors import Bad
from farm.export import layers
from farm.store import Corrupt, LocalStore, NotFound
from tests.farm import make
from tests.farm.export import kept

NULLABLE = ("std_ms", "scaled_ms", "flops_per_batch", "pct_of_peak")


@pytest.fixture
def taken(store, tmp_path):
    """Export the layers of the store in a form."""
    return lambda form="json", **where: kept.exported(
        store, tmp_path / "cache", "layers", form, **where
    )


def test_each_layer_of_each_profile_is_a_row_with_what_it_belongs_to(store, taken):
    """Newest profile first, its layers as they were executed."""
    old = make.profile(started_at="2026-11-29T03:00:00Z", repeat_set="n-2026-11-29")
    first = kept.put(store, old, table=make.layer_table("a", "b"), day="2026-11-29")
    second = kept.put(store, make.profile(make.job(batch=8)), table=make.layer_table("c"))

    data, made = taken()

    rows = kept.lines(data)
    assert (3, 0) == (made.rows, made.left_out)
    assert [(second, 8, "c"), (first, 1, "a"), (first, 1, "b")] == [
        (each["profile_id"], each["batch"], each["layer"]) for each in rows
    ]
    assert list(layers.COLUMNS) == list(rows[0])
    whole = ("job_id", "model", "precision", "device", "system_class", "started_at")
    assert (make.job(batch=8).job_id, "mlp", "fp32", "cpu", "epyc-7b13-2c", make.STARTED) == tuple(
        rows[0][name] for name in whole
    )
    assert ("wrapped", "wall", 100, 0.05) == tuple(
        rows[0][name] for name in ("method", "clock", "iterations", "perturbation")
    )
    figures = ("type", "calls_per_iteration", "share_pct", "average_ms", "median_ms", "std_ms")
    assert ("Linear", 1.0, 50.0, 0.05, 0.0498, 0.001) == tuple(rows[1][name] for name in figures)
    rest = ("total_ms", "scaled_ms", "flops_per_batch", "pct_of_peak", "reliable")
    assert (5.0, 0.048, 16_384, None, True) == tuple(rows[1][name] for name in rest)
    assert {"pct_of_peak": "not_probed"} == json.loads(rows[1]["null_reasons"])


def test_only_profiles_that_count_and_match_are_in_it(store, taken):
    kept.put(store, make.profile(fence=1), table=make.layer_table("of a loser"))
    kept.put(store, make.profile(fence=2), table=make.layer_table("of the winner"))
    kept.put(store, make.profile(make.job("cnn")), table=make.layer_table("of another"))

    data, _ = taken(model="mlp")

    assert ["of the winner"] == [each["layer"] for each in kept.lines(data)]


def test_a_profile_without_a_table_gives_no_row_and_is_counted(store, taken):
    kept.put(store, make.profile(), table=make.layer_table("a"))
    kept.put(store, make.profile(make.job(batch=8)))
    kept.put(store, make.profile(make.job("cnn"), status="failed"))

    data, made = taken()

    assert (1, 2, 1) == (made.rows, made.left_out, len(kept.lines(data)))


def test_all_forms_hold_the_same(store, taken, tmp_path):
    """A name that a spreadsheet would take for a formula is defused in the CSV alone."""
    kept.put(store, make.profile(), table=make.layer_table("=a, b", 'c"d'))

    rows = kept.lines(taken()[0])
    table = list(csv.DictReader(io.StringIO(taken("csv")[0].decode())))
    (tmp_path / "x.parquet").write_bytes(taken("parquet")[0])
    columns = pq.read_table(tmp_path / "x.parquet").to_pylist()

    assert ["=a, b", 'c"d'] == [each["layer"] for each in rows]
    assert ["'=a, b", 'c"d'] == [each["layer"] for each in table]
    for name in ("layer", "share_pct", "pct_of_peak", "null_reasons", "reliable"):
        assert [each[name] for each in rows] == [each[name] for each in columns]
    for one, other in zip(rows, table, strict=True):
        assert float(other["median_ms"]) == one["median_ms"]
        assert ("", "true") == (other["pct_of_peak"], other["reliable"])


@given(st.sets(st.sampled_from(NULLABLE)), st.booleans())
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_null_is_null_with_its_reason_in_every_form_and_never_0(tmp_path_factory, gone, bare):
    """bare: nor is it known what the profiler cost."""
    folder = tmp_path_factory.mktemp("layers")
    store = LocalStore(folder / "store", fsync=False)
    table = make.layer_table("a")
    values = {name: None if name in gone else 3.0 for name in NULLABLE} | {"flops_per_batch": 7}
    values |= {"flops_per_batch": None} if "flops_per_batch" in gone else {}
    reasons = {f"rows.0.{name}": "not_supported" for name in gone}
    reasons |= {"perturbation": "not_probed"} if bare else {}
    table = msgspec.structs.replace(
        table,
        rows=[msgspec.structs.replace(table.rows[0], **values)],
        perturbation=None if bare else 0.05,
        null_reasons=reasons,
    )
    kept.put(store, make.profile(), table=table)

    with open_catalog(store, cache=folder / "cache") as catalog:
        answer = layers.layers(store, catalog, {}, since=None).answer
    (row,) = kept.lines(forms.json_lines(answer))
    (cells,) = csv.DictReader(io.StringIO(forms.comma_separated(answer).decode()))

    missing = {*gone, *(["perturbation"] if bare else [])}
    assert missing == {name for name in layers.COLUMNS if row[name] is None}
    assert missing == {name for name in layers.COLUMNS if cells[name] == ""}
    assert missing == set(json.loads(row["null_reasons"]))
    assert not {0, "0", "0.0"} & {*row.values(), *cells.values()}


def test_a_damaged_table_is_told_and_so_is_one_that_is_gone(store, taken):
    kept.put(store, make.profile(), table=make.layer_table("a"))
    (path,) = (store.root / "blobs/v1/layer_table").glob("*/*.json")
    path.write_bytes(path.read_bytes()[:-1] + b" ")

    with pytest.raises(Corrupt):
        taken()
    path.unlink()
    with pytest.raises(NotFound):
        taken()


def test_what_is_no_layer_table_is_told(store, taken):
    """Whole, and of another kind."""
    artifact = kept.artifact(store, "layer_table", b'{"schema": "farm.tag/v1"}', "json")
    profile = msgspec.structs.replace(make.profile(), artifacts={"layer_table": artifact})
    make.put(store, profile)

    with pytest.raises(Bad, match="layer_table"):
        taken()
