"""Every statement that DuckDB is given: values are bound, and names come from fixed lists.

Only profiles that share a job, a system and a repeat set with another one are ranked: a window over
a million rows costs seconds and hundreds of megabytes, and nearly all of them have no rival.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from farm.catalog.columns import COLUMNS, NAMES
from farm.errors import Bad, Refused, did_you_mean

VIEWS: Final = ("winners", "profiles", "nights")
MEMORY: Final = "768MB"
LONGEST_LINE: Final = 1 << 20  # bytes of a row as JSON; DuckDB keeps room for some per thread
SPILL: Final = "4GB"  # on disk; without it a careless query fills the disk
# What profiles are chosen by, in the words of a sweep, and the column of each.
_SAME: Final = (
    *("model", "precision", "batch", "device", "backend", "status", "validity", "repeat_set"),
    *("node", "slot", "system_class", "environment", "simulated"),
)
WHERE: Final[Mapping[str, str]] = {each: each for each in _SAME} | {
    "run": "run_id",
    "system": "system_id",
    "cell": "cell_id",
    "protocol": "protocol_id",
    "job": "job_id",
}
WINNER_COLUMNS: Final = (*NAMES, "attempts")
CELL_COLUMNS: Final = (
    *("cell_id", "system_class", "protocol_id", "model", "precision", "batch", "mode", "backend"),
    *("device", "device_name", "node", "slot", "status", "failure_kind", "failure_message"),
    *("validity", "stability", "flags", "p50_ms", "p50_lo_ms", "p50_hi_ms", "p50_reliable"),
    *("n", "n_eff", "repeats_n", "repeats_usable", "log_mean", "log_std", "proc_cv"),
    *("throughput_items_per_s", "throughput_lo", "throughput_hi", "item", "cpu_rss_peak_bytes"),
    *("started_at", "finished_at", "repeat_set", "run_id", "job_id", "workload_id", "system_id"),
    *("simulated", "attempt", "attempts", "profile_id", "null_reasons"),
)
# A row of `nights`: the winner of one job, system and night.
_NIGHT: Final = (
    *("cell_id", "protocol_id", "system_class", "system_id", "node", "slot", "workload_id"),
    *("model", "precision", "batch", "device", "status", "validity", "log_mean", "log_std"),
    *("run_id", "profile_id", "attempts"),
)
NIGHT_COLUMNS: Final = ("night", *_NIGHT[:-2], "median", "lo", "hi", "repeats_n", *_NIGHT[-2:])

_TYPES: Final[Mapping[str, str]] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP",
    "texts": "VARCHAR[]",
    "reals": "DOUBLE[]",
    "json": "VARCHAR",
}
_ALL: Final = ", ".join(NAMES)
_AT: Final = "farm_part, farm_row"  # which file, -1 for the tail, and which row of it
# Else a folder called `node=x` on the way to a file would give every row that node.
_NO_HIVE: Final = "hive_partitioning = false"
# As `winners.rank`: a good end without a judgement is not trusted.
_RANK: Final = (
    "CASE WHEN status = 'ok' THEN if(validity IN ('valid', 'degraded'), 0, 1) "
    "WHEN status IN ('failed', 'pruned') THEN 2 ELSE 3 END"
)


class Statement(NamedTuple):
    """SQL, and the values that are bound to its question marks."""

    text: str
    values: list[object]


class Answer(NamedTuple):
    """The names of the columns, and the rows; a time is UTC and says so."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


class Failed(Bad):
    """DuckDB could not go on: what is asked cannot be worked out, or a file is damaged."""


def settings(*, threads: int, memory: str, spill: Path) -> list[str]:
    """Return what a connection is told before it sees data. spill: a folder of its own."""
    return [
        "SET TimeZone = 'UTC'",
        f"SET threads = {threads}",
        f"SET memory_limit = {_literal(memory)}",
        f"SET temp_directory = {_literal(str(spill))}",
        f"SET max_temp_directory_size = '{SPILL}'",
        "SET preserve_insertion_order = false",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET python_enable_replacements = false",
    ]


def lock(files: Sequence[Path]) -> list[str]:
    """Return what takes from a connection everything but these files, for good."""
    return [
        f"SET allowed_paths = {_listed(files)}",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ]


def ids_since(files: Sequence[Path], day: str) -> Statement:
    """Return what gives the ids of the profiles received on this day or later."""
    return Statement(f"SELECT profile_id FROM {_parquet(files)} WHERE received >= ?", [day])


