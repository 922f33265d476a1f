"""What stands beside a layer CSV, as a document."""

from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.errors import Refused
from farm.trace import files, sidecar
from farm.trace.blocks import Block
from tests.farm.trace.test_files import appended


def test_no_sidecar_is_none(tmp_path: Path) -> None:
    assert sidecar.load(tmp_path / "f.csv") is None


def test_it_is_a_document_that_people_can_read(tmp_path: Path) -> None:
    """One key a line, and every null with its reason."""
    appended(tmp_path / "f.csv", "a")

    text = (tmp_path / "f.json").read_text()

    assert '  "file": "f.csv",\n' in text
    found = schema.decode(text.encode(), sidecar.Sidecar)
    assert {} == found.null_reasons


def test_a_block_is_known_by_its_text_alone() -> None:
    one, two = (Block([], 0, text) for text in ("a", "b"))
    beside = sidecar.Sidecar(file="f.csv", blocks=[entry(two)], null_reasons={})

    assert [None, two.sha256] == [
        each and each.sha256 for each in sidecar.known([one, two], beside)
    ]
    assert [None, None] == sidecar.known([one, two], None)


def test_blocks_of_equal_text_are_told_apart_by_their_place() -> None:
    """And one that was moved is still known."""
    blocks = [Block([], offset, "a") for offset in (0, 1, 7)]
    entries = [
        msgspec.structs.replace(entry(each), offset=at, number=at + 1)
        for at, each in enumerate(blocks[:2])
    ]
    beside = sidecar.Sidecar(file="f.csv", blocks=entries, null_reasons={})

    assert [1, 2, 1] == [each and each.number for each in sidecar.known(blocks, beside)]


def entry(block: Block) -> sidecar.Entry:
    return sidecar.Entry(
        written_at="2026-11-30T10:00:00Z",
        job_id="j",
        model="mlp",
        batch=1,
        precision="fp32",
        device="cpu:0",
        method="wrapped",
        clock="wall",
        warmup_iterations=5,
        iterations=2,
        profiled_ms=1.0,
        clean_ms=1.0,
        perturbation=0.0,
        number=1,
        offset=0,
        bytes=1,
        sha256=block.sha256,
    )


def test_a_file_that_would_be_its_own_sidecar_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        sidecar.beside(Path("table.json"))

    assert "for example table.csv" == caught.value.hint


def test_a_csv_without_a_name_is_refused() -> None:
    with pytest.raises(Refused, match="without a name"):
        sidecar.beside(Path())


def test_a_sidecar_of_an_earlier_release_is_read_without_its_rest(tmp_path: Path) -> None:
    appended(tmp_path / "f.csv", "a")
    beside = tmp_path / "f.json"
    document = msgspec.json.decode(beside.read_bytes())
    assert 0.0 == document["blocks"][0].pop("unattributed_ms")
    beside.write_bytes(msgspec.json.encode(document))

    found = sidecar.load(tmp_path / "f.csv")

    assert found is not None
    assert msgspec.UNSET is found.blocks[0].unattributed_ms


def _edited(csv: Path, **more: object) -> None:
    """Change what the sidecar says of its first block."""
    beside = sidecar.beside(csv)
    document = msgspec.json.decode(beside.read_bytes())
    document["blocks"][0] |= more
    beside.write_bytes(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"iterations": -10}, "iterations is -10"),
        ({"iterations": 2**53 + 1}, "iterations is 9007199254740993"),
        ({"warmup_iterations": -1}, "warmup_iterations is -1"),
        ({"batch": 0}, "batch is 0"),
        ({"clean_ms": -2}, "clean_ms is -2"),
        ({"profiled_ms": -0.05}, "profiled_ms is -0.05"),
        ({"perturbation": -5}, "perturbation is -5"),
        ({"perturbation": 5}, "perturbation is 5.0, and its iterations took 1 times as long"),
        ({"clean_ms": 0}, "of no clean iteration"),
        ({"profiled_ms": 1e300}, "profiled_ms is 1e+300"),
    ],
)
def test_a_run_with_numbers_that_cannot_be_is_a_doubt(
    tmp_path: Path, more: dict[str, object], why: str
) -> None:
    """The digest fits, and yet nobody measured that; the other blocks are believed as before."""
    csv = tmp_path / "f.csv"
    for name in "ab":
        appended(csv, name)
    _edited(csv, **more)

    first, second = (files.read(files.Address(csv, number)) for number in (1, 2))

    assert (None, "") == (first.about, second.doubt)
    assert first.doubt.startswith("f.json says of this block what cannot be: ")
    assert why in first.doubt
    assert [] == files.of_clean(first)
    assert second.about is not None
    assert 3 == appended(csv, "c")


def test_what_can_be_is_no_doubt(tmp_path: Path) -> None:
    """The least of each field, and more time in rows that ran side by side than passed."""
    csv = tmp_path / "f.csv"
    appended(csv, "a")
    least = {"iterations": 1, "warmup_iterations": 0, "batch": 1, "unattributed_ms": -0.5}
    times = {"profiled_ms": 0.0, "clean_ms": 0.1, "perturbation": -1.0}
    _edited(csv, **least, **times)

    found = files.read(files.Address(csv, 1))

    assert ("", True) == (found.doubt, found.about is not None)
