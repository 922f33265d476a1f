"""A file that a person named is written whole or stays as it was, and nothing of theirs is lost."""

import os

import pytest

from farm.errors import Refused
from farm.writing import write


def test_a_file_is_whole_in_a_folder_that_is_made(tmp_path):
    path = tmp_path / "a/b.csv"

    write(path, [b"one ", b"two"])

    assert (b"one two", [path]) == (path.read_bytes(), list(path.parent.iterdir()))


def test_pieces_that_break_leave_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def pieces():
        yield b"half"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(path, pieces())

    assert ("old", [path]) == (path.read_text(), list(tmp_path.iterdir()))


def test_a_trial_writes_nothing_and_refuses_what_could_not_be_written(tmp_path):
    (tmp_path / "file").write_text("old")

    write(tmp_path / "file", (), trial=True)
    write(tmp_path / "new", (), trial=True)

    assert ["file"] == os.listdir(tmp_path)
    assert "old" == (tmp_path / "file").read_text()
    for path in (tmp_path, tmp_path / "file/x", tmp_path / ("x" * 300)):
        with pytest.raises(Refused, match="cannot write"):
            write(path, (), trial=True)


def test_a_folder_is_made_only_where_it_may_be(tmp_path):
    """A slip in a path is found before anything is measured for it."""
    with pytest.raises(Refused, match="cannot write"):
        write(tmp_path / "slip/a.json", (), trial=True, makes_folder=False)

    assert [] == os.listdir(tmp_path)


def test_a_link_is_followed_also_one_to_what_is_not_there_yet(tmp_path):
    for name in ("there", "new"):
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    (tmp_path / "there").write_text("old")

    for name in ("there", "new"):
        write(tmp_path / f"link-{name}", [b"text"])

        assert (tmp_path / f"link-{name}").is_symlink()
        assert "text" == (tmp_path / name).read_text()


def test_a_pipe_is_written_into_and_stays_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    write(tmp_path / "pipe", (), trial=True)
    write(tmp_path / "pipe", [b"text"])

    assert (b"text", True) == (os.read(reader, 100), (tmp_path / "pipe").is_fifo())
    os.close(reader)
