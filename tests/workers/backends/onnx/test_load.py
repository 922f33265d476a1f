"""The laws of loading a graph: what is asked is what runs, or the reason why not."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto

from farm.schema import Protocol, Tensor
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, HALF, INT64, node
from workers import backends
from workers.backends import LoadFailed


def _relu(path: Path, *, kind: int = FLOAT, opset: int = 17, op: str = "Relu", domain: str = ""):
    return drawn.save(
        path,
        [node(op, "x", "y", "n", domain=domain)],
        inputs=[("x", kind, ["batch", 4])],
        outputs=[("y", kind, ["batch", 4])],
        opset=opset,
        domains=[domain] if domain else [],
    )


def _json(assignment) -> str:
    return msgspec.json.encode(assignment).decode()


def _fails(load, assignment) -> LoadFailed:
    with pytest.raises(LoadFailed) as caught:
        load(assignment)
    return caught.value


def test_a_graph_runs_on_the_inputs_that_it_names(ask, load, tmp_path):
    """Without a specification the graph's own shapes count, and its open axis is the batch."""
    drawn.mlp(tmp_path / "net.onnx")

    step = load(ask(batch=3))

    (output,) = step()
    assert (3, 10) == output.shape
    assert [] == step.check_output([output])


def test_importing_and_building_are_timed_apart(ask, tmp_path):
    """The runtime is imported first; reading, optimising and inputs are loading."""
    drawn.mlp(tmp_path / "net.onnx")
    ticks = iter([0, 1_000_000_000, 4_000_000_000])

    loaded = backends.load(ask(), clock=lambda: next(ticks))

    assert (1.0, 3.0) == (loaded.import_s, loaded.load_s)


def test_weights_beside_the_graph_are_read(ask, load, tmp_path):
    """External data lies in the bundle too, and makes the same outputs."""
    drawn.mlp(tmp_path / "net.onnx")
    drawn.mlp(tmp_path / "sub" / "big.onnx", external="big.weights")

    inside, outside = load(ask()), load(ask("sub/big.onnx"))

    np.testing.assert_array_equal(inside()[0], outside()[0])


def test_a_stateful_graph_runs_on_a_drawn_state(ask, load, tmp_path):
    """State is an input like any other; its batch need not be the first axis."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Add", "x state", "y"), node("Mul", "y state", "next")],
        inputs=[("x", FLOAT, ["batch", 4]), ("state", FLOAT, [2, "batch", 4])],
        outputs=[("y", FLOAT, None), ("next", FLOAT, None)],
    )

    step = load(ask(batch=3))

    assert [(2, 3, 4), (2, 3, 4)] == [each.shape for each in step()]
    assert not step.inputs_mutated()


def test_the_inputs_of_a_seed_are_those_of_every_backend(ask, load, tmp_path):
    """The same names and seed give the same numbers as to a torch model."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Identity", "x", "y")],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, ["batch", 4])],
    )
    (tmp_path / "same.py").write_text("import numpy\n\n\ndef step(x):\n    return x\n")
    spec = {"x": Tensor(shape=("batch", 4))}

    graph = load(ask(spec=spec, seed=7))
    python = load(ask("same.py:step", spec=spec, seed=7, backend="torch"))

    np.testing.assert_array_equal(python(), graph()[0])


@pytest.mark.parametrize(
    ("made", "kind", "says"),
    [
        ({"op": "Frobnicate"}, "unsupported", "No Op registered for Frobnicate"),
        ({"op": "Foo", "domain": "my.ops"}, "unsupported", "my.ops:Foo"),
        ({"kind": TensorProto.BFLOAT16}, "unsupported", "implementation for Relu"),
        ({"opset": 99}, "unsupported", "Opset 99 is under development"),
        ({"op": "Sqrt", "kind": INT64}, "model_error", "Type Error"),
    ],
)
def test_what_this_runtime_has_not_is_unsupported(ask, load, tmp_path, made, kind, says):
    """A missing operator, kernel or opset is an answer; a graph that makes no sense is an error."""
    _relu(tmp_path / "net.onnx", **made)
    spec = {"x": Tensor(shape=("batch", 4), dtype="int64", high=2)} if kind == "model_error" else {}

    error = _fails(load, ask(spec=spec))

    assert kind == error.kind
    assert says in error.message
    assert error.message.startswith("net.onnx: ")
    assert "onnxruntime_src" not in error.message


