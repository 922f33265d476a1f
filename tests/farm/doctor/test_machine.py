"""What disturbs numbers on a machine is found in its own files, planted here."""

from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, machine
from farm.doctor.surroundings import Surroundings
from tests.farm.doctor.sound import one, surroundings, write

CPUS = "sys/devices/system/cpu"


def _found(around: Surroundings, name: str) -> Finding:
    return one(list(machine.look(around)), name)


def _plant(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        write(folder / "root" / name, text)


def test_cores_without_a_quota_are_ok(tmp_path: Path) -> None:
    _plant(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"})

    found = _found(surroundings(tmp_path), "cores")

    assert ("ok", "8, no quota") == (found.state, found.said)


@pytest.mark.parametrize(
    "files",
    [
        {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"},
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/a\n",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
        },
        {"proc/self/cgroup": "0::/seen/outside\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"},
    ],
    ids=["version 2, from above", "version 1", "a container sees its own group as the top"],
)
def test_a_quota_below_the_cores_is_a_warning(tmp_path: Path, files: dict[str, str]) -> None:
    _plant(tmp_path, files)

    found = _found(surroundings(tmp_path), "cores")

    assert "warn" == found.state
    assert "a quota of 1.5 CPUs on 8 cores" in found.said
    assert "--cpuset-cpus 0 " in found.cure


def test_a_quota_above_the_cores_stops_nothing(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "900000 100000\n"}
    _plant(tmp_path, files)

    assert "ok" == _found(surroundings(tmp_path), "cores").state


def test_one_core_is_a_warning(tmp_path: Path) -> None:
    assert "warn" == _found(surroundings(tmp_path, cores=1), "cores").state


@pytest.mark.parametrize(
    ("governors", "state"),
    [(["performance", "performance"], "ok"), (["performance", "powersave"], "warn")],
)
def test_a_clock_that_follows_the_load_is_a_warning(
    tmp_path: Path, governors: list[str], state: str
) -> None:
    _plant(
        tmp_path,
        {f"{CPUS}/cpu{n}/cpufreq/scaling_governor": f"{g}\n" for n, g in enumerate(governors)},
    )

    assert state == _found(surroundings(tmp_path), "governor").state


def test_what_a_machine_does_not_show_is_skipped(tmp_path: Path) -> None:
    around = surroundings(tmp_path)

    assert "skipped" == _found(around, "governor").state
    assert "skipped" == _found(around, "turbo").state


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({f"{CPUS}/intel_pstate/no_turbo": "1\n"}, "off"),
        ({f"{CPUS}/intel_pstate/no_turbo": "0\n"}, "on"),
        ({f"{CPUS}/cpufreq/boost": "0\n"}, "off"),
        ({f"{CPUS}/cpufreq/boost": "1\n"}, "on"),
    ],
)
def test_turbo_is_told(tmp_path: Path, files: dict[str, str], said: str) -> None:
    _plant(tmp_path, files)

    found = _found(surroundings(tmp_path), "turbo")

    assert ("ok", said) == (found.state, found.said.partition(":")[0])


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"open_files": 1023}, "open files"),
        ({"encoding": "ANSI_X3.4-1968"}, "output"),
        ({"encoding": ""}, "output"),
    ],
)
def test_a_limit_that_is_too_low_is_a_warning(
    tmp_path: Path, changes: dict[str, Any], name: str
) -> None:
    found = _found(surroundings(tmp_path, **changes), name)

    assert "warn" == found.state
    assert found.cure.startswith(("ulimit -n", "export PYTHONIOENCODING"))


@pytest.mark.parametrize(
    "changes", [{"open_files": 1024}, {"open_files": None}, {"encoding": "UTF8"}]
)
def test_a_limit_that_suffices_is_ok(tmp_path: Path, changes: dict[str, Any]) -> None:
    found = list(machine.look(surroundings(tmp_path, **changes)))

    assert {"ok"} == {each.state for each in found if each.name in ("open files", "output")}
