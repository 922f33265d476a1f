"""Damaged files: whatever is wrong with one, what is whole is kept, and what is not is counted."""

import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import Bad
from farm.trace.reading import reader
from farm.trace.reading.tally import DROPPED, REPAIRED
from tests.farm.trace.generating import NAMES, Made, Row
from tests.farm.trace.reading.told import read
from tests.farm.trace.writing import file, packed, text

CHUNKS: Final = (50, 333, reader.CHUNK)
SIGNS: Final = b'"\\{}[],:.-0eEnNx/ \n\0\x1f\x7f\x80\xc3\xff'


class Small(NamedTuple):
    """A small file: its bytes, its spans in order, and where the text of each begins and ends."""

    data: bytes
    rows: list[Row]
    at: list[tuple[int, int]]

    def whole(self, end: int) -> list[Row]:
        """Return the spans whose text lies before there."""
        return sorted(
            (r for r, (_, e) in zip(self.rows, self.at, strict=True) if e <= end), key=repr
        )


def small(names: tuple[str, ...] = ("a", "b", "c", "d", "e", "f")) -> Small:
    """Return a file with one event of each name, a few blanks between them."""
    made = Made()
    for at, name in enumerate(names):
        kind = ("runtime", "kernel", "op")[at % 3]
        made.add(Row(kind, name, 1000 + at, 2500 + at, ("1", "2"), at + 1, at + 7))
    told = [text(each).encode() for each in made.events]
    data = file(told).replace(b"},{" + told[2][1:], b"} ,\n{" + told[2][1:])
    begins = [data.index(each) for each in told]
    return Small(data, made.rows, [(b, b + len(e)) for b, e in zip(begins, told, strict=True)])


SMALL: Final = small()
ODD: Final = small(NAMES)


def kept(data: bytes, *, chunk: int = reader.CHUNK) -> tuple[list[Row], dict[str, int]]:
    """Return the spans and all counters of a file; none where it is bad."""
    try:
        found = read(data, chunk=chunk)
    except Bad:
        return [], {}
    return found.rows, found.repaired | found.dropped


# ── a file that ends too early ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("made", [SMALL, ODD], ids=["plain", "odd"])
@pytest.mark.parametrize("chunk", CHUNKS[1:])
def test_a_cut_file_keeps_every_whole_event_and_nothing_else(made: Small, chunk: int) -> None:
    """Cut within an event it is `truncated`; anywhere else a bracket is missing."""
    for end in range(len(made.data)):
        rows, counters = kept(made.data[:end], chunk=chunk)

        whole = made.whole(end)
        assert whole == rows, end
        is_within = any(begin < end < close for begin, close in made.at)
        if whole:
            assert {"truncated" if is_within else "structure": 1} == counters, end


@pytest.mark.parametrize("members", [1, 3])
def test_cut_gzip_keeps_every_event_that_was_packed_before(members: int) -> None:
    data = packed(ODD.data, members=members)
    ends = [at for at in range(2, len(data)) if data[at : at + 4] == b"\x1f\x8b\x08\0"]

    for end in range(len(data)):
        rows, counters = kept(data[:end])

        whole = ODD.whole(len(_unpacked(data[:end])))
        assert whole == rows, end
        if whole:
            assert (end not in ends) == len({"gzip", "trailing_data"} & set(counters)), end
            assert {"truncated", "structure", "gzip", "trailing_data"} >= set(counters)


def _unpacked(data: bytes) -> bytes:
    """Return all that zlib makes of the members of a file."""
    found = b""
    while len(data) > 1:
        unpack = zlib.decompressobj(31)
        found += unpack.decompress(data)
        data = unpack.unused_data
    return found


# ── damaged bytes ────────────────────────────────────────────────────────────────────────────────


def safe(made: Small, at: int) -> Counter[Row]:
    """Return the spans that damage there leaves alone.

    In a span, all but it and the next; between two, all but these.
    """
    first = sum(close <= at for _, close in made.at)  # the first that ends behind it
    first -= at < made.at[first][0]
    return Counter(made.rows[:first] + made.rows[first + 2 :])


@settings(max_examples=250)
@given(st.data())
def test_a_damaged_byte_costs_no_more_than_its_event_and_a_neighbour(data: st.DataObject) -> None:
    """It is lost, added or another; in an event, the next may be lost; between two, either."""
    made = data.draw(st.sampled_from([SMALL, ODD]))
    at = data.draw(st.integers(made.at[0][0], made.at[-1][1] - 1))
    sign = data.draw(st.sampled_from([bytes([each]) for each in SIGNS]) | st.binary(max_size=1))
    damaged = made.data[:at] + sign + made.data[at + data.draw(st.sampled_from([0, 1])) :]

    rows, _ = kept(damaged, chunk=data.draw(st.sampled_from(CHUNKS)))

    assert not safe(made, at) - Counter(rows)


@settings(max_examples=100)
@given(st.data())
def test_what_is_kept_of_a_damaged_file_does_not_depend_on_the_chunk(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from([SMALL, ODD]))
    damaged = bytearray(made.data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from(SIGNS))

    first, *others = (kept(bytes(damaged), chunk=chunk) for chunk in CHUNKS)

    assert [first] * len(others) == others


