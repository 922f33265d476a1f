import contextlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.captures import dataset
from farm.captures.dataset import Data
from farm.errors import Refused


@pytest.fixture
def folder(tmp_path):
    """A folder with two small data sets and a file with a function."""
    for name in ("set/images/img2.ppm", "set/images/img10.ppm", "more/a.pgm"):
        _write(tmp_path / name, "P2 1 1 1 0")
    _write(tmp_path / "code/data.py", "def batches(batch): ...\ndef _own(): ...")
    return tmp_path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def yaml(folder, text):
    _write(folder / "data.yaml", text)
    return dataset.parsed("data.yaml", folder)


def refused(word, folder):
    with pytest.raises(Refused) as caught:
        dataset.parsed(word, folder)
    return caught.value


@pytest.mark.seed("S4.11")
def test_synthetic_is_endless_or_so_many(tmp_path):
    """In-repo names: nothing needs to be there for them."""
    assert Data(kind="synthetic", word="synthetic") == dataset.parsed("synthetic", tmp_path)
    assert Data(kind="synthetic", word="synthetic-64", count=64) == dataset.parsed(
        "synthetic-64", tmp_path
    )


def test_images_of_a_data_set_that_nobody_reads_are_told(folder):
    """As those of a folder that an inference looks into."""
    _write(folder / "set/images/x.webp", "")
    _write(folder / "data.yaml", "train: set/images\n")
    notes = []

    dataset.parsed("data.yaml", folder, notes=notes)

    assert [True] == [each.endswith("1 of .webp, not read here") for each in notes]


@pytest.mark.seed("S4.11")
def test_a_yaml_names_its_images(folder):
    """By folders, lists and single files, from its own folder or from `path`."""
    _write(folder / "set/train.txt", "images/img10.ppm\n\n./images/img2.ppm\n")

    one = yaml(folder, "train: set/images\nnames: [cat, dog]\ndownload: |\n  none\n")
    two = yaml(folder, "path: set\ntrain: [images, ../more/a.pgm]\nnc: 7\n")
    listed = yaml(folder, "path: set\ntrain: train.txt\nnames: {0: cat, 3: dog}\n")

    ours = [str(folder / "set/images" / name) for name in ("img2.ppm", "img10.ppm")]
    assert (tuple(ours), 2, 2) == (one.files, one.count, one.classes)
    assert ((*ours, str(folder / "more/a.pgm")), 3, 7) == (two.files, two.count, two.classes)
    assert (tuple(ours[::-1]), 2, 4) == (listed.files, listed.count, listed.classes)
    assert yaml(folder, "train: more\n").classes is None


def test_a_function_is_found_like_a_model(folder):
    """In a file below or elsewhere, in a module here, or installed; none of it runs."""
    _write(folder / "boom.py", "raise SystemExit\ndef batches(): ...")

    def found(word, root=folder):
        data = dataset.parsed(word, root)
        return data.kind, data.reference, data.root

    assert ("callable", "code/data.py:batches", str(folder)) == found("code/data.py:batches")
    assert ("callable", "data.py:batches", str(folder / "code")) == found(
        f"{folder}/code/data.py:batches", folder / "set"
    )
    assert ("callable", "code.data:batches", str(folder)) == found("code.data:batches")
    assert ("callable", "boom.py:batches", str(folder)) == found("boom.py:batches")
    assert ("callable", "json:load", "") == found("json:load")


def test_what_is_found_can_be_said_in_json(folder):
    """It travels to the process that measures."""
    for data in (yaml(folder, "train: more"), dataset.parsed("code/data.py:batches", folder)):
        assert data == msgspec.json.decode(msgspec.json.encode(data), type=Data)


@pytest.mark.parametrize(
    ("word", "what", "hint"),
    [
        ("", "'' is no data", ""),
        ("a\0b", r"'a\x00b' is no data", ""),
        ("synthetc-8", "unknown data 'synthetc-8'", "did you mean `synthetic-8`?"),
        ("synthetic-0", "unknown data 'synthetic-0'", "did you mean `synthetic"),
        ("sintetic", "unknown data 'sintetic'", "did you mean `synthetic`?"),
        ("data", "unknown data 'data'", "did you mean `dat.yaml`?"),
        ("dta.yaml", "no file 'dta.yaml'", "did you mean `dat.yaml`?"),
        ("set", "'set' is a folder", "write `train: set` into a YAML file"),
        ("https://x/y", "'https://x/y' is no data", ""),
        ("code/data.py", "unknown data 'code/data.py'", ""),
        ("code/data.py:", "data 'code/data.py:' names no function", ""),
        ("code/data.py:batch", "data 'code/data.py:batch': no 'batch' in data.py", "did you mean"),
        ("code/dat.py:batches", "no file 'code/dat.py'", "did you mean `data.py`?"),
        ("no_such:f", "no module 'no_such'", ""),
        ("a-b:f", "data 'a-b:f' is neither a module nor a file", ""),
        (":f", "data ':f' is neither a module nor a file", ""),
        ("bad.py:f", "bad.py: not Python on line 1", ""),
    ],
)
@pytest.mark.seed("S4.11")
def test_a_word_that_stands_for_nothing_is_refused(folder, word, what, hint):
    """Before anything starts, with the nearest that does."""
    _write(folder / "dat.yaml", "train: more")
    _write(folder / "bad.py", "def f(:")

    error = refused(word, folder)

    assert error.what.endswith(what)
    assert error.hint.startswith(hint)
    assert bool(hint) == bool(error.hint)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "expected keys and values, got nothing"),
        ("train: [", "not readable as YAML"),
        ("names: [a]", "no `train`, the folder of the images"),
        ("train: 5", "expected a folder, got the number 5"),
        ("train: []", "an empty list"),
        ("train: nothing", "no file"),
        ("train: empty", "no image in"),
        ("train: data.yaml", "is no image"),
        ("train: none.txt", "cannot read"),
        ("train: blank.txt", "no image in"),
        ("train: wrong.txt", "wrong.txt:2: no file"),
        ("train: pipe.txt", "is no file"),
        ("train: gone.txt", "is no file"),
        ("path: nowhere\ntrain: more", "no folder"),
        ("train: more\nnc: 0", "expected at least 1, got 0"),
        ("train: more\nnc: many", "expected a whole number, got 'many'"),
        ("train: more\nnc: 3\nnames: [a]", "names of 1 classes, and nc is 3"),
        ("train: more\nnames: cat", "expected the names of the classes, got 'cat'"),
        ("train: more\nnames: {a: 0}", "'a' is no number of a class"),
        ("train: more\nnames: {true: 0}", "True is no number of a class"),
    ],
)
def test_a_data_set_without_sense_is_refused(folder, text, what):
    """With the file and the key."""
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe.txt")  # nobody waits for what may come through it
    (folder / "gone.txt").symlink_to("nowhere")
    _write(folder / "blank.txt", "\n")
    _write(folder / "wrong.txt", "more/a.pgm\nmore/b.pgm\n")

    with pytest.raises(Refused) as caught:
        yaml(folder, text)

    assert caught.value.what.startswith("data.yaml: ")
    assert what in caught.value.what


@given(st.text(max_size=30))
def test_any_word_is_data_or_refused(word):
    with contextlib.suppress(Refused):
        assert dataset.parsed(word, Path("/nonexistent")).word == word


def test_a_pipe_is_no_data_set(folder):
    """Nobody waits for what may come through it."""
    os.mkfifo(folder / "data.yaml")

    assert "'data.yaml' is no file" == refused("data.yaml", folder).what
