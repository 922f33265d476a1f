"""How a command speaks before its words are parsed, and how it writes files."""

import os
import sys
from pathlib import Path

import pytest

from farm.cli.talk import Talk, check_place, check_words, current_folder, write_whole
from farm.errors import Refused


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], Talk()),
        (["status", "--json"], Talk(as_json=True)),
        (["-q", "nope"], Talk(quiet=True)),
        (["--quiet", "--verbose"], Talk(quiet=True, verbose=True)),
        (["--color", "never", "nope"], Talk(color="never")),
        (["--color=always", "nope"], Talk(color="always")),
        (["--color", "pink"], Talk()),
        (["--color"], Talk()),
    ],
)
def test_an_error_is_told_as_the_words_ask_though_they_do_not_parse(words, told):
    assert told == Talk.from_words(words)


def test_a_stream_that_was_closed_swallows_what_is_said(monkeypatch):
    """`farm status >&-`: Python has no stdout then."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    console = Talk().console()

    console.data("x")
    console.say("x")


def test_a_file_is_written_whole_into_a_folder_that_is_made(tmp_path):
    path = tmp_path / "a" / "b" / "page.html"

    write_whole(path, "…")

    assert "…" == path.read_text("utf-8")
    assert [path] == list(path.parent.iterdir())


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    """Also where the text itself cannot be written."""
    path = tmp_path / "page.html"
    write_whole(path, "old")

    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\udcff")

    assert ("old", [path]) == (path.read_text(), list(tmp_path.iterdir()))


@pytest.mark.parametrize("name", ["", ".", "..", "/", "folder", "file/x", "file/x/y"])
def test_a_place_that_cannot_hold_a_file_is_refused_before_anything_is_measured(
    tmp_path, monkeypatch, name
):
    """The same words before the measuring as after it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    before = sorted(os.listdir(tmp_path))

    for ask in (check_place, lambda path: write_whole(path, "x")):
        with pytest.raises(Refused, match="cannot write"):
            ask(Path(name))

    assert before == sorted(os.listdir(tmp_path))


def test_a_good_place_is_left_as_it_was(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")

    check_place(path)

    assert ("old", [path]) == (path.read_text(), list(tmp_path.iterdir()))


# ── names that no document could say ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "environ", "where"),
    [
        (["status", "q\udcff"], {}, "argument 'q\\udcff'"),
        ([], {"FARM_IMAGE": "im\udcff"}, "FARM_IMAGE 'im\\udcff'"),
    ],
)
def test_a_word_that_is_no_utf_8_is_refused(words, environ, where):
    with pytest.raises(Refused) as caught:
        check_words(words, environ)

    assert f"{where} is not UTF-8" == caught.value.what


def test_words_of_any_language_and_variables_of_others_are_no_trouble():
    check_words(["größe", "深さ", "😀", ""], {"FARM_STATE": "é", "LS_COLORS": "\udcff"})


_HALF = "x\udcff"
_PROFILE = ("profile", "callable", "--model", "predict.py:predict", "--inputs", "in.npz")


@pytest.mark.parametrize(
    "words",
    [
        ("profile", "callable", "--model", "a.py:f", "--inputs", _HALF, "--output", "o.json"),
        (*_PROFILE, "--output", _HALF),
        (*_PROFILE, "--output", "o.json", "-t", f"k={_HALF}"),
        ("profile", "layers", "mlp", "--output", _HALF, "--json"),
        ("profile", "layers", "mlp", f"--profile-output={_HALF}"),
        ("profile", "cost", "mlp", "--input", _HALF),
        ("profile", "compare", _HALF, "b.json"),
        ("run", "a.yaml", "-t", f"{_HALF}=1"),
        ("submit", _HALF),
        ("status", _HALF),
        (_HALF,),
        (f"--config={_HALF}", "config"),
    ],
)
def test_every_verb_refuses_such_a_word_before_anything_else(farm, here, words):
    """Documents are UTF-8: it would come out after an hour of measuring, as a bug of ours."""
    said = farm(*words)

    assert (2, "") == (said.code, said.out)
    assert "is not UTF-8" in said.err
    assert [] == list(here.iterdir())


def test_a_folder_of_such_a_name_is_refused(monkeypatch):
    """Relative names start there, and documents hold them in full.

    It is a fact of the process, and not every file system takes such a name.
    """
    monkeypatch.setattr(os, "getcwd", lambda: f"/{_HALF}")

    with pytest.raises(Refused, match=r"current folder .* is not UTF-8"):
        current_folder()
