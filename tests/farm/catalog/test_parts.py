"""A part of the catalogue: the rows that were put in, in one order, and nothing that is no part."""

import io
import random

import pytest
from pyarrow import parquet

from farm.catalog import columns, parts
from farm.errors import Bad
from tests.farm import make


def rows():
    return [
        make.row(make.profile(make.job(batch=batch), fence=fence, flags=flags))
        for batch, fence, flags in [(8, 1, []), (1, 1, ["drifting"]), (8, 2, []), (1, 2, [])]
    ] + [make.row(make.profile(make.job("vit"), status="failed"))]


def test_the_same_rows_in_any_order_are_the_same_bytes(seed):
    """Two compactors that take the same profiles write the same part, under the same name."""
    shuffled = random.Random(seed).sample(rows(), len(rows()))

    assert parts.encode(rows()) == parts.encode(iter(shuffled))


def test_a_part_holds_each_row_as_it_was_flattened(tmp_path):
    file = tmp_path / "part.parquet"
    file.write_bytes(parts.encode(rows()))

    found = parquet.read_table(file).to_pylist()

    by_id = {each.profile_id: columns.flat(each) for each in rows()}
    assert by_id == {each["profile_id"]: each for each in found}


def test_rows_lie_by_cell_then_machine_then_time(tmp_path):
    file = tmp_path / "part.parquet"
    file.write_bytes(parts.encode(rows()))

    found = parquet.read_table(file, columns=list(parts.ORDER)).to_pylist()

    order = [tuple(each[name] for name in parts.ORDER) for each in found]
    assert sorted(order) == order
    assert [each["profile_id"] for each in found] == parts.ids(file)


def test_ids_are_read_from_bytes_as_well():
    assert {each.profile_id for each in rows()} == set(parts.ids(parts.encode(rows())))


def test_a_part_of_nothing_is_a_part():
    assert [] == parts.ids(parts.encode([]))


def test_a_part_made_again_has_other_bytes_and_the_same_rows():
    """The name of the first bytes may be taken by damage for ever."""
    data = parts.encode(rows())

    other = parts.remade(data, 1)

    assert data != other != parts.remade(data, 2)
    assert parts.ids(data) == parts.ids(other)


@pytest.mark.parametrize("size", [0, 3, 100, 5_000])
def test_what_is_no_part_is_bad(size):
    """An empty file, a torn one, a text: told as damage."""
    with pytest.raises(Bad):
        parts.ids(parts.encode(rows())[:size])


def test_a_table_without_profiles_is_bad(tmp_path):
    import pyarrow as pa

    file = tmp_path / "other.parquet"
    parquet.write_table(pa.table({"x": [1]}), file)

    with pytest.raises(Bad):
        parts.ids(file)


# ── parts that are taken along ───────────────────────────────────────────────────────────────────


def test_rows_of_other_parts_are_taken_along_in_order(tmp_path):
    """As if all had been encoded at once."""
    some = [make.row(make.profile(make.job(batch=each))) for each in (4, 1, 3)]
    (tmp_path / "a").write_bytes(parts.encode(some[:1]))
    (tmp_path / "b").write_bytes(parts.encode(some[1:2]))

    joined = parts.encode(some[2:], beside=[tmp_path / "a", tmp_path / "b"])

    assert parts.encode(some) == joined


def test_a_part_that_lacks_a_column_is_taken_along_with_nulls(tmp_path):
    """An older farm wrote it."""
    row = make.row()
    older = parquet.read_table(io.BytesIO(parts.encode([row]))).drop_columns(["p99_ms"])
    parquet.write_table(older, tmp_path / "older")

    joined = parquet.read_table(io.BytesIO(parts.encode([], beside=[tmp_path / "older"])))

    assert (parts.SCHEMA.names, [None]) == (joined.column_names, joined["p99_ms"].to_pylist())
    assert [row.profile_id] == joined["profile_id"].to_pylist()


def test_a_part_with_a_column_that_we_do_not_know_is_not_ours(tmp_path):
    ours = parquet.read_table(io.BytesIO(parts.encode([make.row()])))
    parquet.write_table(ours, tmp_path / "ours")
    parquet.write_table(ours.append_column("newer", [["x"]]), tmp_path / "newer")
    (tmp_path / "none").write_bytes(b"PAR1")

    assert (True, False) == (parts.is_ours(tmp_path / "ours"), parts.is_ours(tmp_path / "newer"))
    with pytest.raises(Bad):
        parts.is_ours(tmp_path / "none")
