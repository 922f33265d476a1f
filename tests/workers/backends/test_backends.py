import time
from importlib import metadata

import pytest

from workers import backends


def test_a_backend_is_found_by_its_name(assign):
    """`load` returns what the backend of that name made, with both loading times."""
    loaded = backends.load(assign(backend="fake"), clock=time.perf_counter_ns)

    assert {"model": "fake"} == loaded.step.facts().kinds
    assert loaded.import_s >= 0
    assert loaded.load_s >= 0


def test_importing_and_building_are_timed_apart(assign, load, bundle):
    """A clock that ticks once per look gives each part its own share."""
    folder = bundle({"model.py": "def step(x):\n    return x\n"})
    ticks = iter([0, 1_000_000_000, 4_000_000_000])

    loaded = backends.load(assign("model.py:step", bundle=folder), clock=lambda: next(ticks))
    loaded.step.close()

    assert 1.0 == loaded.import_s
    assert 3.0 == loaded.load_s


def test_an_unknown_backend_names_the_known_ones(assign):
    """A backend that nobody provides is unsupported, and the hint lists what there is."""
    with pytest.raises(backends.LoadFailed, match="no backend is called 'onyx'") as caught:
        backends.load(assign(backend="onyx"), clock=time.perf_counter_ns)

    assert "unsupported" == caught.value.kind
    assert "known: torch, onnx, fake" == caught.value.hint


def test_an_entry_point_adds_a_backend(assign, tmp_path, child):
    """An installed package offers a backend by the group `profiling_farm.backends`."""
    found = tmp_path / "extra-1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (found / "entry_points.txt").write_text("[profiling_farm.backends]\nextra = extra:load\n")
    (tmp_path / "extra.py").write_text("def load(assignment, *, clock):\n    return clock()\n")

    said = child(
        "import sys, types\n"
        "sys.path.append(sys.argv[1])\n"
        "from workers import backends\n"
        "workload = types.SimpleNamespace(backend='extra')\n"
        "job = types.SimpleNamespace(workload=workload)\n"
        "print(backends.load(types.SimpleNamespace(job=job), clock=lambda: 7))",
        str(tmp_path),
    )

    assert "7\n" == said
    assert not metadata.entry_points(group="profiling_farm.backends")


def test_leaving_the_process_while_loading_is_a_failure_of_the_model(assign, load, bundle):
    """`sys.exit` at the top of a model's file does not end the child silently."""
    folder = bundle({"model.py": "import sys\nsys.exit(0)\n"})

    with pytest.raises(backends.LoadFailed, match="ended the process") as caught:
        load(assign("model.py:step", bundle=folder))

    assert "model_error" == caught.value.kind


class OutOfMemoryError(RuntimeError):
    """As torch names its own."""


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("oom", OutOfMemoryError("CUDA out of memory")),
        ("host_oom", MemoryError()),
        ("host_oom", RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")),
        ("unsupported", NotImplementedError("silero computes in fp32 only")),
        ("unsupported", RuntimeError("\"addmm\" not implemented for 'Half'")),
        ("unsupported", RuntimeError("inv: Low precision dtypes not supported. Got BFloat16")),
        ("model_error", RuntimeError("shape not supported")),
        ("environment", ModuleNotFoundError("No module named 'torch'", name="torch")),
        ("model_error", ModuleNotFoundError("No module named 'nemo'", name="nemo")),
        ("model_error", ImportError("cannot import name 'x' from 'y'")),
        ("model_error", ValueError("bad width")),
        ("timeout", backends.LoadFailed("timeout", "as said")),
    ],
)
def test_an_exception_stands_for_the_kind_that_decides_the_retry(kind, error):
    """Memory, support and environment are told apart from a plain error of the model."""
    assert kind == backends.explain(error).kind


def test_a_missing_package_is_named_in_the_hint():
    """Whoever reads the failure learns what to install."""
    error = ModuleNotFoundError("No module named 'nemo'", name="nemo")

    assert "install 'nemo' in the environment of the worker" == backends.explain(error).hint
