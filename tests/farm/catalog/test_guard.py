"""One SELECT over the views is let through; everything else is refused before it is run."""

from contextlib import suppress

import duckdb
import pytest

from farm.catalog import guard
from farm.errors import Refused

TAKEN = frozenset({"duckdb_settings", "farm_raw", "pg_class"})
ALLOWED = [
    ("SELECT 1", set()),
    ("select * from winners", {"winners"}),
    ("FROM profiles SELECT count(*)", {"profiles"}),
    ("TABLE nights", {"nights"}),
    ("DESCRIBE winners", {"winners"}),
    ("SUMMARIZE SELECT p50_ms FROM Profiles", {"profiles"}),
    ("SELECT * FROM profiles ORDER BY 1 -- a comment; with a sign", {"profiles"}),
    ("SELECT ';' FROM profiles;", {"profiles"}),
    ("WITH x AS (SELECT * FROM winners) SELECT * FROM X", {"winners"}),
    ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) FROM t", set()),
    ("SELECT (SELECT max(p50_ms) FROM winners) FROM profiles p", {"winners", "profiles"}),
    ("SELECT * FROM profiles a JOIN nights b USING (profile_id)", {"profiles", "nights"}),
    ("SELECT * FROM winners UNION ALL SELECT * FROM winners", {"winners"}),
    ("SELECT k FROM profiles, json_each(tags) AS t(k)", {"profiles"}),
    ("SELECT unnest(flags) FROM profiles, range(3), generate_series(1, 2)", {"profiles"}),
    ("VALUES (1)", set()),
]
REFUSED = [
    ("", "statements"),
    ("-- nothing", "statements"),
    ("SELECT 1; SELECT 2", "2 statements"),
    ("SELECT 1; DROP VIEW winners", "no SELECT"),
    ("CREATE TABLE x AS SELECT 1", "no SELECT"),
    ("INSERT INTO farm_tail SELECT 1", "no SELECT"),
    ("UPDATE farm_tail SET fence = 1", "no SELECT"),
    ("DELETE FROM farm_tail", "no SELECT"),
    ("COPY (SELECT 1) TO '/tmp/x.csv'", "no SELECT"),
    ("COPY farm_tail FROM '/etc/passwd'", "no SELECT"),
    ("EXPORT DATABASE '/tmp/x'", "no SELECT"),
    ("ATTACH '/tmp/x.db'", "no SELECT"),
    ("INSTALL httpfs", "no SELECT"),
    ("LOAD httpfs", "no SELECT"),
    ("PRAGMA database_list", "no SELECT"),
    ("SET memory_limit = '99GB'", "no SELECT"),
    ("CALL pragma_version()", "no SELECT"),
    ("EXPLAIN SELECT 1", "no SELECT"),
    ("PREPARE q AS SELECT 1", "no SELECT"),
    ("CHECKPOINT", "no SELECT"),
    ("SHOW TABLES", "more than the views"),
    ("SELECT * FROM '/etc/passwd'", "no view '/etc/passwd'"),
    ("SELECT * FROM 'https://example.invalid/x.parquet'", "no view"),
    ("SELECT * FROM read_csv('/etc/passwd')", "read_csv()"),
    ("SELECT * FROM READ_PARQUET('/tmp/x.parquet')", "read_parquet()"),
    ("SELECT * FROM read_text('/etc/passwd')", "read_text()"),
    ("SELECT * FROM glob('/*')", "glob()"),
    ("SELECT * FROM sniff_csv('/etc/passwd')", "sniff_csv()"),
    ("SELECT * FROM query('SELECT 1')", "query()"),
    ("SELECT * FROM query_table('farm_raw')", "query_table()"),
    ("SELECT * FROM json_execute_serialized_sql('{}')", "json_execute_serialized_sql()"),
    ("SELECT * FROM arrow_scan(1, 2, 3)", "arrow_scan()"),
    ("SELECT * FROM duckdb_settings()", "duckdb_settings()"),
    ("SELECT * FROM duckdb_settings", "no view 'duckdb_settings'"),
    ("SELECT * FROM information_schema.tables", "no view 'tables'"),
    ("SELECT * FROM memory.main.winners", "no view"),
    ("SELECT * FROM farm_raw", "no view 'farm_raw'"),
    ("SELECT (SELECT count(*) FROM pg_class)", "no view 'pg_class'"),
    ("SELECT * FROM winners WHERE EXISTS (FROM pg_class)", "no view 'pg_class'"),
    ("WITH pg_class AS (SELECT 1) SELECT * FROM winners", "'pg_class' is taken"),
    ("SELECT * FROM (WITH farm_raw AS (SELECT 1) FROM farm_raw), farm_raw", "taken"),
    ("SELECT current_setting('temp_directory')", "current_setting()"),
    ("SELECT Main.Current_Setting('threads')", "current_setting()"),
    ("SELECT getenv('HOME')", "getenv()"),
    ("SELECT * FROM winners ORDER BY write_log('x')", "write_log()"),
    ("PIVOT profiles ON status USING count(*)", "no SELECT"),
    ("SELECT", "cannot be read"),
    ("SELEC 1", "cannot be read"),
    ("SELECT " + "+".join(["1"] * 20_000), "cannot be read"),
    ("SELECT '", "cannot be read"),
]


@pytest.fixture(scope="module")
def con():
    with duckdb.connect(":memory:") as made:
        yield made


def asked(con, text: str) -> frozenset[str]:
    (tree,) = con.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()[0]
    return guard.views_of(tree, taken=TAKEN)


@pytest.mark.parametrize(("text", "views"), ALLOWED)
def test_a_select_over_the_views_is_let_through(con, text, views):
    assert views == asked(con, text)


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_everything_else_is_refused_and_says_why(con, text, why):
    with pytest.raises(Refused) as refused:
        asked(con, text)

    assert why in str(refused.value)


@pytest.mark.parametrize("opening", ["SELECT * FROM (", "SELECT (", "SELECT ["])
@pytest.mark.parametrize("depth", [500, 5_000, 30_000])
def test_no_depth_ends_the_process(con, opening, depth):
    """It is refused, or it is let through; the stack holds."""
    closing = "]" if opening.endswith("[") else ")"
    inner = "1" if opening != "SELECT * FROM (" else "SELECT 1"
    text = opening * depth + inner + closing * depth

    with suppress(Refused):
        assert frozenset() == asked(con, text)


def test_a_name_that_is_nearly_one_of_ours_is_told(con):
    with pytest.raises(Refused) as refused:
        asked(con, "SELECT * FROM winers")

    assert "did you mean `winners`?" == refused.value.hint


@pytest.mark.parametrize(
    ("name", "views", "hint"),
    [
        ("p50", {"winners"}, "did you mean `p50_ms`?"),
        ("mediann", {"nights"}, "did you mean `median`?"),
        ("zzz", {"profiles"}, "`DESCRIBE profiles` lists them"),
        ("zzz", set(), "`DESCRIBE winners` lists them"),
    ],
)
def test_the_nearest_column_is_named(name, views, hint):
    assert hint == guard.column_hint(name, frozenset(views))
