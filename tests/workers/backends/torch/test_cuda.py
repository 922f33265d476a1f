"""CUDA through torch, against a stand-in for `torch.cuda` that keeps a queue and an allocator."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from workers.backends import LoadFailed
from workers.backends.torch import cuda
from workers.backends.torch.cuda import TorchCuda, availability
from workers.fakes import FakeClock, FakeEvent, FakeKernels, FakeStream
from workers.timing import gpu_time_pass, pipelined

US, MS, MB = 1_000, 1_000_000, 1_000_000
CYCLES_PER_NS = 1.98


class Allocator:
    """The statistics of one device's allocator, by the keys that torch uses."""

    def __init__(self, *, used: bool = True) -> None:
        self.used, self.current, self.peak, self.reserved, self.retries = used, 0, 0, 0, 0

    def allocate(self, size: int) -> None:
        self.current += size
        self.peak = max(self.peak, self.current)
        self.reserved = max(self.reserved, self.current)

    def free(self, size: int) -> None:
        self.current -= size

    def stats(self) -> Mapping[str, int]:
        if not self.used:
            return {}
        return {
            "allocated_bytes.all.peak": self.peak,
            "reserved_bytes.all.peak": self.reserved,
            "reserved_bytes.all.current": self.reserved,
            "requested_bytes.all.peak": self.peak - 1,
            "inactive_split_bytes.all.peak": 7,
            "num_alloc_retries": self.retries,
        }


class StandIn:
    """What is used of `torch.cuda`, over scripted queues."""

    def __init__(self, *devices: Allocator, backend: str = "native", fails: str = "") -> None:
        self.clock = FakeClock()
        self.allocators = list(devices)
        self.streams = [FakeStream(self.clock) for _ in devices]
        self.waited: list[int] = []
        self._backend, self._fails = backend, fails

    def is_available(self) -> bool:
        return bool(self.allocators) and not self._fails

    def device_count(self) -> int:
        return len(self.allocators)

    def init(self) -> None:
        if self._fails:
            raise RuntimeError(self._fails)

    def synchronize(self, device: Any = None) -> None:
        self.waited.append(device)
        self.streams[device].synchronize()

    def memory_stats(self, device: Any = None) -> Mapping[str, Any]:
        return self.allocators[device].stats()

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self.allocators[device].peak = self.allocators[device].current
        self.allocators[device].reserved = self.allocators[device].current

    def get_allocator_backend(self) -> str:
        return self._backend

    def get_device_properties(self, device: Any = None) -> Any:
        return SimpleNamespace(name=f"card {device}", total_memory=80 << 30, uuid=f"0000-{device}")

    def event(self) -> "StandInEvent":
        return StandInEvent(self.streams[0])

    def sleep_cycles(self, cycles: int) -> None:
        self.streams[0].launch(round(cycles / CYCLES_PER_NS))


class StandInEvent:
    """An event in the interface of torch, whose times are ms."""

    def __init__(self, stream: FakeStream) -> None:
        self._stream, self._event = stream, FakeEvent()

    def record(self) -> None:
        self._stream.record(self._event)

    def synchronize(self) -> None:
        self._stream.wait(self._event)

    def query(self) -> bool:
        return self._stream.done(self._event)

    def elapsed_time(self, end_event: Any) -> float:
        return self._stream.elapsed_ns(self._event, end_event._event) / 1e6


def opened(stand_in: StandIn, *, can_spin: bool = True) -> TorchCuda:
    return TorchCuda(
        stand_in,
        make_event=stand_in.event,
        sleep_cycles=stand_in.sleep_cycles if can_spin else None,
    )


@pytest.mark.seed("S1.19")
def test_every_visible_device_is_waited_for() -> None:
    """A model may have put work on any of them, and the slowest counts."""
    stand_in = StandIn(Allocator(), Allocator(), Allocator())
    for stream, work_ms in zip(stand_in.streams, (3, 8, 1), strict=True):
        stream.launch(work_ms * MS)

    opened(stand_in).synchronize()

    assert ([0, 1, 2], 8 * MS) == (stand_in.waited, stand_in.clock.now_ns)


def test_a_pass_over_torch_events_times_the_device() -> None:
    """Milliseconds of torch become ns, and a pass bound by queueing is taken behind its kernel."""
    stand_in = StandIn(Allocator())
    slow = FakeKernels(stand_in.streams[0], launches=20, host_ns=10 * US, device_ns=4 * US)

    found = gpu_time_pass(slow, opened(stand_in), clock=stand_in.clock, iterations=40)

    assert found.gpu_time_ns is not None
    assert {80 * US} == set(found.gpu_time_ns)
    assert (True, True) == (found.enqueue_bound, found.behind_spin)


def test_completions_over_torch_events_come_in_order() -> None:
    """At the device's pace, at most four in flight."""
    stand_in = StandIn(Allocator())
    step = FakeKernels(stand_in.streams[0], host_ns=10 * US, device_ns=5 * MS)

    stamps = pipelined(step, opened(stand_in), clock=stand_in.clock)

    assert 4 == stand_in.streams[0].most_queued
    assert stamps[-1] - stamps[0] == pytest.approx((len(stamps) - 1) * 5 * MS, abs=5 * US)


@pytest.mark.parametrize("ns", [100 * US, 3 * MS, 250 * MS])
def test_the_blocking_kernel_lasts_as_long_as_asked(ns: int) -> None:
    """Its cycles are calibrated once, behind one that lets the clock rise."""
    stand_in = StandIn(Allocator())
    device = opened(stand_in)
    device.spin(1)
    device.synchronize()
    began = stand_in.clock.now_ns

    assert device.spin(ns)
    device.synchronize()

    assert stand_in.clock.now_ns - began == pytest.approx(ns, rel=0.001)


