"""Graphs in a bundle, and their steps; the runtime is imported once, before any test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from workers.record import Assignment

assert onnxruntime  # a test that forgot what it imported would import the runtime a second time

Ask = Callable[..., Assignment]


@pytest.fixture
def ask(assign: Callable[..., Assignment], tmp_path: Path) -> Ask:
    """Return an assignment for a graph in the bundle, `net.onnx` unless said, at batch 2."""

    def make(ref: str = "net.onnx", *, spec: Any = None, **more: Any) -> Assignment:
        more = {"bundle": tmp_path, "backend": "onnx", "precision": "unspecified", **more}
        return assign(ref, spec=spec or {}, **more)

    return make
