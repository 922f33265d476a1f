"""Assignments and loaded steps for the tests of the backends."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import workers
from farm.schema import Effort, Inputs, Job, Model, Protocol, Selector, Tensor, Workload
from workers import backends
from workers.record import Assignment

Assign = Callable[..., Assignment]
Load = Callable[[Assignment], backends.Step]

X = {"x": Tensor(shape=("batch", 4))}


@pytest.fixture
def assign(tmp_path: Path) -> Assign:
    """Return an assignment; what a test does not say is a small torch job on one thread."""

    def make(
        ref: str = "workers.models.mlp:build",
        *,
        spec: dict[str, Tensor] | None = None,
        seed: int = 0,
        kind: str = "auto",
        precision: str = "fp32",
        batch: int = 2,
        backend: str = "torch",
        options: dict[str, str | int | bool] | None = None,
        protocol: Protocol | None = None,
        index: int = 0,
        threads: int = 1,
        bundle: Path | str = "",
        npz: Path | str = "",
    ) -> Assignment:
        source = "file" if bundle else "zoo"
        model = Model(name="m", ref=ref, source=source, digest="0", kind=kind)
        inputs = Inputs(spec=X if spec is None else spec, seed=seed)
        workload = Workload(
            model=model,
            inputs=inputs,
            precision=precision,
            batch=batch,
            backend=backend,
            backend_options=options or {},
        )
        selector = Selector(kind="any")
        return Assignment(
            job=Job(workload=workload, protocol=protocol or Protocol(), selector=selector),
            effort=Effort(),
            index=index,
            cores=[0],
            threads=threads,
            folder=str(tmp_path),
            bundle=str(bundle),
            npz=str(npz),
        )

    return make


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Load an assignment in this process, and leave the process as it was.

    Modules of the test's own folder are forgotten; a library would come back as a second one.
    """
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    written = sys.dont_write_bytecode
    with ExitStack() as opened:

        def one(assignment: Assignment) -> backends.Step:
            step = backends.load(assignment, clock=time.perf_counter_ns).step
            opened.callback(step.close)
            return step

        yield one
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
    sys.path[:], sys.meta_path[:] = path, finders
    sys.dont_write_bytecode = written
    for name in set(sys.modules) - modules:
        said = vars(sys.modules[name])  # torch.classes answers to every attribute
        places = [said.get("__file__"), *said.get("__path__", ())]
        if any(each and Path(each).is_relative_to(tmp_path) for each in places):
            del sys.modules[name]


@pytest.fixture
def bundle(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files, given by their relative paths; return their folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "bundle" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "bundle"

    return write


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., str]:
    """Run lines of Python as a child runs: a fresh interpreter that trusts no current folder."""

    def run(lines: str, *words: str, expect: int = 0) -> str:
        root = str(Path(workers.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-P", "-c", lines, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": root},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (expect, "") == (done.returncode, done.stderr)
        return done.stdout

    return run
