import json
import time
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import nn

from farm.schema import Capture, Data
from farm.trace.analysis.analysing import analysed
from farm.trace.reading import reader
from workers.backends import LoadFailed, NotOffered, TraceAsk
from workers.backends.torch import pipeline, stages, tracing, training
from workers.backends.torch.training import Batch
from workers.fakes import FakeClock


class Detects(nn.Module):
    """As small as a pipeline can be."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x.mean(dim=(2, 3)))

    def preprocess(self, images, size):
        return torch.stack([each[:size, :size].permute(2, 0, 1).float() for each in images])

    def postprocess(self, raw, conf, iou, max_det):
        return [each.softmax(0) for each in raw]


class Yielding:
    """A loader in this process: one pass of so many batches."""

    def __init__(self, count):
        self.count, self.begun = count, 0

    def length(self, data, batch):
        return None

    def takes(self, data):
        return ()

    def batches(self, data, *, batch, imgsz, workers):
        self.begun += 1
        return Pass((torch.ones(batch, 3), torch.zeros(batch, 2)) for _ in range(self.count))


class Pass:
    notes = ()

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return self.batches


def asked(folder, **changes):
    fields = {
        "iterations": 3,
        "warmup": 1,
        "file": folder / "trace.json",
        "limit_bytes": 1 << 30,
        "clock": time.perf_counter_ns,
        "progress": lambda _phase, _done: None,
    }
    return TraceAsk(**{**fields, **changes})


def training_of(loading, *, warmup=0, steps=3):
    data = Data(kind="callable", word="own:batches")
    return pipeline.of_training(
        nn.Linear(3, 2),
        {"x": torch.ones(2, 3)},
        Capture(data=data, warmup=warmup, steps=steps),
        loading=loading,
        batch=2,
        device="cpu",
        clock=time.perf_counter_ns,
        again=True,
        stand_in=True,
    )


def inferring(module, inputs, **capture):
    return pipeline.of_inference(module, inputs, Capture(**capture), batch=1, device="cpu")


def take(made, folder, **changes):
    return tracing.take(made, asked(folder, **changes), accelerator=None)


def read(folder):
    with (folder / "trace.json").open("rb") as file:
        return reader.of(file)


def spans(folder):
    """The events that somebody named, by their begin, and all others."""
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    named = [each for each in events if each.get("cat") == "user_annotation"]
    return sorted(named, key=lambda each: each["ts"]), [each for each in events if each.get("cat")]


PIPELINES = {
    "training": (
        lambda: training_of(Yielding(100)).stages,
        ["dataload", "to_device", "forward", "backward", "optimizer"],
    ),
    "detection": (
        lambda: inferring(Detects(), {}, imgsz=32).stages,
        ["preprocess", "forward", "postprocess"],
    ),
    "plain": (lambda: inferring(nn.Linear(3, 2), {"x": torch.ones(1, 3)}).stages, ["forward"]),
}


# ── what is in it ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.46")
@pytest.mark.parametrize("kind", PIPELINES)
def test_a_trace_has_its_iterations_and_in_each_its_phases_in_their_order(kind, tmp_path):
    made, phases = PIPELINES[kind]

    found = take(made(), tmp_path)

    named, _ = spans(tmp_path)
    steps = [each for each in named if each["name"].startswith("ProfilerStep#")]
    assert (3, 3, 3) == (len(steps), found.iterations, found.wanted)
    for step in steps:
        ends = step["ts"] + step["dur"]
        inside = [e for e in named if step["ts"] <= e["ts"] < ends and e["name"][:5] == "step/"]
        assert [f"step/{each}" for each in phases] == [each["name"] for each in inside]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.01 for a, b in pairwise(inside))
        assert inside[-1]["ts"] + inside[-1]["dur"] <= ends + 0.01


@pytest.mark.seed("S4.46")
@pytest.mark.parametrize("kind", PIPELINES)
def test_the_reader_of_traces_finds_the_steps_and_phases(kind, tmp_path):
    made, phases = PIPELINES[kind]
    take(made(), tmp_path)

    found = analysed(read(tmp_path), name="trace.json").analysis

    assert 2 == found.window.real_steps  # the first of them is no part of its window
    assert set(phases) <= {each.phase for each in found.phases}


@pytest.mark.seed("S4.25")
def test_a_trace_has_host_activity_without_stacks_shapes_or_memory(tmp_path):
    """Those slow a step down several times over."""
    take(PIPELINES["training"][0](), tmp_path)

    _, every = spans(tmp_path)
    assert "cpu_op" in {each["cat"] for each in every}
    assert not {"python_function", "cpu_instant_event"} & {each["cat"] for each in every}
    told = {name for each in every for name in each.get("args", {})}
    assert not {"Input Dims", "Input type", "Call stack", "Bytes", "Total Allocated"} & told


def test_each_traced_iteration_has_its_time(tmp_path):
    found = take([("forward", lambda _: None)], tmp_path, iterations=4)

    assert 4 == len(found.traced_ns)
    assert min(found.traced_ns) > 0


def test_the_file_of_the_first_look_is_gone(tmp_path):
    found = take(PIPELINES["plain"][0](), tmp_path)

    assert ["trace.json"] == [each.name for each in tmp_path.iterdir()]
    assert (tmp_path / "trace.json").stat().st_size == found.trace_bytes


def test_a_step_that_breaks_leaves_no_profiler_on(tmp_path):
    """What follows would be slowed down by it and fill its memory."""

    def breaks(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        take([("forward", breaks)], tmp_path)

    assert not torch.autograd._profiler_enabled()
    assert [] == list(tmp_path.iterdir())


def test_tracing_says_that_it_goes_on(tmp_path):
    """In its first look, before the window, and in it: a silent child is taken for a dead one."""
    heard = []

    take(
        PIPELINES["plain"][0](),
        tmp_path,
        iterations=2,
        warmup=3,
        progress=lambda phase, done: heard.append((phase, done)),
    )

    assert [("trace", each) for each in (1, 1, 2, 3, 1, 2)] == heard


# ── the window ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.25")
@pytest.mark.parametrize(("warmup", "steps"), [(2, 4), (1, 1), (5, 3)])
def test_a_window_lies_within_one_pass_over_the_data(warmup, steps, tmp_path):
    """As the clean one does: a loader that starts anew in its middle would be taken for waiting.

    The data hold warm-up and steps and nothing more, and the first look has had one of them.
    """
    loading = Yielding(warmup + steps)
    made = training_of(loading, warmup=warmup, steps=steps)
    begun = []

    def noted(value):
        if torch.autograd._profiler_enabled():
            begun.append(loading.begun)
        return value

    tracing.take(
        [*made.stages[:1], ("note", noted), *made.stages[1:]],
        asked(tmp_path, iterations=steps, warmup=warmup),
        accelerator=None,
        restart=made.feed.restart,
    )

    named = [each["name"] for each in spans(tmp_path)[0] if each["name"][:8] == "Profiler"]
    assert [f"ProfilerStep#{each}" for each in range(warmup, warmup + steps)] == named
    assert 2 == loading.begun
    assert warmup + steps == len(made.feed.waits_ns) - 1
    assert {2} == set(begun[1:])


def test_a_device_that_works_by_itself_is_not_waited_for_within_the_window(tmp_path):
    """Once before it and once after its last iteration; one mean is its time."""
    said = []

    class Device:
        def synchronize(self):
            said.append("wait")

    def forward(_):
        said.append("step")

    found = tracing.take(
        [("forward", forward)],
        asked(tmp_path, iterations=3),
        accelerator=Device(),
    )

    window = ["step", "wait", *["step"] * 3, "wait"]
    assert window == said[-len(window) :]
    assert 1 == len(found.traced_ns)


# ── size ─────────────────────────────────────────────────────────────────────────────────────────


def working(operations):
    """Stages of so many operations in each iteration, by their count."""
    x, ran = torch.ones(1), []

    def forward(_):
        ran.append(1)
        for _ in range(operations(len(ran))):
            x + 1

    return [("forward", forward)], ran


def one_iteration_bytes(folder, operations):
    made, _ = working(lambda _n: operations)
    return take(made, folder, iterations=1).trace_bytes


def test_the_limit_takes_iterations_away_and_none_of_an_iteration(tmp_path):
    """A trace never floods a store."""
    limit = round(3.5 * one_iteration_bytes(tmp_path, 200))
    made, _ = working(lambda _n: 200)

    found = take(made, tmp_path, iterations=50, limit_bytes=limit)

    assert 3 <= found.iterations < 50
    assert (50, found.iterations) == (found.wanted, len(found.traced_ns))
    assert found.trace_bytes <= limit
    assert found.iterations - 1 == analysed(read(tmp_path), name="t").analysis.window.real_steps


def test_a_first_look_that_was_too_small_floods_nothing(tmp_path):
    """Iterations that grow: the whole is looked at, and taken again with fewer of them."""
    limit = 4 * one_iteration_bytes(tmp_path, 300)
    made, ran = working(lambda n: 1 if n == 1 else 300)

    found = take(made, tmp_path, iterations=20, limit_bytes=limit)

    assert 1 <= found.iterations <= 4
    assert found.trace_bytes == (tmp_path / "trace.json").stat().st_size <= limit
    assert len(ran) <= 1 + 3 * 21


@pytest.mark.parametrize("grows", [False, True])
def test_an_iteration_beyond_the_limit_is_not_traced_at_all(grows, tmp_path):
    """It is not supported, with the numbers, and no file is left."""
    limit = one_iteration_bytes(tmp_path, 300) // 2
    (tmp_path / "trace.json").unlink()
    made, _ = working(lambda n: 1 if grows and n == 1 else 300)

    with pytest.raises(NotOffered, match=r"^not_supported: its trace is too large: one iteration"):
        take(made, tmp_path, iterations=20, limit_bytes=limit)

    assert [] == list(tmp_path.iterdir())


# ── nothing is changed ───────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.9")
def test_tracing_changes_no_weight_no_output_and_no_code(tmp_path):
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.ones(1, 4)
    before = {name: each.clone() for name, each in module.state_dict().items()}
    output, code = module(x), type(module).forward
    hooks = [len(each._forward_hooks) for each in module.modules()]

    take(
        training.learning(
            module, Batch((x,), {}), autocast="", device="cpu", stand_in=True, notes=[]
        ),
        tmp_path,
    )
    take(inferring(module, {"x": x}).stages, tmp_path)

    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert torch.equal(output, module(x))
    assert (code, hooks) == (
        type(module).forward,
        [len(each._forward_hooks) for each in module.modules()],
    )


def test_data_that_end_within_a_trace_are_told_as_such(tmp_path):
    clock = FakeClock()
    ended = partial(LoadFailed, "window_not_filled")
    feed = stages.Feed(
        lambda: iter([1, 2]), clock=clock, again=False, ended=lambda n: ended(f"{n} of 9")
    )

    with pytest.raises(LoadFailed, match="2 of 9"):
        take([("dataload", feed)], tmp_path, iterations=5)
