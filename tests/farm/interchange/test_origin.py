"""The laws of an origin: a commit where there is one, and a reason for what is not known."""

import subprocess

import pytest

from farm.cli.profile.calling import _program
from farm.interchange import origin


def repository(folder):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    (folder / "model.py").write_text("def step(x): ...\n")
    (folder / ".gitignore").write_text("own.py\n")
    git("add", "model.py", ".gitignore")
    git("commit", "-q", "-m", "a")
    said = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def found(*files, folder, **more):
    fields = {"run": _program, "root": folder, "environment": {}, "load": lambda: (0.127, 1, 2)}
    return origin(list(files), **(fields | more))


@pytest.mark.seed("S1.52")
def test_a_commit_is_told_and_whether_the_code_differs_from_it(tmp_path):
    """The model's own files count, untracked and ignored ones too; what lies beside does not."""
    commit = repository(tmp_path)
    model = tmp_path / "model.py"
    (tmp_path / "notes.txt").write_text("beside")

    assert (commit, False) == _told(found(model, folder=tmp_path))
    (tmp_path / "own.py").write_text("")
    assert (commit, True) == _told(found(model, tmp_path / "own.py", folder=tmp_path))
    model.write_text("def step(y): ...\n")
    assert (commit, True) == _told(found(model, folder=tmp_path))


def _told(each):
    return each.commit, each.dirty


def test_code_in_no_repository_has_no_commit(tmp_path):
    told = found(tmp_path / "model.py", folder=tmp_path, run=lambda words, folder: None)

    assert (None, None) == _told(told)
    assert told.reasons["commit"].startswith("not_applicable: ")
    assert told.reasons["dirty"].startswith("not_applicable: ")


@pytest.mark.parametrize(
    ("files", "environment", "image", "why"),
    [
        ({}, {}, None, "not_applicable: no container"),
        ({".dockerenv": ""}, {}, None, "not_supported: the container does not tell its image"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None, "not_supported: "),
        ({"run/.containerenv": 'engine="podman"\nimage="farm:1"\n'}, {}, "farm:1", ""),
        ({"run/.containerenv": ""}, {}, None, "not_supported: "),
        ({".dockerenv": ""}, {"FARM_IMAGE": "farm:2"}, "farm:2", ""),
    ],
)
def test_a_container_is_named_where_it_names_itself(tmp_path, files, environment, image, why):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    told = found(
        tmp_path / "a.py", folder=tmp_path, environment=environment, run=lambda words, folder: None
    )

    assert image == told.container_image
    assert told.reasons.get("container_image", "").startswith(why)


def test_the_load_of_the_host_is_that_of_the_last_minute(tmp_path):
    def gone():
        raise OSError

    quiet = {"run": lambda words, folder: None}
    assert 0.13 == found(tmp_path / "a.py", folder=tmp_path, **quiet).host_load_1m
    unknown = found(tmp_path / "a.py", folder=tmp_path, load=gone, **quiet)
    assert (None, "not_supported") == (unknown.host_load_1m, unknown.reasons["host_load_1m"])
