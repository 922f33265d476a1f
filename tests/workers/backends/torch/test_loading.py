import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from farm.captures import dataset
from farm.errors import Refused
from workers.backends import LoadFailed
from workers.backends.torch import loading


def synthetic(count, *, batch=2, imgsz=32, workers=0, **options):
    word = "synthetic" if count is None else f"synthetic-{count}"
    data = dataset.parsed(word, Path())
    return loading.batches(data, batch=batch, imgsz=imgsz, workers=workers, **options)


def plain(batches):
    """The numbers of some batches, to be compared."""
    return [(pictures.tolist(), [each.tolist() for each in boxes]) for pictures, boxes in batches]


@pytest.fixture
def folder(tmp_path):
    """Three images of 8x4 with boxes beside the first two."""
    for index in range(3):
        np.save(tmp_path / f"img{index}.npy", np.full((4, 8, 3), 50 * index, dtype=np.uint8))
    (tmp_path / "img0.txt").write_text("1 0.5 0.5 1 1\n0 0.25 0.25 0.5 0.5\n")
    (tmp_path / "img1.txt").write_text("")
    (tmp_path / "data.yaml").write_text("train: .\nnames: [cat, dog]\n")
    return tmp_path


def pictured(folder, **options):
    data = dataset.parsed("data.yaml", folder)
    return loading.batches(data, **{"batch": 3, "imgsz": 8, "workers": 0, **options})


# ── synthetic ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.16")
def test_a_batch_is_images_of_the_size_and_their_boxes():
    """Bytes on the host, colour by colour; class, centre and size for each box."""
    ((pictures, boxes), *_) = synthetic(4, batch=4, imgsz=64)

    assert (torch.uint8, (4, 3, 64, 64)) == (pictures.dtype, tuple(pictures.shape))
    assert pictures.is_contiguous()
    assert 4 == len(boxes)
    assert {torch.float32} == {each.dtype for each in boxes}
    assert all(each.shape[1] == 5 and len(each) for each in boxes)


@pytest.mark.seed("S4.11")
def test_one_pass_leaves_out_what_fills_no_batch():
    """And its length is known before; an endless one has none."""
    data = dataset.parsed("synthetic-7", Path())
    endless = dataset.parsed("synthetic", Path())

    assert 3 == len(list(synthetic(7))) == loading.length(data, 2)
    assert loading.length(endless, 2) is None
    with synthetic(None) as batches:
        assert 5 == len([each for each, _ in zip(batches, range(5), strict=False)])


@pytest.mark.seed("S4.17")
def test_batches_are_the_same_whatever_the_number_of_loaders():
    """None, one or several; another seed gives others."""
    alone, one, three = (plain(synthetic(8, workers=workers)) for workers in (0, 1, 3))

    assert alone == one == three
    assert alone != plain(synthetic(8, seed=1))


@pytest.mark.seed("S4.17")
def test_loaders_are_processes_that_end_with_the_pass():
    """At its end, when it is closed, and when it is only dropped."""
    read = synthetic(4, workers=2)
    closed, dropped = (synthetic(None, workers=2) for _ in range(2))
    next(closed)
    next(dropped)
    assert 6 == len(multiprocessing.active_children())

    assert 2 == len(list(read))
    closed.close()
    assert 2 == len(multiprocessing.active_children())
    assert [] == list(closed)
    del dropped
    assert [] == multiprocessing.active_children()