def test_a_damaged_file_is_an_error_of_the_model(ask, load, tmp_path):
    path = drawn.mlp(tmp_path / "net.onnx")
    path.write_bytes(path.read_bytes()[:-100])

    error = _fails(load, ask())

    assert ("model_error", "net.onnx is no ONNX model: it is cut off") == (
        error.kind,
        error.message,
    )


def test_weights_that_are_missing_or_short_are_told(ask, load, tmp_path):
    drawn.mlp(tmp_path / "net.onnx", external="net.weights")
    (tmp_path / "net.weights").write_bytes(b"\0" * 100)

    short = _fails(load, ask())
    (tmp_path / "net.weights").unlink()
    missing = _fails(load, ask())

    assert ["model_error", "model_error"] == [short.kind, missing.kind]
    assert "out of bounds" in short.message
    assert "net.weights" in missing.message


@pytest.mark.parametrize(
    ("ref", "kind", "says"),
    [
        ("other.onnx", "model_error", "the bundle has no file 'other.onnx'"),
        ("../net.onnx", "model_error", "the bundle has no file '../net.onnx'"),
        ("model.py:build", "unsupported", "runs .onnx files, not 'model.py:build'"),
    ],
)
def test_a_file_that_is_not_there_is_named(ask, load, ref, kind, says):
    error = _fails(load, ask(ref))

    assert kind == error.kind
    assert says in error.message


@pytest.mark.parametrize("ref", ["no_such_net/a.onnx", "onnx/no_such.onnx", "a-b/c.onnx"])
def test_a_package_that_is_not_there_is_the_nodes_fault(ask, load, ref):
    """A graph of an installed package: another node may have it."""
    error = _fails(load, ask(ref, bundle=""))

    assert "environment" == error.kind
    assert f"no installed package has {ref!r}" == error.message


def test_an_installed_graph_is_found_without_importing_its_package(tmp_path, child):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("raise SystemExit('run!')")
    (tmp_path / "pack" / "net.onnx").write_bytes(b"")
    said = child(
        "import sys, types\n"
        "sys.path.append(sys.argv[1])\n"
        "from workers.backends.onnx import load\n"
        "model = types.SimpleNamespace(ref='pack/net.onnx')\n"
        "print(load._find(types.SimpleNamespace(model=model), ''))",
        str(tmp_path),
    )

    assert str(tmp_path / "pack" / "net.onnx") == said.strip()


@pytest.mark.parametrize(
    ("kind", "word", "other"), [(FLOAT, "fp32", "fp16"), (HALF, "fp16", "fp32")]
)
def test_the_precision_is_checked_and_never_changed(ask, load, tmp_path, kind, word, other):
    """A graph is run as it is: a declaration of something else is a failure of that name."""
    drawn.mlp(tmp_path / "net.onnx", kind=kind)

    step = load(ask(precision=word))
    step.check_output(step())
    error = _fails(load, ask(precision=other))

    assert {"parameters": word, "inputs": word, "output": word} == step.facts().precision_observed
    assert ("precision_mismatch", f"declared {other}, observed {word}") == (
        error.kind,
        error.message,
    )
    assert f"precision: {word}" in error.hint


def test_a_quantised_graph_is_no_graph_of_floats(ask, load, tmp_path):
    drawn.save(
        tmp_path / "net.onnx",
        [node("DequantizeLinear", "w s", "f"), node("MatMul", "x f", "y")],
        inputs=[("x", FLOAT, ["batch", 8])],
        outputs=[("y", FLOAT, None)],
        weights={"w": np.ones((8, 8), np.int8), "s": np.float32(0.1)},
    )

    error = _fails(load, ask(precision="fp32"))

    assert "declared fp32, observed int8" == error.message
    assert "precision: unspecified" in error.hint


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"provider": "CUDAExecutionProvider"}, "unsupported", "is not in this onnxruntime"),
        ({"provider": "AzureExecutionProvider"}, "unsupported", "'AzureExecutionProvider' is not"),
        ({"provder": "x"}, "model_error", "the onnx backend has no option 'provder'"),
    ],
)
def test_a_provider_that_is_not_proven_is_refused(ask, load, tmp_path, options, kind, says):
    """The runtime itself would fall back to the CPU and say so in passing."""
    drawn.mlp(tmp_path / "net.onnx")

    error = _fails(load, ask(options=options))

    assert kind == error.kind
    assert says in error.message
    assert error.hint


