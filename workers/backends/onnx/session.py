"""Sessions of ONNX Runtime: how they are made here, and what its errors mean.

A session gets as many threads as cores are leased. Between two runs they sleep: spinning on after
a run, as they do by default, kept a second core 41 % busy that did nothing; within a run they spin,
since sleeping there made a small model 29 % slower (1.15 against 1.48 ms, two threads, two cores).
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farm.errors import did_you_mean
from workers.backends import LoadFailed
from workers.backends.numbers import Array

if TYPE_CHECKING:
    from types import ModuleType

PROVEN: Final = "CPUExecutionProvider"

_FATAL_ONLY: Final = 4  # what it would print of an error, it raises
_ABSENT: Final = re.compile(r"not a registered function/op|No Op registered", re.IGNORECASE)
_TOO_NEW: Final = re.compile(r"opset|IR version", re.IGNORECASE)
_MEMORY: Final = re.compile(r"bad_alloc|failed to allocate memory", re.IGNORECASE)


class Argument(Protocol):
    """An input or output of a session; shape: lengths, names, or None for an open axis."""

    name: str
    type: str
    shape: Sequence[int | str | None]


class Session(Protocol):
    """What is used of a session."""

    def run(self, output_names: Sequence[str], input_feed: Mapping[str, Array]) -> list[object]: ...
    def get_inputs(self) -> list[Argument]: ...
    def get_outputs(self) -> list[Argument]: ...
    def end_profiling(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What every session of a step has in common. flush: treat subnormal numbers as zero."""

    path: Path
    threads: int
    flush: bool


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A session, and how many threads it computes on."""

    session: Session
    threads: int


def runtime() -> "ModuleType":
    """Return ONNX Runtime; raises LoadFailed if it is not installed."""
    try:
        import onnxruntime
    except ImportError as error:
        raise LoadFailed(
            "environment",
            f"onnxruntime cannot be imported: {error}",
            "pip install 'profiling-farm[worker]'",
        ) from error
    module: ModuleType = onnxruntime
    return module


def check_provider(options: Mapping[str, str | int | bool]) -> None:
    """Raise LoadFailed for an option that is none, or a provider that is not offered here."""
    for name in options:
        if name != "provider":
            hint = did_you_mean(name, ["provider"])
            raise LoadFailed("model_error", f"the onnx backend has no option {name!r}", hint)
    asked = options.get("provider", PROVEN)
    if asked == PROVEN:
        return
    there = runtime().get_available_providers()
    what = "is not in this version" if asked in there else "is not in this onnxruntime"
    raise LoadFailed(
        "unsupported",
        f"provider {asked!r} {what}",
        f"take {PROVEN}; this onnxruntime has {', '.join(there)}",
    )


def own_threads() -> int | None:
    """Return how many threads this process has; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    return len(os.listdir("/proc/self/task"))


def opened(
    settings: Settings,
    *,
    profile: Path | None = None,
    optimised: bool = True,
    packed: bool = True,
    count: Callable[[], int | None] = own_threads,
) -> Opened:
    """Return a session for the graph, with its threads read back.

    profile: where its profiler writes; the file gets a longer name. optimised: nodes are fused and
    moved to other layouts. packed: weights are, and then miss in the shapes that a profile notes.
    count: of the threads of this process. Raises LoadFailed if the graph cannot be loaded, or if
    the threads are others.
    """
    module = runtime()
    options = module.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.set_denormal_as_zero", str(int(settings.flush)))
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if not optimised:
        options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", str(int(not packed)))
    before = count()
    with explained(settings.path.name):
        session = module.InferenceSession(str(settings.path), options, providers=[PROVEN])
    session.disable_fallback()
    threads = int(session.get_session_options().intra_op_num_threads)
    if before is not None:  # the caller computes too
        threads = 1 + (count() or 0) - before
    if threads != settings.threads:
        what = f"the thread pool of onnxruntime has {threads} threads, not {settings.threads}"
        raise LoadFailed("environment", what)
    return Opened(session=session, threads=threads)


def flushes() -> bool:
    """Return whether this thread takes subnormal numbers for zero: only a first session decides."""
    tiny = np.array([1e-30, 1.0], dtype=np.float32) * np.float32(1e-12)
    return not bool(tiny.view(np.uint32)[0])


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn what the runtime raises into LoadFailed of the kind that decides what happens next."""
    try:
        yield
    # Its exceptions have no base of their own, and are known by their names.
    except Exception as error:
        if "onnxruntime" not in type(error).__module__ and not isinstance(error, MemoryError):
            raise
        raise _failure(error, name) from error


def _failure(error: Exception, name: str) -> LoadFailed:
    kind, text = type(error).__name__, _plain(str(error))
    message = f"{name}: {text}"[:2000]
    if isinstance(error, MemoryError) or _MEMORY.search(text):
        return LoadFailed("host_oom", message, "use a smaller batch, or allow more memory")
    if kind == "NotImplemented" or _ABSENT.search(text):
        return LoadFailed("unsupported", message, "this onnxruntime has no such operator")
    if kind == "Fail" and _TOO_NEW.search(text):
        return LoadFailed("unsupported", message, "export it for an older opset")
    if kind in ("InvalidProtobuf", "NoModel"):
        return LoadFailed("model_error", message, "the file is damaged; export it again")
    return LoadFailed("model_error", message)


def _plain(text: str) -> str:
    """Return the message without its number, and without where in its own source it arose."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    return re.sub(r"/\S+/onnxruntime/core/\S+ .*?\) ", "", text).strip()
