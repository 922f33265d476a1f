"""The layer pass against a clock that only the layers move, and on real modules."""

import gc
import threading
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.workers.backends.torch.layer_clock import Clock, Work, ask, by_name, taken
from workers.backends import NotOffered
from workers.backends.torch import layers

# ── times ────────────────────────────────────────────────────────────────────────────────────────


def test_a_layer_s_time_is_without_what_it_calls() -> None:
    clock = Clock()
    model = Work(clock, 100, Work(clock, 30), Work(clock, 7, Work(clock, 5)))

    found = taken(model, clock, iterations=10)

    assert {
        "Work (self)": 1000,
        "inner.0": 300,
        "inner.1 (self)": 70,
        "inner.1.inner.0": 50,
    } == by_name(found)
    assert [142] * 10 == found.profiled_ns.tolist()
    assert ["Work"] * 4 == found.reading.types
    assert ("wrapped", "wall", True) == (
        *(found.reading.method, found.reading.clock),
        found.reading.attributed,
    )


TREES = st.recursive(
    st.tuples(st.integers(0, 50), st.just(())),
    lambda inner: st.tuples(st.integers(0, 50), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=12,
)


@settings(max_examples=12)  # each empties the garbage collector
@given(TREES, st.integers(1, 4))
def test_the_layers_of_any_tree_add_up_to_the_iteration(tree, iterations: int) -> None:
    clock = Clock()
    own: list[int] = []

    def built(node) -> Work:
        ns, inner = node
        own.append(ns)
        return Work(clock, ns, *map(built, inner))

    found = taken(built(tree), clock, iterations=iterations, warmup=1)

    assert [[ns] * iterations for ns in own] == found.layer_ns.tolist()
    assert [sum(own)] * iterations == found.profiled_ns.tolist()


@pytest.mark.seed("S0.8", "S0.4")
def test_every_profiled_iteration_has_a_time_of_every_layer() -> None:
    """As many as were asked for; neither clean nor untimed ones are among them."""
    clock = Clock()
    first, second = Work(clock, 3), Work(clock, 4)
    model = nn.Sequential(first, second)

    found = taken(model, clock, iterations=7, warmup=5)

    assert (3, 7) == found.layer_ns.shape
    assert [[0] * 7, [3] * 7, [4] * 7] == found.layer_ns.tolist()
    assert (7, 7, 5) == (
        len(found.profiled_ns),
        len(found.clean_ns),
        found.reading.warmup,
    )


@pytest.mark.seed("S0.7")
def test_no_untimed_iteration_reaches_a_time_or_a_count() -> None:
    """The first calls are slow, and nobody can tell afterwards."""
    clock = Clock()
    calls = []

    class Cold(nn.Module):
        def forward(self, x: object) -> object:
            calls.append(0)
            clock.now += 1000 if len(calls) <= 5 else 1
            return x

    found = taken(nn.Sequential(Cold()), clock, iterations=20, warmup=5)

    assert {1} == set(found.layer_ns[1].tolist())
    assert {1} == {*found.profiled_ns.tolist(), *found.clean_ns.tolist()}
    assert 5 + 20 + 20 == len(calls)


@pytest.mark.seed("S0.21")
def test_calls_of_one_iteration_are_summed_within_it() -> None:
    clock = Clock()
    shared = Work(clock, 5)

    found = taken(nn.Sequential(shared, Work(clock, 2), shared), clock, iterations=4)

    assert {"Sequential (self)": 0, "0": 40, "1": 8} == by_name(found)
    assert [1.0, 2.0, 1.0] == found.reading.calls


def test_a_module_under_two_names_is_one_layer_under_the_first() -> None:
    clock = Clock()
    model = nn.Module()
    model.a = Work(clock, 5)
    model.b = model.a
    model.forward = lambda x: model.b(model.a(x))  # type: ignore[method-assign]

    found = taken(model, clock)

    assert ["Module (self)", "a"] == found.reading.layers
    assert 2.0 == found.reading.calls[1]


@pytest.mark.seed("S0.14")
def test_rows_are_in_the_order_of_their_first_call() -> None:
    clock = Clock()

    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = Work(clock, 1), Work(clock, 2)

        def forward(self, x: object) -> object:
            return self.one(self.two(x))

    assert ["Backwards (self)", "two", "one"] == taken(Backwards(), clock).reading.layers


def test_a_module_that_calls_itself_is_one_layer() -> None:
    clock = Clock()

    class Countdown(nn.Module):
        def forward(self, n: int) -> int:
            clock.now += 10
            return self(n - 1) if n else n

    model = Countdown()
    found = layers.measure(model, lambda: model(3), ask(clock))

    assert {"Countdown": 400} == by_name(found)
    assert [4.0] == found.reading.calls


def test_a_layer_that_is_called_now_and_then_counts_where_it_was() -> None:
    clock, turns = Clock(), []

    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rare = Work(clock, 8)

        def forward(self, x: object) -> object:
            turns.append(0)
            return self.rare(x) if len(turns) % 3 == 0 else x

    found = taken(Sometimes(), clock, iterations=9, warmup=0)

    assert 1 / 3 == found.reading.calls[1]
    assert {0, 8} == set(found.layer_ns[1].tolist())


def test_time_in_a_layer_that_fails_and_is_caught_is_still_its_own() -> None:
    clock = Clock()

    class Fails(nn.Module):
        def forward(self, x: object) -> object:
            clock.now += 6
            raise ValueError("no")

    class Catches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fails = Fails()

        def forward(self, x: object) -> object:
            clock.now += 4
            try:
                return self.fails(x)
            except ValueError:
                return x

    assert {"Catches (self)": 40, "fails": 60} == by_name(taken(Catches(), clock))


def test_a_module_whose_forward_is_called_directly_is_timed_too() -> None:
    clock = Clock()

    class Direct(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Work(clock, 9)

        def forward(self, x: object) -> object:
            return self.part.forward(x)

    assert {"Direct (self)": 0, "part": 90} == by_name(taken(Direct(), clock))


def test_without_a_call_of_the_whole_there_is_no_rest() -> None:
    clock = Clock()

    class Bypassed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Work(clock, 9)

        def __call__(self, x: object) -> object:
            return self.part(x)

    found = taken(Bypassed(), clock)

    assert (["part"], False) == (found.reading.layers, found.reading.attributed)


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("iterations", "blocks"), [(1, 1), (7, 7), (10, 10), (25, 10), (100, 10), (101, 10)]
)
def test_ten_blocks_each_after_as_many_clean_iterations(iterations: int, blocks: int) -> None:
    """Clean and profiled ones alternate, so that drift meets both alike."""
    clock, kinds = Clock(), []

    class Told(nn.Module):
        def forward(self, x: object) -> object:
            clock.now += 1
            kinds.append("profiled" if "forward" in vars(self) else "clean")
            return x

    model = Told()
    found = taken(model, clock, iterations=iterations, warmup=0)

    assert (blocks, iterations) == (found.reading.blocks, found.reading.iterations)
    changes = sum(a != b for a, b in pairwise(kinds))
    assert ("clean", 2 * blocks - 1) == (kinds[0], changes)
    assert iterations == kinds.count("clean") == kinds.count("profiled")


@pytest.mark.parametrize(
    ("budget_ms", "iterations"), [(None, 100), (10_000, 100), (1000, 50), (40, 2), (1, 1)]
)
def test_a_budget_ends_the_pass_after_the_block_in_hand(
    budget_ms: int | None, iterations: int
) -> None:
    """Steps of 10 ms, each beside a clean one; blocks shrink to fit, down to one iteration."""
    clock = Clock()
    model = Work(clock, 10_000_000)
    budget = None if budget_ms is None else budget_ms * 1_000_000

    found = taken(model, clock, iterations=100, budget_ns=budget)

    assert iterations == found.reading.iterations == found.layer_ns.shape[1]
    assert iterations == len(found.clean_ns) == len(found.profiled_ns)


def test_progress_counts_profiled_iterations() -> None:
    told: list[tuple[str, int]] = []
    clock = Clock()

    taken(Work(clock, 1), clock, iterations=30, progress=lambda *each: told.append(each))

    assert [("layers", count) for count in range(3, 31, 3)] == told


def test_the_collector_rests_during_the_pass() -> None:
    running = []

    class Asks(nn.Module):
        def forward(self, x: object) -> object:
            running.append(gc.isenabled())
            return x

    assert gc.isenabled()
    taken(Asks(), iterations=2)
    assert gc.isenabled()
    assert {False} == set(running)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("warmup", "since"), [(2, 0), (0, 0), (2, 30), (0, 19)])
