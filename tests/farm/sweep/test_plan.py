"""The laws of a plan: several sweeps as one run, and the properties that hold for any."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import models
from farm.effort import EFFORTS
from farm.errors import Refused
from farm.models import ModelRow
from farm.sweep import Plan, expand, label_text, load

ROWS = {name: ModelRow(ref="workers.models.placeholder:demo_depth") for name in ("net", "bare")}


def _plan(root: Path, text: str) -> Plan:
    (root / "a.yaml").write_text(text)
    return expand(load(["a.yaml"], root=root), rows=ROWS)


def _labels(plan: Plan) -> list[str]:
    return [label_text(each.labels) for each in plan.jobs]


# ── several sweeps ───────────────────────────────────────────────────────────────────────────────


def test_sweeps_of_one_command_are_one_plan(ask) -> None:
    """Jobs are joined and named apart, equal ones kept once, names joined with `+`."""
    plan = ask(
        "name: first\nmatrix: {model: text, seq: 16}\ntags: {a: x, b: y}",
        "matrix: {model: [text, net], seq: [16, 32]}\ntags: {b: z}",
    )

    assert [
        "text/fp32/b1/any/seq=16",
        "text/fp32/b1/any/seq=32",
        "net/fp32/b1/any",
    ] == _labels(plan)
    assert ("first+b", "a.yaml+b.yaml") == (plan.name, plan.source)
    assert {"a": "x", "b": "z"} == plan.tags


def test_sweeps_of_different_efforts_are_refused(ask) -> None:
    """One run has one effort; what differs is named."""
    with pytest.raises(Refused) as caught:
        ask(
            "matrix: {model: net}",
            "matrix: {model: net}\nmeasure: {repeats: 9, timeout: 1m}",
        )

    assert "b.yaml: asks for another effort than a.yaml" == caught.value.what
    assert "at measure; repeats 3 and 9, timeout_s 600 and 60" == caught.value.why


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    """A report could not tell them apart."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(f"def f(): '{folder}'")
    root = tmp_path / "root"
    root.mkdir()

    with pytest.raises(Refused, match=r"two models are called 'm.py:f'"):
        _plan(root, "matrix: {model: [../one/m.py:f, ../two/m.py:f]}\ninputs: {}")


def test_of_equal_jobs_the_first_one_stays(ask, tmp_path: Path) -> None:
    """With its own files: two copies of an NPZ are one input, and the first one is read."""
    for name in ("one.npz", "two.npz"):
        np.savez(tmp_path / name, x=np.ones((2, 4), "float32"))
    text = "matrix: {{model: net}}\ninputs: {{npz: {}.npz}}"

    plan = ask(text.format("one"), text.format("two"))

    (job,) = plan.jobs
    assert {job.job.workload.inputs.digest: tmp_path / "one.npz"} == plan.npz


# ── properties ───────────────────────────────────────────────────────────────────────────────────

_AXES = {
    "model": ["net", "bare"],
    "precision": ["fp32", "bf16", "fp16", "unspecified"],
    "batch": [1, 2, 4, 8],
    "device": ["any", "cpu", "h100", "node:n/1"],
    "backend": ["torch", "fake"],
}
_MATRIX = st.fixed_dictionaries(
    {"model": st.lists(st.sampled_from(_AXES["model"]), min_size=1, unique=True)},
    optional={
        axis: st.lists(st.sampled_from(values), min_size=1, unique=True)
        for axis, values in _AXES.items()
        if axis != "model"
    },
)
_ENTRY = st.fixed_dictionaries(
    {}, optional={axis: st.sampled_from(values) for axis, values in _AXES.items()}
).filter(bool)
_JOB = _ENTRY.filter(lambda entry: "model" in entry)
_DEFAULTS = {"precision": "fp32", "batch": 1, "device": "any", "backend": "torch"}


@settings(max_examples=50, deadline=None)
@given(
    st.permutations(list(_AXES)), _MATRIX, st.lists(_ENTRY, max_size=2), st.lists(_JOB, max_size=3)
)
def test_a_plan_is_the_product_minus_excluded_plus_included(
    tmp_path_factory, order: list[str], matrix: dict, excluded: list[dict], included: list[dict]
) -> None:
    """Jobs are those of a reference that fits in five lines: same set, same order, no id twice."""
    matrix = {axis: matrix[axis] for axis in order if axis in matrix}
    inputs = {"x": {"shape": ["batch", 4]}}
    sweep = {"matrix": matrix, "exclude": excluded, "include": included, "inputs": inputs}

    combinations = [
        {**_DEFAULTS, **dict(zip(matrix, each, strict=True))}
        for each in itertools.product(*matrix.values())
    ]
    kept = [c for c in combinations if not any(e.items() <= c.items() for e in excluded)]
    wanted = [*kept, *({**_DEFAULTS, **each} for each in included)]
    expected = list(dict.fromkeys(tuple(str(each[axis]) for axis in _AXES) for each in wanted))

    text = msgspec.yaml.encode(sweep).decode()
    root = tmp_path_factory.mktemp("sweep")
    if not expected:
        with pytest.raises(Refused, match="no job is left"):
            _plan(root, text)
        return
    plan = _plan(root, text)

    found = []
    for each in plan.jobs:
        backend = each.job.workload.backend
        found.append(tuple({**each.labels, "backend": backend}[axis] for axis in _AXES))
    assert expected == found
    assert len(found) == len({each.job.job_id for each in plan.jobs})
    assert math.prod(len(each) for each in matrix.values()) + len(included) >= len(found)
    assert plan == _plan(root, text)


def test_a_plan_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Ids and order depend on no hash seed."""
    (tmp_path / "m.py").write_text("import a, b\ndef f(): ...")
    (tmp_path / "a.py").write_text("")
    (tmp_path / "b.py").write_text("")
    text = "matrix: {model: 'm.py:f', batch: [1, 2]}\ninputs: {x: {shape: [batch]}}"
    (tmp_path / "a.yaml").write_text(text)
    code = (
        "import sys; from pathlib import Path; from farm.sweep import expand, load\n"
        "plan = expand(load(['a.yaml'], root=Path(sys.argv[1])), rows={})\n"
        "print([each.job.job_id for each in plan.jobs])"
    )

    def printed(seed: str) -> str:
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    assert printed("1") == printed("2") != ""


def test_the_quickstart_asks_what_it_says(tmp_path: Path) -> None:
    """The shipped sweep is quick, names five models or more, both precisions and both batches."""
    path = models.configs() / "sweeps" / "quickstart.yaml"

    plan = expand(load([path], root=tmp_path))

    cells = [*(each.labels for each in plan.jobs), *(each.labels for each in plan.skipped)]
    assert msgspec.structs.replace(EFFORTS["quick"], budget_ms=1000) == plan.effort
    assert len({each["model"] for each in cells}) >= 5
    assert "silero_jit" in {each["model"] for each in cells}
    assert ({"fp32", "bf16"}, {"1", "8"}, {"cpu"}) == tuple(
        {each[axis] for each in cells} for axis in ("precision", "batch", "device")
    )
    assert len(cells) == 4 * len({each["model"] for each in cells})
