"""The laws of times and memory around somebody else's loop."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import Bad, Refused
from workers.backends import LoadFailed
from workers.backends.torch.cuda import TorchCuda
from workers.host import Host
from workers.profiler.clocks import LatencyProfiler, MemoryProfiler

MIB = 1 << 20


# ── times ────────────────────────────────────────────────────────────────────────────────────────


def fed(*seconds, warmup=0):
    profiler = LatencyProfiler(warmup=warmup)
    for each in seconds:
        profiler.add_sample_seconds(each)
    return profiler


@pytest.mark.seed("S1.34")
def test_ten_and_twenty_milliseconds_have_their_median_between_them():
    """G2; nearest rank would say 10."""
    found = fed(0.010, 0.020).percentiles()

    assert 15.0 == found.p50_ms == found["p50_ms"]
    assert (19.5, 19.9, 15.0, 2) == (
        round(found.p95_ms, 9),
        round(found.p99_ms, 9),
        found.mean_ms,
        found.n,
    )


@pytest.mark.seed("S1.35")
def test_the_first_sample_is_dropped_unless_one_says_otherwise():
    """G2: of 100, 1, 2 and 3 ms the first is warm-up."""
    profiler = LatencyProfiler()
    for ms in (100, 1, 2, 3):
        profiler.add_sample_seconds(ms / 1e3)

    found = profiler.percentiles()

    assert (2.0, 2.9, 2.98, 3, 1) == (
        round(found.p50_ms, 9),
        round(found.p95_ms, 9),
        round(found.p99_ms, 9),
        found.n,
        found.dropped,
    )


@pytest.mark.seed("S1.35")
@pytest.mark.parametrize(("samples", "warmup"), [(0, 0), (0, 1), (1, 1), (3, 3), (2, 5)])
def test_warm_up_samples_never_stand_in_for_samples_that_are_missing(samples, warmup):
    with pytest.raises(Bad, match="none is left"):
        fed(*[0.01] * samples, warmup=warmup).percentiles()


def test_a_batch_is_one_sample_of_an_item():
    """Its items were not timed apart, and eight of one time would feign certainty."""
    profiler = LatencyProfiler(warmup=0)
    profiler.add_batch_seconds(0.080, 8)
    profiler.add_batch_seconds(0.160, 8)

    found = profiler.percentiles()

    assert (15.0, 2) == (found.p50_ms, found.n)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, True])
def test_a_time_that_is_none_is_refused(seconds):
    profiler = LatencyProfiler()

    with pytest.raises(Refused):
        profiler.add_sample_seconds(seconds)
    with pytest.raises(Refused):
        profiler.add_batch_seconds(seconds, 1)


@pytest.mark.parametrize("size", [0, -1, True])
def test_a_batch_that_is_none_is_refused(size):
    with pytest.raises(Refused):
        LatencyProfiler().add_batch_seconds(0.1, size)
    with pytest.raises(Refused):
        LatencyProfiler(warmup=-1)


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=30), st.integers(0, 5))
def test_as_many_samples_count_as_were_fed_less_the_warm_up(seconds, warmup):
    profiler = fed(*seconds, warmup=warmup)

    assert [each * 1e3 for each in seconds[warmup:]] == profiler.samples_ms
    if len(seconds) > warmup:
        found = profiler.percentiles()
        assert len(seconds) - warmup == found.n == found.detail.n
        assert found.p50_ms <= found.p99_ms * (1 + 1e-9)


# ── memory ───────────────────────────────────────────────────────────────────────────────────────


def test_a_host_without_proc_has_no_peak_and_says_so(tmp_path):
    profiler = MemoryProfiler(sample_cuda=False, sample_mps=False, host=Host(tmp_path))
    profiler.reset()

    found = profiler.peaks()

    assert (None, None) == (found.cpu_rss_peak_bytes, found.cpu_rss_peak_lifetime_bytes)
    assert {
        "cpu_rss_peak_bytes": "not_supported: no /proc on this system",
        "cpu_rss_peak_lifetime_bytes": "not_supported: no /proc on this system",
        "cuda_allocated_peak_bytes": "not_requested",
        "mps_allocated_bytes": "not_requested",
    } == found.null_reasons


@pytest.fixture
def process(tmp_path):
    """A process whose high-water mark is written here."""

    def high(kib):
        folder = tmp_path / "proc/self"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text(f"VmHWM:\t{kib} kB\nVmRSS:\t10 kB\n")

    high(1)
    return high


@pytest.mark.seed("S1.29", "S1.32")
def test_the_peak_is_reset_after_warming_up_and_the_lifetime_is_not(process, tmp_path):
    process(900 * 1024)
    profiler = MemoryProfiler(sample_cuda=False, sample_mps=False, host=Host(tmp_path))

    profiler.reset()
    assert "5" == (tmp_path / "proc/self/clear_refs").read_text()
    process(300 * 1024)
    found = profiler.peaks()

    assert (300 * MIB, 900 * MIB) == (
        found.cpu_rss_peak_bytes,
        found.cpu_rss_peak_lifetime_bytes,
    )


def test_two_profilers_of_one_process_tell_the_same_lifetime_and_each_its_own_peak(
    process, tmp_path
):
    """The reset of the second one would hide the 900 and the 300 MiB from both."""
    process(900 * 1024)
    first, second = (
        MemoryProfiler(sample_cuda=False, sample_mps=False, host=Host(tmp_path)) for _ in range(2)
    )
    first.reset()
    process(300 * 1024)
    second.reset()
    process(100 * 1024)

    one, two = first.peaks(), second.peaks()

    assert (300 * MIB, 100 * MIB) == (one.cpu_rss_peak_bytes, two.cpu_rss_peak_bytes)
    assert 900 * MIB == one.cpu_rss_peak_lifetime_bytes == two.cpu_rss_peak_lifetime_bytes


def test_memory_that_is_not_sampled_is_not_reset(process, tmp_path):
    """The mark of the kernel is that of the whole process, and may be somebody else's."""
    profiler = MemoryProfiler(
        sample_cpu=False, sample_cuda=False, sample_mps=False, host=Host(tmp_path)
    )

    profiler.reset()

    assert not (tmp_path / "proc/self/clear_refs").exists()
    assert "not_requested" == profiler.peaks().null_reasons["cpu_rss_peak_bytes"]


