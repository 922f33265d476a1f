"""The laws of the grammar: which jobs a sweep asks for, in which order, under which words."""

from pathlib import Path

import numpy as np
import pytest

from farm import archive
from farm.effort import EFFORTS
from farm.errors import Refused
from farm.schema import Tensor
from farm.sweep import Plan, label_text
from tests.farm.graphs import drawn

X = {"x": Tensor(shape=("batch", 4))}


def _labels(plan: Plan) -> list[str]:
    return [label_text(each.labels) for each in plan.jobs]


def test_the_product_is_in_order_last_axis_fastest(ask) -> None:
    """Jobs come in the order of the file, and a scalar is a list of one."""
    plan = ask("matrix: {model: net, batch: [8, 1], precision: [fp32, bf16]}")

    assert [
        "net/fp32/b8/any",
        "net/bf16/b8/any",
        "net/fp32/b1/any",
        "net/bf16/b1/any",
    ] == _labels(plan)


def test_exclude_removes_every_matching_job(ask) -> None:
    """A job goes when it matches an entry in all keys that the entry names."""
    plan = ask(
        """
        matrix: {model: [net, call], batch: [1, 2, 3], precision: unspecified}
        exclude:
          - {model: zoo:net, batch: [2, 3]}
          - {batch: 3, device: any}
          - {batch: 1, device: cpu}
        """,
    )

    assert ["net/unspecified/b1/any", "call/unspecified/b1/any", "call/unspecified/b2/any"] == (
        _labels(plan)
    )


def test_include_adds_whole_jobs_that_no_exclude_takes(ask) -> None:
    """An entry is a job of its own, with defaults for what it leaves out, after the matrix."""
    plan = ask(
        """
        matrix: {model: net, batch: [1, 2], device: cpu}
        exclude: {batch: 2}
        include:
          - {model: net, batch: 2, precision: fp16, device: node:n/0}
          - {model: net}
        """,
    )

    assert ["net/fp32/b1/cpu", "net/fp16/b2/node:n/0", "net/fp32/b1/any"] == _labels(plan)


def test_a_sweep_may_be_a_list_of_jobs(ask) -> None:
    """Without a matrix the included jobs are all there is."""
    assert ["net/fp32/b3/any"] == _labels(ask("include: [{model: net, batch: 3}]"))


def test_a_job_that_is_there_twice_is_there_once(ask) -> None:
    """Equal jobs by different words are one, the first of them."""
    plan = ask(
        "matrix: {model: [net, zoo:net], batch: [1, 1]}\ninclude: {model: net, backend: torch}",
    )

    assert ["net/fp32/b1/any"] == _labels(plan)


def test_named_axes_belong_to_the_models_that_have_them(ask) -> None:
    """`seq` sizes the inputs that name it; a model without it has one job and no such label."""
    plan = ask("matrix: {model: [net, text], seq: [16, 32]}")

    assert ["net/fp32/b1/any", "text/fp32/b1/any/seq=16", "text/fp32/b1/any/seq=32"] == (
        _labels(plan)
    )
    shapes = [next(iter(each.job.workload.inputs.spec.values())).shape for each in plan.jobs]
    assert [("batch", 4), ("batch", 16), ("batch", 32)] == shapes


def test_other_axes_are_named_where_they_differ(ask) -> None:
    """An axis with one value is in no label, one with several is in each."""
    one = ask("matrix: {model: text, seq: 16, backend: fake, mode: inference}")
    two = ask("matrix: {model: net, backend: [torch, fake]}")

    assert ["text/fp32/b1/any"] == _labels(one)
    assert ["net/fp32/b1/any/backend=torch", "net/fp32/b1/any/backend=fake"] == _labels(two)


def test_a_step_is_of_unspecified_precision(ask) -> None:
    """What is called as it is has no precision unless one is asked for, and then is refused."""
    assert ["call/unspecified/b1/any"] == _labels(ask("matrix: {model: call}"))


