"""The backend `fake`: a step of scripted length that can be told to fail, for trying the farm.

It needs no framework and no model code. Everything is said in the job's `backend_options`; an
option of another name is an error, so that a typo never passes for a healthy job.
"""

import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from farm.errors import did_you_mean
from farm.schema import WeightSpread
from workers.backends import (
    Clock,
    LayerAsk,
    LayerPass,
    Loaded,
    LoadFailed,
    NotOffered,
    StageAsk,
    StepFacts,
    TraceAsk,
)
from workers.backends.usual import check_usual
from workers.record import Assignment, CostReading, LayerReading, TraceReading
from workers.timing import in_turns

_MODES = ("spin", "sleep")
_PHASES = ("load", "first", "warmup", "latency", "throughput", "memory", "layers", "flops")
_CHUNK_BYTES, _CHUNKS = 64 << 20, 256  # 16 GiB, never touched
_LINE, _LINES = "x" * ((1 << 20) - 1) + "\n", 100  # 100 MiB


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a fake job may say.

    duration_us: length of one iteration, by `mode`: `spin` keeps the core busy, `sleep` leaves it.
    work: instead, so many turns of a counting loop; the same work everywhere, so a slow or a
    disturbed machine takes longer. load_ms: length of loading. fail: what goes wrong when the
    phase `fail_at` begins: load, first, warmup, latency, throughput, memory, layers or flops.
    fail_repeat: only in the repeat of this index, -1 in all; the instrumented child comes after
    the last. fail_once: a file; where it exists nothing fails any more, and failing creates it.
    alone: a file that each step holds for its life; one that finds it held by another says so in a
    file beside it that ends in `.twice`, which is proof that two were measured at once.
    """

    duration_us: int = 1000
    mode: str = "spin"
    work: int = 0
    load_ms: int = 0
    fail: str = ""
    fail_at: str = "first"
    fail_repeat: int = -1
    fail_once: str = ""
    alone: str = ""


class Fault:
    """What goes wrong in one phase of one repeat, if anything does."""

    def __init__(self, options: Options, *, index: int) -> None:
        self._struck = bool(options.fail) and options.fail_repeat in (-1, index)
        self._action, self._phase = options.fail, options.fail_at
        self._once = Path(options.fail_once) if options.fail_once else None

    def strike(self, phase: str) -> str:
        """Do what is scripted for this phase; return its name where it can be survived, or ""."""
        if not self._struck or phase != self._phase or (self._once and self._once.exists()):
            return ""
        if self._once:
            self._once.touch()
        _ACTIONS.get(self._action, _refuse)(self._action)
        return self._action


class FakeStep:
    """Wait, spin or count; hold no inputs and compute nothing."""

    sync = compiles = accelerator = prepare = None
    layer_iterations = 100

    def __init__(self, options: Options, fault: Fault, *, precision: str, threads: int) -> None:
        self._duration_ns = options.duration_us * 1000
        self._sleeps = options.mode == "sleep"
        self._work = options.work
        self._fault = fault
        self._precision = precision
        self._threads = threads
        self._output = 1.0

    def __call__(self) -> object:
        if self._work:
            for _ in range(self._work):
                pass
        elif self._sleeps:
            time.sleep(self._duration_ns / 1e9)
        else:
            end = time.perf_counter_ns() + self._duration_ns
            while time.perf_counter_ns() < end:
                pass
        return self._output

    def enter(self, phase: str) -> None:
        if self._fault.strike(phase) == "nan":
            self._output = float("nan")

    def facts(self) -> StepFacts:
        return StepFacts(
            precision_observed={"declared": self._precision},
            effective_threads={"fake": self._threads},
            resolved={},
            subnormal_share=None,
            kinds={"model": "fake"},
        )

    def check_output(self, output: object) -> list[str]:
        if output != output:  # only NaN differs from itself
            raise LoadFailed("nonfinite", "the output is not finite")
        return []

    def arrays(self, output: object) -> Mapping[str, NDArray[Any]]:
        return {"output_0": np.asarray(output)}

    def layers(self, asked: LayerAsk) -> LayerPass:
        """Time the step as its one layer, in turn with clean iterations, within the budget."""
        warm: list[int] = []
        clean: list[int] = []
        profiled: list[int] = []

        def timed(into: list[int], count: int) -> None:
            for _ in range(count):
                began = asked.clock()
                self()
                into.append(asked.clock() - began)

        timed(warm, asked.warmup)
        blocks = in_turns(
            partial(timed, clean),
            partial(timed, profiled),
            iterations=asked.iterations,
            typical_ns=median(warm) if warm else 0.0,
            budget_ns=asked.budget_ns,
            clock=asked.clock,
            progress=partial(asked.progress, "layers"),
        )
        profiled_ns = np.array(profiled, dtype=np.int64)
        reading = LayerReading(
            method="fake",
            clock="wall",
            layers=["step"],
            types=["Fake"],
            calls=[1.0],
            warmup=asked.warmup,
            iterations=len(profiled),
            blocks=blocks,
        )
        return LayerPass(
            reading=reading,
            layer_ns=profiled_ns[None, :],
            profiled_ns=profiled_ns,
            clean_ns=np.array(clean, dtype=np.int64),
        )

    def trace(self, asked: TraceAsk) -> TraceReading:
        raise NotOffered("not_applicable", "it runs nothing that could be traced")

    def stages(self, asked: StageAsk) -> dict[str, list[int]]:
        raise NotOffered("not_applicable", "it has one phase")

    def weights(self) -> WeightSpread:
        raise NotOffered("not_applicable", "it has no weights")

    def cost(self) -> CostReading:
        """Tell that it computes nothing: zeros that were counted."""
        return CostReading(
            params_total=0,
            params_trainable=0,
            params_unique_bytes=0,
            buffers_bytes=0,
            param_dtypes={},
            flops_per_batch=0,
            flops_status="measured",
            flops_counter="fake",
            flops_coverage=1.0,
            attention="none",
            bytes_lower_bound_per_batch=0,
            activation_peak_bytes=0,
        )

    def inputs_mutated(self) -> bool:
        return False

    def close(self) -> None:
        """Nothing was changed."""


def load(assignment: Assignment, *, clock: Clock) -> Loaded:
    """Return the scripted step; raises LoadFailed for what it does not know or do."""
    began = clock()
    workload = assignment.job.workload
    check_usual(assignment.job.protocol, backend="fake")
    options = _options(workload.backend_options)
    fault = Fault(options, index=assignment.index)
    fault.strike("load")
    _hold(options.alone)
    time.sleep(options.load_ms / 1000)
    step = FakeStep(options, fault, precision=workload.precision, threads=assignment.threads)
    return Loaded(step=step, import_s=0.0, load_s=(clock() - began) / 1e9)


def _hold(path: str) -> None:
    """Hold a file until this process ends, however it does."""
    if not path:
        return
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        Path(f"{path}.twice").touch()


def _options(given: dict[str, str | int | bool]) -> Options:
    known = {each.name: each.type for each in fields(Options)}
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise LoadFailed("model_error", f"the fake backend has no option {name!r}", hint)
        if type(value) is not known[name]:
            raise LoadFailed("model_error", f"{name}: {value!r} is not of type {known[name]}")
    options = Options(**given)  # type: ignore[arg-type]
    for name, value, choices in (
        ("mode", options.mode, _MODES),
        ("fail_at", options.fail_at, _PHASES),
    ):
        if value not in choices:
            raise LoadFailed("model_error", f"{name}: {value!r} is none of {', '.join(choices)}")
    return options


def _raise(action: str) -> NoReturn:
    raise RuntimeError("the fake model was told to raise")


def _refuse(action: str) -> NoReturn:
    raise LoadFailed(action, f"the fake model was told to fail with {action}")


def _hang(action: str) -> NoReturn:
    if action == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def _kill(action: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _crash(action: str) -> None:
    ctypes.string_at(0)


def _exit(action: str) -> NoReturn:
    os._exit(0)


def _allocate(action: str) -> NoReturn:
    held = [bytearray(_CHUNK_BYTES) for _ in range(_CHUNKS)]
    raise MemoryError(f"no limit stopped {len(held)} chunks of {_CHUNK_BYTES} bytes")


def _print(action: str) -> None:
    for _ in range(_LINES):
        sys.stdout.write(_LINE)
    sys.stdout.flush()


def _babble(action: str) -> NoReturn:
    count = 0
    while True:
        sys.stdout.write(f"still here {count}\n")
        time.sleep(0.001)
        count += 1


def _nothing(action: str) -> None:
    """The step itself does the rest."""


# Every other word is a failure kind, such as `oom` or `environment`, and fails with it.
_ACTIONS = {
    "raise": _raise,
    "hang": _hang,
    "stubborn": _hang,
    "kill": _kill,
    "segv": _crash,
    "exit": _exit,
    "allocate": _allocate,
    "print": _print,
    "babble": _babble,
    "nan": _nothing,
}
