"""The catalogue answers for everything in the store, says what it could not read, and no more."""

import os
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from farm import schema
from farm.catalog import compact, parts, query, sql
from farm.errors import Refused
from farm.store import Unreachable
from tests.farm import make
from tests.farm.catalog import shelved


@pytest.fixture
def opened(store, tmp_path):
    """Open the catalogue of the store; closed when the test is over."""
    held = []

    def made(**more) -> query.Catalog:
        held.append(query.open_catalog(store, cache=tmp_path / "cache", **more))
        return held[-1]

    yield made
    for each in held:
        each.close()
    assert [] == [each.name for each in (tmp_path / "cache").iterdir() if each.name[0] == "."]


def row(fence=1, *, day="2026-11-30", batch=1, **more):
    return make.row(make.profile(make.job(batch=batch), fence=fence, **more), day=day)


def ids(catalog: query.Catalog) -> list[str]:
    return sorted(each[0] for each in catalog.query("SELECT profile_id FROM profiles").rows)


def expected(*rows) -> list[str]:
    return sorted(each.profile_id for each in rows)


def test_an_empty_store_answers_with_nothing(opened):
    catalog = opened()

    assert (0, [], []) == (catalog.number, catalog.cells().rows, catalog.winners().rows)
    assert [(0,)] == catalog.query("SELECT count(*) FROM nights").rows


def test_a_profile_is_there_as_soon_as_it_landed(store, opened):
    """Nothing was ever compacted."""
    rows = [row(1), row(2, batch=8)]
    shelved.put(store, rows)

    assert expected(*rows) == ids(opened())


def test_parts_and_what_came_since_are_one_catalogue(store, opened):
    """The tail is read like the parts: a newer attempt there wins over one in a part."""
    old, other, new = row(1), row(1, batch=8), row(2)
    shelved.compacted(store, [old], [other])
    shelved.put(store, [new])

    catalog = opened()

    assert expected(old, other, new) == ids(catalog)
    won = catalog.winners({"batch": "1"}, columns=["profile_id", "attempts"]).rows
    assert [(new.profile_id, 2)] == won
    assert (1, 0, 0, []) == (
        catalog.number, catalog.left_out, catalog.missing, catalog.unreadable
    )  # fmt: skip


def test_an_overview_has_a_row_for_each_cell(store, opened):
    """Median, interval, n, throughput, memory, quality and date, as an overview shows them."""
    shelved.compacted(store, [row(1, flags=["drifting"]), row(1, batch=8)])

    found = opened().cells({"batch": "1"})

    (cell,) = [dict(zip(found.columns, each, strict=True)) for each in found.rows]
    wanted = {
        "model": "mlp",
        "p50_ms": 10.0,
        "p50_lo_ms": 9.96,
        "p50_hi_ms": 10.04,
        "n": 768,
        "throughput_items_per_s": 100.0,
        "cpu_rss_peak_bytes": 300 << 20,
        "validity": "degraded",
        "flags": ["drifting"],
        "started_at": datetime(2026, 11, 30, 10, 15, tzinfo=UTC),
        "attempts": 1,
    }
    assert wanted == {name: cell[name] for name in wanted}


def test_each_row_comes_from_the_part_that_holds_it(store, opened):
    """The chosen rows lie in some parts only, and a copy of a profile in two of them."""
    old, new, other = row(1), row(2, p50_ms=8.0), row(1, batch=8, p50_ms=9.0)
    again = other._replace(key=other.key.replace("2026-11-30", "2026-12-20"))
    shelved.compacted(store, [old], [old, new], [other], [again])

    catalog = opened()

    at = [sql.CELL_COLUMNS.index(name) for name in ("batch", "p50_ms", "attempts")]
    assert [[1, 8.0, 2], [8, 9.0, 1]] == [[each[i] for i in at] for each in catalog.cells().rows]
    assert expected(old, new, other) == ids(catalog)