def test_the_row_of_a_model_fills_what_the_sweep_leaves_out(ask) -> None:
    """Inputs, item and denormals come from `models.yaml` until the sweep says otherwise."""
    own = ask("matrix: {model: net}").jobs[0].job
    said = (
        ask(
            """
        matrix: {model: net, backend: fake}
        inputs: {y: {shape: [batch, 5]}}
        item: frame
        measure: {denormals: as_is, warmup: 3}
        backend_options: {work: 2, mode: sleep, fail_repeat: -1}
        """,
        )
        .jobs[0]
        .job
    )

    assert (X, "image") == (own.workload.inputs.spec, own.workload.item)
    assert ("flush", "auto") == (own.protocol.denormals, own.protocol.warmup)
    assert {"y": Tensor(shape=("batch", 5))} == said.workload.inputs.spec
    assert ("frame", "as_is", 3) == (
        said.workload.item,
        said.protocol.denormals,
        said.protocol.warmup,
    )
    assert {"work": 2, "mode": "sleep", "fail_repeat": -1} == said.workload.backend_options


def test_user_code_and_arrays_are_listed_by_their_digests(ask, tmp_path: Path) -> None:
    """The plan holds the files that must travel, each under the digest that its jobs name."""
    (tmp_path / "m.py").write_text("import part\ndef build(): ...")
    (tmp_path / "part.py").write_text("")
    np.savez(tmp_path / "in.npz", x=np.ones((2, 3), "float32"))

    plan = ask(
        """
        matrix: {model: [m.py:build, net], batch: [1, 2]}
        inputs: {npz: in.npz, x: {shape: [batch, 3]}}
        kind: factory
        """,
    )

    workload = plan.jobs[0].job.workload
    ((digest, files),) = plan.bundles.items()
    assert ["m.py", "part.py"] == [name for name, _ in files]
    assert digest == workload.model.digest == archive.pack(files)[0]
    assert {workload.inputs.digest: tmp_path / "in.npz"} == plan.npz
    assert ("factory", "m.py:build") == (workload.model.kind, plan.jobs[0].labels["model"])


def test_a_model_that_is_not_installed_is_skipped_with_its_reason(ask) -> None:
    """One missing package does not keep the other models from being measured."""
    plan = ask("matrix: {model: [gone, net], batch: [1, 8]}")

    assert ["net/fp32/b1/any", "net/fp32/b8/any"] == _labels(plan)
    assert ["gone/fp32/b1/any", "gone/fp32/b8/any"] == [
        label_text(each.labels) for each in plan.skipped
    ]
    assert "model 'gone' needs 'no_such_package', which is not installed" == plan.skipped[0].reason


def test_a_flag_changes_the_plan_and_its_digest(ask) -> None:
    """`-S batch=1,8` stands over the file, and the source is then no longer the bare file."""
    text = "matrix: {model: net, batch: 4}\nmeasure: {effort: quick}"
    plain = ask(text)

    plan = ask(text, sets=("batch=1,8", "measure.effort=thorough", "name=night"))

    assert ["net/fp32/b1/any", "net/fp32/b8/any"] == _labels(plan)
    assert EFFORTS["thorough"] == plan.effort
    assert ("a", "night") == (plain.name, plan.name)
    assert plain.source_sha256 != plan.source_sha256


def test_the_effort_of_the_caller_counts_where_the_sweep_is_silent(ask) -> None:
    """A sweep that names an effort keeps it."""
    assert EFFORTS["quick"] == ask("matrix: {model: net}", effort="quick").effort
    text = "matrix: {model: net}\nmeasure: {effort: standard}"
    assert EFFORTS["standard"] == ask(text, effort="quick").effort


# ── graphs ───────────────────────────────────────────────────────────────────────────────────────


def test_a_graph_is_measured_by_its_runtime(ask, tmp_path) -> None:
    """A file named in a sweep: its backend, its precision and its inputs are its own."""
    path = drawn.mlp(tmp_path / "net.onnx", kind=drawn.HALF, external="net.weights")

    plan = ask("matrix: {model: [net.onnx, net], batch: [1, 8]}")

    first, _, third, _ = [each.job for each in plan.jobs]
    assert ("onnx", "fp16") == (first.workload.backend, first.workload.precision)
    assert ("torch", "fp32") == (third.workload.backend, third.workload.precision)
    assert {"x": Tensor(shape=("batch", 64), dtype="float16")} == first.workload.inputs.spec
    assert [("net.onnx", path), ("net.weights", tmp_path / "net.weights")] == (
        list(plan.bundles[first.workload.model.digest])
    )
    assert "net.onnx/fp16/b8/any/backend=onnx" == label_text(plan.jobs[1].labels)


