"""The clean pass of a captured training: its window, on a machine that a test writes."""

import gc
from typing import Any

import pytest

from farm.schema import Capture, Data, Protocol
from tests.workers import make
from tests.workers.clockwork import MS, FakeDevice, Machine, bench
from tests.workers.test_repeat import Step
from workers import capturing, repeat
from workers.fakes import FakeKernels
from workers.figures import taken, throughput
from workers.record import Assignment
from workers.running import Run

DATA = Data(kind="synthetic", word="synthetic")


def run_of(
    machine: Machine, *, warmup: int = 2, steps: int = 10, step: Any = None, device: Any = None
) -> tuple[Run, Capture]:
    """A training on its bench, loaded and nothing more."""
    capture = Capture(data=DATA, warmup=warmup, steps=steps)
    on = bench(machine, asked=Protocol(compat="libreyolo", warmup=warmup, iterations=steps))
    on.accelerator = device
    if device is not None:
        on.step, on.sync, on.clock = step, device.synchronize, device.clock
    asked = Assignment(
        job=make.job(mode="train"),
        effort=on.effort,
        index=0,
        cores=[],
        threads=1,
        folder=".",
        capture=capture,
    )
    return Run(asked, Step({}), on, {"flags": [], "reasons": {}}, []), capture  # type: ignore[arg-type]


@pytest.mark.seed("S4.19", "S4.25")
def test_a_window_has_its_steps_and_each_its_time() -> None:
    machine = Machine(lambda i: (20 + i) * MS)
    run, capture = run_of(machine, steps=5)

    capturing.window(run, capture)

    assert [20 * MS, 21 * MS, 22 * MS, 23 * MS, 24 * MS] == list(run.samples.latency_ns)
    assert (6, 5, b"\0" * 5) == (
        len(run.samples.completion_ns),
        machine.steps,
        bytes(run.samples.labels),
    )
    assert (5, 0.11, "back_to_back") == (
        run.found["throughput_iterations"],
        run.found["throughput_window_s"],
        run.found["throughput_method"],
    )


@pytest.mark.seed("S4.20", "S4.25")
@pytest.mark.parametrize("warmup", [0, 1, 5])
def test_a_training_takes_warm_up_and_steps_from_its_data_and_no_more(warmup: int) -> None:
    """One pass over them may be as long as that."""
    machine = Machine(lambda _i: MS)
    run, _ = run_of(machine, warmup=warmup, steps=10)

    repeat._clean(run)

    assert (warmup + 10, 10) == (machine.steps, len(run.samples.latency_ns))
    done = [each.name for each in run.done if each.name not in ("first", "warmup")]
    assert ["latency", "check"] == done


def test_a_window_on_a_device_is_queued_and_not_waited_for() -> None:
    """Steps last from completion to completion, whatever the host does meanwhile."""
    device = FakeDevice()
    step = FakeKernels(device, host_ns=MS, device_ns=20 * MS)
    run, capture = run_of(Machine(lambda _i: 0), steps=30, step=step, device=device)

    capturing.window(run, capture)

    assert [21 * MS] + [20 * MS] * 29 == list(run.samples.latency_ns)
    assert (2, 30) == (device.synchronized, step.calls)
    assert ("pipelined", 1) == (run.found["throughput_method"], device.resets)


def test_what_is_queued_for_long_is_no_silence() -> None:
    """A window of many steps must not look like a child that hangs."""
    for device in (None, FakeDevice()):
        step = device and FakeKernels(device, host_ns=MS, device_ns=MS)
        run, capture = run_of(Machine(lambda _i: MS), steps=4, step=step, device=device)
        heard: list[tuple[str, int]] = []
        run.bench.progress = lambda *said, to=heard: to.append(said)

        capturing.window(run, capture)

        assert [("latency", each) for each in range(5)] == heard[:5]


def test_a_training_on_a_device_has_no_pass_for_the_time_of_it() -> None:
    """Nobody asked for one; where there is no device, there is none."""
    device = FakeDevice()
    step = FakeKernels(device, host_ns=MS, device_ns=MS)
    on_gpu, _ = run_of(Machine(lambda _i: 0), step=step, device=device)
    on_cpu, _ = run_of(Machine(lambda _i: MS))

    repeat._clean(on_gpu)
    repeat._clean(on_cpu)

    assert ({"gpu_time": "not_requested"}, {}) == (on_gpu.found["reasons"], on_cpu.found["reasons"])


def test_the_throughput_is_that_of_the_window() -> None:
    """Ten steps of 20 ms with four items each: 200 items a second."""
    run, capture = run_of(Machine(lambda _i: 20 * MS), steps=10)
    capturing.window(run, capture)
    samples = run.samples
    record = make.record(**{k: v for k, v in run.found.items() if k not in ("flags", "memory")})

    block, _ = throughput(
        [
            taken(
                record,
                {"latency_ns": samples.latency_ns, "label_bits": samples.labels},  # type: ignore[dict-item]
                batch=4,
                neighbours=(),
            )
        ]
    )

    assert 200.0 == pytest.approx(block.throughput_items_per_s)


@pytest.mark.parametrize("device", [None, FakeDevice()], ids=["cpu", "gpu"])
def test_a_step_that_goes_wrong_within_the_window_is_a_flag(device: Any) -> None:
    """Its first output was sound; the last one is looked at, and no further step runs for that."""
    step = FakeKernels(device, host_ns=MS, device_ns=MS) if device else None
    run, capture = run_of(Machine(lambda _i: MS), steps=4, step=step, device=device)
    looked: list[object] = []
    calls = iter(range(100))
    timed = run.bench.step
    run.bench.step = lambda: (timed(), next(calls))[1]
    checked = lambda output: looked.append(output) or ["nonfinite_output"]  # noqa: E731
    run.step.check_output = checked  # type: ignore[method-assign]

    capturing.window(run, capture)

    assert (["nonfinite_output"], [3]) == (run.found["flags"], looked)


def test_no_collector_runs_within_a_window() -> None:
    seen = []
    machine = Machine(lambda _i: seen.append(gc.isenabled()) or MS)
    run, capture = run_of(machine)

    capturing.window(run, capture)

    assert ({False}, True) == (set(seen), gc.isenabled())