def test_what_a_compactor_took_is_answered_the_same(store, tmp_path, opened):
    """Before and after, and by a reader that was there in between."""
    rows = [row(fence, batch=batch) for fence in (1, 2) for batch in (1, 8)]
    shelved.put(store, rows)
    before = opened()
    cells = before.cells().rows

    compact.compact(
        store, cache=tmp_path / "other", now=lambda: datetime(2026, 11, 30, 12, tzinfo=UTC),
        writer="test",
    )  # fmt: skip
    after = opened(tail=0)

    assert cells == before.cells().rows == after.cells().rows
    assert (0, 1) == (before.number, after.number)


def test_the_newest_of_the_tail_are_read_and_the_others_counted(store, opened):
    """Newest by arrival, whatever their job is called."""
    rows = [row(fence) for fence in range(1, 7)]
    shelved.put(store, rows)
    for age, each in enumerate(rows):
        touch(store.root / each.key, 1e9 - age)

    catalog = opened(tail=2)

    assert expected(*rows[:2]) == ids(catalog)
    assert 4 == catalog.left_out
    assert 6 == opened(tail=0).left_out


def test_a_tail_of_days_ago_is_read(store, opened):
    """No compactor ran since: nothing that came after its last pass is overlooked."""
    shelved.compacted(store, [row(1)])
    late = [row(2, day="2026-11-29"), row(3, day="2026-12-24")]
    shelved.put(store, late)

    assert expected(row(1), *late) == ids(opened())


def test_a_clock_that_runs_ahead_hides_nothing(store, opened):
    """One node sent from the year 2099; what is sent today is in the tail all the same."""
    ahead = row(1, day="2099-01-01")
    shelved.compacted(store, [ahead])
    now = row(2)
    shelved.put(store, [now])

    assert expected(ahead, now) == ids(opened())


def test_what_is_no_profile_is_named_and_stops_nothing(store, opened):
    """In the tail and in the manifest alike; what the manifest names is not fetched again."""
    good = row(1)
    shelved.put(store, [good])
    store.put_new("inbox/v1/date=2026-11-30/notes.txt", b"hello")
    torn = row(2)
    store.put_new(torn.key, b"{}")
    told = schema.CatalogUnreadable(key=row(3).key, reason="not JSON")
    store.put_new(told.key, b"[")
    shelved.commit(store, [], unreadable=[told])

    catalog = opened()

    assert expected(good) == ids(catalog)
    assert sorted([told.key, torn.key, "inbox/v1/date=2026-11-30/notes.txt"]) == sorted(
        each.key for each in catalog.unreadable
    )


def test_a_part_of_an_older_farm_lacks_columns(store, opened):
    """They read as null there, and of the others as ever; a newer farm's are passed over."""
    old, new = row(1), row(2, batch=8)
    table = parts.table([old]).drop_columns(["warnings", "clean_share", "simulated"])
    table = table.append_column("colour", pa.array(["green"]))
    shelved.put(store, [old, new])
    held = [shelved.part(store, [old], written(table)), shelved.part(store, [new])]
    shelved.commit(store, held)

    found = opened().query("SELECT batch, clean_share, simulated FROM profiles ORDER BY batch")

    assert [(1, None, None), (8, 1.0, False)] == found.rows


# ── damage ───────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_copy_in_the_cache_changes_nothing(store, tmp_path, opened):
    (part,) = shelved.compacted(store, [row(1)])
    opened()
    flip(tmp_path / "cache" / f"{part.sha256}.parquet")

    catalog = opened()

    assert expected(row(1)) == ids(catalog)
    assert ([], 0) == (catalog.warnings, catalog.missing)


def test_a_part_that_the_store_has_lost_is_read_from_the_inbox(store, opened):
    """The table equals the truth, with a warning; others parts and the tail are as ever."""
    lost, kept, later = [row(1), row(2)], [row(1, batch=8)], [row(3)]
    held = shelved.compacted(store, lost, kept)
    shelved.put(store, later)
    flip(store.root / held[0].key)

    catalog = opened()

    assert expected(*lost, *kept, *later) == ids(catalog)
    assert (0, 0) == (catalog.missing, catalog.left_out)
    assert [True] == [held[0].key in each for each in catalog.warnings]