def test_a_named_axis_of_a_graph_is_an_axis_of_the_sweep(ask, tmp_path) -> None:
    """As one of inputs that a person specifies."""
    drawn.save(
        tmp_path / "net.onnx",
        [drawn.node("Neg", "x", "y")],
        inputs=[("x", drawn.FLOAT, ["batch", "seq"])],
        outputs=[("y", drawn.FLOAT, None)],
    )

    plan = ask("matrix: {model: net.onnx, seq: [16, 32]}")

    assert [("batch", 16), ("batch", 32)] == [
        each.job.workload.inputs.spec["x"].shape for each in plan.jobs
    ]


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        (
            "matrix: {model: net.onnx, backend: torch}",
            "backend 'torch' cannot run 'net.onnx'",
            "leave the axis out",
        ),
        ("matrix: {model: net, backend: onnx}", "backend 'onnx' cannot run 'net'", "export it"),
        (
            "matrix: {model: net.onnx, precision: bf16}",
            "precision 'bf16' cannot be applied to 'net.onnx'",
            "take fp32, or leave the axis out",
        ),
        (
            "matrix: {model: net.onnx}\ninputs: {y: {shape: [2]}, z: {shape: [2]}}",
            "net.onnx takes no input 'y'",
            "",
        ),
        (
            "matrix: {model: net.onnx}\ninputs: {x: {shape: [batch, 65]}}",
            "input 'x' of net.onnx cannot have the shape [batch, 65] at batch 1",
            "",
        ),
        (
            "matrix: {model: fixed.onnx, batch: [1, 8]}",
            "batch 8 changes nothing",
            "export it with an open first axis",
        ),
        (
            "matrix: {model: open.onnx}",
            "input 'x' of open.onnx has an axis of any length without a name: [?, ?]",
            "say it: inputs: {x: {shape: [batch, LENGTH]}}",
        ),
        (
            "matrix: {model: seq.onnx}",
            "the axis 'seq' of the inputs has no value",
            "add it to the matrix: seq: [128]",
        ),
    ],
)
def test_what_a_graph_cannot_be_asked_is_refused(ask, tmp_path, text, what, hint) -> None:
    """Before anything runs: another backend, precision, input, batch, or an axis left open."""
    drawn.mlp(tmp_path / "net.onnx")
    for name, shape in (("fixed", [1, 4]), ("open", [None, None]), ("seq", ["batch", "seq"])):
        drawn.save(
            tmp_path / f"{name}.onnx",
            [drawn.node("Neg", "x", "y")],
            inputs=[("x", drawn.FLOAT, shape)],
            outputs=[("y", drawn.FLOAT, None)],
        )

    with pytest.raises(Refused) as caught:
        ask(text)

    assert f"a.yaml: {what}" == caught.value.what
    assert hint in caught.value.hint


def test_inputs_of_a_sweep_stand_over_those_of_the_graph(ask, tmp_path) -> None:
    """What it leaves open is said there, and any backend but its own need not care."""
    drawn.save(
        tmp_path / "net.onnx",
        [drawn.node("Neg", "x", "y")],
        inputs=[("x", drawn.FLOAT, [None, None])],
        outputs=[("y", drawn.FLOAT, None)],
    )

    (one,) = ask("matrix: {model: net.onnx}\ninputs: {x: {shape: [batch, 9]}}").jobs
    (fake,) = ask("matrix: {model: net.onnx, backend: fake}\ninputs: {z: {shape: []}}").jobs

    assert {"x": Tensor(shape=("batch", 9))} == one.job.workload.inputs.spec
    assert "fake" == fake.job.workload.backend


def test_a_graph_of_no_known_precision_declares_none(ask, tmp_path) -> None:
    """As one that computes in eight bits."""
    drawn.save(
        tmp_path / "net.onnx",
        [drawn.node("DequantizeLinear", "w s", "f"), drawn.node("MatMul", "x f", "y")],
        inputs=[("x", drawn.FLOAT, ["batch", 4])],
        outputs=[("y", drawn.FLOAT, None)],
        weights={"w": np.ones((4, 4), np.int8), "s": np.float32(0.1)},
    )

    (one,) = ask("matrix: {model: net.onnx}").jobs

    assert "unspecified" == one.job.workload.precision
