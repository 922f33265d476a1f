"""Which words name a layer table."""

import os
import threading

import pytest

from farm import interchange
from farm.cli.profile import layer_files
from farm.errors import Bad, Refused
from farm.trace import blocks


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("profile_layers.csv", True),
        ("runs/one.csv#2", True),
        ("f.csv#x", True),
        ("trt.json", True),
        ("resnet18", False),
        ("net.py:build", False),
        ("runs#1/net.py:build", False),
        ("my.csv/net.py:build", False),
        ("my.json#1/net.py:build", False),
    ],
)
def test_a_table_is_known_by_its_ending_and_a_model_is_none(word: str, expected: bool) -> None:
    assert expected == layer_files.is_file(word)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[1]", b'{"a": 1}'])
def test_what_is_no_callable_json_is_none(tmp_path, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)

    (found,) = layer_files.opened([str(path)])

    assert (False, content) == (found.is_callable, found.data)


@pytest.mark.parametrize("mark", [b"", b" \n", b"\xef\xbb\xbf"])
def test_a_callable_json_is_one_whatever_stands_before_it(tmp_path, mark: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(mark + b'{"schema": "farm.callable/v1"}')

    assert layer_files.opened([str(path)])[0].is_callable


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"", "a layer CSV"),
        ("a.csv#2", b"", "a layer CSV"),
        ("63", f"{blocks.HEADER}\n".encode(), "a layer CSV"),
        ("a.json", b'[{"count": 1}]', "a layer profile"),
        ("a.json", b'{"schema": "farm.callable/v2"}', "of schema 'farm.callable/v2'"),
        ("a.json", b'{"schema": 7}', "none"),
        ("a.json", b"{", "none"),
        ("a.json#2", b'{"schema": "farm.callable/v1"}', "none: it has no blocks"),
    ],
)
def test_a_file_that_is_no_callable_json_is_said_to_be_what_it_is(
    tmp_path, name: str, content: bytes, expected: str
) -> None:
    (tmp_path / name.partition("#")[0]).write_bytes(content)

    (found,) = layer_files.opened([str(tmp_path / name)])

    assert expected == layer_files.kind(found)


def test_a_file_is_read_once_however_often_it_is_named(tmp_path) -> None:
    """Two blocks of one pipe can be compared."""
    pipe = tmp_path / "63"
    os.mkfifo(pipe)
    text = "".join(f"{blocks.HEADER}\n{name},100.0,1,1,1,1\n" for name in "ab")
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()

    found = layer_files.opened([f"{pipe}#1", f"{pipe}#2"])

    writer.join(10)
    assert ["a", "b"] == [layer_files.table(each).rows[0].layer for each in found]


def test_an_object_larger_than_any_callable_json_is_not_looked_into(tmp_path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(interchange.LIMIT_BYTES + 1)

    for act in (lambda: layer_files.opened([str(path)]), lambda: interchange.read(path)):
        with pytest.raises(Bad, match="larger than 256 MiB"):
            act()


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path) -> None:
    (tmp_path / "profile_layers.csv").touch()

    with pytest.raises(Refused, match="no file") as caught:
        layer_files.opened([str(tmp_path / "profile_layer.csv#2")])

    assert "did you mean `profile_layers.csv`?" == caught.value.hint


@pytest.mark.parametrize("ending", [".**", ".[", ".?", ".*", ".[!a]"])
def test_a_name_that_reads_like_a_pattern_is_a_name(tmp_path, ending: str) -> None:
    """It finds the file that is so called, and no other."""
    (tmp_path / f"table{ending}").touch()
    (tmp_path / "tabl.b").touch()

    with pytest.raises(Refused, match="no file") as caught:
        layer_files.opened([str(tmp_path / f"tabl{ending}")])

    assert f"did you mean `table{ending}`?" == caught.value.hint


@pytest.mark.parametrize("word", ["x" * 5000 + "/a.csv", "x" * 5000 + ".csv", "a.csv/b.csv"])
def test_a_name_that_no_folder_can_hold_is_no_file(tmp_path, word: str) -> None:
    (tmp_path / "a.csv").touch()

    with pytest.raises(Refused, match="no file"):
        layer_files.opened([f"{tmp_path}/{word}"])
