"""Wrappers on modules: every one is put in, and every one is taken out exactly."""

import copy
import inspect
import io
import pickle
import threading
import warnings

import pytest
import torch
from torch import nn

from workers.backends.torch.wrapping import sites, wrapped


def noted(model: nn.Module, run) -> list[int]:
    """Return what the wrappers push, stamps counting up from 1000."""
    log: list[int] = []
    stamps = iter(range(1000, 2000))
    with wrapped(sites(model), log.append, lambda: next(stamps)):
        run()
    return log


def dictionaries(model: nn.Module) -> list[dict[str, object]]:
    return [dict(vars(each)) for each in model.modules()]


def test_a_call_notes_its_index_its_begin_and_its_end() -> None:
    model = nn.Sequential(nn.Identity(), nn.Identity())

    log = noted(model, lambda: model(0))

    assert [0, 1000, 1, 1001, ~1002, 2, 1003, ~1004, ~1005] == log


def test_every_module_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()), nn.ModuleList([nn.ReLU()]))
    before = dictionaries(model)

    noted(model, lambda: model[0](torch.ones(1, 2)))

    assert before == dictionaries(model)
    assert [list(each) for each in before] == [list(each) for each in dictionaries(model)]


def test_every_module_is_left_as_it_was_when_the_model_raises() -> None:
    class Broken(nn.Module):
        def forward(self, x: object) -> object:
            raise ValueError("broken")

    model = nn.Sequential(nn.Identity(), Broken())
    before = dictionaries(model)

    with pytest.raises(ValueError, match="broken"):
        noted(model, lambda: model(0))

    assert before == dictionaries(model)


def test_a_forward_that_somebody_put_on_the_instance_comes_back() -> None:
    model = nn.Sequential(nn.Identity())
    own = model[0].forward = lambda x: x + 1  # type: ignore[method-assign]

    log = noted(model, lambda: model(1))

    assert 6 == len(log)
    assert model[0].forward is own


def test_a_forward_that_the_model_replaces_meanwhile_stays() -> None:
    class Learns(nn.Module):
        def forward(self, x: object) -> object:
            self.forward = self.faster  # type: ignore[method-assign]
            return x

        def faster(self, x: object) -> object:
            return x

    model = Learns()

    noted(model, lambda: model(0))

    assert model.faster == vars(model)["forward"]


def test_a_wrapped_forward_looks_like_the_one_it_stands_for() -> None:
    model = nn.Linear(2, 2)
    seen = []

    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = model

        def forward(self, x: object) -> object:
            seen.append(list(inspect.signature(self.part.forward).parameters))
            return x

    looks = Looks()
    noted(looks, lambda: looks(0))

    assert [["input"]] == seen


def test_a_module_with_its_own_setattr_is_left_alone() -> None:
    class Strict(nn.Module):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "forward":
                raise AttributeError(name)
            super().__setattr__(name, value)

        def forward(self, x: object) -> object:
            return x

    model = Strict()

    assert 3 == len(noted(model, lambda: model(0)))


def test_the_whole_bears_the_name_of_its_class_and_parts_their_paths() -> None:
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())

    assert ["Sequential", "0", "0.0", "1"] == [each.name for each in sites(model)]


def test_what_a_script_holds_is_not_touched() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch makes none any more, soon
        script = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    model = nn.Sequential(script, nn.ReLU())

    assert ["Sequential", "0", "1"] == [each.name for each in sites(model)]
    assert 9 == len(noted(model, lambda: model(torch.ones(1, 2))))


# ── copies ───────────────────────────────────────────────────────────────────────────────────────


def pickled(module: nn.Module) -> object:
    buffer = io.BytesIO()
    pickle.dump(module, buffer)
    return pickle.loads(buffer.getvalue())


def normalised() -> nn.Module:
    """A layer whose class has a deep copy of its own."""
    return nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))


def plain() -> nn.Module:
    return nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("make", "copied"),
    [
        *[(plain, copied) for copied in (copy.deepcopy, copy.copy, pickled)],
        (normalised, copy.deepcopy),
    ],
)
def test_a_copy_made_in_a_call_is_no_wrapper_of_the_original(make, copied) -> None:
    class Copies(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = make()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            kept.append(copied(self.part))
            return self.part(x)

    kept: list[nn.Module] = []
    model = Copies()
    before = dictionaries(model)

    log = noted(model, lambda: model(torch.ones(1, 2)))

    assert log[:2] == [0, 1000]
    assert before == dictionaries(model)
    assert {"forward", "__deepcopy__", "__getstate__"}.isdisjoint(vars(kept[0]))
    assert kept[0] == kept[0].forward.__self__
    kept[0]._parameters = {**kept[0]._parameters, "bias": nn.Parameter(torch.full((2,), 100.0))}
    assert (kept[0](torch.zeros(1, 2)) == 100).all()
    assert not (model.part(torch.zeros(1, 2)) == 100).any()


def test_a_copy_of_the_whole_copies_its_parts_as_they_are() -> None:
    model, kept = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), []

    noted(model, lambda: kept.append(copy.deepcopy(model)))

    assert not any("forward" in vars(each) for each in kept[0].modules())
    assert model[0].weight is not kept[0][0].weight


def test_a_call_in_another_thread_is_told() -> None:
    model, strays, log = nn.Identity(), [], []
    with wrapped(sites(model), log.append, lambda: 0, lambda: strays.append(0)):
        model(0)
        assert [] == strays
        thread = threading.Thread(target=model, args=(0,))
        thread.start()
        thread.join()

    assert [0] == strays


def test_names_that_cannot_be_encoded_are_escaped() -> None:
    model = nn.Sequential()
    model.add_module("\udcff", nn.ReLU())

    assert ["Sequential", "\\udcff"] == [each.name for each in sites(model)]
