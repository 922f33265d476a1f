"""Compacting survives every crash: nothing is lost, and nothing counts twice.

Four compactors and four writers, killed at any step of theirs, on a folder; the long tests add an
S3 store and more of everything.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farm import identity, schema
from tests.farm.catalog.taking import assert_whole, live
from tests.store.conftest import Backend
from tests.store.killing import profiles

ROOT = Path(__file__).parents[2]
FAR = pytest.param("seaweedfs", marks=[pytest.mark.s3, pytest.mark.long])
on_both = pytest.mark.parametrize("backend", ["local", FAR], indirect=True)
on_a_folder = pytest.mark.parametrize("backend", ["local"], indirect=True)


def killing(how: str, backend: Backend, folder: Path, *words: object) -> list[Any]:
    """What the processes that were killed have to tell."""
    place = backend.words.replace("LocalStore(", "LocalStore(fsync=False, root=")
    said = subprocess.run(
        [sys.executable, "-m", "tests.store.killing", how, place, folder, *map(str, words)],
        cwd=ROOT,
        env=dict(os.environ) | backend.environ,
        stdout=subprocess.PIPE,
        check=True,
    )
    return list(json.loads(said.stdout))


def ids(count: int) -> set[str]:
    sent = itertools.islice(profiles(), count)
    return {identity.content_id(schema.encode(each)) for each, _ in sent}


@on_both
def test_a_crash_at_any_step_changes_nothing_or_completes(backend: Backend, tmp_path: Path) -> None:
    """Before each call of the store and after it; the next pass makes good what is missing."""
    steps = killing("walk", backend, tmp_path)

    assert 2 == sum(not each["killed"] for each in steps)  # all others were
    assert len(steps) > 20
    for each in steps:
        before, killed, after = each["held"]
        assert killed in (before, each["put"]), each
        assert after == each["put"], each
    assert_whole(backend.store, ids(steps[-1]["put"]))


def chaos(backend: Backend, folder: Path, *, seed: int, count: int, kills: int) -> None:
    (killed,) = killing("chaos", backend, folder, seed, count, kills)

    assert kills <= killed
    assert_whole(backend.store, ids(count))
    assert count == len(live(backend.store))


@on_a_folder
def test_what_many_writers_put_is_in_the_parts_once(
    backend: Backend, tmp_path: Path, seed: int
) -> None:
    """Whoever was killed at whatever step."""
    chaos(backend, tmp_path, seed=seed, count=240, kills=10)


@pytest.mark.long
@on_both
def test_what_many_writers_put_is_in_the_parts_once_at_length(
    backend: Backend, tmp_path: Path, seed: int
) -> None:
    chaos(backend, tmp_path, seed=seed, count=2_000, kills=40)
