"""The laws of reading a profile of ONNX Runtime: each node of each whole run, its own time."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from farm.errors import Bad, Refused
from farm.graphs import profile
from tests.farm.counted import lines_run


def event(
    name: str, start: int, took: int, *, op: str = "", number: int = 0, **more: Any
) -> dict[str, Any]:
    """Return an event: of a node where it has an operator, else of the session."""
    if not op:
        return {"cat": "Session", "name": name, "ts": start, "dur": took, "ph": "X", "args": {}}
    args = {"op_name": op, "node_index": str(number), "provider": "CPUExecutionProvider", **more}
    name = f"{name}_kernel_time"
    return {"cat": "Node", "name": name, "ts": start, "dur": took, "ph": "X", "args": args}


def run(start: int, *nodes: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Return the events of one run: nodes one after another, then the run, 10 µs longer."""
    found, at = [], start
    for number, (name, op, took) in enumerate(nodes):
        found.append(event(name, at, took, op=op, number=number))
        at += took
    return [*found, event("model_run", start, at - start + 10)]


def written(path: Path, events: Iterable[Mapping[str, Any]]) -> Path:
    """Write events as the runtime does: a list, one event on a line."""
    path.write_text("[\n" + ",\n".join(json.dumps(each) for each in events) + "\n]\n")
    return path


def _start() -> list[dict[str, Any]]:
    return [event("model_loading_uri", 0, 9), event("session_initialization", 9, 20)]


def test_a_run_is_its_nodes_in_order(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.json",
        [*_start(), *run(100, ("a", "Conv", 30), ("b", "Relu", 5)), *run(200, ("a", "Conv", 20))],
    )

    first, second = profile.read(path)

    assert [("a", "Conv", 30), ("b", "Relu", 5)] == [
        (each.name, each.op, each.own_us) for each in first.nodes
    ]
    assert (45, 30) == (first.total_us, second.total_us)


def test_layers_are_a_matrix_of_nanoseconds(tmp_path: Path) -> None:
    """Rows in the order of the first execution; a node that did not run took nothing."""
    path = written(
        tmp_path / "p.json",
        [*run(0, ("a", "Conv", 30), ("b", "Relu", 5)), *run(100, ("a", "Conv", 20))],
    )

    found = profile.layers(profile.read(path))

    assert (["a", "b"], ["Conv", "Relu"], [1.0, 0.5]) == (found.names, found.types, found.calls)
    assert [[30_000, 20_000], [5_000, 0]] == found.layer_ns.tolist()
    assert [45_000, 30_000] == found.run_ns.tolist()
    assert np.int64 == found.layer_ns.dtype


@pytest.mark.seed("S0.21")
def test_several_calls_in_a_run_are_summed(tmp_path: Path) -> None:
    """The body of a loop runs its node three times: one layer, three calls."""
    body = [event("body", 10 + 10 * at, 7, op="Add", number=4) for at in range(3)]
    path = written(
        tmp_path / "p.json",
        [*body, event("loop", 5, 40, op="Loop", number=1), event("model_run", 0, 50)],
    )

    found = profile.layers(profile.read(path))

    assert ["loop", "body"] == found.names
    assert [1.0, 3.0] == found.calls
    assert [[19_000], [21_000]] == found.layer_ns.tolist()


def test_a_node_that_runs_others_keeps_its_own_time(tmp_path: Path) -> None:
    """An `If` within an `If`: what is inside is taken off once, and the sum is that of the run."""
    path = written(
        tmp_path / "p.json",
        [
            event("before", 0, 3, op="Equal"),
            event("deep", 20, 5, op="Relu"),
            event("inner", 15, 15, op="If", number=1),
            event("outer", 10, 30, op="If", number=2),
            event("model_run", 0, 40),
        ],
    )

    (found,) = profile.read(path)

    assert {"before": 3, "outer": 15, "inner": 10, "deep": 5} == {
        each.name: each.own_us for each in found.nodes
    }
    assert ["before", "outer", "inner", "deep"] == [each.name for each in found.nodes]


def test_a_node_whose_inside_took_longer_has_no_time_of_its_own(tmp_path: Path) -> None:
    """Times are whole microseconds, and nodes may run side by side: none is less than nothing."""
    path = written(
        tmp_path / "p.json",
        [
            event("one", 10, 4, op="Relu"),
            event("other", 10, 4, op="Relu", number=1),
            event("loop", 9, 6, op="Loop", number=2),
            event("outer", 8, 9, op="If", number=3),
            event("model_run", 0, 20),
        ],
    )

    (found,) = profile.read(path)

    assert {"outer": 1, "loop": 0, "one": 4, "other": 4} == {
        each.name: each.own_us for each in found.nodes
    }


