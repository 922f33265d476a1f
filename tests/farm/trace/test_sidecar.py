"""What stands beside a layer CSV, as a document."""

from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.errors import Refused
from farm.trace import sidecar
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
