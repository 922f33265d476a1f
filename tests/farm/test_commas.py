"""What is written as a line of CSV reads back as the same cells."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm import commas


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0")), min_size=1))
@example([""])
@example(["a\rb", "\n", '"', ","])
def test_a_line_reads_back_as_its_cells(cells):
    said = commas.line(cells)

    assert [cells] == list(csv.reader(io.StringIO(said, newline="")))


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", " =1", "\t=1", "\r=1", "\nx", "|x"])
def test_a_formula_becomes_a_text(text):
    assert f"'{text}" == commas.defused(text)


@pytest.mark.parametrize("text", ["", "a", "1", "a=1", "é", "'=1"])
def test_any_other_text_stays_as_it_is(text):
    assert text == commas.defused(text)