def raw(files: Sequence[Path], *, tail: Path | None) -> list[str]:
    """Return what makes `farm_raw`: every row that was read, with every column and its place.

    tail: a file with a flat row as JSON in each line.
    """
    shape = ", ".join(f"{each.name} {_TYPES[each.kind]}" for each in COLUMNS)
    made = [f"CREATE TABLE farm_shape ({shape})", "CREATE TABLE farm_tail AS FROM farm_shape"]
    if tail:
        kinds = ", ".join(f"{each.name}: '{_TYPES[each.kind]}'" for each in COLUMNS)
        form = f"format = 'newline_delimited', maximum_object_size = {2 * LONGEST_LINE}"
        lines = f"read_json({_literal(str(tail))}, {form}, {_NO_HIVE}, columns = {{{kinds}}})"
        made.append(f"INSERT INTO farm_tail SELECT {_ALL} FROM {lines}")
    return [*made, f"CREATE VIEW farm_raw AS {_rows(dict(enumerate(files)))}"]


def _rows(files: Mapping[int, Path]) -> str:
    """Return a SELECT of the rows of these parts, each under its number, and of the tail.

    A part of an older farm lacks columns; an empty table has them all.
    """
    sources = [
        "SELECT *, -1 AS farm_part, 0 AS farm_row FROM farm_shape",
        "SELECT *, -1 AS farm_part, rowid::INTEGER AS farm_row FROM farm_tail",
    ]
    if files:
        all_ = list(files) == list(range(len(files)))
        number = "file_index" if all_ else f"[{', '.join(map(str, files))}][file_index::BIGINT + 1]"
        at = f"({number})::INTEGER AS farm_part, file_row_number::INTEGER AS farm_row"
        sources.append(f"SELECT *, {at} FROM {_parquet(list(files.values()))}")
    return f"SELECT {_ALL}, {_AT} FROM ({' UNION ALL BY NAME '.join(sources)})"


# One look at every row takes what ranking needs, as numbers: all that follows stays in memory.
# `key` and `other` are two hashes of what is ranked together, `series` likewise; that both of a
# pair meet by chance happens in no lifetime.
BRIEF: Final = (
    f"CREATE TABLE farm_brief AS SELECT {_AT}, started_at, fence, ({_RANK})::TINYINT AS rank, "
    "hash(job_id, system_id, repeat_set) AS key, hash(repeat_set, job_id, system_id) AS other, "
    "hash(cell_id, system_class, protocol_id) AS series, "
    "hash(protocol_id, cell_id, system_class) AS twin, "
    "hash(repeat_set) AS repeat_set, hash(workload_id) AS workload FROM farm_raw",
    f"CREATE TABLE farm_rivals AS SELECT {_AT}, key, other, rank, fence FROM farm_brief "
    "WHERE key IN (SELECT key FROM farm_brief GROUP BY key HAVING count(*) > 1)",
)
# Rows that their end and their fence do not tell apart: nearly always copies of one profile, which
# was sent on two days far apart. Only of these is the id looked at.
TIED: Final = (
    f"SELECT {_AT} FROM farm_rivals "
    "QUALIFY count(*) OVER (PARTITION BY key, other, rank, fence) > 1"
)


def ranked(tied: Mapping[int, Path]) -> list[str]:
    """Return what makes `farm_ranked`: the place of each row that has a rival, the best first.

    tied: the parts that hold rows of TIED; of two copies of a profile the second takes no part.
    """
    return [
        f"CREATE TABLE farm_tied AS SELECT {_AT}, profile_id, "
        f"row_number() OVER (PARTITION BY profile_id ORDER BY received, {_AT}) AS nth "
        f"FROM ({_rows(tied)}) SEMI JOIN ({TIED}) USING ({_AT})",
        f"CREATE TABLE farm_ranked AS SELECT {_AT}, nth, "
        "row_number() OVER (PARTITION BY key, other ORDER BY rank, fence DESC NULLS LAST, "
        "profile_id, nth) AS place, "
        "count(*) FILTER (coalesce(nth, 1) = 1) OVER (PARTITION BY key, other) AS attempts "
        f"FROM farm_rivals LEFT JOIN farm_tied USING ({_AT})",
    ]


COPIES: Final = "SELECT count(*) FROM farm_ranked WHERE nth > 1"


