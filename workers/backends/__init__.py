"""What runs a model: `load` turns an assignment into a step that the child can measure.

A backend is a module with `load(assignment, *, clock) -> Loaded`. It is found by its name in the
table below, or as an entry point of the group `profiling_farm.backends`, and imported only when a
job asks for it; the backends do not know each other.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from farm.errors import FarmError
from farm.schema import WeightSpread
from workers.record import Assignment, CostReading, CudaPeaks, LayerReading, TraceReading
from workers.timing import Compiles, StreamDevice

Clock = Callable[[], int]

BACKENDS = {
    "torch": "workers.backends.torch.load:load",
    "onnx": "workers.backends.onnx.load:load",
    "fake": "workers.backends.fake:load",
}
_ENTRY_POINTS = "profiling_farm.backends"
_LOW_PRECISION = re.compile(r"Half|BFloat16|Float8|b?float16")
_FRAMEWORKS = ("torch", "numpy", "onnxruntime")
_NOT_THERE = re.compile(r"not (implemented|supported)")


class LoadFailed(Exception):
    """A model cannot be loaded or used as asked; kind is one of the failure kinds of a profile."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint


class NotOffered(Exception):
    """A backend has no such instrument for this step; code is one of the reasons of a null."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)


@dataclass(frozen=True, kw_only=True)
class LayerAsk:
    """A layer pass: how many profiled iterations after how many untimed ones, in ten blocks.

    budget_ns: the pass ends after the block during which it is spent; None: all iterations run.
    """

    iterations: int
    warmup: int
    budget_ns: int | None
    clock: Clock
    progress: Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class LayerPass:
    """Raw times in ns: of every layer int64[layers, iterations], of whole iterations int64[]."""

    reading: LayerReading
    layer_ns: NDArray[np.int64]
    profiled_ns: NDArray[np.int64]
    clean_ns: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TraceAsk:
    """A trace: how many iterations after a warm-up, into which file, of at most so many bytes.

    warmup: iterations before them in the same pass over the data, the last one with the profiler.
    """

    iterations: int
    warmup: int
    file: Path
    limit_bytes: int
    clock: Callable[[], int]
    progress: Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class StageAsk:
    """The phases of a step timed apart, in so many iterations, without any profiler."""

    iterations: int
    clock: Callable[[], int]
    progress: Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class StepFacts:
    """What a step turned out to be; known for good once it has run and its output was checked.

    precision_observed: by where it was seen: parameters, inputs, output, autocast …
    effective_threads: pool sizes read back. resolved: what `auto` became.
    subnormal_share: the largest share among inputs, parameters and first output; None if the
    backend cannot tell. kinds: what the model is (module, step, fake) and what it takes.
    output_digest: of the numbers in the first output; "" while there is none. waits_ns: for the
    data of each iteration so far. loaders: processes of its own for that. pipeline, unused, notes:
    as of `farm.schema.Captured`.
    """

    precision_observed: dict[str, str]
    effective_threads: dict[str, int]
    resolved: dict[str, str]
    subnormal_share: float | None
    kinds: dict[str, str]
    output_digest: str = ""
    waits_ns: tuple[int, ...] = ()
    loaders: int = 0
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pipeline: Literal["detection", "plain"] = "plain"


class Accelerator(StreamDevice[Any], Protocol):
    """A device with a queue of its own, as `workers.timing` measures it, and an allocator."""

    def reset_peaks(self) -> None: ...
    def peaks(self) -> list[CudaPeaks]: ...
    def allocator(self) -> tuple[int, int]: ...


class Step(Protocol):
    """One loaded model with its inputs: call it for one iteration."""

    @property
    def sync(self) -> Callable[[], None] | None:
        """Wait until the device has finished; None where a call returns finished work."""

    @property
    def compiles(self) -> Compiles | None:
        """What counts compile events; None for a backend that compiles nothing."""

    @property
    def accelerator(self) -> Accelerator | None:
        """The device that computes; None for the CPU."""

    @property
    def prepare(self) -> Callable[[], object] | None:
        """What runs before each timed iteration, outside the clock; None for nothing."""

    def __call__(self) -> object:
        """Run one iteration on the prepared inputs; whatever the model raises goes through."""

    def enter(self, phase: str) -> None:
        """Hear which phase begins: load has ended when the first one is named."""

    def facts(self) -> StepFacts:
        """Return what is known so far; outside every timed loop, it reads all parameters."""

    def check_output(self, output: object) -> list[str]:
        """Return the flags that an output earns a callable; raise LoadFailed for a module's."""

    def arrays(self, output: object) -> Mapping[str, NDArray[Any]]:
        """Return the arrays of an output by name: its own, or output_0, output_1 …"""

    @property
    def layer_iterations(self) -> int:
        """How many profiled iterations suit this engine where nobody says."""

    def layers(self, asked: LayerAsk) -> LayerPass:
        """Return the time of every layer in every profiled iteration; NotOffered where not."""

    def trace(self, asked: TraceAsk) -> TraceReading:
        """Leave a Chrome trace in the asked file and return how it went; NotOffered where not."""

    def stages(self, asked: StageAsk) -> dict[str, list[int]]:
        """Return the ns of each phase of an iteration by its name; NotOffered where not."""

    def weights(self) -> WeightSpread:
        """Return how the weights lie; NotOffered where there are none."""

    def cost(self) -> CostReading:
        """Return what the model needs; it may spoil the model, so it is the last pass."""

    def inputs_mutated(self) -> bool:
        """Whether any input differs from what was prepared."""

    def close(self) -> None:
        """Leave the gradient mode that loading entered; a child that ends need not."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A step and how long it took to get: importing code, then building, casting and placing."""

    step: Step
    import_s: float
    load_s: float


