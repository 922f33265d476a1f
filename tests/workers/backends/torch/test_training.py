from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from workers.backends import LoadFailed
from workers.backends.torch import stages, training
from workers.backends.torch.training import Batch, casting, learning, sample
from workers.models.detector import build


class Knows(nn.Module):
    """A model with a loss of its own."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.asked = []

    def forward(self, x):
        return self.layer(x)

    def loss(self, raw, targets):
        self.asked.append((raw, targets))
        return 3 * raw.sum()


class Returns(nn.Module):
    """A model that returns what it is told to make of its layer's output."""

    def __init__(self, made=lambda y: y):
        super().__init__()
        self.layer, self.made = nn.Linear(4, 3), made

    def forward(self, x):
        return self.made(self.layer(x))


def learns(module, given, *, autocast="", stand_in=True, notes=None):
    """The stages of a training."""
    told = [] if notes is None else notes
    return learning(module, given, autocast=autocast, device="cpu", stand_in=stand_in, notes=told)


def loss_of(module, given, **more):
    """The loss of the first step."""
    (_, forward), *_ = learns(module, given, **more)
    return forward(None)


def step_of(module, given, **more):
    return stages.chained(learns(module, given, **more))


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(5, 4)


# ── a step ───────────────────────────────────────────────────────────────────────────────────────


def test_a_step_is_forward_backward_and_optimiser(x):
    names = [name for name, _ in learns(Returns(), Batch((x,), {}))]

    assert ["forward", "backward", "optimizer"] == names


def test_a_step_learns_nothing_and_leaves_no_gradient(x):
    """Every step is like the last one: the same weights, the same loss, gradients made anew."""
    module = Returns()
    before = [each.detach().clone() for each in module.parameters()]
    step = step_of(module, Batch((x,), {}))

    losses = [step() for _ in range(5)]

    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert 1 == len({each.item() for each in losses})
    assert {None} == {each.grad for each in module.parameters()}


def test_the_optimiser_does_its_work_all_the_same(x):
    """It gets gradients and keeps moments of them, as one that learns."""
    module = Returns()
    (_, forward), (_, backward), (_, optimise) = learns(module, Batch((x,), {}))
    kept = optimise.__closure__

    loss = backward(forward(None))
    gradients = [each.grad.clone() for each in module.parameters()]
    optimise(loss)

    (optimizer,) = [
        each.cell_contents for each in kept if isinstance(each.cell_contents, torch.optim.SGD)
    ]
    moments = [optimizer.state[each]["momentum_buffer"] for each in module.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(gradients, moments, strict=True))
    assert all(each.abs().sum() > 0 for each in gradients)


def test_a_model_is_set_to_train(x):
    module = Returns().eval()

    step_of(module, Batch((x,), {}))()

    assert module.training


def test_what_a_step_returns_holds_no_graph(x):
    """It would keep the activations of the last step beside those of the next one."""
    assert not step_of(Returns(), Batch((x,), {}))().requires_grad


def test_frozen_weights_are_not_trained(x):
    module = Returns()
    module.layer.bias.requires_grad_(False)
    (_, forward), (_, backward), _ = learns(module, Batch((x,), {}))

    backward(forward(None))

    assert (True, True) == (module.layer.weight.grad is not None, module.layer.bias.grad is None)


@pytest.mark.parametrize("module", [nn.ReLU(), nn.Linear(4, 3).requires_grad_(False)])
def test_a_model_with_nothing_to_train_is_not_supported(module, x):
    with pytest.raises(LoadFailed, match="no parameter to train") as caught:
        learns(module, Batch((x,), {}))

    assert "unsupported" == caught.value.kind


def test_a_batch_may_come_from_the_stage_before(x):
    (_, forward), *_ = learns(Returns(), None)

    assert forward(Batch((x,), {})).shape == ()
    assert forward(Batch((), {"x": x})).shape == ()


# ── the loss ─────────────────────────────────────────────────────────────────────────────────────


def test_a_model_s_own_loss_is_taken_with_its_output_and_its_target(x):
    module, target = Knows(), object()

    found = loss_of(module, Batch((x,), {}, target))

    ((raw, told),) = module.asked
    assert (target, True) == (told, torch.equal(3 * raw.sum(), found))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_classes_get_a_cross_entropy(dtype, x):
    """Of whatever whole numbers they are."""
    module, target = Returns(), torch.tensor([0, 1, 2, 1, 0])

    found = loss_of(module, Batch((x,), {}, target.to(dtype)), stand_in=False)

    assert torch.equal(functional.cross_entropy(module(x), target), found)


def test_classes_of_pixels_get_a_cross_entropy_too(x):
    """As segmentations have them: the axis of the classes is the second."""
    module = Returns(lambda y: y.reshape(5, 3, 1, 1).expand(5, 3, 4, 2))
    target = torch.randint(0, 3, (5, 4, 2))

    found = loss_of(module, Batch((x,), {}, target), stand_in=False)

    assert torch.equal(functional.cross_entropy(module(x), target), found)