def test_nodes_of_a_run_that_failed_belong_to_no_other(tmp_path: Path) -> None:
    """It leaves no event of its own; its nodes began before the run that comes next."""
    failed = run(0, ("a", "Conv", 30), ("b", "Relu", 5))[:-1]
    path = written(tmp_path / "p.json", [*failed, *run(35, ("a", "Conv", 20))])

    (found,) = profile.read(path)

    assert [("a", 35, 20)] == [(each.name, each.start_us, each.own_us) for each in found.nodes]


def test_what_ended_in_one_run_is_within_no_node_of_another(tmp_path: Path) -> None:
    """Also where the clock of the second begins anew."""
    again = [event("loop", 0, 20, op="Loop", number=1), event("model_run", 0, 25)]
    path = written(tmp_path / "p.json", [*run(0, ("a", "Conv", 15)), *again])

    _, found = profile.read(path)

    assert [("loop", 20)] == [(each.name, each.own_us) for each in found.nodes]


def test_nodes_within_nodes_are_looked_at_once(tmp_path: Path) -> None:
    """However many begin together: twice as many are twice the work, where they were four times."""

    def work(count: int) -> int:
        nested = [event(f"n{at}", 0, at + 1, op="Loop", number=at) for at in range(count)]
        path = written(tmp_path / "p.json", [*nested, event("model_run", 0, count)])
        (found,) = profile.read(path)
        assert {1} == {each.own_us for each in found.nodes}
        return lines_run(lambda: profile.read(path))

    assert work(400) < 2.5 * work(200)


def test_nodes_of_one_name_stay_apart(tmp_path: Path) -> None:
    """Nodes without a name are called after their operator; their numbers differ."""
    path = written(tmp_path / "p.json", run(0, ("Relu", "Relu", 5), ("Relu", "Relu", 7)))

    found = profile.layers(profile.read(path))

    assert (["Relu", "Relu"], [[5_000], [7_000]]) == (found.names, found.layer_ns.tolist())


def test_shapes_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    shapes = {
        "input_type_shape": [{"float": [1, 3, 8, 8]}, {"int64": []}],
        "output_type_shape": [{"float16": [1]}],
    }
    path = written(
        tmp_path / "p.json", [event("a", 0, 1, op="Conv", **shapes), event("model_run", 0, 2)]
    )

    (found,) = profile.read(path)

    assert ([("float", (1, 3, 8, 8)), ("int64", ())], [("float16", (1,))]) == (
        found.nodes[0].shapes()
    )


def test_an_odd_shape_is_bad_and_not_a_crash(tmp_path: Path) -> None:
    odd = event("a", 0, 1, op="Conv", input_type_shape=[{"float": ["x"]}])
    path = written(tmp_path / "p.json", [odd, event("model_run", 0, 2)])

    (found,) = profile.read(path)

    with pytest.raises(Bad, match="a shape of the profile cannot be read"):
        found.nodes[0].shapes()


def test_fences_and_kernels_of_a_device_are_no_nodes(tmp_path: Path) -> None:
    """Older versions wrote what came before and after a node; a device writes its own events."""
    node, end = run(0, ("a", "Conv", 30))
    fence = {**node, "name": "a_fence_before"}
    kernel = {**node, "cat": "Kernel", "name": "void gemm<float>"}
    path = written(
        tmp_path / "p.json", [fence, node, {**fence, "name": "a_fence_after"}, kernel, end]
    )

    (found,) = profile.read(path)

    assert ["a"] == [each.name for each in found.nodes]


@given(keep=st.integers(0, 400))
def test_what_is_cut_off_leaves_the_whole_runs(tmp_path_factory: Any, keep: int) -> None:
    """A full disk ends a file anywhere: whole runs before that are read, or it is bad."""
    events = [each for at in range(3) for each in run(100 * at, ("a", "Conv", 30))]
    path = written(tmp_path_factory.mktemp("cut") / "p.json", events)
    data = path.read_bytes()
    path.write_bytes(data[: max(1, len(data) - keep)])
    whole = path.read_bytes().count(b"model_run")

    try:
        found = profile.read(path)
    except Bad:
        assert whole <= 1
        return
    assert len(found) in (whole, whole - 1)
    assert all([30] == [each.own_us for each in one.nodes] for one in found)


