"""The laws of a session: as many threads as are leased, and no core kept busy between two runs."""

import numpy as np
import pytest

from farm.graphs import profile
from tests.farm.graphs import drawn
from workers.backends import LoadFailed
from workers.backends.onnx import session
from workers.backends.onnx.session import Settings


def _settings(path, *, threads=1):
    return Settings(path=path, threads=threads, flush=False)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_session_has_the_threads_that_it_is_given(tmp_path, threads):
    """Counted in the process where the system tells them, and not only asked for."""
    path = drawn.mlp(tmp_path / "net.onnx")

    opened = session.opened(_settings(path, threads=threads))

    assert threads == opened.threads
    assert ["CPUExecutionProvider"] == opened.session.get_providers()


def test_another_number_of_threads_is_a_failure_of_the_node(tmp_path):
    """As where a library in between takes threads of its own."""
    path = drawn.mlp(tmp_path / "net.onnx")
    counts = iter([5, 9])

    with pytest.raises(LoadFailed, match="has 5 threads, not 2") as caught:
        session.opened(_settings(path, threads=2), count=lambda: next(counts))

    assert "environment" == caught.value.kind


def test_where_threads_cannot_be_counted_those_asked_for_count(tmp_path):
    path = drawn.mlp(tmp_path / "net.onnx")

    assert 2 == session.opened(_settings(path, threads=2), count=lambda: None).threads


def test_threads_sleep_between_two_runs(tmp_path):
    """They would keep their cores busy otherwise, also while somebody else is measured."""
    opened = session.opened(_settings(drawn.mlp(tmp_path / "net.onnx"), threads=2)).session

    options = opened.get_session_options()

    assert "1" == options.get_session_config_entry("session.force_spinning_stop")


def test_a_graph_as_it_is_written_keeps_its_nodes(tmp_path):
    """For counting: nothing is fused, and every weight shows its shape."""
    path = drawn.mlp(tmp_path / "net.onnx")
    opened = session.opened(
        _settings(path), profile=tmp_path / "profile", optimised=False, packed=False
    ).session
    opened.run(["y"], {"x": np.zeros((2, 64), np.float32)})

    (run,) = profile.read(tmp_path / opened.end_profiling().rpartition("/")[2])

    assert ["first", "bias", "act", "second", "last"] == [each.name for each in run.nodes]
    assert [("float", (2, 64)), ("float", (64, 32))] == run.nodes[0].shapes()[0]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("RuntimeException", "std::bad_alloc", "host_oom"),
        ("Fail", "Failed to allocate memory for requested buffer", "host_oom"),
        ("NotImplemented", "Could not find an implementation for Foo(1)", "unsupported"),
        ("InvalidGraph", "Error No Op registered for Foo with domain_version of 17", "unsupported"),
        ("Fail", "Fatal error: my.ops:Foo(-1) is not a registered function/op", "unsupported"),
        ("Fail", "Opset 99 is under development", "unsupported"),
        ("Fail", "Unsupported model IR version: 99, max supported IR version: 14", "unsupported"),
        ("InvalidProtobuf", "Protobuf parsing failed.", "model_error"),
        ("InvalidArgument", "Got invalid dimensions for input: x", "model_error"),
    ],
)
def test_an_error_of_the_runtime_has_a_kind(name, text, kind):
    """It decides whether somebody tries again, and what one is told."""
    raised = type(name, (Exception,), {"__module__": "onnxruntime.capi"})

    with pytest.raises(LoadFailed) as caught, session.explained("net.onnx"):
        raise raised(f"[ONNXRuntimeError] : 1 : FAIL : {text}")

    assert (kind, f"net.onnx: {text}") == (caught.value.kind, caught.value.message)


def test_what_somebody_else_raises_goes_through():
    with pytest.raises(ValueError, match="mine"), session.explained("net.onnx"):
        raise ValueError("mine")


def test_memory_that_is_not_there_is_told():
    with pytest.raises(LoadFailed) as caught, session.explained("net.onnx"):
        raise MemoryError

    assert "host_oom" == caught.value.kind


def test_a_normal_process_keeps_subnormal_numbers():
    assert not session.flushes()
