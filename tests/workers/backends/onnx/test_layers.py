"""The laws of a layer pass: every node of every run, beside clean runs, and nothing left behind."""

import gc
import itertools
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from onnx import TensorProto, helper

from farm import graphs
from farm.schema import Tensor
from farm.trace import shares
from farm.trace.layers import reduce
from tests.farm.graphs import drawn
from tests.farm.graphs.drawn import FLOAT, INT64, node
from workers.backends import LayerAsk, NotOffered
from workers.backends.onnx import layers, session
from workers.backends.onnx.session import Opened, Settings

X = {"x": Tensor(shape=("batch", 4))}


def _asked(iterations=20, *, warmup=2, budget_ns=None, clock=time.perf_counter_ns, progress=None):
    return LayerAsk(
        iterations=iterations,
        warmup=warmup,
        budget_ns=budget_ns,
        clock=clock,
        progress=progress or (lambda phase, count: None),
    )


def _chain(path, *nodes, outputs=("y",)):
    return drawn.save(
        path,
        nodes,
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[(name, FLOAT, None) for name in outputs],
    )


@pytest.mark.seed("S0.8", "S0.13")
def test_every_run_yields_a_time_for_every_node(ask, load, tmp_path):
    """Under the engine's own names, in the order of execution; whole microseconds as ns."""
    drawn.mlp(tmp_path / "net.onnx")

    found = load(ask()).layers(_asked(20))

    # the runtime makes one node of the first product, its bias and its activation
    assert ("profiler", "wall", True) == (
        found.reading.method,
        found.reading.clock,
        found.reading.attributed,
    )
    assert "second" in " ".join(found.reading.layers)
    assert len(found.reading.layers) == len(found.reading.types) == len(found.reading.calls)
    assert (len(found.reading.layers), 20) == found.layer_ns.shape
    assert np.int64 == found.layer_ns.dtype
    assert not np.any(found.layer_ns % 1000)
    assert np.all(found.layer_ns.sum(axis=0) <= found.profiled_ns)


@pytest.mark.seed("S0.4", "S0.7")
def test_warm_up_runs_are_in_no_count(ask, load, tmp_path):
    """Of the profiled runs the first ones are dropped, at least one; clean ones are as many."""
    drawn.mlp(tmp_path / "net.onnx")
    step = load(ask())

    found, least = step.layers(_asked(20, warmup=5)), step.layers(_asked(3, warmup=0))

    assert (5, 20, 20, 20) == (
        found.reading.warmup,
        found.reading.iterations,
        found.profiled_ns.size,
        found.clean_ns.size,
    )
    assert (1, 3) == (least.reading.warmup, least.reading.iterations)


def test_blocks_of_clean_and_profiled_runs_take_turns(ask, load, tmp_path):
    """Ten blocks, the clean runs of each before its profiled ones, by one clock."""
    drawn.mlp(tmp_path / "net.onnx")
    told: list[int] = []
    ticks = itertools.count(step=1_000)

    found = load(ask()).layers(
        _asked(25, clock=lambda: next(ticks), progress=lambda phase, count: told.append(count))
    )

    assert [3, 6, 9, 12, 15, 17, 19, 21, 23, 25] == told
    assert 10 == found.reading.blocks
    assert {1_000} == set(found.profiled_ns.tolist()) | set(found.clean_ns.tolist())


def test_two_hundred_runs_suit_the_runtime(ask, load, tmp_path):
    """Its profiler counts whole microseconds, so it takes more of them."""
    _chain(tmp_path / "net.onnx", node("Neg", "x", "y", "n"))

    step = load(ask(spec=X))
    found = step.layers(_asked(step.layer_iterations))

    assert 200 == found.reading.iterations == found.profiled_ns.size


class Slow:
    """A session whose runs take so long, on a clock that only runs move; it notes the collector."""

    def __init__(self, engine, each_ns):
        self.engine, self.each_ns, self.now, self.collector = engine, each_ns, 0, set()

    def run(self, *asked):
        self.now += self.each_ns
        self.collector.add(gc.isenabled())
        return self.engine.run(*asked) if asked else None

    def __getattr__(self, name):
        return getattr(self.engine, name)


def _slowly(path, each_ns, **asked):
    """Return a pass over clean and profiled runs that take so long, and its session."""
    settings = Settings(path=path, threads=1, flush=False)
    slow = Slow(None, each_ns)

    def opened(settings, *, profile):
        made = session.opened(settings, profile=profile)
        slow.engine = made.session
        return Opened(session=slow, threads=made.threads)

    x = {"x": np.zeros((1, 4), np.float32)}
    asked = _asked(**asked, clock=lambda: slow.now)
    return layers.measure(slow.run, settings, graphs.read(path), x, asked, opened=opened), slow


@pytest.mark.parametrize(
    ("budget_ms", "iterations", "blocks"),
    [(None, 100, 10), (10_000, 100, 10), (1000, 50, 10), (40, 2, 2), (1, 1, 1)],
)
def test_a_budget_ends_the_pass_after_the_block_in_hand(tmp_path, budget_ms, iterations, blocks):
    """Runs of 10 ms, each beside a clean one; blocks shrink to fit, down to one run."""
    path = _chain(tmp_path / "net.onnx", node("Neg", "x", "y", "n"))
    budget_ns = None if budget_ms is None else budget_ms * 1_000_000

    found, _ = _slowly(path, 10_000_000, iterations=100, budget_ns=budget_ns)

    assert (iterations, blocks) == (found.reading.iterations, found.reading.blocks)
    assert iterations == found.layer_ns.shape[1]
    assert iterations == len(found.clean_ns) == len(found.profiled_ns)


