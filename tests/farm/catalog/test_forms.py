"""An answer reads back equal from every form, and harms no spreadsheet."""

import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pyarrow import parquet as pq

from farm.catalog import forms
from farm.catalog.sql import Answer
from farm.errors import Refused

WHEN = datetime(2026, 11, 30, 10, 15, tzinfo=UTC)
ANSWER = Answer(
    ("model", "batch", "p50_ms", "flags", "at", "stable", "why"),
    [
        ("mlp", 8, 0.1, ["noisy", "paging"], WHEN, True, None),
        ("=cmd()", 1, None, [], None, False, "–"),
    ],
)


def test_a_csv_reads_back_with_every_digit_and_an_empty_null():
    header, first, second = csv.reader(io.StringIO(forms.comma_separated(ANSWER).decode()))

    assert list(ANSWER.columns) == header
    assert ["mlp", "8", "0.1", '["noisy","paging"]', "2026-11-30T10:15:00Z", "true", ""] == first
    assert ["", "[]", "", "false", "–"] == second[2:]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_text_that_is_a_formula_is_defused_and_a_number_is_not(text):
    header = forms.comma_separated(Answer((text,), [])).decode()
    (row,) = list(csv.reader(io.StringIO(header, newline="")))
    assert [f"'{text}"] == row

    data = forms.comma_separated(Answer(("a", "b"), [(text, -1.5)])).decode()
    assert [[f"'{text}", "-1.5"]] == list(csv.reader(io.StringIO(data, newline="")))[1:]


def test_json_has_an_object_a_line_in_the_order_of_the_columns():
    first, second = map(json.loads, forms.json_lines(ANSWER).splitlines())

    assert list(ANSWER.columns) == list(first)
    assert (0.1, ["noisy", "paging"], "2026-11-30T10:15:00Z") == (
        first["p50_ms"],
        first["flags"],
        first["at"],
    )
    assert second["p50_ms"] is None


def test_what_is_not_finite_is_never_taken_for_null():
    odd = Answer(("a", "b", "c"), [(float("inf"), float("-inf"), float("nan"))])

    assert b"a,b,c\ninf,-inf,nan\n" == forms.comma_separated(odd)
    assert {"a": "inf", "b": "-inf", "c": "nan"} == json.loads(forms.json_lines(odd))


def test_values_of_every_type_are_written_and_none_is_lost():
    """What SQL has and JSON has not, at any depth."""
    odd = [
        Decimal("0.5"),
        [float("nan"), uuid.UUID(int=1)],
        {True: [Decimal(2)], "at": WHEN},
        timedelta(days=1),
        b"\x00\xff",
    ]
    answer = Answer(tuple("abcde"), [tuple(odd)])

    (told,) = map(json.loads, forms.json_lines(answer).splitlines())

    assert {
        "a": 0.5,
        "b": ["nan", "00000000-0000-0000-0000-000000000001"],
        "c": {"True": [2.0], "at": "2026-11-30T10:15:00Z"},
        "d": "1 day, 0:00:00",
        "e": "00ff",
    } == told
    assert forms.comma_separated(answer).startswith(b"a,b,c,d,e\n0.5,")


def test_columns_of_one_name_stay_apart_in_json():
    assert {"a": 1, "a_2": 2} == json.loads(forms.json_lines(Answer(("a", "a"), [(1, 2)])))


def test_parquet_keeps_numbers_times_and_lists_as_what_they_are():
    found = pq.read_table(io.BytesIO(forms.parquet(ANSWER)))

    assert list(ANSWER.columns) == found.column_names
    assert [dict(zip(ANSWER.columns, row, strict=True)) for row in ANSWER.rows] == (
        found.to_pylist()
    )


def test_an_answer_without_rows_has_its_columns_in_every_form():
    empty = Answer(("a", "b"), [])

    assert b"a,b\n" == forms.comma_separated(empty)
    assert b"" == forms.json_lines(empty)
    assert (["a", "b"], 0) == (
        pq.read_table(io.BytesIO(forms.parquet(empty))).column_names,
        pq.read_table(io.BytesIO(forms.parquet(empty))).num_rows,
    )


def test_columns_of_one_name_stay_apart_in_parquet():
    found = pq.read_table(io.BytesIO(forms.parquet(Answer(("a", "a", "a_2"), [(1, 2, 3)]))))

    assert {"a": 1, "a_2": 2, "a_2_2": 3} == found.to_pylist()[0]


def test_values_without_a_common_type_are_refused_by_their_column():
    with pytest.raises(Refused, match="'a'"):
        forms.parquet(Answer(("a",), [(1,), ("x",)]))


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.csv", "csv"), ("a.jsonl", "json"), ("b/c.NDJSON", "json"), ("x.parquet", "parquet")],
)
def test_the_name_of_a_file_says_its_form(name, form):
    assert form == forms.form_of(name, known=list(forms.FORMS))


@pytest.mark.parametrize("name", ["", "a", "a.txt", ".csv.", "a.parqet"])
def test_a_name_that_says_none_is_refused(name):
    with pytest.raises(Refused) as caught:
        forms.form_of(name, known=list(forms.FORMS))

    assert caught.value.hint