def test_what_nobody_has_any_more_is_counted(store, opened):
    """The part is gone, and so are two of its profiles: what came later does not fill the gap."""
    lost = [row(1), row(2), row(3)]
    (part,) = shelved.compacted(store, lost)
    shelved.put(store, [row(9, started_at="2026-11-30T20:00:00Z")])
    (store.root / part.key).unlink()
    (store.root / lost[0].key).unlink()
    flip(store.root / lost[1].key)

    catalog = opened()

    assert 2 == catalog.missing
    assert [lost[1].key] == [each.key for each in catalog.unreadable]
    assert 2 == len(ids(catalog))


def test_damage_that_comes_while_it_is_open_is_mended(store, tmp_path, opened):
    """A file of the cache went bad, or another process threw it away."""
    rows = [row(fence, batch=batch) for batch in (1, 2, 4) for fence in (1, 2)]
    (part,) = shelved.compacted(store, rows)
    file = tmp_path / "cache" / f"{part.sha256}.parquet"
    catalog = opened()

    file.write_bytes(b"nothing")
    assert 3 == len(catalog.cells().rows)
    file.unlink()
    assert expected(*rows) == ids(catalog)


def test_a_damaged_manifest_is_told_and_what_it_held_is_read(store, opened):
    """The one before it counts, and the rest is in the inbox."""
    first, second = row(1), row(2, batch=8, day="2026-11-02")
    shelved.put(store, [first, second])
    one, two = shelved.part(store, [first]), shelved.part(store, [second])
    shelved.commit(store, [one])
    shelved.commit(store, [one, two], number=2)
    flip(store.root / "tables/profiles/v1/manifest/00000002.json")

    catalog = opened()

    assert expected(first, second) == ids(catalog)
    assert [True] == ["00000002.json" in each for each in catalog.warnings]


def test_a_store_that_is_away_is_an_error(tmp_path):
    """An empty answer would look like nothing measured."""

    class Away:
        def get(self, key, **_):
            raise Unreachable("the store does not answer", key=key, store="s3://b")

        def list(self, prefix="", **_):
            raise Unreachable("the store does not answer", key=prefix, store="s3://b")

    with pytest.raises(Unreachable):
        query.open_catalog(Away(), cache=tmp_path)


def test_a_folder_of_any_name_will_do_for_the_cache(store, tmp_path):
    shelved.compacted(store, [row(1)])
    shelved.put(store, [row(2)])

    for name in ("it's weird", "status=ü --", "{a,b} $x"):
        with query.open_catalog(store, cache=tmp_path / name / "c") as catalog:
            assert 2 == len(catalog.query("SELECT 1 FROM profiles WHERE status = 'ok'").rows)


@pytest.mark.parametrize("name", ["c[12]", "c*", "c?"])
def test_a_folder_whose_name_is_a_pattern_is_refused_for_the_cache(store, tmp_path, name):
    """DuckDB would read the files of its neighbours as well."""
    with pytest.raises(Refused, match="in its name") as caught:
        query.open_catalog(store, cache=tmp_path / name)

    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_value_that_python_cannot_hold_is_refused_with_a_way_out(store, opened):
    shelved.compacted(store, [row(1)])

    with pytest.raises(Refused, match="no type for") as caught:
        opened().query("SELECT INTERVAL '1000000000 days' AS a")

    assert "CAST" in caught.value.hint


@pytest.mark.parametrize("text", ["SELECT 'x'::INTEGER", "SELECT error('mine')", "SELECT ?"])
def test_a_query_that_cannot_be_worked_out_is_refused(store, opened, text):
    """No file is damaged, so it is the words."""
    shelved.compacted(store, [row(1)])

    with pytest.raises(Refused, match="the query cannot be answered"):
        opened().query(text)


def flip(path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def touch(path, at: float) -> None:
    os.utime(path, (at, at))


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    parts.write(table, sink)
    return sink.getvalue().to_pybytes()
