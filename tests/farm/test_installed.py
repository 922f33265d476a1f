"""The laws of finding installed code: where its name starts, which files it is; nothing runs."""

import sys
from pathlib import Path

import pytest

from farm import installed


def test_a_module_is_found_with_the_folder_of_its_name() -> None:
    file, folder = installed.find("json.decoder")

    assert file is not None
    assert folder is not None
    assert "json/decoder.py" == file.relative_to(folder).as_posix()


def test_a_package_is_its_init_file() -> None:
    file, folder = installed.find("json")

    assert file is not None
    assert folder is not None
    assert "json/__init__.py" == file.relative_to(folder).as_posix()


@pytest.mark.parametrize("name", ["no_such_module", "json.no_such_part", "sys"])
def test_what_has_no_file_is_not_found(name: str) -> None:
    """Not there, not in that package, or built into the interpreter."""
    assert installed.find(name)[0] is None


def test_our_own_packages_are_ours_whatever_is_first_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own `workers` in the current folder is not the one that measures."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    file, _ = installed.find("workers")

    assert Path(installed.__file__).parents[1] / "workers" / "__init__.py" == file


def test_ours_is_what_is_imported_and_theirs_is_all_of_it() -> None:
    """Following the imports of a large package takes many seconds, and nobody edits its files."""
    ours, root = installed.find("workers.models.placeholder")
    theirs, folder = installed.find("json.decoder")
    assert ours is not None
    assert root is not None
    assert theirs is not None
    assert folder is not None

    of_ours = installed.sources(ours, root)
    of_theirs = {each.name for each in installed.sources(theirs, folder)}

    assert root / "workers" / "models" / "resnet18.py" not in of_ours
    assert {"decoder.py", "encoder.py", "tool.py"} <= of_theirs
