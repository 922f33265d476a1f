"""Sweeps over a small zoo that needs no torch."""

from pathlib import Path
from typing import Protocol

import pytest

from farm.models import ModelRow
from farm.schema import Tensor
from farm.sweep import Plan, expand, load

REF = "workers.models.placeholder:demo_depth"
X = {"x": Tensor(shape=("batch", 4))}
IDS = {"ids": Tensor(shape=("batch", "seq"), dtype="int64", high=9)}
ROWS = {
    "net": ModelRow(ref=REF, inputs=X, item="image", denormals="flush"),
    "text": ModelRow(ref=REF, inputs=IDS),
    "fixed": ModelRow(ref=REF, inputs={"x": Tensor(shape=(4, 4))}),
    "bare": ModelRow(ref=REF),
    "call": ModelRow(ref=REF, inputs=X, kind="step"),
    "gone": ModelRow(ref="no_such_package:build", inputs=X),
}


class Ask(Protocol):
    """Plan sweeps by their texts, which lie in `tmp_path` as a.yaml and b.yaml."""

    def __call__(self, *texts: str, sets: tuple[str, ...] = ..., effort: str = ...) -> Plan: ...


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    def planned(*texts: str, sets: tuple[str, ...] = (), effort: str = "standard") -> Plan:
        names = ["a.yaml", "b.yaml"][: len(texts)]
        for name, text in zip(names, texts, strict=True):
            (tmp_path / name).write_text(text)
        return expand(load(names, sets, root=tmp_path), effort=effort, rows=ROWS)

    return planned