def views(*, copies: bool) -> dict[str, str]:
    """Return what makes each view. copies: some profile was read more than once."""
    once = f" ANTI JOIN (SELECT {_AT} FROM farm_ranked WHERE nth > 1) USING ({_AT})"
    return {
        "profiles": f"CREATE VIEW profiles AS SELECT {_ALL} FROM farm_raw{once if copies else ''}",
        "winners": f"CREATE VIEW winners AS SELECT {_ALL}, coalesce(attempts, 1) AS attempts "
        f"FROM farm_raw LEFT JOIN farm_ranked USING ({_AT}) WHERE coalesce(place, 1) = 1",
        "nights": "CREATE VIEW nights AS SELECT repeat_set[3:] AS night, "
        f"{', '.join(_NIGHT[:-2])}, p50_ms AS median, p50_lo_ms AS lo, p50_hi_ms AS hi, "
        "repeats_usable AS repeats_n, "
        f"{', '.join(_NIGHT[-2:])} FROM winners "
        "WHERE regexp_full_match(repeat_set, 'n-[0-9]{4}-[0-9]{2}-[0-9]{2}')",
    }


def winners(where: Mapping[str, str], columns: Sequence[str]) -> Statement:
    """Return what gives columns of the winners that match, newest first.

    Raises Refused for a key or a column that there is not, with the nearest one.
    """
    for each in columns:
        if each not in WINNER_COLUMNS:
            hint = did_you_mean(each, list(WINNER_COLUMNS))
            raise Refused(f"a profile has no column {each!r}", hint=hint)
    match = _matching(where)
    return Statement(
        f"SELECT {', '.join(columns)} FROM winners{match.text} "
        "ORDER BY started_at DESC NULLS LAST, profile_id",
        match.values,
    )


def chosen(where: Mapping[str, str]) -> Statement:
    """Return what makes `farm_chosen`: the row of each cell, system class and protocol.

    It is of the newest repeat set in scope, and in it of the newest workload; of the winners of
    several systems it is the one of the best end, then of the newest fence, then the newest.
    """
    match = _matching(where)
    inside = f" SEMI JOIN (SELECT {_AT} FROM farm_raw{match.text}) USING ({_AT})"
    return Statement(
        "CREATE OR REPLACE TABLE farm_chosen AS "
        f"WITH scope AS (SELECT * FROM farm_brief{inside if where else ''} "
        f"ANTI JOIN (SELECT {_AT} FROM farm_ranked WHERE place > 1) USING ({_AT})), "
        "newest AS (SELECT series, twin, max(row(coalesce(started_at, TIMESTAMP '0001-01-01'), "
        "repeat_set, workload)) AS newest FROM scope GROUP BY ALL) "
        f"SELECT {_AT} FROM scope JOIN newest USING (series, twin) "
        "WHERE repeat_set = newest[2] AND workload = newest[3] "
        "QUALIFY row_number() OVER (PARTITION BY series, twin ORDER BY rank, "
        "fence DESC NULLS LAST, started_at DESC NULLS LAST, key, other) = 1",
        match.values,
    )


CHOSEN_PARTS: Final = "SELECT DISTINCT farm_part FROM farm_chosen WHERE farm_part >= 0 ORDER BY 1"
TIED_PARTS: Final = f"SELECT DISTINCT farm_part FROM ({TIED}) WHERE farm_part >= 0 ORDER BY 1"


def cells(files: Mapping[int, Path]) -> Statement:
    """Return what gives the chosen rows. files: the parts that they lie in."""
    columns = [each for each in CELL_COLUMNS if each != "attempts"]
    columns.insert(CELL_COLUMNS.index("attempts"), "coalesce(attempts, 1) AS attempts")
    return Statement(
        f"SELECT {', '.join(columns)} FROM ({_rows(files)}) JOIN farm_chosen USING ({_AT}) "
        f"LEFT JOIN farm_ranked USING ({_AT}) "
        "ORDER BY model, precision, batch, cell_id, system_class, protocol_id",
        [],
    )


def _matching(where: Mapping[str, str]) -> Statement:
    """Return the WHERE of these pairs, with a space before it; "" if there are none."""
    tests, values = [], list[object]()
    for key, value in where.items():
        if key not in WHERE:
            hint = did_you_mean(key, list(WHERE))
            raise Refused(f"no profile has a {key!r}", why=f"known: {', '.join(WHERE)}", hint=hint)
        tests.append(f"{WHERE[key]} = ?")
        values.append(_value(key, value))
    return Statement(" WHERE " + " AND ".join(tests) if tests else "", values)


def _value(key: str, value: str) -> object:
    if key == "batch":
        if not (value.isascii() and value.isdecimal() and len(value) < 19):
            raise Refused(f"batch {value!r} is no number")
        return int(value)
    if key == "simulated":
        if value not in ("true", "false"):
            raise Refused(f"simulated {value!r} is neither true nor false")
        return value == "true"
    return value


def _parquet(files: Sequence[Path]) -> str:
    return f"read_parquet({_listed(files)}, union_by_name = true, {_NO_HIVE})"


def _listed(files: Sequence[Path]) -> str:
    return f"[{', '.join(_literal(str(each)) for each in files)}]"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