def test_the_collector_rests_during_the_pass(tmp_path):
    path = _chain(tmp_path / "net.onnx", node("Neg", "x", "y", "n"))

    assert gc.isenabled()
    _, slow = _slowly(path, 1, iterations=2)
    assert gc.isenabled()
    assert {False} == slow.collector


@pytest.mark.seed("S0.21")
def test_a_node_that_runs_several_times_is_one_layer(ask, load, tmp_path):
    """The body of a loop of three turns: three calls a run, summed."""
    body = helper.make_graph(
        [node("Identity", "go", "again"), node("Add", "state state", "twice", "double")],
        "body",
        [
            helper.make_tensor_value_info("turn", INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("twice", FLOAT, None),
        ],
    )
    drawn.save(
        tmp_path / "net.onnx",
        [node("Loop", "n go x", "y", "turns", body=body)],
        inputs=[("x", FLOAT, ["batch", 4])],
        outputs=[("y", FLOAT, None)],
        weights={"n": np.array(3), "go": np.array(True)},
    )
    step = load(ask(spec=X))
    np.testing.assert_allclose(8 * step._inputs["x"], step()[0], rtol=1e-6)

    found = step.layers(_asked(10))

    calls = dict(zip(found.reading.layers, found.reading.calls, strict=True))
    assert (1.0, 3.0) == (calls["turns"], calls["double"])
    assert np.all(found.layer_ns.sum(axis=0) <= found.profiled_ns)


@pytest.mark.seed("S0.13")
def test_names_that_come_again_are_numbered(ask, load, tmp_path):
    """A node within a branch may bear the name of one outside: two layers, in calling order."""
    branch = helper.make_graph(
        [node("Neg", "x", "minus", "same")],
        "branch",
        [],
        [helper.make_tensor_value_info("minus", FLOAT, None)],
    )
    drawn.save(
        tmp_path / "net.onnx",
        [
            node("If", "c", "a", "choice", then_branch=branch, else_branch=branch),
            node("Exp", "a", "b", "between"),
            node("Erf", "b", "y", "same"),
        ],
        inputs=[("x", FLOAT, ["batch", 4]), ("c", TensorProto.BOOL, [])],
        outputs=[("y", FLOAT, None)],
    )

    found = load(ask()).layers(_asked(5))

    assert ["choice", "same", "between", "same#2"] == found.reading.layers
    assert ["If", "Neg", "Exp", "Erf"] == found.reading.types


def test_nodes_without_a_name_have_that_of_the_engine(ask, load, tmp_path):
    _chain(tmp_path / "net.onnx", node("Neg", "x", "a"), node("Neg", "a", "y"))

    found = load(ask(spec=X)).layers(_asked(5))

    assert ["Neg_0", "Neg_1"] == found.reading.layers


def test_the_profile_file_is_removed(ask, load, tmp_path):
    drawn.mlp(tmp_path / "net.onnx")
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("farm-layers-*"))

    load(ask()).layers(_asked(5))

    assert set() == set(folder.glob("farm-layers-*")) - before
    assert not list(Path().glob("*profile*.json"))


def test_a_pass_becomes_a_table(ask, load, tmp_path):
    """Rows below 10 µs are not reliable, since the profiler counts whole microseconds.

    Nor are those that a few slow iterations carry.
    """
    drawn.mlp(tmp_path / "net.onnx")
    found = load(ask()).layers(_asked(20))

    table = reduce(
        found.reading,
        found.layer_ns,
        profiled_ns=found.profiled_ns,
        clean_ns=found.clean_ns,
        precision="fp32",
        device="cpu",
    )

    carried = list(zip(table.rows, shares.carried(table.rows), strict=True))
    assert found.reading.layers == [each.layer for each in table.rows]
    assert 100.0 == pytest.approx(sum(each.share_pct for each in table.rows))
    doubts = [each.median_ms < 0.01 or odd for each, odd in carried]
    assert doubts == [not each.reliable for each in table.rows]
    assert table.perturbation is not None


def test_more_nodes_than_events_are_not_offered(tmp_path):
    """The profiler would stop in silence before the first run ends."""
    path = _chain(tmp_path / "net.onnx", node("Neg", "x", "y", "n"))
    graph = graphs.read(path)
    vast = msgspec.structs.replace(graph, nodes=graph.nodes * 900_000)

    with pytest.raises(NotOffered, match="900000 nodes are too many events"):
        layers.measure(
            lambda: None, Settings(path=path, threads=1, flush=False), vast, {}, _asked()
        )


def test_a_large_graph_is_run_as_often_as_events_allow(tmp_path):
    path = _chain(tmp_path / "net.onnx", node("Neg", "x", "y", "n"))
    graph = graphs.read(path)
    large = msgspec.structs.replace(graph, nodes=graph.nodes * 99_998)

    found = layers.measure(
        lambda: None,
        Settings(path=path, threads=1, flush=False),
        large,
        {"x": np.zeros((1, 4), np.float32)},
        _asked(100, warmup=2),
    )

    assert 7 == found.reading.iterations  # of 100,000 events each, two of them to warm up


def test_a_damaged_profile_is_not_offered(tmp_path):
    """The pass has no layers then, and says why; nothing else is lost."""
    path = tmp_path / "profile.json"
    path.write_text('[\n{"cat" : "Session","name" :"model_loading_uri"},\n{"cat" : "No')

    with pytest.raises(NotOffered, match=r"error: profile.json holds no whole run of a model"):
        layers._read(path)
    with pytest.raises(NotOffered, match="error: cannot read"):
        layers._read(tmp_path / "none.json")
