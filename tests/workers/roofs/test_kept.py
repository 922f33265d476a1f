"""Where measured peaks are kept: whole, by system, and never worse than before."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from farm import schema
from farm.errors import NoResult
from farm.hardware import Product, Roofs
from farm.hardware.roofs import RECIPE
from workers.node import default_state
from workers.roofs import keep, known, load

SYSTEM = "5" * 32


def roofs(flops_per_s: float = 1e11, **changes: Any) -> Roofs:
    made = Roofs(
        system_id=SYSTEM,
        system_class="test-cpu_1c",
        device="test cpu",
        threads=1,
        recipe=RECIPE,
        tried_at="2026-11-30T02:00:00Z",
        cache_bytes=1,
        products={
            "fp32": Product(
                flops_per_s=flops_per_s, size=8, sizes=[8], runs=6, taken_at="2026-11-30T02:00:00Z"
            )
        },
        caches=[],
        memory=None,
        null_reasons={"memory": "not_probed"},
    )
    return structs.replace(made, **changes)


def test_what_is_kept_is_found_by_its_system(tmp_path: Path) -> None:
    keep(tmp_path / "state", roofs())

    assert roofs() == load(tmp_path / "state", SYSTEM)
    assert load(tmp_path / "state", "6" * 32) is None
    assert load(tmp_path, SYSTEM) is None


def test_a_state_folder_of_ones_own_knows_what_was_measured_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`farm run` has one in each place; `farm-worker roofs` keeps in the usual one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    keep(default_state(), roofs(1e11))

    found = known(tmp_path / "place", SYSTEM)

    assert found == load(default_state(), SYSTEM)
    assert found is not None


def test_a_slower_try_leaves_the_better_peak(tmp_path: Path) -> None:
    keep(tmp_path, roofs(2e11))

    kept = keep(tmp_path, roofs(1e11, tried_at="2026-12-01T02:00:00Z"))

    product = kept.products["fp32"]
    assert product is not None
    assert (2e11, "2026-12-01T02:00:00Z") == (product.flops_per_s, kept.tried_at)
    assert kept == load(tmp_path, SYSTEM)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"schema":"farm.job/v1"}', schema.encode(roofs(recipe="roofs/0"))],
    ids=["empty", "torn", "foreign", "another recipe"],
)
def test_a_file_that_cannot_be_used_is_measured_anew(tmp_path: Path, data: bytes) -> None:
    keep(tmp_path, roofs())
    (file,) = (tmp_path / "roofs").iterdir()
    file.write_bytes(data)

    assert load(tmp_path, SYSTEM) is None
    assert roofs() == keep(tmp_path, roofs()) == load(tmp_path, SYSTEM)


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    for _ in range(3):
        keep(tmp_path, roofs())

    assert [f"{SYSTEM}.json"] == [each.name for each in (tmp_path / "roofs").iterdir()]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "roofs").write_text("a file")

    with pytest.raises(NoResult, match="cannot keep the measured peaks"):
        keep(tmp_path, roofs())
