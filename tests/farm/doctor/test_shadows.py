"""A file that Python finds before a library is named, with the path it lies at."""

from pathlib import Path

import pytest

from farm.doctor import Finding, shadows
from farm.doctor.surroundings import Surroundings
from tests.farm.doctor.sound import distributions, one, surroundings, write


def _found(around: Surroundings) -> Finding:
    return one(list(shadows.look(around)), "names")


@pytest.mark.parametrize("name", ["torch.py", "redis.py", "celery/__init__.py", "random.py"])
def test_what_takes_a_name_in_pythonpath_fails(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "mine" / name, "").relative_to(tmp_path)
    around = surroundings(tmp_path, environ={"PYTHONPATH": f"/nowhere:{tmp_path / 'mine'}"})

    found = _found(around)

    assert "fail" == found.state
    assert str(tmp_path / path.parts[0] / path.parts[1]) in found.said
    assert found.cure.startswith("unset PYTHONPATH")


def test_an_empty_entry_of_pythonpath_is_the_current_folder(tmp_path: Path) -> None:
    """`PYTHONPATH=$PYTHONPATH:/lib` makes one where nothing was set before."""
    write(tmp_path / "redis.py", "")

    found = _found(surroundings(tmp_path, environ={"PYTHONPATH": ":/lib"}))

    assert "fail" == found.state
    assert "empty entry" in found.cure


@pytest.mark.parametrize("name", ["torch.py", "farm/__init__.py", "workers/__init__.py"])
def test_what_takes_a_name_in_the_current_folder_is_a_warning(tmp_path: Path, name: str) -> None:
    """`farm` itself does not look there; `python -m` and a notebook do."""
    write(tmp_path / name, "")

    found = _found(surroundings(tmp_path))

    assert "warn" == found.state
    top = tmp_path / Path(name).parts[0]
    assert f"mv {top} {top.with_name('my_' + top.name)}" == found.cure


def test_a_folder_without_init_takes_no_name(tmp_path: Path) -> None:
    """A regular package wins over such a folder, wherever it lies."""
    write(tmp_path / "torch" / "notes.txt", "")

    assert "ok" == _found(surroundings(tmp_path)).state


def test_a_module_of_the_standard_library_may_lie_in_the_current_folder(tmp_path: Path) -> None:
    write(tmp_path / "random.py", "")

    assert "ok" == _found(surroundings(tmp_path)).state


def test_an_installed_library_in_pythonpath_shadows_nothing(tmp_path: Path) -> None:
    """`pip install --target`, modules of a cluster: its metadata lies beside it."""
    write(tmp_path / "lib" / "redis" / "__init__.py", "")
    around = surroundings(
        tmp_path,
        environ={"PYTHONPATH": str(tmp_path / "lib")},
        distributions=lambda: distributions(tmp_path / "lib"),
    )

    assert "ok" == _found(around).state


def test_the_farm_that_runs_does_not_shadow_itself(tmp_path: Path) -> None:
    """In the folder of an editable installation `farm/` is the farm."""
    for name in ("farm", "workers"):
        write(tmp_path / name / "__init__.py", "")

    assert "ok" == _found(surroundings(tmp_path, here=tmp_path)).state


def test_a_current_folder_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    assert "ok" == _found(surroundings(tmp_path, cwd=None)).state
