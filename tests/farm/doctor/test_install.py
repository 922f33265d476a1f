"""What is installed: each wrong, missing or foreign part is named, with what mends it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import __version__
from farm.doctor import Finding, install
from farm.doctor.surroundings import Ran, Surroundings
from tests.farm.doctor.sound import distributions, one, surroundings, write


def _look(around: Surroundings, *, measures: bool = True) -> list[Finding]:
    return list(install.look(around, measures=measures))


def test_a_sound_installation_is_ok(tmp_path: Path) -> None:
    found = _look(surroundings(tmp_path))

    assert ["ok"] * 4 == [each.state for each in found]
    assert "celery 5.7.0, kombu 5.7.0, redis 8.1.0; all 3 as required" == found[1].said


@pytest.mark.parametrize(("version", "bits"), [((3, 10, 4), 64), ((3, 11, 0), 32)])
def test_an_old_or_small_python_fails(tmp_path: Path, version: tuple[int, ...], bits: int) -> None:
    found = one(_look(surroundings(tmp_path, python_version=version, bits=bits)), "version")

    assert "fail" == found.state
    assert "python3 -m venv" in found.cure


def test_a_queue_library_of_another_release_fails(tmp_path: Path) -> None:
    """Before 5.7 a worker idles for seconds between messages; 5.8 nobody has tried."""
    have = distributions(tmp_path, celery="5.6.2", kombu="5.8.0")

    found = one(_look(surroundings(tmp_path, distributions=lambda: have)), "libraries")

    assert "fail" == found.state
    assert "celery 5.6.2 is not >=5.7,<5.8; kombu 5.8.0 is not >=5.7,<5.8" == found.said
    assert found.cure.endswith("-m pip install 'celery>=5.7,<5.8' 'kombu>=5.7,<5.8'")


def test_a_library_that_is_missing_fails(tmp_path: Path) -> None:
    have = distributions(tmp_path, redis=None)

    found = one(_look(surroundings(tmp_path, distributions=lambda: have)), "libraries")

    assert ("fail", "redis is missing") == (found.state, found.said)


def test_a_farm_that_was_never_installed_has_no_list_to_check(tmp_path: Path) -> None:
    have = distributions(tmp_path, profiling_farm=None)

    found = one(_look(surroundings(tmp_path, distributions=lambda: have)), "libraries")

    assert "skipped" == found.state


def test_without_pip_the_cure_is_the_other_installer(tmp_path: Path) -> None:
    """An environment that uv made has no pip."""
    have = distributions(tmp_path, celery="5.6.2")
    around = surroundings(
        tmp_path, distributions=lambda: have, has_module=lambda name: name != "pip"
    )

    cure = one(_look(around), "libraries").cure

    assert f"uv pip install --python {around.python} 'celery>=5.7,<5.8'" == cure


@pytest.mark.parametrize(("measures", "state"), [(True, "fail"), (False, "warn")])
def test_without_torch_a_machine_cannot_measure(tmp_path: Path, measures: bool, state: str) -> None:
    """Where a broker is named it may submit and read all the same."""
    have = distributions(tmp_path, torch=None)
    around = surroundings(tmp_path, distributions=lambda: have)

    found = one(_look(around, measures=measures), "worker extra")

    assert state == found.state
    assert "torch is missing" in found.said
    assert found.cure.endswith("-m pip install 'torch>=2.6'")


def test_torch_without_its_module_is_missing(tmp_path: Path) -> None:
    around = surroundings(tmp_path, has_module=lambda name: name != "torch")

    assert "fail" == one(_look(around), "worker extra").state


def _path(folder: Path, said: str) -> dict[str, object]:
    other = write(folder / "other" / "farm-worker", "#!/bin/sh")
    other.chmod(0o755)
    return {"which": lambda _name: str(other), "run": lambda _words: Ran(0, said)}


def test_a_worker_of_another_version_on_path_fails(tmp_path: Path) -> None:
    around = surroundings(tmp_path, **_path(tmp_path, "farm-worker, version 0.0.9"))

    found = one(_look(around), "farm-worker")

    assert "fail" == found.state
    assert f"version 0.0.9; this farm is {__version__}" in found.said
    assert f'export PATH={around.python.parent}:"$PATH"' == found.cure


def test_a_worker_of_another_installation_on_path_is_a_warning(tmp_path: Path) -> None:
    said = f"farm-worker, version {__version__}"
    around = surroundings(tmp_path, **_path(tmp_path, said))

    assert "warn" == one(_look(around), "farm-worker").state


def test_a_worker_that_does_not_start_has_no_version(tmp_path: Path) -> None:
    around = surroundings(tmp_path, **{**_path(tmp_path, ""), "run": lambda _words: None})

    found = one(_look(around), "farm-worker")

    assert "fail" == found.state
    assert "version unknown" in found.said


def test_a_link_to_our_worker_is_ours(tmp_path: Path) -> None:
    """Such a link is how pipx and many a person put it on PATH."""
    around = surroundings(tmp_path)
    link = tmp_path / "farm-worker"
    link.symlink_to(around.python.with_name("farm-worker"))

    found = one(_look(surroundings(tmp_path, which=lambda _name: str(link))), "farm-worker")

    assert "ok" == found.state


def test_without_any_worker_a_machine_cannot_measure(tmp_path: Path) -> None:
    around = surroundings(tmp_path, which=lambda _name: None, python=tmp_path / "python")

    assert "fail" == one(_look(around), "farm-worker").state
    assert "skipped" == one(_look(around, measures=False), "farm-worker").state


_release = st.lists(st.integers(0, 99), min_size=1, max_size=3)


@given(_release, _release)
def test_versions_are_ordered_as_numbers(one_: list[int], other: list[int]) -> None:
    """5.10 comes after 5.9, and 5.7.0 is 5.7."""
    mine, theirs = (".".join(map(str, each)) for each in (one_, other))
    width = max(len(one_), len(other))
    padded = [each + [0] * (width - len(each)) for each in (one_, other)]

    assert (padded[0] >= padded[1]) == install.is_within(mine, f">={theirs}")
    assert (padded[0] < padded[1]) == install.is_within(mine, f"<{theirs}")
