"""The laws of sweep files and of what `--set` says over them."""

from pathlib import Path

import pytest

from farm.errors import Refused
from farm.sweep.files import Sweep, load

TEXT = "matrix: {model: mlp, batch: [1, 2]}\nmeasure: {effort: quick}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweeps" / "a.yaml"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def _load(file: Path, *sets: str) -> Sweep:
    (sweep,) = load([file], sets, root=file.parents[1])
    return sweep


def test_a_sweep_knows_its_folder_and_its_name(file: Path) -> None:
    """A relative path starts in the root; the file is called as the person wrote it."""
    (sweep,) = load(["sweeps/a.yaml"], root=file.parents[1])

    assert "sweeps/a.yaml" == sweep.document.name
    assert file.parent == sweep.beside
    assert {"model": "mlp", "batch": [1, 2]} == sweep.document.data["matrix"]


@pytest.mark.parametrize(
    ("assignment", "path", "value"),
    [
        ("matrix.batch=[4, 8]", ("matrix", "batch"), [4, 8]),
        ("batch=1,8", ("matrix", "batch"), [1, 8]),
        ("batch=8", ("matrix", "batch"), [8]),
        ("batch=[8]", ("matrix", "batch"), [8]),
        ("device=node:gpu-1/0, cpu", ("matrix", "device"), ["node:gpu-1/0", "cpu"]),
        ("model=m.py:build", ("matrix", "model"), ["m.py:build"]),
        ("measure.effort=standard", ("measure", "effort"), "standard"),
        ("measure.timeout=90s", ("measure", "timeout"), "90s"),
        ("inputs.x.shape=[batch, 3]", ("inputs", "x", "shape"), ["batch", 3]),
        ("name=night=1", ("name",), "night=1"),
        ("exclude=[]", ("exclude",), []),
        ("tags.gate=true", ("tags", "gate"), True),
    ],
)
def test_a_flag_sets_one_value(
    file: Path, assignment: str, path: tuple[str, ...], value: object
) -> None:
    """A dotted path or a bare axis replaces that value, and nothing else."""
    data: object = _load(file, assignment).document.data

    for key in path:
        assert isinstance(data, dict)
        data = data[key]
    assert value == data
    assert {"model": "mlp"}.items() <= _load(file, "batch=4").document.data["matrix"].items()


def test_the_last_flag_stands_and_the_file_stays(file: Path) -> None:
    """Later flags beat earlier ones; an overridden axis keeps its place in the order."""
    sweep = _load(file, "model=cnn", "batch=4", "batch=5")

    assert ["model", "batch"] == list(sweep.document.data["matrix"])
    assert {"model": ["cnn"], "batch": [5]} == sweep.document.data["matrix"]
    assert TEXT == file.read_text()


@pytest.mark.parametrize(
    ("assignment", "message", "hint"),
    [
        ("batch", "-S batch: expected KEY=VALUE", "for example -S measure.effort=quick"),
        ("=1", "-S =1: expected KEY=VALUE", "for example -S measure.effort=quick"),
        ("measure.=1", "-S measure.=1: expected KEY=VALUE", "for example -S measure.effort=quick"),
        ("matrix.batch[0]=1", "-S matrix.batch[0]=1: lists are set whole", "for example -S batch"),
        (
            "measur.effort=quick",
            "-S measur.effort=quick: unknown key 'measur'",
            "did you mean `mea",
        ),
        ("measure.effort.x=1", "-S measure.effort.x=1: expected keys and values, got 'quick'", ""),
        ("batch=[1", "-S batch=[1: not readable as YAML", ""),
        ("name=!!python/name:os.system", "-S name=!!python/name:os.system: not readable", ""),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused(
    file: Path, assignment: str, message: str, hint: str
) -> None:
    """The flag is quoted, and what it should have been is said."""
    with pytest.raises(Refused) as caught:
        _load(file, assignment)

    assert str(caught.value).startswith(message)
    assert caught.value.hint.startswith(hint)


def test_without_a_sweep_there_is_nothing_to_load(tmp_path: Path) -> None:
    """A command without a sweep is told how to name one."""
    with pytest.raises(Refused, match="no sweep is named"):
        load([], root=tmp_path)
