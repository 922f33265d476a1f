import copy

import pytest
import torch

from farm.captures import images, scenes
from workers.models import detector


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads that wait for each other on busy cores take ten times as long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model():
    """Nobody trains it."""
    return detector.build()


@pytest.fixture(scope="module")
def raw(model):
    """What it answers to the sample at 640 pixels."""
    with torch.inference_mode():
        return model(model.preprocess([torch.from_numpy(images.sample())], 640))


def found(model, raw, **thresholds):
    return [len(each) for each in model.postprocess(raw, **thresholds)]


@pytest.mark.parametrize(("height", "width"), [(32, 32), (64, 96), (160, 160)])
def test_any_multiple_of_32_gives_the_places_of_three_maps(model, height, width):
    """A row of four distances and eighty logits for each."""
    with torch.inference_mode():
        raw = model(torch.rand(2, 3, height, width))

    assert (2, 21 * height * width // 1024, 84) == tuple(raw.shape)
    assert raw.isfinite().all()


def test_another_size_is_refused(model):
    """A row that the maps cannot share would quietly be lost."""
    with pytest.raises(ValueError, match="30x64: both sides must be multiples of 32"):
        model(torch.zeros(1, 3, 30, 64))


def test_it_is_small(flops):
    """At 640 pixels far below a second on one core; the note in models.yaml says the same."""
    model = detector.build()

    assert 1_040_620 == sum(each.numel() for each in model.parameters())
    assert 4_192_870_400 == flops(model, 1, 3, 640, 640)


def test_a_size_is_a_row_of_the_table():
    """A larger one would be a line more."""
    assert ["t"] == list(detector.SIZES)
    with pytest.raises(KeyError):
        detector.build(size="xxl")


# ── the pipeline ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.42", "S4.52")
def test_a_higher_score_leaves_less_to_decode(model, raw):
    """Some hundreds at 0.25, as a trained one; fewer at 0.5; none at 0.999."""
    most = {"iou": 1.0, "max_det": 8400}

    quarter, half, none = (found(model, raw, conf=conf, **most)[0] for conf in (0.25, 0.5, 0.999))

    assert 200 < quarter < 2000
    assert 20 < half < quarter
    assert 0 == none


@pytest.mark.seed("S4.43", "S4.52")
def test_a_lower_overlap_leaves_fewer_boxes(model, raw):
    """Boxes of a class that overlap more than that are one."""
    tight, loose = (found(model, raw, iou=iou, max_det=8400)[0] for iou in (0.1, 0.9))

    assert 0 < tight < loose


@pytest.mark.seed("S4.44", "S4.52")
def test_at_most_so_many_are_found(model, raw):
    """And they are the best ones."""
    (few,), (many,) = (model.postprocess(raw, max_det=most) for most in (5, 300))

    assert (5, 300) == (len(few), len(many))
    assert torch.equal(many[:5], few)


def test_scores_lie_alike_over_other_images(model):
    """The work of decoding is no accident of one image."""
    drawn = [torch.from_numpy(scenes.scene(n, height=320, width=320).image) for n in range(3)]

    with torch.inference_mode():
        raw = model(model.preprocess(drawn, 320))

    assert all(50 < each < 500 for each in found(model, raw, iou=1.0, max_det=8400))
    assert [0, 0, 0] == found(model, raw, conf=0.999)


def test_what_is_found_lies_in_rows_of_six(model, raw):
    """Box, score and class, best first, and the same each time."""
    (boxes,) = model.postprocess(raw)

    assert (torch.float32, 6) == (boxes.dtype, boxes.shape[1])
    assert (boxes[:, 0] < boxes[:, 2]).all()
    assert (boxes[:, 1] < boxes[:, 3]).all()
    assert torch.equal(boxes[:, 4].sort(descending=True).values, boxes[:, 4])
    assert (boxes[:, 4] > 0.25).all()
    assert torch.equal(boxes[:, 5], boxes[:, 5].round())
    assert torch.equal(boxes, model.postprocess(raw)[0])


def test_an_image_that_is_no_square_is_decoded_by_its_shape(model):
    """The number of places alone would mean another."""
    with torch.inference_mode():
        raw = model(torch.rand(1, 3, 64, 160))

    assert 6 == model.postprocess(raw, shape=(64, 160))[0].shape[1]
    with pytest.raises(ValueError, match="210 places are not those of"):
        model.postprocess(raw)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_runs_in_half_precision(model, dtype):
    """Under autocast as in its own type; boxes and loss are float32."""
    cast = copy.deepcopy(model).to(dtype)
    pictures = [torch.from_numpy(images.sample())]

    with torch.inference_mode():
        own = cast(cast.preprocess(pictures, 64))
        with torch.autocast("cpu", dtype=dtype):
            auto = model(model.preprocess(pictures, 64))
            loss = model.loss(auto, [torch.zeros(0, 5)])

    assert [dtype, dtype, torch.float32] == [own.dtype, auto.dtype, loss.dtype]
    assert {torch.float32} == {model.postprocess(each, conf=0.01)[0].dtype for each in (own, auto)}
    assert own.isfinite().all()
    assert auto.isfinite().all()


# ── training ─────────────────────────────────────────────────────────────────────────────────────


def test_the_loss_falls_within_30_steps():
    """On a batch of scenes, one of them without a box."""
    drawn = [scenes.scene(index, height=64, width=64) for index in range(4)]
    model = detector.build().train()
    x = model.preprocess([torch.from_numpy(each.image) for each in drawn], 64)
    targets = [torch.from_numpy(each.boxes) for each in drawn[:3]] + [torch.zeros(0, 5)]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    losses = []
    for _ in range(30):
        loss = model.loss(model(x), targets)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())

    assert losses[-1] < losses[0] / 2


def test_every_weight_learns_also_without_a_box():
    """A batch of empty images has a finite loss and a gradient for each weight."""
    model = detector.build().train()

    loss = model.loss(model(torch.rand(2, 3, 64, 64)), [torch.zeros(0, 5)] * 2)
    loss.backward()

    assert () == tuple(loss.shape)
    assert loss.isfinite()
    assert all(each.grad.isfinite().all() for each in model.parameters())
