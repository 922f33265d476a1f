"""A connection gives what one SELECT over the views asks for, and nothing else at all."""

import signal
import threading
import time
from functools import partial

import duckdb
import msgspec
import pyarrow as pa
import pytest

from farm.catalog import columns, parts
from farm.catalog.engine import Engine
from farm.errors import Bad, FarmError, Refused, Unreachable
from tests.farm import make


@pytest.fixture
def opened(tmp_path):
    """Open an engine over one row of a part and one of the tail; closed when the test is over."""
    held = []
    folder = tmp_path / "cache"

    def made(*, tail=True, **more) -> Engine:
        folder.mkdir(exist_ok=True)
        (folder / "part.parquet").write_bytes(parts.encode([make.row()]))
        rows = [msgspec.json.encode(columns.flat(make.row(fence=2)))] if tail else []
        held.append(Engine([folder / "part.parquet"], rows, folder=folder, **more))
        return held[-1]

    yield made
    for each in held:
        each.close()
    assert {"part.parquet"} >= {each.name for each in folder.iterdir()}


# What is refused; and whether the connection itself would not do it either. What is left to the
# guard alone shows settings, or changes tables that only this process sees.
ATTACKS = [
    ("SELECT * FROM read_csv('/etc/passwd')", True),
    ("SELECT * FROM '/etc/passwd'", True),
    ("SELECT * FROM read_text('/etc/passwd')", True),
    ("SELECT * FROM read_parquet('{folder}/x.parquet')", True),
    ("SELECT * FROM parquet_metadata('{folder}/x.parquet')", True),
    ("SELECT * FROM 's3://bucket/x.parquet'", True),
    ("SELECT * FROM glob('/**')", True),
    ("COPY (SELECT 1) TO '{folder}/out.csv'", True),
    ("COPY (SELECT * FROM winners) TO '{folder}/out.parquet'", True),
    ("EXPORT DATABASE '{folder}/out'", True),
    ("ATTACH '{folder}/out.db'", True),
    ("INSTALL httpfs", True),
    ("LOAD httpfs", True),
    ("LOAD '{folder}/x.duckdb_extension'", True),
    ("SET enable_external_access = true", True),
    ("SET allowed_paths = ['/etc/passwd']", True),
    ("RESET lock_configuration", True),
    ("SELECT getenv('HOME')", True),
    ("SELECT * FROM here", True),
    ("SELECT current_setting('temp_directory')", False),
    ("SELECT * FROM duckdb_settings()", False),
    ("SELECT * FROM winners; DROP VIEW winners", False),
    ("CREATE TABLE mine AS SELECT 1", False),
    ("INSERT INTO farm_tail SELECT * FROM farm_tail", False),
    ("PRAGMA database_list", False),
]


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"
COUNT = "SELECT count(*) FROM profiles"


def test_nothing_but_the_views_can_be_asked_for(tmp_path, opened):
    """No file is read or written, no setting seen or changed, and the rows are as before."""
    (tmp_path / "x.parquet").write_bytes(parts.encode([]))
    engine = opened()
    before = {each.name for each in tmp_path.iterdir()}

    for attack, _ in ATTACKS:
        with pytest.raises(Refused):
            engine.query(attack.format(folder=tmp_path), deadline_s=30)

    assert before == {each.name for each in tmp_path.iterdir()}
    assert [(2,)] == engine.query(COUNT, deadline_s=30).rows


def test_a_hole_in_the_guard_leads_to_a_closed_door(tmp_path, opened):
    """The connection sees the files it was given, no other, no network, no variable of ours."""
    (tmp_path / "x.parquet").write_bytes(parts.encode([]))
    con = opened()._con
    here = pa.table({"x": [1]})
    before = {each.name for each in tmp_path.iterdir()}

    for attack, locked in ATTACKS:
        if locked:
            with pytest.raises(duckdb.Error):
                con.execute(attack.format(folder=tmp_path)).fetchall()

    assert 1 == here.num_rows
    assert before == {each.name for each in tmp_path.iterdir()}


