"""What of this machine disturbs numbers or stops programs: cores, clocks, limits, the terminal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from farm.doctor.findings import About, Finding
from farm.doctor.surroundings import Surroundings
from farm.report import words

LEAST_FILES: Final = 1024
_MACHINE: Final = About("machine")
_CPUS: Final = "sys/devices/system/cpu"


def look(around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about the cores, their clock, the limits and the standard output."""
    yield _cores(around)
    yield _governor(around.root)
    yield _turbo(around.root)
    yield _files(around.open_files)
    yield _encoding(around.encoding)


def _cores(around: Surroundings) -> Finding:
    cores, quota = around.cores, cpu_quota(around.root)
    if quota is not None and quota < cores:
        said = f"a quota of {quota:.3g} CPUs on {words.count(cores, 'core')} stops what runs"
        whole = max(1, int(quota))
        cpus = "0" if whole == 1 else f"0-{whole - 1}"
        cure = f"docker run --cpuset-cpus {cpus} …  # whole cores, in place of --cpus or a quota"
        return _MACHINE.warn("cores", said, cure=cure)
    if cores < 2:
        said = "one core: the farm's own work runs on the core that is measured"
        return _MACHINE.warn("cores", said, cure="give it two cores, or measure elsewhere")
    return _MACHINE.ok("cores", f"{cores}, no quota")


def cpu_quota(root: Path) -> float | None:
    """Return how many CPUs the quota of this control group, or of one above, grants; None without.

    Versions 1 and 2. A container may see its own group as the top.
    """
    found = []
    for line in text(root / "proc/self/cgroup").splitlines():
        hierarchy, controllers, path = (*line.split(":", 2), "", "")[:3]
        if hierarchy == "0":
            mounts = ["", "unified"]
        elif "cpu" in controllers.split(","):
            mounts = [controllers, "cpu"]
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for mount in mounts:
            for depth in range(len(parts) + 1):
                folder = Path(root, "sys/fs/cgroup", mount, *parts[:depth])
                limit = text(folder / "cpu.max").split() or [
                    text(folder / f"cpu.cfs_{each}_us").strip() for each in ("quota", "period")
                ]
                if len(limit) == 2 and all(each.isdecimal() for each in limit):  # not `max`, -1
                    found.append(int(limit[0]) / max(1, int(limit[1])))
    return min(found, default=None)


def text(path: Path) -> str:
    """Return the content of a file of the kernel, "" if it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _governor(root: Path) -> Finding:
    name = "governor"
    files = (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = sorted({text(each).strip() for each in files} - {""})
    if not found:
        return _MACHINE.skipped(name, "this machine does not show how its clock is governed")
    if found != ["performance"]:
        said = f"{', '.join(found)}: the clock follows the load, so short steps look slow"
        cure = f"echo performance | sudo tee /{_CPUS}/cpu*/cpufreq/scaling_governor"
        return _MACHINE.warn(name, said, cure=cure)
    return _MACHINE.ok(name, "performance")


def _turbo(root: Path) -> Finding:
    off = {"1": True, "0": False}.get(text(root / _CPUS / "intel_pstate/no_turbo").strip())
    if off is None:
        off = {"0": True, "1": False}.get(text(root / _CPUS / "cpufreq/boost").strip())
    if off is None:
        return _MACHINE.skipped("turbo", "this machine does not show whether it is on")
    return _MACHINE.ok("turbo", "off" if off else "on: the clock depends on heat and neighbours")


def _files(limit: int | None) -> Finding:
    name = "open files"
    if limit is not None and limit < LEAST_FILES:
        said = f"at most {limit}; agent and slot workers need {LEAST_FILES}"
        return _MACHINE.warn(name, said, cure=f"ulimit -n {4 * LEAST_FILES}")
    return _MACHINE.ok(name, "no limit" if limit is None else f"at most {limit}")


def _encoding(encoding: str) -> Finding:
    if encoding.lower().replace("-", "").replace("_", "") != "utf8":
        said = f"standard output takes {encoding or 'no text'}; signs such as ± are spelled out"
        return _MACHINE.warn("output", said, cure="export PYTHONIOENCODING=utf-8")
    return _MACHINE.ok("output", encoding)