def test_a_profiler_that_stopped_leaves_the_runs_before_that(tmp_path: Path) -> None:
    """After a million events it notes nothing any more but that."""
    path = written(
        tmp_path / "p.json",
        [
            *run(0, ("a", "Conv", 30)),
            *run(100, ("a", "Conv", 30))[:1],
            event("profile_truncated", 0, 0),
        ],
    )

    assert 1 == len(profile.read(path))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "p.json holds no whole run of a model"),
        ("[]", "p.json holds no whole run of a model"),
        ("[\n]\n", "p.json holds no whole run of a model"),
        ('{"traceEvents": []}', "p.json is no profile of ONNX Runtime"),
        ("layer,time_pct\n", "p.json is no profile of ONNX Runtime"),
        ('[\n{"cat": "Node"},\n{"name": "x"}\n]', "p.json: line 2 is no event"),
        ('[\n{"name": "x", "ts": "soon"},\n{"name": "x"}\n]', "p.json: line 2 is no event"),
        ('[\n{"name": "x"},\n\x00\n{"name": "y"}\n]', "p.json: line 3 is no event"),
    ],
)
def test_what_is_no_profile_is_bad(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)

    with pytest.raises(Bad) as caught:
        profile.read(path)

    assert caught.value.what.startswith(what)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("field", "value"),
    [("dur", -50), ("ts", -1), ("dur", 2**43 + 1), ("ts", 10**17), ("dur", 1e15), ("dur", None)],
)
def test_a_time_that_no_profile_has_is_bad(
    tmp_path: Path, field: str, value: float | None, last: bool
) -> None:
    """Below zero, or above 100 days; also on the last line, which nothing was cut off from."""
    odd = {**event("model_run", 100, 50), field: value}
    path = written(
        tmp_path / "p.json",
        [*run(0, ("a", "Conv", 30)), odd, *([] if last else run(200, ("a", "Conv", 30)))],
    )

    with pytest.raises(Bad, match=r"p\.json: line 4 is no event"):
        profile.read(path)


@pytest.mark.parametrize(("took", "fits"), [(2**41 - 1, True), (2**41, False)])
def test_times_that_add_up_to_more_than_any_profile_are_bad(
    tmp_path: Path, took: int, fits: bool
) -> None:
    """Their sums are exact, as int64 and as float64 in nanoseconds: 2^43 µs are 2^53 ns."""
    nodes = [event("a", 0, took, op="Conv"), event("b", 0, took, op="Conv", number=1)]
    path = written(tmp_path / "p.json", [*nodes, event("model_run", 0, 2 * took + 1)])

    if not fits:
        with pytest.raises(Bad, match="its times add up to 8796093022209 µs"):
            profile.read(path)
        return
    found = profile.layers(profile.read(path))
    assert [[1000 * took], [1000 * took]] == found.layer_ns.tolist()
    assert 4 * took + 1 == float(found.layer_ns.sum() + found.run_ns.sum()) / 1000


def test_runs_with_no_node_in_common_are_no_profile_of_one_model() -> None:
    """Their matrix would be as large as the square of the file, and nearly empty."""
    nothing = Raw(b"[]")
    runs = [
        profile.GraphRun(5, [profile.NodeRun(f"n{at}", "Add", "0", "", 0, 5, nothing, nothing)])
        for at in range(12_000)
    ]

    with pytest.raises(Bad, match="12000 nodes in 12000 runs are no profile of one model"):
        profile.layers(runs)
    assert (1000, 1000) == profile.layers(runs[:1000]).layer_ns.shape


def test_a_file_that_was_read_already_is_read_alike(tmp_path: Path) -> None:
    path = written(tmp_path / "p.json", run(0, ("a", "Conv", 30)))

    found = profile.of_bytes(path.read_bytes(), name="p.json")

    assert [(40, [30])] == [(each.total_us, [one.own_us for one in each.nodes]) for each in found]
    with pytest.raises(Bad, match=r"p\.json holds no whole run"):
        profile.of_bytes(b"[]", name="p.json")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot read"):
        profile.read(tmp_path / "none.json")


@given(
    runs=st.lists(
        st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 50)), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_no_time_is_lost_or_counted_twice(
    tmp_path_factory: Any, runs: Sequence[Sequence[tuple[str, int]]]
) -> None:
    """Whatever the nodes are called: the matrix adds up to what they took, run by run."""
    events: list[dict[str, Any]] = []
    for at, nodes in enumerate(runs):
        events += run(1000 * at, *((name, "Add", took) for name, took in nodes))
    path = written(tmp_path_factory.mktemp("runs") / "p.json", events)

    found = profile.layers(profile.read(path))

    assert [1000 * sum(took for _, took in nodes) for nodes in runs] == (
        found.layer_ns.sum(axis=0).tolist()
    )
