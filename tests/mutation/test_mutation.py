"""Whether the tests of the statistics notice when a line is wrong: mutation testing, by mutmut.

mutmut changes one thing in one function at a time and asks whether a test fails. Some mutants are
equal to the original (a larger transform, a type that numpy has anyway), many change the wording of
an error; both count as survivors here, so the score can only be too low. Constants of a module are
outside functions and stay as they are.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LEAST = 0.85
LEAST_OF_A_MODULE = 0.75
LIMIT_S = 3600
PROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["--import-mode=importlib", "--strict-markers", "-p no:valkey"]
filterwarnings = ["error"]
markers = ["seed(*ids): proves these lines of the seeds"]

[tool.mutmut]
source_paths = ["farm/stats/"]
also_copy = ["farm/", "tests/"]
"""
# A tenth of the examples finds almost as much; the seed is one, so that a run can be repeated.
CONFTEST = """
import hypothesis, hypothesis.core, pytest

hypothesis.settings.register_profile("mutation", deadline=None, database=None, max_examples=30)
hypothesis.settings.load_profile("mutation")
hypothesis.core.global_force_seed = {seed}

@pytest.fixture
def seed():
    return {seed}
"""


class Score(NamedTuple):
    """How many mutants there were, and how many a test noticed, by failing or by never ending."""

    mutants: int
    noticed: int

    @property
    def share(self) -> float:
        return self.noticed / self.mutants


@pytest.mark.long
def test_the_tests_of_the_statistics_notice_most_mutants(tmp_path: Path, seed: int) -> None:
    """At least 85 in a hundred over all, and no module far behind."""
    _project(tmp_path, seed)

    said = _mutmut(tmp_path, "run", "--max-children", str(os.cpu_count() or 1))
    _mutmut(tmp_path, "export-cicd-stats")
    counts = json.loads((tmp_path / "mutants/mutmut-cicd-stats.json").read_text())
    listed = _mutmut(tmp_path, "results", "--all", "true")
    scores = _scores(listed)

    whole = Score(counts["total"], counts["killed"] + counts["timeout"])
    assert whole.mutants > 1000, said[-2000:]
    assert whole.share >= LEAST, listed
    assert all(each.share >= LEAST_OF_A_MODULE for each in scores.values()), listed


def _project(folder: Path, seed: int) -> None:
    """The statistics, what they import, and their tests: a project of their own."""
    for name in ("farm/__init__.py", "farm/errors.py", "farm/stats", "tests/farm/stats"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "tests/conftest.py").write_text(CONFTEST.format(seed=seed))


def _mutmut(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-4000:]
    return done.stdout


def _scores(listed: str) -> dict[str, Score]:
    """By module, from lines such as `farm.stats.warmup.x_steady__mutmut_13: survived`."""
    mutants, noticed = Counter[str](), Counter[str]()
    for line in listed.splitlines():
        name, found, verdict = line.strip().partition(": ")
        if found and "__mutmut_" in name:
            module = name.rpartition(".")[0]
            mutants[module] += 1
            noticed[module] += verdict in ("killed", "timeout")
    return {module: Score(count, noticed[module]) for module, count in mutants.items()}
