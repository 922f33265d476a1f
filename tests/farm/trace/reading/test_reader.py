"""A file as columns: the same however it is written, packed, ordered and read."""

import io
from collections.abc import Callable
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import Bad
from farm.trace.reading import reader
from tests.farm.trace.generating import DIALECTS, MODERN, Made, trace
from tests.farm.trace.reading.told import Told, meant, opened, read
from tests.farm.trace.writing import KEYS, LATER_KEYS, Blank, Style, file, packed, shuffled

CHUNKS = st.sampled_from([1, 2, 3, 7, 64, 1000, 4096, 64 << 20])
BLANKS: tuple[Blank, ...] = (str, lambda: " ", lambda: "\n\t", lambda: "\r\n" + " " * 70)
MADE = st.builds(
    lambda number, dialect, steps, streams, ahead, begin: trace(
        Random(number), dialect=dialect, steps=steps, streams=streams, ahead=ahead, begin=begin
    ),
    st.integers(0, 2**32),
    st.sampled_from(DIALECTS),
    st.integers(0, 3),
    st.integers(1, 4),
    st.sampled_from([1000, 150_000, 200_000_000]),
    st.sampled_from([1_000_000, 4503599627370497000 // 1000, 1_700_000_000_123_456_789]),
)


def expected(made: Made, *, is_list: bool = False) -> Told:
    """Return what a reader has to say of a trace that was written whole."""
    keys: dict[str, object] = {} if is_list else {**KEYS, **LATER_KEYS}
    return Told(*meant(made), keys=keys, repaired={}, dropped={})


@settings(max_examples=15)
@given(MADE, CHUNKS)
def test_a_made_trace_says_what_it_was_made_of(made: Made, chunk: int) -> None:
    assert expected(made) == read(file(made.events), chunk=chunk)


@settings(max_examples=15)
@given(MADE, st.integers(0, 2**32), CHUNKS)
def test_neither_order_of_events_nor_of_keys_matters(made: Made, number: int, chunk: int) -> None:
    random = Random(number)
    events = [shuffled(each, random) for each in made.events]
    random.shuffle(events)

    assert expected(made) == read(file(events), chunk=chunk)


@settings(max_examples=15)
@given(MADE, st.sampled_from(BLANKS), st.booleans(), CHUNKS)
def test_blanks_and_a_list_without_an_object_do_not_matter(
    made: Made, blank: Blank, is_list: bool, chunk: int
) -> None:
    data = file(made.events, Style(blank, is_list))
    chunk = max(chunk, len(data) // 20_000)  # a megabyte byte by byte takes seconds

    assert expected(made, is_list=is_list) == read(data, chunk=chunk)


@settings(max_examples=15)
@given(MADE, st.integers(1, 4), st.sampled_from([7, 64, 4096, 64 << 20]))
def test_gzip_of_any_number_of_members_does_not_matter(
    made: Made, members: int, chunk: int
) -> None:
    data = packed(file(made.events), members=members)

    assert expected(made) == read(data, chunk=chunk)


@pytest.mark.parametrize("pack", [bytes, packed])
def test_a_trace_of_many_chunks_is_the_same(seed: int, pack: Callable[[bytes], bytes]) -> None:
    """Most of it is never walked through."""
    made = trace(Random(seed), steps=300)
    data = file(made.events)
    assert reader.CHUNK < len(data)

    for chunk in (1 << 12, reader.CHUNK, 64 << 20):
        assert expected(made) == read(pack(data), chunk=chunk)


def test_keys_on_both_sides_are_read_and_the_later_win() -> None:
    event = '{"ph":"X","cat":"cpu_op","ts":1}'
    text = f'{{"a":1,"b":2,"traceEvents":[{event}],"b":3,"c":4}}'

    assert {"a": 1, "b": 3, "c": 4} == read(text.encode()).keys


def test_a_file_is_known_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    made = trace(Random(1))
    plain, other = tmp_path / "a.json.gz", tmp_path / "b.json"
    plain.write_bytes(file(made.events))
    other.write_bytes(packed(file(made.events)))

    for path in (plain, other):
        assert len(made.rows) == len(opened(path).events.start)


# ── times ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["{}", '"{}"'])
@pytest.mark.parametrize(
    "digits",
    [
        *("1.0005", "1.00049", "12.25", "1e3", "1.5E-2", "4503599627370.497"),
        *("8796093022207.999", "8796093022208.001", "8796093022208.0015", "1700000000000000"),
        *("1700000000000000.123", "1700000000000000.1235", "1700000000000000.12349999"),
    ],
)
def test_a_time_is_rounded_half_up_wherever_and_however_it_stands(digits: str, form: str) -> None:
    """Alone, behind a far one in the same piece, or in a later one; as a number or as text."""
    exact = (Decimal(digits) * 1000 + Decimal("0.5")).to_integral_value(ROUND_FLOOR)
    event = f'{{"ph":"X","cat":"kernel","name":"it","ts":{form.format(digits)},"dur":0.0015}}'
    far = '{"ph":"X","cat":"kernel","name":"far","ts":1700000000000000.5}'
    broken = '{"ph":"X","cat":"kernel","ts":1,}'

    for others in ([], [far], [broken], [far, broken], [broken, far]):
        for chunk in (1, 64, 1 << 16):
            text = "[" + ",".join([*others, event, *others]) + "]"
            found = read(text.encode(), chunk=chunk)
            times = [(each.start, each.end) for each in found.rows if each.name == "it"]
            assert [(int(exact), int(exact) + 2)] == times
            assert (form != "{}") == found.repaired.get("number_text", 0)


@pytest.mark.parametrize(
    "digits", ["4503599627370496", "1e300", "1e400", "-1e99999999999999999999"]
)
@pytest.mark.parametrize("chunk", [1, 1 << 16])
def test_a_time_that_no_clock_gives_is_none(digits: str, chunk: int) -> None:
    """2⁵² µs and more are 142 years and more."""
    event = f'{{"ph":"X","cat":"kernel","ts":{digits}}}'

    found = read(f"[{event},{event}]".encode(), chunk=chunk)

    assert ([], {"no_ts": 2}, {}) == (found.rows, found.dropped, found.repaired)


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.8")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[",
        b"text",
        b'{"a":1}',
        b'{"traceEvents":[]}',
        b'{"traceEvents":{}}',
        b'{"traceEvents":[{"ph":"M","name":"process_name"}]}',
        b'[{"ph":"X","cat":7},{"ph":"X","cat":null}]',
        b"\x1f\x8b",
        packed(b""),
        packed(b"[{}]")[:-9],
    ],
)
def test_a_file_that_holds_no_event_is_bad(data: bytes) -> None:
    with pytest.raises(Bad) as caught:
        reader.of(io.BytesIO(data))

    assert 1 == caught.value.exit_code
    assert caught.value.why


def test_a_file_that_is_open_is_read_from_where_it_stands() -> None:
    made = trace(Random(3), dialect=MODERN)
    data = io.BytesIO(b"before" + file(made.events))
    data.seek(6)

    assert len(made.rows) == len(reader.of(data).events.start)
