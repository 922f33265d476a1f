import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from farm.captures import images
from farm.schema import Capture, Data
from workers.backends import LoadFailed
from workers.backends.torch import loading, stages
from workers.backends.torch.pipeline import of_inference, of_training, unfilled
from workers.fakes import FakeClock

SYNTHETIC = Data(kind="synthetic", word="synthetic")
OWN = Data(kind="callable", word="own:batches")
THRESHOLDS = ("conf", "iou", "max_det")


class Plain(nn.Module):
    """Notes what it is called with."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.heard = []

    def forward(self, x, mask=None):
        self.heard.append((x, mask))
        return x * self.weight


class Own(Plain):
    """A model of a person's, with what a detection-style pipeline may bring."""

    def preprocess(self, images, size):
        self.images, self.size = images, size
        return torch.stack([each.float().mean() for each in images])

    def postprocess(self, raw, conf, iou, max_det):
        self.told = raw, conf, iou, max_det
        return [raw]

    def loss(self, raw, targets):
        self.target = targets
        return raw.sum()


class Yields:
    """A loader whose passes are these batches. says: what it has to say of the data; taken: what
    a function of a person takes."""

    def __init__(self, *batches, says=(), taken=()):
        self.made, self.says, self.asked, self.taken = batches, says, [], taken

    def length(self, data, batch):
        return None if data.count is None else data.count // batch

    def takes(self, data):
        return ("workers", "imgsz") if data.kind != "callable" else self.taken

    def batches(self, data, **words):
        self.asked.append(words)
        return Pass(self.made, self.says)


class Pass:
    def __init__(self, made, notes):
        self.made, self.notes = made, notes

    def __iter__(self):
        return iter(self.made)


def training(module, given, data=OWN, *, inputs=None, batch=2, again=False, steps=1, **more):
    return of_training(
        module,
        inputs or {},
        Capture(data=data, steps=steps, **more),
        loading=given,
        batch=batch,
        device="cpu",
        clock=FakeClock(),
        again=again,
        stand_in=True,
    )


def inferring(module, inputs=None, *, batch=1, **capture):
    return of_inference(module, inputs or {}, Capture(**capture), batch=batch, device="cpu")


def names(found):
    return [name for name, _ in found.stages]


def one(found):
    """Run one iteration."""
    return stages.chained(found.stages)()


@pytest.fixture
def pictures(tmp_path):
    """Three images of one colour each, by their files."""
    for value in range(3):
        np.save(tmp_path / f"{value}.npy", np.full((4, 6, 3), 50 * value, dtype=np.uint8))
    return tuple(str(tmp_path / f"{value}.npy") for value in range(3))


# ── an inference ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.33", "S4.52")
def test_a_model_that_brings_its_pipeline_is_run_as_that():
    """Its own functions, the thresholds as they were asked for, and nothing left unused."""
    module = Own()

    found = inferring(module, imgsz=64, conf=0.1, iou=0.2, max_det=7)
    output = one(found)

    assert (["preprocess", "forward", "postprocess"], "detection", ()) == (
        names(found),
        found.kind,
        found.unused,
    )
    raw, *thresholds = module.told
    assert ([0.1, 0.2, 7], 64) == (thresholds, module.size)
    assert output[0] is raw


def test_without_a_picture_the_one_that_comes_along_is_taken():
    module = Own()

    one(inferring(module, imgsz=64))

    assert np.array_equal(images.sample(), module.images[0].numpy())


def test_images_come_in_turns_whatever_the_batch(pictures):
    module = Own()
    run = stages.chained(inferring(module, imgsz=32, images=pictures, batch=2).stages)

    seen = []
    for _ in range(3):
        run()
        seen.append([int(each[0, 0, 0]) for each in module.images])

    assert [[0, 50], [100, 0], [50, 100]] == seen


@pytest.mark.seed("S4.52")
def test_what_has_no_use_for_an_option_says_so():
    """A plain forward pass has none for thresholds, and one without images none for their size."""
    x = torch.ones(1)
    sized, other = inferring(Plain(), {"x": x}, imgsz=64), inferring(Plain(), {"x": x})

    assert (THRESHOLDS, (*THRESHOLDS, "imgsz")) == (sized.unused, other.unused)
    assert ("plain", "plain") == (sized.kind, other.kind)