def test_without_a_reset_there_is_a_peak_of_the_lifetime_only(process, tmp_path):
    found = MemoryProfiler(sample_cuda=False, sample_mps=False, host=Host(tmp_path)).peaks()

    assert (None, 1024) == (found.cpu_rss_peak_bytes, found.cpu_rss_peak_lifetime_bytes)
    assert "not_requested: reset() begins one" == found.null_reasons["cpu_rss_peak_bytes"]


class Allocator:
    """What is used of torch.cuda, with two devices."""

    def __init__(self):
        self.peaks = [512 * MIB, 0]
        self.reset = []

    def device_count(self):
        return 2

    def reset_peak_memory_stats(self, device):
        self.reset.append(device)

    def memory_stats(self, device):
        return {"allocated_bytes.all.peak": self.peaks[device], "num_alloc_retries": 0}

    def get_allocator_backend(self):
        return "native"


@pytest.mark.seed("S1.30", "S1.32")
def test_the_allocators_peak_of_every_visible_device_is_told_after_a_reset(tmp_path):
    """By its visible index; one that was not used is a measured zero."""
    allocator = Allocator()
    cuda = TorchCuda(allocator, make_event=lambda: None, sleep_cycles=None)
    profiler = MemoryProfiler(sample_mps=False, host=Host(tmp_path), devices=lambda: cuda)

    profiler.reset()

    assert [0, 1] == allocator.reset
    assert {"0": 512 * MIB, "1": 0} == profiler.peaks().cuda_allocated_peak_bytes


def test_a_machine_without_cuda_has_null_and_never_zero(tmp_path):
    def gone():
        raise LoadFailed("environment", "no CUDA device is visible")

    found = MemoryProfiler(sample_mps=False, host=Host(tmp_path), devices=gone).peaks()

    assert None is found.cuda_allocated_peak_bytes
    why = found.null_reasons["cuda_allocated_peak_bytes"]
    assert "not_supported: no CUDA device is visible" == why


CHILD = """
import sys
from workers.profiler.clocks import MemoryProfiler
profiler = MemoryProfiler()
profiler.reset()
block = bytearray(300 << 20)
for at in range(0, len(block), 4096):
    block[at] = 1
del block
found = profiler.peaks()
print("torch" in sys.modules, found.cpu_rss_peak_bytes >> 20,
      found.cpu_rss_peak_lifetime_bytes >> 20, found.null_reasons["cuda_allocated_peak_bytes"])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.seed("S1.29")
def test_what_was_allocated_and_freed_is_in_the_peak_and_the_parents_memory_is_not():
    """Started from a process that is fat itself: `ru_maxrss` would tell its peak."""
    fat = bytearray(700 << 20)
    for at in range(0, len(fat), 4096):
        fat[at] = 1

    said = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=60
    )

    torch, peak, lifetime, why = said.stdout.split(maxsplit=3)
    assert ("False", "not_applicable: torch is not imported\n") == (torch, why)
    assert 300 <= int(peak) < 600
    assert int(peak) <= int(lifetime) < 600
    assert len(fat)
