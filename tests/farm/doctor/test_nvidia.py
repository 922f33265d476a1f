"""The driver, its library and the binding: wrong ones are told from missing ones."""

from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, nvidia
from farm.doctor.surroundings import Ran
from tests.farm.doctor.sound import distributions, one, surroundings, write


def _look(folder: Path, *, device: bool, **changes: Any) -> list[Finding]:
    if device:
        write(folder / "root/dev/nvidia0", "")
        changes = {"run": lambda _words: Ran(0, "0 2")} | changes
    return list(nvidia.look(surroundings(folder, **changes)))


def _have(folder: Path, **versions: str | None) -> dict[str, Any]:
    return {"distributions": lambda: distributions(folder, **versions)}


def test_a_machine_with_driver_and_binding_is_ok(tmp_path: Path) -> None:
    found = _look(tmp_path, device=True)

    assert ["nvidia-ml-py 13.580.65", "NVML sees 2 devices"] == [each.said for each in found]
    assert {"ok"} == {each.state for each in found}


@pytest.mark.parametrize("impostor", ["pynvml", "nvidia_ml_py3"])
@pytest.mark.parametrize("mine", ["13.580.65", None])
def test_another_pynvml_fails_beside_the_right_one_or_alone(
    tmp_path: Path, impostor: str, mine: str | None
) -> None:
    have = _have(tmp_path, nvidia_ml_py=mine, **{impostor: "7.352.0"})

    found = one(_look(tmp_path, device=True, **have), "binding")

    assert "fail" == found.state
    name = impostor.replace("_", "-")
    assert f"the distribution {name} {'beside' if mine else 'in place of'}" in found.said
    assert f"uninstall -y {name} && " in found.cure
    assert found.cure.endswith("--force-reinstall 'nvidia-ml-py>=12.560,<14'")


def test_another_pynvml_where_no_device_is_only_warns(tmp_path: Path) -> None:
    found = one(_look(tmp_path, device=False, **_have(tmp_path, pynvml="11.5.3")), "binding")

    assert "warn" == found.state


def test_a_device_without_the_binding_is_a_warning(tmp_path: Path) -> None:
    found = one(_look(tmp_path, device=True, **_have(tmp_path, nvidia_ml_py=None)), "binding")

    assert "warn" == found.state
    assert found.cure.endswith("-m pip install 'nvidia-ml-py>=12.560,<14'")


def test_a_binding_of_another_release_is_a_warning(tmp_path: Path) -> None:
    have = _have(tmp_path, nvidia_ml_py="12.535.77")

    assert "warn" == one(_look(tmp_path, device=True, **have), "binding").state


def test_without_a_device_nothing_is_missing(tmp_path: Path) -> None:
    found = _look(tmp_path, device=False, **_have(tmp_path, nvidia_ml_py=None))

    assert ["skipped", "skipped"] == [each.state for each in found]


@pytest.mark.parametrize(
    ("ran", "said", "cure"),
    [
        (Ran(1, "missing"), "library is missing", "--gpus all"),
        (Ran(0, "18 0"), "different driver versions", "reboot"),
        (Ran(0, "9 0"), "not loaded", "modprobe nvidia"),
        (Ran(0, "77 0"), "'77 0'", "nvidia-smi"),
        (Ran(-11, ""), "''", "nvidia-smi"),
    ],
)
def test_a_driver_whose_library_is_of_no_use_fails(
    tmp_path: Path, ran: Ran, said: str, cure: str
) -> None:
    found = one(_look(tmp_path, device=True, run=lambda _words: ran), "driver")

    assert "fail" == found.state
    assert said in found.said
    assert cure in found.cure


def test_a_library_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    """On a machine with eight devices and no persistence it takes longer than we wait."""
    found = one(_look(tmp_path, device=True, run=lambda _words: None), "driver")

    assert ("warn", "sudo nvidia-smi -pm 1") == (found.state, found.cure)


def test_a_driver_without_device_nodes_counts(tmp_path: Path) -> None:
    """So it is in a container that was started without its devices."""
    write(tmp_path / "root/proc/driver/nvidia/version", "NVRM version: 550.54\n")

    found = one(_look(tmp_path, device=False, run=lambda _words: Ran(1, "missing")), "driver")

    assert "fail" == found.state