@settings(max_examples=100)
@given(st.data())
def test_damaged_gzip_keeps_every_event_that_was_packed_before(data: st.DataObject) -> None:
    good = packed(ODD.data)
    at = data.draw(st.integers(2, len(good) - 1))
    sign = data.draw(st.binary(max_size=2))

    rows, _ = kept(good[:at] + sign + good[at + 1 :], chunk=data.draw(st.sampled_from(CHUNKS)))

    assert not Counter(ODD.whole(len(_unpacked(good[: at - 1])))) - Counter(rows)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(SIGNS) | st.integers(0, 255)).map(bytes), st.booleans())
def test_no_bytes_at_all_raise_anything_but_bad(data: bytes, is_list: bool) -> None:
    with suppress(Bad):
        read((b'[{"ph":"X","cat":"kernel","ts":1},' if is_list else b"") + data, chunk=16)


# ── the counters, one by one ─────────────────────────────────────────────────────────────────────

LAUNCH: Final = b'{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","ts":90,"dur":5}'
AFTER: Final = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":99,"dur":1}'


def around(event: bytes) -> bytes:
    """Return a file with an event between two others."""
    return file([LAUNCH, event, AFTER])


def kernel(rest: bytes = b'"ts":100,"dur":10', name: bytes = b'"k"') -> bytes:
    return b'{"ph":"X","cat":"kernel","pid":0,"tid":7,"name":' + name + b"," + rest + b"}"


FINE: Final = around(kernel())
# Each with the name that its kernel then has; None if it has none any more.
MENDED: Final[dict[str, tuple[bytes, str | None]]] = {
    "bom": (b"\xef\xbb\xbf" + FINE, "k"),
    "non_finite": (around(kernel(b'"ts":100,"dur":10,"args":{"x":-inf}')), "k"),
    "escape": (around(kernel(name=rb'"C:\k"')), r"C:\k"),
    "control": (around(kernel(name=b'"a\tb"')), "a b"),
    "utf8": (around(kernel(name=b'"k\xff"')), "k\ufffd"),
    "structure": (FINE[: FINE.index(b"]", FINE.index(AFTER))], "k"),
    "number_text": (around(kernel(b'"ts":"100","dur":"10"')), "k"),
    "null_name": (around(kernel(name=b"null")), "unknown"),
    "gzip": (packed(FINE)[:-1], "k"),
    "trailing_data": (FINE + b"\n" + FINE, "k"),
    "unmatched": (file([LAUNCH, kernel(), AFTER, b'{"ph":"E","ts":5}']), "k"),
}
LEFT_OUT: Final[dict[str, tuple[bytes, str | None]]] = {
    "unparsable": (around(kernel(name=b'"said "so""')), None),
    "truncated": (file([LAUNCH, AFTER, b"CUT"]).partition(b"CUT")[0] + kernel()[:-1], None),
    "no_phase": (around(kernel().replace(b'"ph"', b'"no"')), None),
    "no_ts": (around(kernel(b'"dur":10')), None),
    "negative_dur": (around(kernel(b'"ts":100,"dur":-0.001')), None),
    "absurd_dur": (around(kernel(b'"ts":100,"dur":86400000001')), None),
    "zero_ts": (around(kernel(b'"ts":0,"dur":10')), None),
}


def test_every_counter_of_the_reader_is_raised_by_a_file() -> None:
    """`clipped_dur` is told by the analysis, which alone knows the launches."""
    assert {*REPAIRED} - {"clipped_dur"} == {*MENDED}
    assert {*DROPPED} == {*LEFT_OUT}


def _faults() -> Iterator[tuple[str, bytes, str | None]]:
    for table in (MENDED, LEFT_OUT):
        for name, (data, meant) in table.items():
            yield name, data, meant


@pytest.mark.parametrize(("name", "data", "meant"), [*_faults()], ids=[*MENDED, *LEFT_OUT])
@pytest.mark.parametrize("chunk", [1, 7, 64, reader.CHUNK, 64 << 20])
def test_a_fault_is_counted_once_and_costs_no_other_event(
    name: str, data: bytes, meant: str | None, chunk: int
) -> None:
    found = read(data, chunk=chunk)

    assert ({name: 1} if name in MENDED else {}) == found.repaired
    assert ({name: 1} if name in LEFT_OUT else {}) == found.dropped
    told = [each for each in found.rows if each.kind == "kernel"]
    if meant is None:
        assert [] == told
    else:
        assert [Row("kernel", meant, 100_000, 110_000, ("0", "7"))] == told
    assert ["cudaLaunchKernel", "aten::mm"] == [
        each.name for each in found.rows if each.kind != "kernel"
    ][::-1]


def test_faults_of_every_kind_in_one_file_are_counted_each() -> None:
    names = ("non_finite", "escape", "control", "utf8", "number_text", "null_name")
    left_out = [*LEFT_OUT]
    left_out.remove("truncated")
    tables = [(MENDED, names), (LEFT_OUT, left_out)]
    bad = [
        table[name][0].partition(LAUNCH + b",")[2].partition(b"," + AFTER)[0]
        for table, chosen in tables
        for name in chosen
    ]

    for before, after in pairwise([[LAUNCH], bad, bad[::-1], [AFTER]]):
        found = read(file([*before, *after]))
        times = (len(before) + len(after)) // len(bad)
        assert dict.fromkeys(names, times) == found.repaired
        assert dict.fromkeys(left_out, times) == found.dropped
