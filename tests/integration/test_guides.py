"""The guides, taken at their word: their files are written, their commands run as they stand."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import guide
from tests.integration.farm_here import Place, Said

pytestmark = [pytest.mark.redis, pytest.mark.long]

GUIDES = sorted(guide.FOLDER.glob("*.md"))
ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".farm", ".*_cache", "build", "dist")


@pytest.mark.parametrize("page", GUIDES, ids=lambda each: each.stem)
def test_every_command_of_a_guide_works_as_written(place: Place, page: Path) -> None:
    follow(place, page, farm=place.farm)


def test_a_newcomer_gets_from_nothing_to_a_report_in_ten_minutes(place: Place) -> None:
    """Install into an empty environment as the guide says, then measure a model of one's own."""
    shutil.copytree(ROOT, place.folder / "profiling-farm", ignore=LEFT_OUT)
    install = "\n".join(guide.shell(guide.FOLDER / "first-sweep.md"))
    pins = place.folder / "profiling-farm/deploy/constraints.txt"
    clean = {
        "HOME": str(place.folder),
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:{os.defpath}",
        "PIP_CONSTRAINT": str(pins),
        "NO_COLOR": "1",
        **{
            name: each
            for name, each in os.environ.items()
            if name.startswith(("PIP_", "FARM_TEST"))
        },
    }
    script = place.folder / "install.sh"
    script.write_text(f"set -e\n{install}")
    done = subprocess.run(
        ["bash", script], cwd=place.folder, env=clean, capture_output=True, text=True, timeout=400
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "failed" not in done.stdout.splitlines()[-1]
    beside = place.folder / ".venv/bin"

    def farm(*words: str, code: int) -> Said:
        done = subprocess.run(
            [beside / "farm", *words],
            cwd=place.folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert code == done.returncode, done.stdout + done.stderr
        return Said(done.stdout, done.stderr)

    follow(place, guide.FOLDER / "own-model.md", farm=farm, python=str(beside / "python"))
    assert (place.folder / "mine.html").read_text().startswith("<!doctype html>")


def follow(place: Place, page: Path, *, farm, python: str = sys.executable) -> None:
    """Do what a guide asks for, and see what it says one sees."""
    said, commands = None, 0
    for step in guide.steps(page):
        if isinstance(step, guide.File):
            place.write(*step)
        elif isinstance(step, guide.Answer):
            assert said is not None
            assert step.text.strip() in said.err + said.out
        elif step.words[0] == "farm":
            said = farm(*step.words[1:], code=step.code)
            commands += 1
        else:
            assert "python" == step.words[0], step.words
            subprocess.run([python, *step.words[1:]], cwd=place.folder, check=True)
    assert commands