@pytest.mark.parametrize("lacks", ["preprocess", "postprocess"])
def test_half_a_pipeline_is_none(lacks):
    """A model without either is a forward pass on its inputs."""
    module = Own()
    setattr(module, lacks, None)

    found = inferring(module, {"x": torch.ones(1)}, imgsz=64)

    assert (["forward"], "plain", THRESHOLDS) == (names(found), found.kind, found.unused)


def test_drawn_inputs_go_in_by_name():
    module, x, mask = Plain(), torch.ones(2), torch.zeros(2)

    output = one(inferring(module, {"mask": mask, "x": x}))

    assert (True, True) == (module.heard[0][0] is x, module.heard[0][1] is mask)
    assert torch.equal(x, output)


def test_a_plain_model_gets_images_as_a_square_of_floats(pictures):
    module = Plain()

    found = inferring(module, images=pictures, imgsz=8, batch=2)
    one(found)

    ((x, _),) = module.heard
    assert (["preprocess", "forward"], THRESHOLDS) == (names(found), found.unused)
    assert ((2, 3, 8, 8), torch.float32) == (tuple(x.shape), x.dtype)
    assert [0.0, pytest.approx(50 / 255)] == [each.max().item() for each in x]


@pytest.mark.seed("S4.37")
def test_half_computes_the_forward_pass_of_either_kind_in_it():
    seen = []

    class Product(Own):
        def forward(self, x):
            y = torch.ones(2, 2) @ torch.ones(2, 2)
            seen.append(y.dtype)
            return x

    one(inferring(Product(), imgsz=64, autocast="bfloat16"))
    one(inferring(Product(), {"x": torch.ones(1)}, autocast="bfloat16"))
    one(inferring(Product(), {"x": torch.ones(1)}))

    assert [torch.bfloat16, torch.bfloat16, torch.float32] == seen


@pytest.mark.parametrize(
    ("count", "said"), [(255, ()), (256, ()), (257, ("only the first 256 images are taken",))]
)
def test_no_more_images_are_held_than_there_is_room_for(count, said, tmp_path):
    """In files, or in one array of them; a person is told."""
    made = np.arange(count, dtype=np.uint16).astype(np.uint8)[:, None, None, None]
    every = np.broadcast_to(made, (count, 1, 1, 3))
    np.save(tmp_path / "all.npy", every)
    np.save(tmp_path / "one.npy", every[0])
    module = Own()

    array = inferring(module, imgsz=32, images=(str(tmp_path / "all.npy"),), batch=count)
    files = inferring(Own(), imgsz=32, images=(str(tmp_path / "one.npy"),) * count)
    one(array)

    assert [said, said] == [tuple(n.partition(",")[0] for n in p.notes) for p in (array, files)]
    turns = [int(each[0, 0, 0]) for each in module.images]
    assert turns == [each % 256 for each in range(count)]


def test_more_files_than_are_taken_are_not_even_read(pictures):
    """The last one is not there."""
    inferring(Own(), imgsz=32, images=(*pictures * 90, "/no/such.npy"))


# ── a training ───────────────────────────────────────────────────────────────────────────────────


def test_a_training_step_waits_for_data_and_moves_them_first():
    found = training(Plain(), Yields((torch.ones(2), torch.ones(2))), imgsz=32)

    assert ["dataload", "to_device", "forward", "backward", "optimizer"] == names(found)
    one(found)
    assert found.feed is found.stages[0][1]
    assert 1 == len(found.feed.waits_ns)


@pytest.mark.parametrize(
    ("module", "data", "imgsz", "unused", "kind"),
    [
        (Own, SYNTHETIC, 32, (), "detection"),
        (Plain, SYNTHETIC, 32, (), "plain"),
        (Plain, OWN, 32, ("workers", "imgsz"), "plain"),
        (Plain, SYNTHETIC, 0, ("workers", "imgsz"), "plain"),
        (Own, OWN, 0, ("workers", "imgsz"), "detection"),
    ],
)
def test_options_that_a_training_has_no_use_for_are_told(module, data, imgsz, unused, kind):
    """A function runs in this process, and what takes no images has no size of them."""
    found = training(module(), Yields(), data, inputs={"x": torch.ones(2)}, imgsz=imgsz)

    assert (unused, kind) == (found.unused, found.kind)


def test_a_function_that_takes_the_size_of_images_has_a_use_for_it():
    found = training(Plain(), Yields(taken=("imgsz",)), OWN, imgsz=32)

    assert ("workers",) == found.unused


