"""A command in this process, in a folder of its own, with nobody's settings."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from farm.cli import main
from farm.store import LocalStore


class Said(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty. It and the environment are facts of the process; no argument
    carries them."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [each for each in os.environ if each.startswith("FARM_")]:
        if name != "FARM_TEST_RUN":
            monkeypatch.delenv(name)
    return folder


@pytest.fixture
def shelf(here: Path) -> LocalStore:
    """The store that a command finds where no setting names another."""
    return LocalStore(here / ".farm/store", fsync=False)


@pytest.fixture
def farm(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Run a command."""

    def run(*words: str) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        out, err = capsys.readouterr()
        return Said(int(ended.value.code or 0), out, err)

    return run
