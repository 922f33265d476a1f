"""What a node keeps of itself: ids made once, and numbers that no device loses."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workers.ids import numbers, salt


def test_a_device_keeps_its_number_whoever_comes_and_goes(tmp_path: Path) -> None:
    """A card that is moved to another slot of the machine is the same one; no number is reused."""
    assert {"cpu:0": 0} == numbers(tmp_path, ["cpu:0"])
    assert {"GPU-b": 1, "GPU-a": 2} == numbers(tmp_path, ["GPU-b", "GPU-a"])
    assert {"GPU-c": 3, "cpu:0": 0} == numbers(tmp_path, ["GPU-c", "cpu:0"])
    assert {"GPU-a": 2} == numbers(tmp_path, ["GPU-a"])


def test_commands_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda at: numbers(tmp_path, [f"GPU-{at % 4}"]), range(64)))

    given = {key: number for each in found for key, number in each.items()}
    assert [0, 1, 2, 3] == sorted(given.values())
    assert all(given[key] == number for each in found for key, number in each.items())


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"cpu:0": true, "GPU-a": "x"}'])
def test_a_damaged_file_is_begun_anew(text: str, tmp_path: Path) -> None:
    (tmp_path / "slots.json").write_text(text)

    assert {"GPU-a": 0} == numbers(tmp_path, ["GPU-a"])


def test_the_salt_of_a_node_is_its_own_and_stays(tmp_path: Path) -> None:
    first = salt(tmp_path / "a")

    assert (first, 32) == (salt(tmp_path / "a"), len(first))
    assert first != salt(tmp_path / "b")