def test_layers_in_several_threads_are_refused_rather_than_mixed_up(
    warmup: int, since: int
) -> None:
    """Also without a warm-up, and where they begin in a late block."""
    clock, turns = Clock(), []

    class Threaded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Work(clock, 1)

        def forward(self, x: object) -> object:
            turns.append(0)
            if len(turns) <= since:
                return self.part(x)
            worker = threading.Thread(target=self.part, args=(x,))
            worker.start()
            worker.join()
            return x

    model = Threaded()

    with pytest.raises(NotOffered, match="several threads"):
        taken(model, clock, iterations=20, warmup=warmup)
    assert "forward" not in vars(model.part)


def test_a_layer_that_ends_after_its_iteration_is_refused() -> None:
    """Without a warm-up that would have seen its thread."""
    gate, begun, workers = threading.Event(), threading.Event(), []

    class Late(nn.Module):
        def forward(self, x: object) -> object:
            begun.set()
            gate.wait(60)
            return x

    class Leaves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Late()

        def forward(self, x: object) -> object:
            workers.append(threading.Thread(target=self.part, args=(x,)))
            workers[-1].start()
            begun.wait(60)
            return x

    with pytest.raises(NotOffered, match="several threads"):
        taken(Leaves(), warmup=0)

    gate.set()
    for each in workers:
        each.join(60)