def test_loaders_end_with_the_process_that_started_them():
    """Also where it leaves in the middle of a pass."""
    code = (
        "from pathlib import Path\n"
        "from farm.captures import dataset\n"
        "from workers.backends.torch import loading\n"
        "data = dataset.parsed('synthetic', Path())\n"
        "batches = loading.batches(data, batch=1, imgsz=32, workers=2)\n"
        "next(batches)\n"
        "import multiprocessing\n"
        "print(*(each.pid for each in multiprocessing.active_children()))\n"
        "raise ValueError('the model failed')\n"
    )
    root = str(Path(loading.__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": root}

    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )

    pids = done.stdout.split()
    assert (1, 2) == (done.returncode, len(pids))
    assert done.stderr.endswith("ValueError: the model failed\n")
    assert not any(Path("/proc", pid).exists() for pid in pids)


@pytest.mark.seed("S4.17")
def test_what_torch_says_of_too_many_loaders_is_noted():
    """It is no warning of ours, and stops nothing."""
    many = (os.process_cpu_count() if sys.version_info >= (3, 13) else os.cpu_count()) + 1

    with synthetic(1, batch=1, workers=many) as batches:
        assert 1 == len(list(batches))

    (note,) = batches.notes
    assert f"{many} loader processes are more than" in note
    assert () == synthetic(1).notes


# ── images ───────────────────────────────────────────────────────────────────────────────────────


def test_an_image_lies_in_a_square_with_its_boxes(folder):
    """Between two bars; a box moves and shrinks with it, and a missing file is no box."""
    ((pictures, boxes),) = pictured(folder)

    assert (3, 3, 8, 8) == tuple(pictures.shape)
    assert [114, 114, 50, 50, 50, 50, 114, 114] == pictures[1, 0, :, 3].tolist()
    assert [[1, 0.5, 0.5, 1, 0.5], [0, 0.25, 0.375, 0.5, 0.25]] == boxes[0].tolist()
    assert [(0, 5), (0, 5)] == [tuple(each.shape) for each in boxes[1:]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_bad_file_is_refused_without_a_traceback(folder, workers):
    """From a loader as from here, by file and line; and the pass is over."""
    (folder / "img1.txt").write_text("0 0.5 0.5 1 1\n7 0.5 0.5 1 1\n")
    batches = pictured(folder, workers=workers)

    with pytest.raises(Refused) as caught:
        next(batches)

    assert f"{folder}/img1.txt:2: no such class" == caught.value.what
    assert "class 7 of 2; they count from 0" == caught.value.why
    assert [] == list(batches)
    assert [] == multiprocessing.active_children()


def test_a_file_with_several_images_is_no_image_of_a_data_set(folder):
    """Its boxes would be those of which?"""
    np.save(folder / "img0.npy", np.zeros((2, 4, 8, 3), dtype=np.uint8))

    with pytest.raises(Refused, match=r"img0\.npy' holds 2 images"):
        next(pictured(folder))


# ── a function ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The batches of a function of a person, written into a file."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    names = iter(f"data_of_test_loading_{index}" for index in range(9))

    def of(code, *, function="f"):
        name = next(names)
        (tmp_path / f"{name}.py").write_text(code)
        data = dataset.parsed(f"{name}.py:{function}", tmp_path)
        assert loading.length(data, 2) is None
        return loading.batches(data, batch=2, imgsz=48, workers=8)

    return of


@pytest.mark.seed("S4.11")
def test_a_function_yields_the_batches_itself(given):
    """It is told batch and imgsz where it asks for them."""
    one = given(
        "import torch\ndef f(imgsz, batch=1, other=3):\n"
        "    for n in range(3):\n        yield {'x': torch.full((batch, imgsz), n)}, other\n"
    )
    two = given("import numpy\ndef f(**all):\n    return [numpy.array([*all.values()])]\n")
    three = given("import torch\ndef f():\n    return [torch.ones(1)]\n")
    old = given(
        "import torch\nclass C:\n    def __getitem__(self, at):\n"
        "        return [torch.ones(1), torch.ones(2)][at]\ndef f():\n    return C()\n"
    )

    assert [(2, 48)] * 3 == [tuple(each["x"].shape) for each, _ in one]
    assert [[2, 48]] == [each.tolist() for each in two]
    assert [[1.0]] == [each.tolist() for each in three]
    assert [[1.0], [1.0, 1.0]] == [each.tolist() for each in old]


def test_a_function_that_yields_nothing_is_a_short_pass(given):
    """Whoever fills a window says what is missing."""
    assert [] == list(given("def f():\n    return []\n"))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("f = 5", "cannot be called"),
        ("def f(): return 5", "returned int, which yields no batches"),
        ("def f(): return ['text']", "yielded str, which holds no array"),
        ("def f(): yield {}", "yielded dict, which holds no array"),
    ],
)
def test_a_function_without_batches_fails_to_load(given, code, message):
    with pytest.raises(LoadFailed, match=message) as caught:
        given(code)

    assert "bad_data" == caught.value.kind


def test_what_a_function_raises_passes_through(given):
    """At the start or in the middle: it is the person's own error."""
    with pytest.raises(ZeroDivisionError):
        given("def f():\n    return 1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        list(given("import torch\ndef f():\n    yield torch.ones(1)\n    1 / 0\n"))


def test_a_pass_over_a_functions_data_does_not_import_it_anew(tmp_path, monkeypatch):
    """Its file may read all of the data when it is imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    (tmp_path / "counts_of_test_loading.py").write_text(
        "import torch\nmade = []\ndef batches():\n    made.append(1)\n"
        "    yield torch.ones(len(made))\n"
    )
    data = dataset.parsed("counts_of_test_loading.py:batches", tmp_path)

    first = loading.batches(data, batch=1, imgsz=8, workers=0)
    where = [*sys.path]

    others = [loading.batches(data, batch=1, imgsz=8, workers=0) for _ in range(2)]

    assert [1, 2, 3] == [len(next(each)) for each in (first, *others)]
    assert where == sys.path
