"""The text of a layer CSV: how a block is written, and how blocks are read."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Bad
from farm.trace import blocks
from farm.trace.blocks import BlockRow
from tests.farm.trace.passes import PASSES, ns, table

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def row(layer: str = "a", **more) -> BlockRow:
    fields = {
        "share_pct": 100.0,
        "average_ms": 1.0,
        "median_ms": 1.0,
        "std_ms": 0.5,
        "total_ms": 1.0,
    }
    return BlockRow(layer=layer, **{**fields, **more})


def written(made) -> str:
    return blocks.text(blocks.rows_of(made), iterations=made.iterations)


@pytest.mark.seed("S0.12")
def test_the_header_is_exactly_the_six_columns() -> None:
    assert "layer,time_pct,average_ms,median_ms,std_dev,total_ms" == blocks.HEADER
    assert f"{blocks.HEADER}\n" == blocks.text([], iterations=1)


@pytest.mark.seed("S0.15", "S0.17", "S0.18")
def test_a_share_has_one_decimal_and_all_else_four() -> None:
    made = table(["conv", "relu"], ns([5240, 5240], [10830, 10830]))

    assert "conv,32.6,5.2400,5.2400,0.0000,10.4800" == written(made).splitlines()[1]


@pytest.mark.seed("S0.19")
def test_the_deviation_of_a_single_iteration_is_an_empty_cell() -> None:
    assert "a,100.0,0.0100,0.0100,,0.0100" == written(table(["a"], ns([10]))).splitlines()[1]


@pytest.mark.seed("S0.30")
def test_the_share_is_the_first_number_of_a_line() -> None:
    assert ["layer", "time_pct"] == blocks.HEADER.split(",")[:2]


@pytest.mark.seed("S0.13")
def test_a_name_with_a_comma_is_quoted_and_comes_back() -> None:
    """Nothing of it is changed, a formula neither: it is a name."""
    names = ["/conv1/Conv + /relu/Relu", "a,b", 'say "x"', "=1+1", "two\nlines", "{Foreign[…]}"]
    made = table(names, ns(*([each] for each in range(1, 7))))

    (block,) = blocks.split(written(made), name="f.csv")

    assert names == [each.layer for each in block.rows]


@pytest.mark.seed("S0.16", "S0.20")
@given(PASSES)
def test_what_is_printed_adds_up(times: list[list[int]]) -> None:
    """Shares to 100 within rows · 0.05; average · N to the total within N/2 · 10⁻⁴."""
    n = len(times[0])
    made = table([f"l{at}" for at in range(len(times))], np.array(times, dtype=np.int64))

    lines = [line.split(",") for line in written(made).splitlines()[1:]]

    assert abs(sum(float(line[1]) for line in lines) - 100.0) <= len(lines) * 0.05 + 1e-9
    for line in lines:
        assert abs(float(line[2]) * n - float(line[5])) <= n / 2 * 1e-4 + 1e-9


def test_a_total_is_printed_to_the_nearest_where_that_agrees_with_the_average() -> None:
    """Three iterations of 50 ns average 0.00005 ms: printed 0.0001, and 3 · 0.0001 is too much."""
    nearest = blocks.text([row(average_ms=1.23456, total_ms=3.70368)], iterations=3)
    other = blocks.text([row(average_ms=0.00005001, total_ms=0.00015003)], iterations=3)

    assert "1.2346" in nearest
    assert nearest.endswith("3.7037\n")
    assert other.endswith("0.0002\n")


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=4), st.booleans())
def test_blocks_come_back_as_they_were_written(names: list[list[str]], cut: bool) -> None:
    """Whatever a layer is called, also with the words of a header; offsets are in bytes."""
    made = [blocks.text([row(each) for each in several], iterations=1) for several in names]
    text = "".join(made)

    found = blocks.split(text.removesuffix("\n") if cut else text, name="f.csv")

    assert names == [[each.layer for each in block.rows] for block in found]
    data = text.encode()
    assert made[:-1] == [
        data[each.offset : each.offset + len(each.text.encode())].decode() for each in found[:-1]
    ]


def test_a_header_inside_a_name_begins_no_block() -> None:
    text = blocks.text([row(f"a\n{blocks.HEADER}\nb")], iterations=1)

    assert 1 == len(blocks.split(text, name="f.csv"))


@pytest.mark.seed("S0.23", "S0.24")
def test_k_runs_have_k_headers_and_are_k_blocks() -> None:
    text = "".join(blocks.text([row(name)], iterations=1) for name in "abc")

    assert 3 == text.count(blocks.HEADER)
    assert ["a", "b", "c"] == [each.rows[0].layer for each in blocks.split(text, name="f.csv")]


def test_another_tool_s_file_is_read_too() -> None:
    """With carriage returns, a byte order mark, empty lines and empty cells."""
    text = f"\ufeff{blocks.HEADER}\r\nconv,60.5,1.5,,,3\r\n\r\nfc,39.5,1,1.0,0.1,2\r\n"

    assert blocks.is_layers(text)
    (block,) = blocks.split(text, name="f.csv")
    assert [("conv", 1.5, None, None), ("fc", 1.0, 1.0, 0.1)] == [
        (each.layer, each.average_ms, each.median_ms, each.std_ms) for each in block.rows
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.csv is empty"),
        (f"{blocks.HEADER}\n", "f.csv: the block at line 1 has no layer"),
        (f"x\n{blocks.HEADER}\na,1,1,1,1,1\n", "f.csv: line 1 stands before any header"),
        (f"{blocks.HEADER}\na,1,1\n", "f.csv: line 2 has 3 cells"),
        (f"{blocks.HEADER}\na,1,1,1,1,1\nb,x,1,1,1,1\n", "f.csv: line 3: 'x' is no number"),
        (f"{blocks.HEADER}\na,1,1,1,1,nan\n", "f.csv: line 2: 'nan' is no number"),
        (f"{blocks.HEADER}\na,1_0,1,1,1,1\n", "f.csv: line 2: '1_0' is no number"),
        (f"{blocks.HEADER}\na,1,٣,1,1,1\n", "f.csv: line 2: '٣' is no number"),
        (f"{blocks.HEADER}\na,1,1,-1,1,1\n", "f.csv: line 2: '-1' is negative"),
        (f"{blocks.HEADER}\na,1,1,1,1,1e300\n", "f.csv: line 2: '1e300' is no time"),
        (f"{blocks.HEADER}\na,300,1,1,1,1\n", "f.csv: line 2: a share of 300 %"),
        (f'{blocks.HEADER}\n"a,1,1,1,1,1\n', "f.csv: line 2 is no CSV"),
    ],
)
def test_what_cannot_be_a_block_is_told_by_its_line(text: str, said: str) -> None:
    with pytest.raises(Bad) as caught:
        blocks.split(text, name="f.csv")

    assert said == caught.value.what


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Bad):
        blocks.split(f"{blocks.HEADER}\n{text}", name="f.csv")
