"""Which words name a layer table."""

import pytest

from farm.cli.profile import layer_files
from farm.errors import Refused


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

    assert not layer_files.is_callable(str(path))
    assert not layer_files.is_callable(str(tmp_path / "gone.json"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", b"", "a layer CSV"),
        ("a.csv#2", b"", "a layer CSV"),
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

    assert expected == layer_files.kind(str(tmp_path / name))


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path) -> None:
    (tmp_path / "profile_layers.csv").touch()

    with pytest.raises(Refused, match="no file") as caught:
        layer_files.check_there([str(tmp_path / "profile_layer.csv#2")])

    assert "did you mean `profile_layers.csv`?" == caught.value.hint