def test_a_target_of_the_shape_of_the_output_gets_the_squared_error(x):
    module, target = Returns(), torch.ones(5, 3)

    found = loss_of(module, Batch((x,), {}, target))

    assert torch.equal(functional.mse_loss(module(x), target), found)


@pytest.mark.parametrize("target", [None, torch.ones(7), [torch.ones(1, 5)], "a word"])
def test_an_output_without_a_target_that_fits_gets_its_mean_square(target, x):
    """Of every array that it returned: the gradient goes through all of the model."""
    module = Returns(lambda y: {"a": y, "b": [2 * y, torch.ones(2, dtype=torch.int64)]})
    y, notes = module.layer(x), []
    (_, forward), *_ = learns(module, Batch((x,), {}, target), notes=notes)

    found = [forward(None) for _ in range(2)]

    torch.testing.assert_close([y.square().mean() + (2 * y).square().mean()] * 2, found)
    assert 1 == len(notes)
    assert "the mean square of its output stands in" in notes[0]


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (None, "its data yield no target"),
        (torch.ones(5, 7), "the target is float32 [5, 7]"),
        (torch.zeros(5, 2, dtype=torch.int64), "the target is int64 [5, 2]"),
        (torch.zeros(5, dtype=torch.complex64), "the target is complex64 [5]"),
        (torch.zeros(5, 3, dtype=torch.complex64), "the target is complex64 [5, 3]"),
    ],
)
def test_nothing_stands_in_unasked_for_a_loss_that_fits_nothing(target, told, x):
    """What its step costs would be that of another training."""
    notes = []

    with pytest.raises(LoadFailed, match="none fits: it returns \\[5, 3\\]") as caught:
        loss_of(Returns(), Batch((x,), {}, target), stand_in=False, notes=notes)

    assert ("experimental", []) == (caught.value.kind, notes)
    assert told in caught.value.message
    assert "--allow-experimental" in caught.value.hint


def test_a_loss_that_fits_is_no_stand_in(x):
    notes = []

    loss_of(Returns(), Batch((x,), {}, torch.ones(5, 3)), notes=notes)

    assert [] == notes


def test_a_model_that_returns_its_loss_is_trained_by_it(x):
    module = Returns(lambda y: SimpleNamespace(loss=y.abs().sum(), logits=y))

    found = loss_of(module, Batch((x,), {}))

    assert torch.equal(module.layer(x).abs().sum(), found)


def test_a_model_that_returns_no_number_is_not_supported(x):
    with pytest.raises(LoadFailed, match="no number to train it by") as caught:
        loss_of(Returns(lambda y: y.argmax(dim=1)), Batch((x,), {}))

    assert "unsupported" == caught.value.kind


# ── precision ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.18")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_computes_the_forward_pass_and_leaves_the_weights(dtype, x):
    seen = []
    module = Returns(lambda y: seen.append(y.dtype) or y)

    loss = step_of(module, Batch((x,), {}), autocast=dtype)()

    assert [getattr(torch, dtype)] == seen
    assert {torch.float32} == {each.dtype for each in module.parameters()}
    assert torch.isfinite(loss)


def test_without_autocast_nothing_is_cast(x):
    with casting("", "cpu"):
        assert torch.float32 == Returns()(x).dtype


@pytest.mark.seed("S4.18")
@pytest.mark.parametrize(("dtype", "scaled"), [("float16", True), ("bfloat16", False), ("", False)])
def test_only_float16_has_its_loss_scaled(dtype, scaled, x):
    """Its small gradients would fade to nothing; the optimiser gets them unscaled."""
    module = Returns()
    (_, forward), (_, backward), (_, optimise) = learns(module, Batch((x,), {}), autocast=dtype)

    loss = backward(forward(None))

    gradient = module.layer.weight.grad.abs().max().item()
    assert scaled == (gradient > 1000)
    optimise(loss)
    assert all(torch.isfinite(each).all() for each in module.parameters())


@pytest.mark.seed("S4.18")
def test_the_scaler_is_of_the_device_that_computes():
    """One of a CPU would not look at gradients on CUDA; without CUDA it is off, and says so."""
    assert "cpu" == training._scaler("cpu")._device
    warned = pytest.warns(UserWarning, match="CUDA is not available")
    with nullcontext() if torch.cuda.is_available() else warned:
        assert "cuda" == training._scaler("cuda:1")._device


# ── what a step trains on where no data are ──────────────────────────────────────────────────────


def test_inputs_go_in_by_their_names_or_else_by_their_order(x):
    assert Batch((), {"x": x}) == sample(Returns(), {"x": x}, batch=5)
    assert Batch((x,), {}) == sample(Returns(), {"input": x}, batch=5)


def test_a_model_with_a_loss_of_its_own_gets_a_box_for_each_item():
    """The step of the detector runs: the target is of the kind that it takes."""
    module = build()
    given = sample(module, {"x": torch.rand(2, 3, 64, 64)}, batch=2)

    assert [[0.0, 0.5, 0.5, 0.5, 0.5]] * 2 == [each[0].tolist() for each in given.target]
    assert torch.isfinite(step_of(module, given)())