@pytest.mark.parametrize(
    "made", [torch.ones(3, 2), (torch.ones(3, 2), torch.ones(3)), {"x": torch.ones(3, 2)}]
)
def test_a_batch_of_another_size_than_was_asked_for_is_no_data(made):
    """Each figure per item counts on it. A number beside the arrays, such as a scale, has none."""
    right = training(Plain(), Yields((torch.ones(2, 2), torch.tensor(0.5))), OWN, batch=2)
    wrong = training(Plain(), Yields(made), OWN, batch=2)

    assert right.feed(None) is not None
    with pytest.raises(LoadFailed, match="yields a batch of 3, and --batch is 2") as caught:
        wrong.feed(None)
    assert ("bad_data", "--batch 3") == (caught.value.kind, caught.value.hint)


def test_a_target_may_have_another_length_than_the_batch():
    """As the boxes of all of its images in one table have."""
    boxes = torch.ones(7, 6)
    for made in ((torch.ones(2, 3), boxes), {"x": torch.ones(2, 3), "target": boxes}):
        assert training(Plain(), Yields(made), OWN, batch=2).feed(None) is made


@pytest.mark.parametrize("kind", [list, tuple])
def test_images_of_several_sizes_are_counted_one_by_one(kind):
    """As detectors take them: the leading axis of each is its colours."""
    pictures = kind(torch.rand(3, 8 + at, 8) for at in range(4))
    made = (pictures, [{"labels": torch.ones(1)}] * 4)

    assert training(Plain(), Yields(made), OWN, batch=4).feed(None) is made
    with pytest.raises(LoadFailed, match="yields a batch of 4, and --batch is 3"):
        training(Plain(), Yields(made), OWN, batch=3).feed(None)


def test_a_smaller_batch_among_others_is_no_end_of_the_data():
    """A longer data set would not help then."""
    found = training(Plain(), Yields(*(torch.ones(each) for each in (2, 1, 2))), OWN, batch=2)
    found.feed(None)

    with pytest.raises(LoadFailed, match="yields batches of 1 among those of 2") as caught:
        found.feed(None)
    assert "bad_data" == caught.value.kind


def test_a_loss_that_cannot_be_called_makes_no_detector():
    module = Plain()
    module.loss = None

    assert "plain" == training(module, Yields(torch.ones(2)), OWN).kind


def test_what_is_left_at_the_end_of_a_pass_is_no_batch():
    """Loaders yield it smaller than the others: no figure may count it as a whole one."""
    found = training(Plain(), Yields(torch.ones(2), torch.ones(2), torch.ones(1)), OWN, batch=2)
    found.feed(None), found.feed(None)

    with pytest.raises(LoadFailed, match="one pass over the data is 2 iterations") as caught:
        found.feed(None)
    assert "window_not_filled" == caught.value.kind


@pytest.mark.parametrize("sizes", [(1,), (2, 3)])
def test_a_batch_that_is_too_small_at_once_or_too_large_is_no_such_rest(sizes):
    found = training(Plain(), Yields(*(torch.ones(each) for each in sizes)), OWN, batch=2)

    with pytest.raises(LoadFailed, match=f"yields a batch of {sizes[-1]}, and --batch is 2"):
        [found.feed(None) for _ in sizes]


@pytest.mark.seed("S4.14", "S4.16", "S4.17")
def test_the_loader_is_told_batch_size_and_processes():
    given = Yields((torch.ones(2), None))

    one(training(Plain(), given, SYNTHETIC, imgsz=96, workers=3, batch=5))

    assert [{"batch": 5, "imgsz": 96, "workers": 3}] == given.asked


def test_what_a_loader_says_of_itself_is_a_note_once(tmp_path):
    """It says so when the first pass begins, long after the pipeline was made."""
    pair = (torch.ones(2), torch.ones(2))
    found = training(Plain(), Yields(pair, says=("too many workers",)), imgsz=32, again=True)
    assert [] == list(found.notes)

    for _ in range(3):
        one(found)

    assert ["too many workers"] == list(found.notes)


def test_boxes_of_images_reach_the_loss_of_the_model():
    module, boxes = Own(), [torch.ones(1, 5), torch.ones(0, 5)]
    given = Yields((torch.zeros(2, 3, 4, 4, dtype=torch.uint8), boxes))

    one(training(module, given, SYNTHETIC, imgsz=32))

    assert [(1, 5), (0, 5)] == [tuple(each.shape) for each in module.target]
    assert torch.float32 == module.heard[0][0].dtype


