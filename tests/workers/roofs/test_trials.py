"""The laws of one trial: an ordinary child, its quickest valid run of each kind, else a reason."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from farm.hardware import Product, Stream
from farm.schema import Failure, Precision
from tests.workers import make
from tests.workers.roofs.turns import BUSY, Turns, knows, station
from workers.launch import Ended
from workers.measure import Interrupted
from workers.record import Assignment, WarmUp
from workers.roofs import trials
from workers.station import Station

AT = "2026-11-30T02:00:00Z"
MIB = 1 << 20


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for each in ends:
        os.close(each)


def sizes(assignment: Assignment) -> list[int]:
    shapes = [each.shape for each in assignment.job.workload.inputs.spec.values()]
    return [int(each[0]) for each in shapes[::2]]


def at_rate(flops_per_ns: float) -> Any:
    """Times of products that all run at one rate, but the third size is a tenth quicker."""

    def times(assignment: Assignment) -> list[float]:
        found = [2 * size**3 / flops_per_ns for size in sizes(assignment)]
        found[2] /= 1.1
        return found

    return times


def product(
    bench: Station, pipe: tuple[int, int], word: Precision = "fp32", *, cores: int = 1
) -> tuple[Product | None, str]:
    return trials.product(bench, word, cores=cores, stop=pipe[0], at=AT)


# ── products ─────────────────────────────────────────────────────────────────────────────────────


def test_the_quickest_run_of_the_quickest_size_is_the_peak(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    child = Turns(at_rate(100))

    found, why = product(station(tmp_path, child), pipe)

    assert found is not None
    assert "" == why
    assert found.flops_per_s == pytest.approx(110e9, rel=1e-4)
    assert (768, [256, 512, 768, 1024], AT) == (found.size, found.sizes, found.taken_at)


@pytest.mark.parametrize("done", [0, 1, 7, 20, 33, 80])
def test_turns_are_told_by_the_iterations_before_the_pass(
    tmp_path: Path, pipe: tuple[int, int], done: int
) -> None:
    """Whatever the warm-up came to, each sample is credited to its own size."""
    warm = {"warmup": WarmUp(iterations=done, seconds=0.1, stop="fixed")}

    found, _ = product(station(tmp_path, Turns(at_rate(100), warm)), pipe)

    assert found is not None
    assert found.flops_per_s == pytest.approx(110e9, rel=1e-4)


def test_an_ordinary_child_is_asked_for_latency_alone(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    """At least five runs of at least four sizes, as an ordinary job of one process."""
    child = Turns(at_rate(100))

    product(station(tmp_path, child, card=knows("avx512_bf16")), pipe, "bf16")

    (asked,) = child.asked
    protocol, workload = asked.job.protocol, asked.job.workload
    assert (("latency",), (), [1], 1) == (
        asked.passes,
        asked.instruments,
        asked.cores,
        asked.threads,
    )
    assert ("bf16", "workers.models.roofs:products") == (workload.precision, workload.model.ref)
    assert len(sizes(asked)) >= 4
    assert protocol.iterations != "auto"
    assert protocol.warmup != "auto"
    assert protocol.iterations >= 5 * len(sizes(asked))
    assert workload.batch * len(sizes(asked)) == protocol.iterations


@pytest.mark.parametrize(
    ("word", "isa", "largest"),
    [
        ("fp32", (), 1024),
        ("bf16", (), 256),
        ("bf16", ("amx_bf16",), 1024),
        ("bf16", ("avx512_fp16",), 256),
        ("fp16", ("avx512_fp16",), 1024),
        ("fp16", ("asimdhp",), 1024),
    ],
)
def test_an_emulated_format_gets_small_products(
    tmp_path: Path, pipe: tuple[int, int], word: Precision, isa: tuple[str, ...], largest: int
) -> None:
    """It is 10 to 100 times slower there, and the whole may take half a minute."""
    child = Turns(at_rate(1))

    product(station(tmp_path, child, card=knows(*isa)), pipe, word)

    assert largest == max(sizes(child.asked[0]))


@pytest.mark.parametrize(("cores", "largest"), [(7, 1024), (8, 2048), (63, 2048), (64, 4096)])
def test_more_cores_get_larger_products(
    tmp_path: Path, pipe: tuple[int, int], cores: int, largest: int
) -> None:
    child = Turns(at_rate(100))

    product(station(tmp_path, child), pipe, cores=cores)

    assert largest == max(sizes(child.asked[0]))


def test_a_disturbed_repeat_does_not_count_however_quick_it_was(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    rates = iter([1000.0, 100.0])
    child = Turns(lambda asked: at_rate(next(rates))(asked), {"latency_edges": BUSY})

    found, _ = product(station(tmp_path, child), pipe)

    assert found is not None
    assert found.flops_per_s == pytest.approx(110e9, rel=1e-4)
    assert 2 == len(child.asked)


def test_a_machine_that_stays_busy_has_no_peak(tmp_path: Path, pipe: tuple[int, int]) -> None:
    busy = {"latency_edges": BUSY}

    found = product(station(tmp_path, Turns(at_rate(100), busy, busy)), pipe)

    assert (None, "not_probed: the peaks were disturbed: contended") == found


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("unsupported", "not_supported: unsupported: told"),
        ("environment", "library_missing: environment: told"),
        ("host_oom", "error: host_oom: told"),
    ],
)
def test_a_failure_is_the_reason(
    tmp_path: Path, pipe: tuple[int, int], kind: str, reason: str
) -> None:
    failure = {"failure": Failure(kind=kind, phase="load", message="told")}

    assert (None, reason) == product(station(tmp_path, Turns(at_rate(1), failure)), pipe)


def test_runs_that_cannot_be_told_apart_give_no_peak(tmp_path: Path, pipe: tuple[int, int]) -> None:
    """Samples of several steps, and larger products that took less time than smaller ones."""
    blocks, why = product(station(tmp_path, Turns(at_rate(1), {"of_blocks": 2})), pipe)
    swapped, error = product(station(tmp_path, Turns(lambda _: [2e6, 1e6, 3e6, 4e6])), pipe)

    assert blocks is None
    assert swapped is None
    assert "below_resolution" == why.partition(":")[0]
    assert "error: larger products took less time than smaller ones" == error


def test_a_stop_is_obeyed(tmp_path: Path, pipe: tuple[int, int]) -> None:
    class Stopped(Turns):
        def __call__(self, assignment: Assignment, **more: Any) -> Ended:
            return replace(super().__call__(assignment, **more), cause="stopped", record=None)

    with pytest.raises(Interrupted):
        product(station(tmp_path, Stopped(at_rate(1))), pipe)


# ── streams ──────────────────────────────────────────────────────────────────────────────────────


def stream(bench: Station, pipe: tuple[int, int], mib: float) -> tuple[Stream | None, str]:
    return trials.stream(bench, int(mib * MIB), stop=pipe[0], at=AT)


def test_a_triad_moves_three_words_and_reads_one_or_two(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    """12 bytes an element at 10 GB/s; of the reads, 4 at 8 and 8 at 16 GB/s, the wider counts."""
    child = Turns(lambda asked: [each * asked.job.workload.batch for each in (1.2, 0.5, 0.5)])

    found, why = stream(station(tmp_path, child), pipe, 256)

    assert found is not None
    assert "" == why
    assert 256 * MIB - 12 < found.working_set_bytes <= 256 * MIB
    assert found.triad_bytes_per_s == pytest.approx(10e9, rel=1e-4)
    assert found.read_bytes_per_s == pytest.approx(16e9, rel=1e-4)
    assert found.bytes_per_s == found.read_bytes_per_s


@pytest.mark.parametrize(("mib", "runs"), [(1, 200), (32, 8), (256, 6), (1920, 6)])
def test_a_small_set_is_passed_through_more_often(
    tmp_path: Path, pipe: tuple[int, int], mib: int, runs: int
) -> None:
    """A pass through it is over in microseconds, which is too short to see a neighbour."""
    child = Turns(lambda asked: [1.0 * asked.job.workload.batch] * 3)

    found, _ = stream(station(tmp_path, child), pipe, mib)

    assert found is not None
    assert (runs, 3 * runs) == (found.runs, child.asked[0].job.protocol.iterations)


def test_without_free_memory_nothing_is_tried(tmp_path: Path, pipe: tuple[int, int]) -> None:
    child = Turns(lambda _: [1.0, 1.0, 1.0])

    found = stream(station(tmp_path, child), pipe, 0.5)

    assert (None, "not_probed: too little memory is free") == found
    assert [] == child.asked


def test_the_lease_of_the_device_is_held(tmp_path: Path, pipe: tuple[int, int]) -> None:
    """Device and core, as for any job."""
    seen: list[list[str]] = []

    class Looking(Turns):
        def __call__(self, assignment: Assignment, **more: Any) -> Ended:
            seen.append(sorted(each.name for each in (tmp_path / "locks").iterdir()))
            assert 2 == len(more["leases"])
            return super().__call__(assignment, **more)

    stream(station(tmp_path, Looking(lambda _: [1e6, 1e6, 1e6])), pipe, 1)

    assert [["core-1.lease", "cpu-0.lease"]] == seen
    assert make.device().cpus == [1]
