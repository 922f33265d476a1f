"""The folders of a capture: made for it, held by it alone, and gone where nothing came of it."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from farm.cli.profile.capture_project import held, project
from farm.errors import NoResult, Refused
from tests.farm import make
from tests.farm.cli.profile.capture_worker import PLAIN, Worker, taken, words


def test_two_captures_do_not_write_into_one_project(tmp_path: Path) -> None:
    """The second would replace half of what the first has written; it may go elsewhere."""
    first = project(tmp_path / "p", "infer", repeat=2)
    code = f"""if True:
        from pathlib import Path
        from farm.cli.profile.capture_project import held, project
        with held(project(Path({str(tmp_path / "p")!r}), "run", repeat=1)):
            pass
    """

    with held(first):
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        with held(project(tmp_path / "q", "infer", repeat=1)):
            pass
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert f"Refused: another capture writes into '{tmp_path / 'p'}'" in said.stderr
    assert (0, "") == (alone.returncode, alone.stderr)


def test_a_capture_that_failed_leaves_no_folder_of_its_own(here: Path) -> None:
    (here / "runs").mkdir()
    broken = Worker(PLAIN._replace(failure=make.fault("oom")))

    with pytest.raises(NoResult):
        taken(here, broken, words("infer", "--repeat", "2"))

    assert [] == list((here / "runs").iterdir())


def test_folders_that_were_there_stay_with_what_lies_in_them(tmp_path: Path) -> None:
    """Also one that is empty, since somebody made it."""
    (tmp_path / "p/prof_1").mkdir(parents=True)
    (tmp_path / "p/mine").write_text("")

    with suppress(ZeroDivisionError), held(project(tmp_path / "p", "run", repeat=3)):
        raise ZeroDivisionError

    assert ["mine", "prof_1"] == sorted(each.name for each in (tmp_path / "p").iterdir())


def test_a_project_without_a_name_is_not_the_current_folder(here: Path) -> None:
    with pytest.raises(Refused, match="--project '' is no folder"):
        words("infer", "--project", "")
    assert Path() == words("infer", "--project", ".").project


def test_a_pipe_in_place_of_a_file_is_refused_before_anything_is_measured(here: Path) -> None:
    """Nobody may ever read from it."""
    (here / "runs/profile/infer").mkdir(parents=True)
    os.mkfifo(here / "runs/profile/infer/profile.json")
    worker = Worker()

    with pytest.raises(Refused, match=r"cannot write 'runs/profile/infer/profile\.json'"):
        taken(here, worker)

    assert [] == worker.asked


def test_a_profile_that_could_not_be_written_leaves_no_older_one_beside_the_new_trace(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be read as that of the trace."""
    taken(here, Worker())
    folder = here / "runs/profile/infer"

    def full(path: Path, pieces: object, say: object) -> None:
        if path.name == "profile.json":
            raise Refused("cannot write it", why="No space left on device")

    monkeypatch.setattr("farm.cli.profile.capture_pass.put", full)
    with pytest.raises(Refused, match="cannot write it"):
        taken(here, Worker())

    assert ["profile_trace.json"] == [each.name for each in folder.iterdir()]
