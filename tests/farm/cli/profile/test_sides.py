"""Which files two words mean, and what they are, before any of them is read."""

from pathlib import Path

import pytest

from farm.cli.profile import sides
from farm.cli.talk import Talk
from farm.errors import Refused
from farm.trace import blocks
from tests.farm.trace import g8


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return str(g8.file(tmp_path / "trace.json.gz"))


def test_a_huge_trace_is_known_by_its_beginning(tmp_path: Path) -> None:
    """Of two terabytes not more than a few KB are read, and it goes nowhere else."""
    path = tmp_path / "huge.json"
    path.write_bytes(b'{"traceEvents": [{"ph": "X"')
    with path.open("r+b") as file:
        file.truncate(1 << 41)

    found = sides.looked([str(path)])
    sides.close(found)

    assert found[0].is_trace


def test_a_word_keeps_its_block_and_a_file_is_opened_once(tmp_path: Path, trace: str) -> None:
    table = tmp_path / "layers.csv"
    table.write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")

    one, other, third = sides.looked([f"{table}#1", f"{table}#2", trace])
    sides.close([one, other, third])

    numbers = [each.where.number for each in (one, other, third) if each.where]
    assert [1, 2, None] == numbers
    assert one.file is other.file
    assert (False, True) == (one.is_trace, third.is_trace)


def test_what_cannot_be_read_is_left_for_its_reader_to_say() -> None:
    (found,) = sides.looked(["/proc/self/mem"])

    assert (None, None, False) == (found.kind, found.file, found.is_trace)


def test_a_folder_is_the_profile_in_it(tmp_path: Path, trace: str) -> None:
    """One without a profile is refused before any is read."""
    with pytest.raises(Refused, match="is a folder"):
        sides.looked([trace, str(tmp_path)])
    (tmp_path / "profile.json").write_bytes(Path(trace).read_bytes())

    found = sides.looked([str(tmp_path)])
    sides.close(found)

    assert (tmp_path / "profile.json", True) == (found[0].where.path, found[0].is_trace)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("word", "hint"), [("0123a", "6 digits or more"), ("@last", "@last/LABEL"), ("gone", "")]
)
def test_a_word_that_is_nearly_a_reference_says_what_lacks(
    here: Path, trace: str, word: str, hint: str
) -> None:
    with pytest.raises(Refused) as caught:
        sides.looked([trace, word])

    assert hint in caught.value.hint
    assert bool(hint) == bool(caught.value.hint)


def test_a_word_that_names_no_file_is_refused_before_any_is_opened(trace: str) -> None:
    with pytest.raises(Refused, match="no file"):
        sides.looked([trace, "gone.csv"])


def test_a_file_that_stands_on_both_sides_is_read_once(trace: str) -> None:
    found = sides.looked([trace, trace])

    before, after = sides.analyses(Talk(), found)

    assert before is after
    assert found[0].file is not None
    assert found[0].file.closed


@pytest.mark.parametrize("word", ["0123abcd", "r-20261130-7f3a91/mlp/fp32", "s3://farm/x#0123abcd"])
def test_what_a_store_may_hold_is_a_trace_until_it_is_asked(here: Path, word: str) -> None:
    """A file of that name is that file."""
    (found,) = sides.looked([word])

    assert (None, True) == (found.where, found.is_trace)
    (here / word).parent.mkdir(parents=True, exist_ok=True)
    (here / word).write_text("hello")
    (again,) = sides.looked([word])
    sides.close([again])
    assert again.where is not None
    assert not again.is_trace