def test_it_is_set_as_the_machine_can_bear(opened):
    names = ("memory_limit", "TimeZone", "preserve_insertion_order", "threads")
    con = opened()._con

    found = [con.execute("SELECT current_setting(?)", [each]).fetchall()[0][0] for each in names]

    assert ["732.4 MiB", "UTC", False] == found[:3]
    assert 4 >= found[3]


def test_a_query_that_does_not_end_is_ended(opened):
    engine = opened()
    began = time.monotonic()

    with pytest.raises(Refused) as refused:
        engine.query(ENDLESS, deadline_s=0.05)

    assert "the query took longer than 0.05 s" == str(refused.value)
    assert 10 > time.monotonic() - began
    assert [(2,)] == engine.query(COUNT, deadline_s=30).rows


def test_ctrl_c_ends_a_query(opened):
    """As it ends everything else; DuckDB calls it a runtime error."""
    engine = opened()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    press = partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
    finger = threading.Timer(0.1, press)
    finger.start()

    try:
        with pytest.raises(KeyboardInterrupt):
            engine.query(ENDLESS, deadline_s=30)
    finally:
        finger.join()
        signal.signal(signal.SIGINT, before)


def test_a_query_that_needs_too_much_memory_is_bad_and_the_next_one_is_answered(opened):
    engine = opened(tail=False, memory="64MB")

    with pytest.raises(Bad) as bad:
        engine.query("SELECT list(n) FROM range(20_000_000) t(n)", deadline_s=30)

    assert "more memory" in str(bad.value)
    assert [(1,)] == engine.query(COUNT, deadline_s=30).rows


def test_what_does_not_fit_into_memory_goes_to_the_disk(opened):
    """The lock leaves the folder of the connection open; it is gone afterwards."""
    rows = "SELECT n, repeat('x', 100) || n AS t FROM range(400_000) r(n)"
    sorted_ = f"SELECT lag(t) OVER (ORDER BY hash(n)) AS t FROM ({rows})"
    engine = opened(tail=False, memory="64MB")

    found = engine.query(f"SELECT max(length(t)) FROM ({sorted_})", deadline_s=30)

    assert [(106,)] == found.rows


def test_an_answer_that_no_machine_holds_is_refused(opened):
    """Rows cost a hundred times their bytes once they are Python's."""
    wide = "SELECT " + "n, " * 999 + "n FROM range(1_000_000_000) t(n)"

    with pytest.raises(Refused) as refused:
        opened().query(wide, deadline_s=30, most=300_000)

    assert "LIMIT" in refused.value.hint


def test_a_folder_that_takes_nothing_is_told(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(Unreachable):
        Engine([], [], folder=tmp_path / "file")


def test_a_file_that_is_no_part_is_bad(tmp_path):
    (tmp_path / "part.parquet").write_bytes(b"PAR1" * 99)

    with pytest.raises(Bad):
        Engine([tmp_path / "part.parquet"], [], folder=tmp_path)
    assert ["part.parquet"] == [each.name for each in tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("SELECT p_50_ms FROM winners", "understood", "did you mean `p50_ms`?"),
        ("SELECT w.modl FROM winners w", "understood", "did you mean `model`?"),
        ("SELECT mediam FROM nights", "understood", "did you mean `median`?"),
        ("SELECT * FROM profilez", "no view", "did you mean `profiles`?"),
        ("SELECT nosuch(1)", "understood", ""),
        ("x" * 200_000, "longer than", ""),
    ],
)
def test_a_slip_is_refused_with_the_nearest_name(opened, text, what, hint):
    with pytest.raises(FarmError) as refused:
        opened().query(text, deadline_s=30)

    assert (2, hint) == (refused.value.exit_code, refused.value.hint)
    assert what in str(refused.value)