@pytest.mark.parametrize("name", ["x", "another"])
def test_a_model_without_images_is_trained_on_what_was_drawn(name):
    """By the name that it knows, or else by its order; endless, or as many as there are items."""
    module, x = Plain(), torch.ones(4)
    counted = Data(kind="synthetic", word="synthetic-7", count=7)

    for data in (SYNTHETIC, counted):
        one(training(module, loading, data, inputs={name: x}, batch=4))

    assert [True, True] == [torch.equal(x, each) for each, _ in module.heard]


def test_images_for_a_model_that_takes_none_are_no_data():
    data = Data(kind="yaml", word="data.yaml", count=9, files=("a.npy",) * 9)

    with pytest.raises(LoadFailed, match="the data are images") as caught:
        training(Plain(), loading, data, inputs={"x": torch.ones(2)}, batch=2)

    assert "bad_data" == caught.value.kind


# ── the window ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.25", "S4.26")
@pytest.mark.parametrize("imgsz", [0, 32])
def test_data_known_to_be_too_short_are_told_before_anything_runs(imgsz):
    given = Yields()
    data = Data(kind="synthetic", word="synthetic-8", count=8)
    words = {"batch": 4, "warmup": 5, "steps": 20, "imgsz": imgsz}

    with pytest.raises(LoadFailed) as caught:
        training(Plain(), given, data, inputs={"x": torch.ones(4)}, **words)

    assert ("window_not_filled", []) == (caught.value.kind, given.asked)
    assert (
        "one pass over the data is 2 iterations at batch 4, and the window needs 25: "
        "5 before it and 20 in it" == caught.value.message
    )
    assert (
        "a data set of at least 100 items; or --warmup 0 --steps 2 or fewer; "
        "or --batch 1 with --warmup 1 --steps 7 or fewer" == caught.value.hint
    )


@pytest.mark.seed("S4.26")
def test_a_function_that_ends_early_is_told_when_it_does():
    """Nobody knew; its batches are counted, and make three ways out as well."""
    four = (torch.ones(4), torch.zeros(4))
    found = training(Plain(), Yields(*[four] * 30), batch=4, imgsz=32, warmup=5, steps=50)
    run = stages.chained(found.stages)
    for _ in range(30):
        run()

    with pytest.raises(LoadFailed, match="is 30 iterations at batch 4") as caught:
        run()

    assert "window_not_filled" == caught.value.kind
    assert (
        "a data set of at least 220 items; or --warmup 5 --steps 25 or fewer; "
        "or --batch 2 or less" == caught.value.hint
    )


@given(
    items=st.integers(0, 3000),
    batch=st.integers(1, 64),
    warmup=st.integers(0, 30),
    steps=st.integers(1, 200),
    known=st.booleans(),
)
def test_every_way_out_fills_the_window(items, batch, warmup, steps, known):
    """Whatever the numbers are: there are three, unless there is nothing or the batch is 1."""
    count = items // batch
    if count >= warmup + steps:
        return
    data = Data(kind="synthetic", word="d", count=items) if known else OWN
    there = items if known else count * batch
    found = unfilled(count, Capture(data=data, warmup=warmup, steps=steps), batch=batch)

    ways = found.hint.split("; or ")
    assert bool(there) + bool(count) + 1 - (batch == 1 and there > 0) == len(ways)
    for way in ways:
        had, size, before, in_it = there, batch, warmup, steps
        if more := re.search(r"at least (\d+) items", way):
            had = int(more[1])
        if other := re.search(r"--batch (\d+)", way):
            size = int(other[1])
        if fewer := re.search(r"--warmup (\d+) --steps (\d+)", way):
            before, in_it = int(fewer[1]), int(fewer[2])
        assert (True, True, True) == (0 < size <= batch, 0 <= before <= warmup, 0 < in_it)
        assert had // size >= before + in_it


@pytest.mark.parametrize("imgsz", [0, 32])
def test_a_second_look_may_begin_the_data_anew(imgsz):
    """The instrumented child runs longer than a window."""
    data = Data(kind="synthetic", word="synthetic-4", count=4)
    given = Yields(*[(torch.ones(2), None)] * 2)
    found = training(
        Plain(), given, data, inputs={"x": torch.ones(2)}, imgsz=imgsz, again=True, steps=20
    )

    for _ in range(5):
        one(found)

    assert 5 == len(found.feed.waits_ns)
