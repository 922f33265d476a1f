"""Compile events of torch.compile, with the real compiler front end and no code generator."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from workers.backends.torch.compiling import TorchCompiles, is_compiled
from workers.timing import until_compiled


@pytest.fixture(autouse=True)
def fresh() -> None:
    """What earlier tests compiled is forgotten: torch keeps it by code object."""
    torch._dynamo.reset()


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())


def compiled(module: Callable[..., Any], **options: Any) -> Any:
    """Traced and guarded as always; the graph then runs as it is."""
    return torch.compile(module, backend="eager", **options)


class Stepping:
    """A step whose batch changes at one iteration, counted from 0."""

    def __init__(self, module: Callable[..., Any], *, changes_at: int) -> None:
        self._module, self._changes_at = module, changes_at
        self.calls = 0

    def __call__(self) -> object:
        batch = 2 if self.calls < self._changes_at else 3
        self.calls += 1
        with torch.inference_mode():
            return self._module(torch.ones(batch, 4))


def test_a_recompile_in_the_middle_of_a_pass_is_seen_where_it_happens() -> None:
    """A shape that changes at iteration 50 fails a guard there and nowhere else (pitfall 9)."""
    module = compiled(model())
    compiles = TorchCompiles(module)
    step = Stepping(module, changes_at=50)
    step()
    first = compiles.events(), compiles.recompiles()

    seen = []
    before = compiles.events()
    for index in range(1, 60):
        step()
        if compiles.events() != before:
            seen.append(index)
            before = compiles.events()

    assert (1, 0) == first
    assert [50] == seen
    assert (2, 1) == (compiles.events(), compiles.recompiles())


def test_the_compile_phase_ends_when_the_real_compiler_is_quiet() -> None:
    """One recompile in the second of its iterations, then three quiet ones."""
    module = compiled(model())
    compiles = TorchCompiles(module)
    step = Stepping(module, changes_at=2)
    step()

    found = until_compiled(step, compiles, iter(range(1_000)).__next__)

    assert (5, 1, True) == (found.iterations, found.recompiles, found.settled)


def test_an_eager_model_has_no_compile_events() -> None:
    """None, before it runs and after: the child then has no such phase (`not_applicable`)."""
    module = model()
    compiles = TorchCompiles(module)
    before = compiles.events(), compiles.recompiles()
    Stepping(module, changes_at=2)()

    assert (None, None) == before == (compiles.events(), compiles.recompiles())


def test_a_function_that_compiles_inside_is_found_when_it_does() -> None:
    """Nothing shows it beforehand: the first call does."""
    inside = compiled(lambda x: x * 2 + 1)

    def step(x: torch.Tensor) -> object:
        return inside(x)

    compiles = TorchCompiles(step)
    before = compiles.events()
    step(torch.ones(3))

    assert (None, 1, 0) == (before, compiles.events(), compiles.recompiles())


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: compiled(model()), True),
        (lambda: torch.nn.Sequential(compiled(model())), True),
        (lambda: compiled(lambda x: x), True),
        (model, False),
        (lambda: len, False),
    ],
)
def test_a_compiled_part_is_known_before_it_runs(
    made: Callable[[], object], expected: bool
) -> None:
    """A module, one inside another, a function; in place as well."""
    in_place = model()
    in_place.compile(backend="eager")

    assert expected == is_compiled(made())
    assert is_compiled(in_place)


def test_nothing_is_imported_for_an_answer() -> None:
    """Without the compiler among the modules there is nothing to count."""
    modules: dict[str, ModuleType] = {}

    compiles = TorchCompiles(model(), modules=modules)

    assert (None, None) == (compiles.events(), compiles.recompiles())
    assert {} == modules


def test_work_that_frames_do_not_count_is_heard_of() -> None:
    """Recording a CUDA graph is an event; the compiling that frames count is not counted twice."""
    heard: list[Callable[[object], None]] = []
    handler = SimpleNamespace(register_start_callback=heard.append)
    modules: dict[str, Any] = {
        "torch._dynamo.utils": SimpleNamespace(counters={"frames": {"total": 4}}),
        "torch._dynamo.callback": SimpleNamespace(callback_handler=handler),
    }
    compiles = TorchCompiles(model(), modules=modules)
    before = compiles.events()

    for name in ("CUDAGRAPH_RECORDING", "DYNAMO", "CUDAGRAPH_RECORDING"):
        heard[0](SimpleNamespace(callback_trigger=SimpleNamespace(name=name)))

    assert (None, 2, 1) == (before, compiles.events(), len(heard))