def load(assignment: Assignment, *, clock: Clock) -> Loaded:
    """Return the step of the assignment, ready to run, and the times that loading took.

    clock: ns, monotonic. Raises LoadFailed for what the backend judges itself; what the model's
    own code raises passes through, and `explain` names its kind. From here on `workers` and `farm`
    may name the user's packages: whatever of ours a caller still needs, it has imported before.
    """
    name = assignment.job.workload.backend
    try:
        return _loader(name)(assignment, clock=clock)
    except SystemExit as error:
        raise LoadFailed("model_error", f"the model's code ended the process: {error!r}") from error


def explain(error: BaseException) -> LoadFailed:
    """Return the failure that an exception of a model or of its loading stands for.

    No framework is imported for it: torch's exceptions are told by their names and words.
    """
    if isinstance(error, LoadFailed):
        return error
    if isinstance(error, FarmError):  # of what a person wrote, such as a line of labels
        why = f": {error.why}" if error.why else ""
        return LoadFailed("bad_data", f"{error.what}{why}", error.hint)
    name, text = type(error).__name__, str(error)
    message = f"{name}: {text}"[:2000]
    if name == "OutOfMemoryError":
        return LoadFailed("oom", message, "use a smaller batch")
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return LoadFailed("host_oom", message, "use a smaller batch, or allow more memory")
    if isinstance(error, NotImplementedError):
        return LoadFailed("unsupported", message)
    if isinstance(error, RuntimeError) and _LOW_PRECISION.search(text) and _NOT_THERE.search(text):
        return LoadFailed("unsupported", message)
    if isinstance(error, ModuleNotFoundError):
        # A missing framework is the node's fault and may be tried elsewhere; any other package is
        # something that this model asks for.
        kind = "environment" if error.name in _FRAMEWORKS else "model_error"
        hint = f"install {error.name!r} in the environment of the worker" if error.name else ""
        return LoadFailed(kind, message, hint)
    return LoadFailed("model_error", message)


class _Loader(Protocol):
    def __call__(self, assignment: Assignment, *, clock: Clock) -> Loaded: ...


def _loader(name: str) -> _Loader:
    path = BACKENDS.get(name)
    if path is None:
        found = metadata.entry_points(group=_ENTRY_POINTS, name=name)
        path = next(iter(found)).value if found else None
    if path is None:
        known = ", ".join(BACKENDS)
        raise LoadFailed("unsupported", f"no backend is called {name!r}", f"known: {known}")
    module, _, attribute = path.partition(":")
    loader: _Loader = getattr(import_module(module), attribute)
    return loader
