"""What is installed: Python, the libraries and their versions, and who answers to `farm-worker`."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from farm import __version__
from farm.doctor.findings import About, Finding
from farm.doctor.surroundings import Installed, Surroundings, plain

OLDEST: Final = (3, 11)
DISTRIBUTION: Final = "profiling-farm"
_PYTHON: Final = About("python")
_REQUIREMENT: Final = re.compile(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?\s*(?:;(.*))?")
_BOUND: Final = re.compile(r"(>=|<=|==|<|>)\s*(\d+(?:\.\d+)*)")


class _Need(NamedTuple):
    name: str
    bounds: str
    marker: str


def look(around: Surroundings, *, measures: bool) -> Iterator[Finding]:
    """Yield what is found about this installation; nothing of it is imported.

    measures: whether this machine is to measure, or only submits and reads.
    """
    have = around.distributions()
    needs = [_need(text) for each in have if each.name == DISTRIBUTION for text in each.needs]
    yield _python(around)
    yield _libraries(have, needs, around)
    yield _extra(have, needs, around, measures=measures)
    yield _worker(around, measures=measures)


def pip(around: Surroundings, verb: str, *words: str) -> str:
    """Return the command that does this to the packages of this very interpreter."""
    python = str(around.python)
    if not around.has_module("pip") and around.which("uv"):
        words = tuple(each for each in words if each != "-y")  # uv never asks
        return shlex.join(["uv", "pip", verb, "--python", python, *words])
    return shlex.join([python, "-m", "pip", verb, *words])


def is_within(version: str, bounds: str) -> bool:
    """Return whether a version keeps bounds such as `>=5.7,<5.8`; other kinds of bounds hold."""
    mine = _numbers(version)
    for sign, text in _BOUND.findall(bounds):
        other = _numbers(text)
        holds = {
            ">=": mine >= other,
            "<=": mine <= other,
            "==": mine == other,
            "<": mine < other,
            ">": mine > other,
        }
        if not holds[sign]:
            return False
    return True


def version_in(text: str) -> str:
    """Return the last version number in what a program says of itself, "" if there is none."""
    found = re.findall(r"\d+(?:\.\d+)+[\w.+-]*", text)
    return found[-1] if found else ""


def _python(around: Surroundings) -> Finding:
    version = ".".join(map(str, around.python_version))
    said = f"{version}, {around.bits} bit, {around.python}"
    if around.python_version < OLDEST or around.bits < 64:
        cure = f"make an environment of Python {OLDEST[0]}.{OLDEST[1]} or later, 64 bit"
        return _PYTHON.fail("version", said, cure=f"{cure}: `python3 -m venv .venv`")
    return _PYTHON.ok("version", said)


def _libraries(have: Sequence[Installed], needs: Sequence[_Need], around: Surroundings) -> Finding:
    needed = [each for each in needs if not each.marker]
    if not needed:
        return _PYTHON.skipped("libraries", f"{DISTRIBUTION} runs without being installed")
    wrong = [(each, told) for each in needed if (told := _wrong(each, have))]
    if wrong:
        wanted = [f"{each.name}{each.bounds}" for each, _ in wrong]
        said = "; ".join(told for _, told in wrong)
        return _PYTHON.fail("libraries", said, cure=pip(around, "install", *wanted))
    versions = {each.name: each.version for each in have}
    queue = ", ".join(f"{each} {versions.get(each, '')}" for each in ("celery", "kombu", "redis"))
    return _PYTHON.ok("libraries", f"{queue}; all {len(needed)} as required")


def _extra(
    have: Sequence[Installed], needs: Sequence[_Need], around: Surroundings, *, measures: bool
) -> Finding:
    """What measures: without it this machine submits and reads, and that may be all it is for."""
    needed = [each for each in needs if re.search(r"extra\s*==\s*['\"]worker['\"]", each.marker)]
    wrong = [(each, told) for each in needed if (told := _wrong(each, have))]
    if not wrong and not around.has_module("torch"):
        wrong = [(_Need("torch", "", ""), "torch is missing")]
    if not wrong:
        torch = next((each.version for each in have if each.name == "torch"), "")
        return _PYTHON.ok("worker extra", f"torch {torch}".strip())
    said = "; ".join(told for _, told in wrong)
    cure = pip(around, "install", *(f"{each.name}{each.bounds}" for each, _ in wrong))
    if measures:
        return _PYTHON.fail("worker extra", f"{said}: nothing can be measured here", cure=cure)
    return _PYTHON.warn("worker extra", f"{said}: this machine submits and reads only", cure=cure)


def _worker(around: Surroundings, *, measures: bool) -> Finding:
    """`farm run` starts the one beside `farm`; a person who types its name gets that on PATH."""
    name = "farm-worker"
    beside = around.python.with_name(name)
    found = around.which(name)
    is_beside = os.access(beside, os.X_OK)
    if found is None:
        if is_beside:
            return _PYTHON.ok(name, f"{__version__}, {beside} (not on PATH)")
        if not measures:
            return _PYTHON.skipped(name, "not installed here; this machine submits and reads")
        cure = pip(around, "install", "--force-reinstall", "--no-deps", DISTRIBUTION)
        return _PYTHON.fail(name, "not installed here", cure=cure)
    if is_beside and Path(found).resolve() == beside.resolve():
        return _PYTHON.ok(name, f"{__version__}, {found}")
    cure = f'export PATH={shlex.quote(str(beside.parent))}:"$PATH"'
    if not is_beside:
        cure = pip(around, "install", "--force-reinstall", "--no-deps", DISTRIBUTION)
    ran = around.run([found, "--version"])
    version = version_in(ran.said) if ran is not None and ran.code == 0 else ""
    if version != __version__:
        said = f"{found} is version {version or 'unknown'}; this farm is {__version__}"
        return _PYTHON.fail(name, said, cure=cure)
    return _PYTHON.warn(name, f"{found} is of another installation, {version} too", cure=cure)


def _wrong(need: _Need, have: Sequence[Installed]) -> str:
    """Return what is wrong with a library, "" if nothing is."""
    found = next((each for each in have if each.name == plain(need.name)), None)
    if found is None:
        return f"{need.name} is missing"
    if not is_within(found.version, need.bounds):
        return f"{need.name} {found.version} is not {need.bounds}"
    return ""


def _need(text: str) -> _Need:
    found = _REQUIREMENT.match(text)
    name, bounds, marker = found.groups() if found else (text, "", "")
    ordered = ",".join(sorted(bounds.replace(" ", "").split(","), reverse=True))
    return _Need(name, ordered, (marker or "").strip())


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version without the zeros at its end: 5.7.0 is 5.7."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(each) for each in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
