"""A profile as one flat row: nothing of it is left out in silence, and no column ever goes."""

import types
import typing
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.catalog import columns
from farm.catalog.rows import Row
from tests.farm import make

GOLDEN = Path(__file__).parents[2] / "golden/catalog/columns.txt"
# What a row does not hold: a log of four kilobytes, and lists of blocks, which raw documents have.
LEFT_OUT = {"failure.log_tail", "repeats", "estimate.not_measured"}
KINDS = {str: "text", int: "integer", float: "real", bool: "boolean"}
BLOCKS = {each.path.rpartition(".")[0] for each in columns.COLUMNS}


def kind_of(hint: object) -> str:
    """The kind that a field deserves; a number or a word is a text."""
    if typing.get_origin(hint) is typing.Literal:
        return "text"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        plain = [each for each in typing.get_args(hint) if each is not type(None)]
        kinds = {kind_of(each) for each in plain if each is not msgspec.UnsetType}
        return kinds.pop() if len(kinds) == 1 else "text"
    if hint == list[str]:
        return "texts"
    return KINDS.get(hint, "json") if isinstance(hint, type) else "json"


def fields(struct: type, path: str = "") -> dict[str, str]:
    """Every field of a document by its path; blocks are entered where columns go into them."""
    found = {}
    for each in msgspec.structs.fields(struct):
        here = f"{path}.{each.name}" if path else each.name
        inside = [
            hint
            for hint in (each.type, *typing.get_args(each.type))
            if isinstance(hint, type) and issubclass(hint, msgspec.Struct)
        ]
        if inside and here in BLOCKS | {"job"}:
            found |= fields(inside[0], here)
        else:
            found[here] = kind_of(each.type)
    return found


def test_every_field_of_a_profile_has_a_column_of_its_kind():
    """A field that is added to the schema is given a column, or is left out on purpose."""
    wanted = {path: kind for path, kind in fields(schema.Profile).items() if path not in LEFT_OUT}
    times = dict.fromkeys(("execution.started_at", "execution.finished_at"), "time")

    held = {each.path: each.kind for each in columns.COLUMNS if each.path}

    assert wanted | times == held


def test_columns_are_only_ever_added():
    """Parts are never rewritten: a column that went, or changed its kind, could not be read.

    A new column is added at the end of the file with the others.
    """
    known = [tuple(line.split()) for line in GOLDEN.read_text().splitlines()]

    now = [(each.name, each.kind) for each in columns.COLUMNS]

    assert sorted(known) == sorted(now)
    assert len(now) == len({name for name, _ in now})


def test_a_row_has_a_value_for_every_column():
    row = make.row(make.profile(make.job(batch=8), repeats=2, flags=["drifting"]))

    found = columns.flat(row)

    assert set(columns.NAMES) == set(found)
    expected = {
        "profile_id": row.profile_id,
        "received": "2026-11-30",
        "model": "mlp",
        "batch": 8,
        "device": "cpu",
        "device_name": "AMD EPYC 7B13",
        "slot": "cpu:0",
        "started_at": datetime(2026, 11, 30, 10, 15),
        "flags": ["drifting"],
        "validity": "degraded",
        "p50_ms": 10.0,
        "p50_lo_ms": 9.96,
        "p50_reliable": True,
        "protocol_warmup": "auto",
        "throughput_items_per_s": 800.0,
        "repeats_n": 2,
        "repeats_usable": 2,
        "repeats_p50_ms": [10.0, 10.009999999999998],
        "load_s": 0.1,
        "tags": "{}",
    }
    assert expected == {name: found[name] for name in expected}


def test_start_up_is_told_of_the_repeats_that_count():
    """A repeat that was throttled says nothing about start-up either."""
    made = make.profile(repeats=3, repeat_flags=[["throttled"]])
    slow = msgspec.structs.replace(made.repeats[0], load_s=99.0, first_ms=999.0)
    profile = msgspec.structs.replace(made, repeats=[slow, *made.repeats[1:]])

    found = columns.flat(make.row(profile))

    assert (3, 2, 0.1) == (found["repeats_n"], found["repeats_usable"], found["load_s"])
    assert 999.0 > found["first_ms"]


def test_absent_and_null_are_both_none_and_the_reasons_tell_them_apart():
    failed = columns.flat(make.row(make.profile(status="failed")))
    good = columns.flat(make.row())

    assert (None, "oom") == (failed["p50_ms"], failed["failure_kind"])
    assert (None, None) == (good["failure_kind"], good["cpu_pss_bytes"])
    assert '{"memory.cpu_pss_bytes":"no_permission"}' == good["null_reasons"]
    assert "{}" == failed["null_reasons"]


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("2026-11-30T10:15:00Z", datetime(2026, 11, 30, 10, 15)),
        ("2026-11-30T10:15:00.250Z", datetime(2026, 11, 30, 10, 15, 0, 250_000)),
        ("2026-11-30T12:15:00+02:00", datetime(2026, 11, 30, 10, 15)),
        ("2026-11-30T10:15:00", datetime(2026, 11, 30, 10, 15)),
    ],
)
def test_a_time_is_utc_whatever_zone_it_was_written_in(written, taken):
    assert taken == columns.flat(at(written))["started_at"]


@pytest.mark.parametrize("odd", ["", "yesterday", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_is_none_is_none_with_its_reason(odd):
    """One odd document of another writer must not keep the others out of the catalogue."""
    found = columns.flat(at(odd))

    assert found["started_at"] is None
    assert "execution.started_at" in msgspec.json.decode(found["null_reasons"])


def test_a_number_beyond_64_bits_is_none_with_its_reason():
    row = Row("0" * 64, make.row().key, msgspec.structs.replace(make.profile(), fence=2**63))

    found = columns.flat(row)

    assert found["fence"] is None
    assert "error: beyond 64 bits" == msgspec.json.decode(found["null_reasons"])["fence"]


def at(started: str) -> Row:
    made = make.profile()
    execution = msgspec.structs.replace(made.execution, started_at=started)
    return make.row(msgspec.structs.replace(made, execution=execution))
