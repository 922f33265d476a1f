import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.captures import labels
from farm.errors import Refused


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_boxes_lie_in_labels_as_images_lie_in_images(tmp_path):
    """However deep, and by the last folder of that name."""
    there = put(tmp_path / "images" / "set" / "labels" / "train" / "a.txt")
    put(tmp_path / "images" / "set" / "images" / "train" / "a.txt")

    assert there == labels.beside(tmp_path / "images" / "set" / "images" / "train" / "a.jpg")


def test_boxes_lie_beside_the_image_else(tmp_path):
    """And an image without such a file has none."""
    there = put(tmp_path / "images" / "a.txt")

    assert there == labels.beside(tmp_path / "images" / "a.png")
    assert labels.beside(tmp_path / "images" / "b.png") is None


def test_a_line_is_a_box(tmp_path):
    """Empty lines are none; a class may be written as a float."""
    path = put(tmp_path / "a.txt", "0 0.5 0.5 1 1\n\n 3.0 0.1 0.2 0.3 0.4 \n")

    assert [(0, 0.5, 0.5, 1, 1), (3, 0.1, 0.2, 0.3, 0.4)] == labels.read(path)
    assert [] == labels.read(put(tmp_path / "b.txt"))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("0 0.5 0.5 1", "no box"),
        ("0 0.5 0.5 1 1 1", "no box"),
        ("cat 0.5 0.5 1 1", "no box"),
        ("0,0.5,0.5,1,1", "no box"),
        ("-1 0.5 0.5 1 1", "no such class"),
        ("1.5 0.5 0.5 1 1", "no such class"),
        ("4 0.5 0.5 1 1", "no such class"),
        ("nan 0.5 0.5 1 1", "no such class"),
        ("0 320 240 50 50", "no box in the image"),
        ("0 0.5 0.5 0 1", "no box in the image"),
        ("0 0.5 nan 1 1", "no box in the image"),
        ("0 0.5 0.5 1 -1", "no box in the image"),
    ],
)
def test_a_bad_line_is_refused_by_file_and_number(tmp_path, line, what):
    """With what a line should be."""
    path = put(tmp_path / "a.txt", f"0 0.5 0.5 1 1\n{line}\n")

    with pytest.raises(Refused) as caught:
        labels.read(path, classes=4)

    assert f"{path}:2: {what}" == caught.value.what
    assert caught.value.why


@pytest.mark.parametrize(("data", "what"), [(b"\xff", "not UTF-8"), (b" " * 5_000_000, "larger")])
def test_what_is_no_text_or_too_large_is_refused(tmp_path, data, what):
    path = tmp_path / "a.txt"
    path.write_bytes(data)

    with pytest.raises(Refused, match=what):
        labels.read(path)
    with pytest.raises(Refused, match="cannot read"):
        labels.read(tmp_path)


@given(st.text(max_size=40))
def test_any_text_is_boxes_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    with contextlib.suppress(Refused):
        assert all(0 <= each <= 1 for box in labels.read(path) for each in box[1:])