def test_the_proven_provider_may_be_named(ask, load, tmp_path):
    drawn.mlp(tmp_path / "net.onnx")

    step = load(ask(options={"provider": "CPUExecutionProvider"}))

    assert "CPUExecutionProvider" == step.facts().resolved["provider"]


def test_what_the_backend_does_not_do_is_refused(ask, load, tmp_path):
    """A protocol that would be ignored is not measured."""
    drawn.mlp(tmp_path / "net.onnx")

    rotating = _fails(load, ask(protocol=Protocol(input_policy="rotate")))

    assert "unsupported" == rotating.kind
    assert "input_policy: the onnx backend offers 'fixed', not 'rotate'" == rotating.message


def test_a_model_that_needs_more_memory_than_there_is_says_so(ask, tmp_path, child):
    """An allocation that fails within a run is a matter of memory, not of the model."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Tile", "x by", "y")],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
        weights={"by": np.array([1 << 14, 1 << 13])},
    )
    said = child(
        "import resource, sys, time, msgspec\n"
        "from workers import backends\n"
        "from workers.record import Assignment\n"
        "asked = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "step = backends.load(asked, clock=time.perf_counter_ns).step\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))\n"
        "try:\n"
        "    step()\n"
        "except backends.LoadFailed as error:\n"
        "    print(error.kind)\n",
        _json(ask(batch=1)),
    )

    assert "host_oom\n" == said


def test_without_the_runtime_the_extra_is_named(ask, tmp_path, child):
    """The failure is the node's, and says what to install."""
    drawn.mlp(tmp_path / "net.onnx")
    said = child(
        "import sys, time, msgspec\n"
        "sys.modules['onnxruntime'] = None\n"
        "from workers import backends\n"
        "from workers.record import Assignment\n"
        "asked = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "try:\n"
        "    backends.load(asked, clock=time.perf_counter_ns)\n"
        "except backends.LoadFailed as error:\n"
        "    print(error.kind, '|', error.hint)\n",
        _json(ask()),
    )

    assert "environment | pip install 'profiling-farm[worker]'\n" == said


def test_subnormal_numbers_are_flushed_where_the_protocol_says_so(ask, tmp_path, child):
    """In a process of its own, where the first session decides; read back from arithmetic."""
    drawn.save(
        tmp_path / "net.onnx",
        [node("Mul", "x tiny", "y")],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
        weights={"tiny": np.full(4, 1e-39, np.float32)},
    )
    lines = (
        "import sys, time, msgspec\n"
        "from workers import backends\n"
        "from workers.record import Assignment\n"
        "asked = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "step = backends.load(asked, clock=time.perf_counter_ns).step\n"
        "output = step()\n"
        "step.check_output(output)\n"
        "facts = step.facts()\n"
        "print(facts.resolved['denormals'], bool((output[0].view('uint32') & 0x7fffffff).any()),\n"
        "      round(facts.subnormal_share, 2))\n"
    )

    flushed = child(lines, _json(ask(protocol=Protocol(denormals="flush"))))
    as_is = child(lines, _json(ask()))

    assert "flush False 1.0\n" == flushed
    assert "as_is True 1.0\n" == as_is


def test_nothing_is_printed(ask, tmp_path, child):
    """Warnings of the runtime about a graph would fill the log of every job."""
    path = drawn.mlp(tmp_path / "net.onnx")
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3, np.float32), "left"))
    onnx.save(model, path)

    said = child(
        "import sys, time, msgspec\n"
        "from workers import backends\n"
        "from workers.record import Assignment\n"
        "asked = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "backends.load(asked, clock=time.perf_counter_ns).step()\n",
        _json(ask()),
    )

    assert "" == said


def test_torch_is_not_imported_for_a_graph(ask, tmp_path, child):
    """Its import takes a second, and its pools would be threads of this process."""
    drawn.mlp(tmp_path / "net.onnx")
    said = child(
        "import sys, time, msgspec\n"
        "from workers import backends\n"
        "from workers.record import Assignment\n"
        "asked = msgspec.json.decode(sys.argv[1], type=Assignment)\n"
        "step = backends.load(asked, clock=time.perf_counter_ns).step\n"
        "step.check_output(step())\n"
        "step.cost()\n"
        "print(sorted({'torch', 'onnx', 'scipy'} & set(sys.modules)))\n",
        _json(ask()),
    )

    assert "[]\n" == said
