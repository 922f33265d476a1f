"""Settings, state folder, space and records: what is wrong with each, planted for real."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farm import embedded, settings
from farm.doctor import Finding, folders
from farm.doctor.findings import About
from farm.errors import Refused
from tests.farm.doctor.sound import loaded, one, surroundings, write


def _state(folder: Path, state: Path, **changes: Any) -> list[Finding]:
    return list(folders.state(state, surroundings(folder, **changes)))


def _refused(folder: Path, **env: str) -> Finding:
    with pytest.raises(Refused) as caught:
        settings.load({}, env=env, cwd=folder, home=folder / "home")
    return one(list(folders.settings(caught.value)), "values")


# ── settings ─────────────────────────────────────────────────────────────────────────────────────


def test_settings_are_told_with_their_origins_and_without_the_password(tmp_path: Path) -> None:
    found = one(
        list(folders.settings(loaded(tmp_path, FARM_BROKER="redis://me:s%2Fcr@box:7000/0"))),
        "values",
    )

    assert "ok" == found.state
    assert "broker box:7000 (FARM_BROKER)" in found.said
    assert "cr" not in found.said.partition("broker")[2].partition("(")[0].replace("broker", "")


def test_a_broker_is_told_by_host_and_port(tmp_path: Path) -> None:
    found = one(
        list(folders.settings(loaded(tmp_path, FARM_BROKER="redis://:secret@box/0"))), "values"
    )

    assert "broker box:6379 (FARM_BROKER)" in found.said


def test_an_unknown_key_fails_and_names_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "farm.toml", "stor = 'x'")

    found = _refused(tmp_path)

    assert ("fail", 2) == (found.state, found.code)
    assert f"{path}: unknown setting 'stor'; known: store" in found.said
    assert f"${{EDITOR:-vi}} {path}  # did you mean `store`?" == found.cure


def test_a_bad_value_of_a_variable_fails_and_names_it(tmp_path: Path) -> None:
    found = _refused(tmp_path, FARM_EFFORT="quik")

    assert "unknown effort 'quik'" in found.said
    assert "unset FARM_EFFORT  # did you mean `quick`?" == found.cure


def test_a_file_of_settings_that_is_not_there_fails(tmp_path: Path) -> None:
    assert "unset FARM_CONFIG" == _refused(tmp_path, FARM_CONFIG="gone.toml").cure


def test_a_password_in_a_bad_value_is_hidden() -> None:
    error = Refused("farm.toml: broker is ['redis://:secret@box:6379/0']")

    found = one(list(folders.settings(error)), "values")

    assert "fail" == found.state
    assert "secret" not in found.said


# ── state ────────────────────────────────────────────────────────────────────────────────────────


def test_a_state_folder_that_is_not_there_is_left_so(tmp_path: Path) -> None:
    found = _state(tmp_path, tmp_path / "a" / "b")

    assert ["ok"] * 4 == [each.state for each in found]
    assert "not made yet; the first run makes it" in found[0].said
    assert not (tmp_path / "a").exists()


def test_below_a_file_nothing_is_written_down(tmp_path: Path) -> None:
    found = one(_state(tmp_path, write(tmp_path / "file", "")), "farm up")

    assert "none runs" == found.said


def test_looking_leaves_a_state_folder_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()

    assert "ok" == one(_state(tmp_path, tmp_path / "state"), "folder").state
    assert [] == list((tmp_path / "state").iterdir())


@pytest.mark.parametrize("below", ["", "state"])
def test_a_file_in_place_of_a_folder_fails(tmp_path: Path, below: str) -> None:
    file = write(tmp_path / "file", "")

    found = one(_state(tmp_path, file / below), "folder")

    assert ("fail", 2) == (found.state, found.code)
    assert f"{file} is not a folder" == found.said
    assert f"mv {file} {file}.old" == found.cure


def test_a_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    """A tree of the kernel takes no file from anybody, root included."""
    found = one(_state(tmp_path, Path("/proc/self")), "folder")

    assert ("fail", 4) == (found.state, found.code)
    assert "/proc/self cannot be written: " in found.said
    assert 'sudo chown -R "$(id -un)" /proc/self' == found.cure


def test_what_another_user_left_in_the_state_folder_fails(tmp_path: Path) -> None:
    """One `sudo farm run` leaves a folder that lets nobody else in."""
    (tmp_path / "broker").mkdir()

    found = one(_state(tmp_path, tmp_path, may_write=lambda _folder: False), "folder")

    assert ("fail", f"{tmp_path / 'broker'} belongs to somebody else") == (found.state, found.said)
    assert f'sudo chown -R "$(id -un)" {tmp_path}' == found.cure


def test_a_file_system_without_locks_fails(tmp_path: Path) -> None:
    def lock(_file: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    found = one(_state(tmp_path, tmp_path, lock=lock), "folder")

    assert "fail" == found.state
    assert "takes no locks: No locks available" in found.said
    assert "export FARM_STATE=" in found.cure


@pytest.mark.parametrize(
    ("free", "state"),
    [(200 * 2**20 - 1, "fail"), (2 * 2**30 - 1, "warn"), (2 * 2**30, "ok")],
)
def test_a_disk_that_is_nearly_full_is_found(tmp_path: Path, free: int, state: str) -> None:
    around = surroundings(tmp_path, free=lambda _folder: free)

    assert state == folders.space(About("store"), tmp_path / "not" / "made", around).state


def test_a_disk_that_does_not_say_is_skipped(tmp_path: Path) -> None:
    def free(_folder: Path) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    around = surroundings(tmp_path, free=free)

    assert "skipped" == folders.space(About("store"), tmp_path, around).state


# ── what is written down there ───────────────────────────────────────────────────────────────────


def _record(path: Path, *, pid: int, started: str) -> None:
    write(path, json.dumps({"pid": pid, "started": started, "port": 1, "password": "s3cret"}))


def test_the_record_of_a_process_that_is_gone_is_told(tmp_path: Path) -> None:
    """A process lived under that number, and the start time that is written down is its own."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gone:
        began = embedded.started(gone.pid) or ""
        _record(tmp_path / "broker/broker.json", pid=gone.pid, started=began)
        assert "runs as" in one(_state(tmp_path, tmp_path), "embedded broker").said

    found = one(_state(tmp_path, tmp_path), "embedded broker")

    assert "ok" == found.state
    assert f"process {gone.pid} is gone; the next run replaces its record" == found.said