def test_a_torch_without_the_kernel_cannot_block() -> None:
    """It says so, and queues nothing."""
    stand_in = StandIn(Allocator())

    assert not opened(stand_in, can_spin=False).spin(MS)
    assert 0 == stand_in.streams[0].most_queued


@pytest.mark.seed("S1.30", "S1.32")
def test_a_freed_allocation_stays_in_the_peak_until_the_reset() -> None:
    """Allocate 300 MB, free them, expect them; weights are in it, warm-up is not (pitfall 15)."""
    allocator, idle = Allocator(), Allocator()
    stand_in = StandIn(allocator, idle)
    device = opened(stand_in)
    allocator.allocate(100 * MB)  # weights
    allocator.allocate(900 * MB)  # warm-up
    allocator.free(900 * MB)
    allocator.retries = 2

    device.reset_peaks()
    allocator.allocate(300 * MB)
    allocator.free(300 * MB)
    allocator.retries = 3
    first, second = device.peaks()

    assert (0, 400 * MB, 400 * MB - 1, 400 * MB, 7, 1, {}) == (
        first.visible_index,
        first.allocated_peak_bytes,
        first.requested_peak_bytes,
        first.reserved_peak_bytes,
        first.inactive_split_peak_bytes,
        first.alloc_retries,
        first.reasons,
    )
    assert (1, 0) == (second.visible_index, second.allocated_peak_bytes)


def test_a_device_that_torch_never_used_has_no_peaks() -> None:
    """None with `not_probed`: torch shows an empty table there."""
    (peaks,) = opened(StandIn(Allocator(used=False))).peaks()

    fields = [name for name in peaks.__struct_fields__ if name not in ("visible_index", "reasons")]
    assert {None} == {getattr(peaks, name) for name in fields}
    assert set(fields) == set(peaks.reasons)
    assert {"not_probed"} == {why.partition(":")[0] for why in peaks.reasons.values()}


def test_an_allocator_that_cannot_count_has_no_zero() -> None:
    """The asynchronous one answers 0 for what it does not know."""
    allocator = Allocator()
    allocator.allocate(300 * MB)

    (peaks,) = opened(StandIn(allocator, backend="cudaMallocAsync")).peaks()

    assert (None, None) == (peaks.requested_peak_bytes, peaks.inactive_split_peak_bytes)
    assert 300 * MB == peaks.allocated_peak_bytes
    assert {"requested_peak_bytes", "inactive_split_peak_bytes"} == set(peaks.reasons)


def test_growth_of_the_allocator_is_seen_over_all_devices() -> None:
    """Reserved bytes and retries, for the rule that ends the warm-up."""
    one, two = Allocator(), Allocator()
    device = opened(StandIn(one, two))
    before = device.allocator()
    one.allocate(5)
    two.allocate(7)
    two.retries = 1

    assert ((0, 0), (12, 1)) == (before, device.allocator())


@pytest.mark.seed("S1.20", "S1.21")
def test_the_visible_devices_are_as_the_caller_set_them() -> None:
    """By visible index, with what the variable calls each; the variable is read and left alone."""
    environ = {"CUDA_VISIBLE_DEVICES": "3, GPU-8a2f"}

    found = opened(StandIn(Allocator(), Allocator())).visible(environ)
    unset = opened(StandIn(Allocator())).visible({})

    assert [(0, "3", "card 0", "0000-0"), (1, "GPU-8a2f", "card 1", "0000-1")] == [
        (each.visible_index, each.setting, each.name, each.uuid) for each in found
    ]
    assert [""] == [each.setting for each in unset]
    assert {"CUDA_VISIBLE_DEVICES": "3, GPU-8a2f"} == environ


@pytest.mark.parametrize(
    ("fails", "count", "built", "code"),
    [
        ("", 1, True, ""),
        ("", 1, False, "not_supported"),
        ("", 0, True, "not_supported"),
        ("No CUDA GPUs are available", 0, True, "not_supported"),
        ("Found no NVIDIA driver on your system. Please check", 0, True, "driver_not_loaded"),
        ("The NVIDIA driver on your system is too old (found", 1, True, "driver_not_loaded"),
        ("Unexpected error from cudaGetDeviceCount()\nmore", 1, True, "error"),
    ],
)
def test_a_missing_device_has_a_reason(fails: str, count: int, built: bool, code: str) -> None:
    """A torch without CUDA, no device, no driver, an old one, anything else."""
    stand_in = StandIn(*[Allocator() for _ in range(count)], fails=fails)

    why = availability(stand_in, built=built)

    assert code == why.partition(":")[0]
    assert "\n" not in why


def test_cuda_that_is_not_here_is_refused_and_not_replaced() -> None:
    """The real torch of this machine: its devices, or a failure that says why."""
    if torch.cuda.is_available():
        assert cuda.opened().event() is not None
        return

    with pytest.raises(LoadFailed, match="cuda was asked for and is not here") as failed:
        cuda.opened()

    assert "no_device" == failed.value.kind


def test_a_flush_writes_a_buffer_of_the_size_of_the_cache() -> None:
    """The same buffer each time, whole."""
    flush = cuda.l2_flush(1 << 16, device="cpu")

    first, second = flush(), flush()

    assert isinstance(first, torch.Tensor)
    assert first is second
    assert (1 << 16, 0) == (first.nbytes, int(first.sum()))
