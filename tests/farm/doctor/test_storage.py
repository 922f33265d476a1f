"""The store: one that is broken is found, one that is not made is left alone."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, storage
from farm.store import Denied, LocalStore, Store
from tests.farm.doctor.sound import one, surroundings, write


def _look(folder: Path, store: Callable[[str], Store] | None = None) -> list[Finding]:
    changes: dict[str, Any] = {"open_store": store} if store else {}
    return list(storage.look(str(folder / "store"), surroundings(folder, **changes)))


@pytest.fixture
def made(store: LocalStore) -> Path:
    """The folder of a store that a farm has laid out."""
    store.probe()
    return store.root


def _files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_a_store_that_keeps_its_promise_is_ok_and_left_as_it_was(
    tmp_path: Path, made: Path
) -> None:
    before = _files(made)

    found = _look(tmp_path)

    assert ["writing", "parallel writers", "space"] == [each.name for each in found]
    assert {"ok"} == {each.state for each in found}
    assert before == _files(made)


def test_a_store_that_is_not_made_is_not_made_by_looking(tmp_path: Path) -> None:
    found = one(_look(tmp_path), "writing")

    assert ("ok", f"{tmp_path / 'store'}: not made yet; the first run makes it") == (
        found.state,
        found.said,
    )
    assert not (tmp_path / "store").exists()


def test_a_folder_that_is_no_store_yet_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "store" / "letter.txt", "")

    assert "not made yet" in one(_look(tmp_path), "writing").said
    assert ["letter.txt"] == _files(tmp_path / "store")


def test_a_file_in_place_of_the_store_fails(tmp_path: Path) -> None:
    file = write(tmp_path / "store", "")

    found = one(_look(tmp_path), "writing")

    assert ("fail", f"{file} is not a folder", 2) == (found.state, found.said, found.code)
    assert f"mv {file} {file}.old" == found.cure


def test_a_place_that_cannot_be_written_fails(tmp_path: Path) -> None:
    found = one(list(storage.look("/proc/self/store", surroundings(tmp_path))), "writing")

    assert ("fail", 4) == (found.state, found.code)


def test_a_store_that_a_newer_farm_laid_out_fails(tmp_path: Path) -> None:
    write(tmp_path / "store/meta/layout.json", '{"layout": 2}\n')

    found = one(_look(tmp_path), "writing")

    assert ("fail", 2) == (found.state, found.code)
    assert 'laid out by another version of the farm; {"layout": 2}' in found.said
    assert "upgrade this farm" in found.cure


def test_a_file_system_without_hard_links_fails(tmp_path: Path, made: Path) -> None:
    def link(_source: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    found = one(_look(tmp_path, lambda _url: LocalStore(made, link=link)), "writing")

    assert ("fail", 2) == (found.state, found.code)
    assert "has no hard links" in found.said


def test_a_store_that_refuses_us_is_made_ours(tmp_path: Path, made: Path) -> None:
    class Refusing(LocalStore):
        def probe(self) -> None:
            raise Denied("the store refuses 'x'", key="x", store=str(made), why="no permission")

    found = one(_look(tmp_path, lambda _url: Refusing(made)), "writing")

    assert ("fail", 4) == (found.state, found.code)
    assert f'sudo chown -R "$(id -un)" {made}' == found.cure


def test_a_store_that_lets_two_writers_win_fails(tmp_path: Path, made: Path) -> None:
    """Such a store overwrites silently."""

    class Overwriting(LocalStore):
        def put_new(self, key: str, source: bytes | Path, *, media_type: str = "") -> bool:
            if key.startswith("meta/race-"):
                write(made / key, "")
                return True
            return super().put_new(key, source)

    found = one(_look(tmp_path, lambda _url: Overwriting(made)), "parallel writers")

    assert ("fail", 2) == (found.state, found.code)
    assert "16 of 16 writers of one key were told that they were first" == found.said
    assert not list((made / "meta").glob("race-*"))


def test_an_address_that_no_store_has_fails(tmp_path: Path) -> None:
    found = one(list(storage.look("ftp://box/store", surroundings(tmp_path))), "address")

    assert ("fail", 2) == (found.state, found.code)


def test_a_folder_of_somebody_else_in_the_store_is_found(tmp_path: Path, made: Path) -> None:
    """One `sudo farm run` is enough to leave one."""
    (made / "inbox").mkdir()
    around = surroundings(tmp_path, may_write=lambda folder: folder.name != "inbox")

    found = one(list(storage.look(str(made), around)), "writing")

    assert ("fail", f"{made / 'inbox'} belongs to somebody else") == (found.state, found.said)