def test_a_number_that_belongs_to_another_process_now_is_gone(tmp_path: Path) -> None:
    _record(tmp_path / "up.json", pid=os.getpid(), started="another boot 123")

    found = one(_state(tmp_path, tmp_path), "farm up")

    assert "is gone; the next `farm up` replaces its record" in found.said


@pytest.mark.parametrize("text", ["", "[]", '{"pid": null, "started": ""}', "{"])
def test_a_record_that_says_nothing_is_told(tmp_path: Path, text: str) -> None:
    write(tmp_path / "up.json", text)

    assert "is of no use" in one(_state(tmp_path, tmp_path), "farm up").said


# ── profiles that wait here ──────────────────────────────────────────────────────────────────────


def _parcel(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    return made


def test_profiles_that_wait_for_a_store_are_found_with_its_name(tmp_path: Path) -> None:
    """Also those for a store that is not the one of today: nobody else would ever send them."""
    spool = tmp_path / "state/spool/0123456789abcdef"
    _parcel(spool, "01800000000000000001-aa-bb")
    (spool / "store.txt").write_text("s3://old\n")

    found = one(_state(tmp_path, tmp_path / "state"), "spool")

    assert ("warn", True) == (found.state, "1 profile in" in found.said)
    assert found.said.endswith("not in s3://old yet")
    assert found.cure.startswith("farm up --store s3://old")


def test_profiles_that_the_store_could_not_take_are_a_failure(tmp_path: Path) -> None:
    aside = _parcel(tmp_path / "state/spool/0123456789abcdef/aside", "01800000000000000001-aa-bb")
    (aside / "why.txt").write_text("no")

    found = one(_state(tmp_path, tmp_path / "state"), "spool")

    assert ("fail", True) == (found.state, "could not take" in found.said)
    assert str(aside / "why.txt") in found.cure


def test_an_empty_spool_is_well_and_the_variable_names_it(tmp_path: Path) -> None:
    _parcel(tmp_path, "elsewhere/0123456789abcdef")
    environ = {"FARM_SPOOL": str(tmp_path / "elsewhere")}

    found = one(_state(tmp_path, tmp_path / "state", environ=environ), "spool")

    assert ("ok", "nothing waits for a store") == (found.state, found.said)