def test_a_model_spread_over_devices_is_refused() -> None:
    model = nn.DataParallel(nn.Linear(2, 2))
    model.device_ids = [0, 1]

    with pytest.raises(NotOffered, match="several threads"):
        taken(model)


def test_a_model_without_a_module_that_is_called_has_no_layers() -> None:
    class Bypassed(nn.Module):
        def __call__(self, x: object) -> object:
            return x

    with pytest.raises(NotOffered, match="no module is called"):
        taken(Bypassed())


def test_a_model_on_a_gpu_without_its_events_is_refused() -> None:
    """The host clock would time how fast kernels are queued."""

    class There(nn.Parameter):
        is_cuda = True

    model = nn.Module()
    model.register_parameter("weight", There(torch.ones(1)))

    with pytest.raises(NotOffered, match="no events"):
        taken(model)


# ── a device with a queue ────────────────────────────────────────────────────────────────────────


class Queue:
    """A device that works off what is queued, on a clock of its own; the host never waits but to
    synchronise."""

    def __init__(self, host: Clock) -> None:
        self.host, self.free_at, self.spins = host, 0, []

    def work(self, ns: int) -> None:
        self.free_at = max(self.free_at, self.host.now) + ns

    def event(self) -> list[int]:
        return [0]

    def record(self, event: list[int], /) -> None:
        event[0] = max(self.free_at, self.host.now)

    def elapsed_ns(self, begin: list[int], end: list[int], /) -> int:
        return end[0] - begin[0]

    def synchronize(self) -> None:
        self.host.now = max(self.host.now, self.free_at)

    def spin(self, ns: int, /) -> bool:
        self.spins.append(ns)
        self.work(ns)
        return True


class Kernel(nn.Module):
    """A layer whose call takes the host a while to queue, and the device another while to do."""

    def __init__(self, queue: Queue, *, host_ns: int, device_ns: int) -> None:
        super().__init__()
        self.queue, self.host_ns, self.device_ns = queue, host_ns, device_ns

    def forward(self, x: object) -> object:
        self.queue.host.now += self.host_ns
        self.queue.work(self.device_ns)
        return x


@pytest.mark.seed("S0.9")
def test_on_a_device_a_layer_takes_what_the_device_took() -> None:
    """Not what the host took to queue it, and not the waiting in between."""
    clock = Clock()
    queue = Queue(clock)
    model = nn.Sequential(
        Kernel(queue, host_ns=50, device_ns=10), Kernel(queue, host_ns=50, device_ns=30)
    )

    found = layers.measure(model, lambda: model(0), ask(clock, warmup=3), device=queue)

    assert "device" == found.reading.clock
    assert {"Sequential (self)": 0, "0": 100, "1": 300} == by_name(found)
    assert [100] * 10 == found.profiled_ns.tolist()  # 100 to queue, 40 to do
    assert 200 == queue.spins[-1]


def test_a_device_that_cannot_be_held_back_is_timed_as_it_is() -> None:
    """With the nanosecond in which it waits for the host."""
    clock = Clock()

    class Free(Queue):
        def spin(self, ns: int, /) -> bool:
            return False

    queue = Free(clock)
    model = nn.Sequential(Kernel(queue, host_ns=1, device_ns=30))

    found = layers.measure(model, lambda: model(0), ask(clock), device=queue)

    assert 310 == by_name(found)["0"]
