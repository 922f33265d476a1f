"""The laws of mistakes in a sweep: each is named with its file, its place and the way out."""

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.errors import Refused
from farm.models import ModelRow
from farm.schema import Tensor
from farm.sweep import expand, load

REF = "workers.models.placeholder:demo_depth"
ROWS = {
    "net": ModelRow(ref=REF, inputs={"x": Tensor(shape=("batch", 4))}),
    "text": ModelRow(ref=REF, inputs={"ids": Tensor(shape=("batch", "seq"), dtype="int64")}),
    "fixed": ModelRow(ref=REF, inputs={"x": Tensor(shape=(4, 4))}),
    "bare": ModelRow(ref=REF),
    "call": ModelRow(ref=REF, inputs={}, kind="step"),
}
AXES = "known: model, precision, batch, device, backend, mode, environment"
FORMS = "a model is a name of models.yaml, MODULE:CALLABLE, FILE.py:CALLABLE or FILE.onnx"
SELECTORS = "known: any, cpu, gpu, a hardware class, node:NAME, node:NAME/SLOT"
KEYS = (
    "known: name, matrix, exclude, include, measure, inputs, item, kind, backend_options, "
    "exclusive, tags"
)

BAD = [
    # ── keys ──
    (
        "matixx: {model: net}",
        "unknown key 'matixx'",
        f"at matixx; {KEYS}",
        "did you mean `matrix`?",
    ),
    ("zzz: 1", "unknown key 'zzz'", f"at zzz; {KEYS}", ""),
    ("matrix: [net]", "expected keys and values, got a list", "at matrix", ""),
    ("matrix: net", "expected keys and values, got 'net'", "at matrix", ""),
    ("matrix: {}", "no job is left", "neither matrix nor include names one", ""),
    ("name: x", "no job is left", "neither matrix nor include names one", ""),
    ("matrix: {model: net}\nname: [1]", "expected text, got a list", "at name", ""),
    (
        "matrix: {model: net}\nname: off",
        "expected text, got false",
        "at name",
        'write "false" in q',
    ),
    # ── axes ──
    ("matrix: {batch: 1}", "no model is named", f"at matrix; {AXES}, any named axis of", ""),
    (
        "matrix: {model: net, prexision: fp32}",
        "unknown axis 'prexision'",
        f"at matrix.prexision; {AXES}",
        "did you mean `precision`?",
    ),
    (
        "matrix: {model: text, seq: 1, sec: 2}",
        "unknown axis 'sec'",
        f"at matrix.sec; {AXES}, seq",
        "did you mean `seq`?",
    ),
    ("matrix: {model: net, seq: 8}", "unknown axis 'seq'", f"at matrix.seq; {AXES}", ""),
    ("matrix: {model: net, batch: []}", "an empty list", "at matrix.batch", ""),
    (
        "matrix: {model: net, precision: [fp61]}",
        "unknown precision 'fp61'",
        "at matrix.precision[0]; known: unspecified, fp32, bf16, fp16",
        "did you mean `fp16`?",
    ),
    (
        "matrix: {model: net, precision: [fp32, int8]}",
        "precision 'int8' is not in this version",
        "at matrix.precision[1]; known: unspecified, fp32, bf16, fp16",
        "",
    ),
    ("matrix: {model: net, precision: 32}", "expected a precision, got the number 32", "at m", ""),
    ("matrix: {model: net, batch: 0}", "expected at least 1, got 0", "at matrix.batch", ""),
    ("matrix: {model: net, batch: [1, '8']}", "expected a whole number, got '8'", "at m", ""),
    ("matrix: {model: net, batch: 1.5}", "expected a whole number, got 1.5", "at matrix.batch", ""),
    ("matrix: {model: net, batch: true}", "expected a whole number, got true", "at matrix.b", ""),
    ("matrix: {model: net, batch: {a: 1}}", "expected a whole number, got keys", "at matr", ""),
    ("matrix: {model: net, batch: null}", "expected a whole number, got nothing", "at mat", ""),
    (
        "matrix: {model: net, batch: 1e99}",
        "expected a whole number, got '1e99'",
        "at matrix.batch",
        "",
    ),
    (
        "matrix: {model: net, device: A100}",
        "unknown device 'A100'",
        f"at matrix.device; {SELECTORS}",
        "did you mean `a100`?",
    ),
    (
        "matrix: {model: net, device: each-node}",
        "device 'each-node' is not in this version",
        "at matrix.device",
        "name the classes or nodes instead",
    ),
    (
        "matrix: {model: net, backend: onnx:CUDA}",
        "backend 'onnx:CUDA' is not in this version",
        "at matrix.backend; known: torch, onnx, fake",
        "",
    ),
    (
        "matrix: {model: net, mode: generate}",
        "mode 'generate' is not in this version",
        "at matrix.mode; known: inference, train",
        "",
    ),
    (
        "matrix: {model: net, environment: torch-29}",
        "environment 'torch-29' is not in this version",
        "at matrix.environment",
        "leave the axis out",
    ),
    # ── models ──
    (
        "matrix: {model: [net, nett]}",
        "unknown model 'nett'",
        "at matrix.model[1]; known: net, text, fixed, bare, call",
        "did you mean `net`?",
    ),
    ("matrix: {model: 7}", "expected a model, got the number 7", "at matrix.model", ""),
    ("matrix: {model: ''}", "expected a model, got ''", "at matrix.model", ""),
    ("matrix: {model: no}", "expected a model, got false", "at matrix.model", 'write "false"'),
    ("matrix: {model: zz.py:f}", "no file 'zz.py'", "at matrix.model; looked in ", ""),
    (
        "matrix: {model: model.py:buildx}",
        "model 'model.py:buildx': no 'buildx' in model.py",
        "at matrix.model; it has build",
        "did you mean `build`?",
    ),
    (
        "matrix: {model: 'http://x/m:f'}",
        "'http://x/m:f' is no model",
        "at matrix.model; nothing",
        "",
    ),
    (f"matrix: {{model: {'x' * 9000}}}", "'xxx", f"at matrix.model; {FORMS}", ""),
    # ── exclude and include ──
    ("matrix: {model: net}\nexclude: [{}]", "names no axis", "at exclude[0]", ""),
    ("matrix: {model: net}\nexclude: [net]", "expected keys and values, got 'net'", "at excl", ""),
    (
        "matrix: {model: net}\nexclude: [{batch: 2}, {batchh: 1}]",
        "unknown axis 'batchh'",
        f"at exclude[1].batchh; {AXES}",
        "did you mean `batch`?",
    ),
    (
        "matrix: {model: net}\nexclude: [{model: nett}]",
        "unknown model 'nett'",
        "at exclude[0].model; known: net, text, fixed, bare, call",
        "did you mean `net`?",
    ),
    ("matrix: {model: net}\nexclude: {batch: 1}", "no job is left", "exclude takes the whole", ""),
    ("include: [{batch: 1}]", "no model is named", f"at include[0]; {AXES}, any", ""),
    (
        "include: [{model: net, batch: [1, 2]}]",
        "an entry of include is one job",
        "at include[0].batch[1]",
        "write an entry per value",
    ),
    # ── combinations ──
    (
        "matrix: {model: call, precision: [unspecified, bf16]}",
        "precision 'bf16' cannot be applied to 'call'",
        "at matrix.precision[1]; it is declared as kind: step, and a step is called as it is",
        "take `unspecified`; or let a function that accepts `precision` return the model, "
        "and declare kind: factory",
    ),
    (
        "matrix: {model: fixed, batch: [4, 8]}",
        "batch 8 changes nothing",
        "at matrix.batch[1]; no shape of the inputs names `batch`",
        "write `batch` for the axis that grows: shape: [batch, 3, 224, 224]",
    ),
    (
        "matrix: {model: text}",
        "the axis 'seq' of the inputs has no value",
        "at matrix",
        "add it to the matrix: seq: [128]",
    ),
    (
        "matrix: {model: bare}",
        "model 'bare' needs inputs",
        "at inputs",
        "for example inputs: {x: {shape: [batch, 3, 224, 224]}}, or {} for none",
    ),
    (
        f"matrix: {{model: net, batch: [{','.join('1' * 400)}], device: [{','.join('a' * 400)}]}}",
        "160,000 jobs",
        "at matrix; a sweep holds at most 100,000",
        "ask it in several sweeps",
    ),
    # ── the rest ──
    ("matrix: {model: net}\nkind: model", "unknown kind 'model'", "at kind; known: auto, fa", ""),
    (
        "matrix: {model: net}\nexclusive: node",
        "exclusive 'node' is not in this version",
        "at exclusive; known: none",
        "",
    ),
    (
        "matrix: {model: net}\nmeasure: {priority: high}",
        "priority is not in this version",
        "at measure.priority",
        "leave priority out, or say false",
    ),
    (
        "matrix: {model: net}\ninputs: {x: {shape: [batch, 3], dtype: flaot32}}",
        "unknown dtype 'flaot32'",
        "at inputs.x.dtype; known: float32, float64",
        "did you mean `float32`?",
    ),
    (
        "matrix: {model: net}\nbackend_options: {a: 1.5}",
        "expected text, a whole number, true or false, got the number 1.5",
        "at backend_options.a",
        "",
    ),
    ("matrix: {model: net}\ntags: {a: 1}", "expected text, got the number 1", "at tags.a", ""),
    ("matrix: {model: net}\nitem: ''", "expected text, got ''", "at item", ""),
]


