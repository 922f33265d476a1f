import os
from pathlib import Path

import numpy as np
import pytest

from farm.captures import images
from farm.errors import Refused


def here(*names):
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"P5 1 1 255\n\x07")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(source, **options):
    with pytest.raises(Refused) as caught:
        images.found(Path(source), **options)
    return caught.value


@pytest.mark.seed("S4.32")
def test_a_folder_stands_for_its_images():
    """In the order that one counts; not what lies below, is hidden or has another ending."""
    here("d/img10.ppm", "d/img2.PPM", "d/a.npy", "d/below/x.ppm", "d/.x.ppm", "d/notes.txt")
    Path("d/folder.ppm").mkdir()

    assert ["a.npy", "img2.PPM", "img10.ppm"] == [each.name for each in images.found(Path("d"))]


def test_images_that_nobody_reads_are_left_out_and_told():
    """A folder half of which is WebP is another one than a person thinks; a text is no image."""
    here("d/a.ppm", "d/b.webp", "d/c.BMP", "d/e.webp", "d/notes.txt")
    told, none = [], []

    images.found(Path("d"), notes=told)
    images.found(Path("d/a.ppm"), notes=none)

    assert ["images left out of 'd': 3 of .bmp, .webp, not read here"] == told
    assert [] == none


@pytest.mark.seed("S4.32")
def test_no_image_found_is_refused():
    """Exit 2, whether the folder is empty, holds other files, or there is none."""
    here("a.ppm", "d/notes.txt")
    Path("empty").mkdir()
    os.mkfifo("pipe.ppm")

    assert "no image in 'empty'" == refused("empty").what
    assert "no image in 'd'" == refused("d").what
    assert "an image ends in .ppm, .pgm" in refused("d").why
    assert ("no file 'b.ppm'", "did you mean `a.ppm`?") == (
        refused("b.ppm").what,
        refused("b.ppm").hint,
    )
    assert "'d/notes.txt' is no image" == refused("d/notes.txt").what
    assert "'pipe.ppm' is no file" == refused("pipe.ppm").what
    assert "no file" in refused("a\0.ppm").what
    assert 2 == refused("empty").exit_code


@pytest.mark.seed("S4.32")
def test_jpeg_and_png_are_found_where_pillow_is():
    """Else the first of them is named with what it needs, rather than left out."""
    here("d/a.ppm", "d/b.jpg", "d/c.png")

    assert 3 == len(images.found(Path("d"), pillow=lambda: True))
    assert (
        "'d/b.jpg' needs Pillow, which is not installed" == refused("d", pillow=lambda: False).what
    )
    assert "pip install pillow" == refused("d/c.png", pillow=lambda: False).hint


def test_a_file_is_read_by_its_ending():
    """Several images where it holds several."""
    here("a.pgm")
    np.save("b.npy", np.zeros((2, 4, 4, 3), dtype=np.uint8))

    assert [[[[7, 7, 7]]]] == [each.tolist() for each in images.read(Path("a.pgm"))]
    assert [(4, 4, 3)] * 2 == [each.shape for each in images.read(Path("b.npy"))]
    with pytest.raises(Refused, match=r"no file 'c\.npy'"):
        images.read(Path("c.npy"))


@pytest.mark.seed("S4.32")
def test_the_sample_is_made_and_always_the_same():
    """No file is shipped for it."""
    one, two = images.sample(), images.sample()

    assert ((480, 640, 3), "uint8") == (one.shape, one.dtype.name)
    assert one.tobytes() == two.tobytes()
    assert one.std() > 20
