"""How a phase of a child is recorded, and what is kept of an output."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from farm.schema import Effort, Phase
from tests.workers import make
from tests.workers.clockwork import MS, Machine, bench
from workers.backends import NotOffered
from workers.record import OUTPUT, Assignment
from workers.running import Run, keep_output, recorded


def test_a_phase_says_how_it_ended() -> None:
    """A phase that raises is recorded as failed and the error goes on."""
    machine = Machine(lambda _i: MS)
    done: list[Phase] = []

    with recorded(done, "load", machine.clock):
        machine.step()
    with pytest.raises(ValueError, match="no"), recorded(done, "first", machine.clock):
        raise ValueError("no")

    assert [("load", "done", 0.001), ("first", "failed", 0.0)] == [
        (each.name, each.status, each.duration_s) for each in done
    ]


def test_half_a_character_in_an_error_does_not_break_the_record() -> None:
    """A document holds whole characters: the rest is spelt out."""
    done: list[Phase] = []

    with pytest.raises(ValueError, match="bad"), recorded(done, "first", lambda: 0):
        raise ValueError("\udcff bad")

    assert "ValueError: \\udcff bad" == done[0].reason
    assert msgspec.json.encode(done)


def test_an_instrument_that_is_not_offered_is_skipped_with_its_reason() -> None:
    """It did not fail: there is nothing of it for this step, and the phase says why."""
    done: list[Phase] = []

    with pytest.raises(NotOffered), recorded(done, "layers", lambda: 0, instrumented=True):
        raise NotOffered("not_applicable", "a function")

    assert [("skipped", "not_applicable: a function", True)] == [
        (each.status, each.reason, each.instrumented) for each in done
    ]


# ── an output ────────────────────────────────────────────────────────────────────────────────────


class Step:
    """Has no part of a step but what looks into an output."""

    def arrays(self, output: object) -> Mapping[str, Any]:
        if isinstance(output, Exception):
            raise output
        return output  # type: ignore[return-value]


def kept(folder: Path, output: object, *, most: int | None) -> str:
    """Keep an output and return why it is not kept, or ""."""
    on = bench(Machine(lambda _i: MS))
    asked = Assignment(
        job=make.job(), effort=Effort(), index=0, cores=[0], threads=1, folder=str(folder)
    )
    run = Run(asked, Step(), on, {"flags": [], "reasons": {}}, [])  # type: ignore[arg-type]
    keep_output(run, output, most=most)
    return str(run.found["reasons"].get("output", ""))


@pytest.mark.parametrize("most", [None, 1000])
def test_an_output_keeps_the_names_of_its_arrays(tmp_path: Path, most: int | None) -> None:
    """Whatever they are: `numpy.savez` has parameters of these names."""
    names = ("file", "allow_pickle", "x")

    assert "" == kept(tmp_path, {name: np.full(2, 1.5) for name in names}, most=most)

    with np.load(tmp_path / OUTPUT) as found:
        assert list(names) == found.files
        assert [1.5, 1.5] == found["file"].tolist()


@pytest.mark.parametrize("most", [None, 1000])
@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"x": np.array([{}])}, "not_supported: array 'x' holds objects"),
        ({"a\0b": np.zeros(1)}, "not_supported: no file in an archive"),
        (ZeroDivisionError("theirs"), "error: ZeroDivisionError: theirs"),
        (MemoryError(), "error: MemoryError"),
        (ValueError("\udcff"), "error: ValueError: \\udcff"),
    ],
)
def test_what_cannot_be_kept_has_a_reason_and_raises_nothing(
    tmp_path: Path, output: object, why: str, most: int | None
) -> None:
    """A mapping or a record may be the user's own, and so is what looking into it raises."""
    assert kept(tmp_path, output, most=most).startswith(why)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_costs_the_output_alone(tmp_path: Path) -> None:
    (tmp_path / f".{OUTPUT}.tmp").symlink_to("/dev/full")

    why = kept(tmp_path, {"x": np.zeros(1 << 16)}, most=None)

    assert "error: it cannot be written: No space left on device" == why
    assert not list(tmp_path.iterdir())


def test_a_large_output_is_kept_only_where_it_was_asked_for(tmp_path: Path) -> None:
    """Too large for one that nobody asked for is no fault, and neither is none at all."""
    large = {"x": np.zeros(1000)}

    assert ("", "") == (kept(tmp_path, large, most=1000), kept(tmp_path, {}, most=1000))
    assert not list(tmp_path.iterdir())
    assert "" == kept(tmp_path, large, most=None)
    assert (tmp_path / OUTPUT).exists()