@pytest.mark.parametrize(("text", "what", "why", "hint"), BAD, ids=[each[1][:40] for each in BAD])
def test_a_sweep_that_makes_no_sense_is_refused(
    tmp_path: Path, text: str, what: str, why: str, hint: str
) -> None:
    """What is wrong stands first, then the place and the known words, then the nearest of them."""
    (tmp_path / "night.yaml").write_text(text)
    (tmp_path / "model.py").write_text("def build(): ...")

    with pytest.raises(Refused) as caught:
        expand(load(["night.yaml"], root=tmp_path), rows=ROWS)

    assert caught.value.what.startswith(f"night.yaml: {what}")
    assert caught.value.why.startswith(why)
    assert caught.value.hint.startswith(hint)
    assert bool(hint) == bool(caught.value.hint)
    assert 2 == caught.value.exit_code


def test_a_mistake_in_a_flag_is_blamed_on_the_flag(tmp_path: Path) -> None:
    """The file is right, so the words of `-S` are quoted instead of its name."""
    (tmp_path / "night.yaml").write_text("matrix: {model: net}")

    with pytest.raises(Refused) as caught:
        expand(load(["night.yaml"], ["precision=fp32,fp61"], root=tmp_path), rows=ROWS)

    assert "-S precision=fp32,fp61: unknown precision 'fp61'" == caught.value.what
    assert "at matrix.precision[1]; known: unspecified, fp32, bf16, fp16" == caught.value.why


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_WORDS = st.sampled_from(["net", "text", "call", "fp32", "auto", "batch", "seq", "10m", "any", "x"])
_NAMES = _WORDS | st.sampled_from(
    ["model", "precision", "device", "shape", "dtype", "npz", "effort"]
)
_TREES = st.recursive(
    _WORDS | _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)
_TOPS = st.sampled_from(
    ["name", "matrix", "exclude", "include", "measure", "inputs", "item", "kind", "tags"]
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(_TOPS, _TREES, max_size=4), st.dictionaries(_NAMES, _TREES, max_size=3))
def test_any_sweep_plans_or_is_refused(tmp_path_factory, data: dict, matrix: dict) -> None:
    """No sweep ends in anything but a plan of at least one job or an error that was meant."""
    root = tmp_path_factory.mktemp("sweep")
    sweep = {"matrix": {"model": "net", **matrix}, **data}
    (root / "a.yaml").write_bytes(msgspec.yaml.encode(sweep))

    with contextlib.suppress(Refused):
        assert expand(load(["a.yaml"], root=root), rows=ROWS).jobs
