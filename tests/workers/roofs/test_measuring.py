"""The laws of all peaks together: what is measured, and what is said."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from farm import schema
from farm.errors import NoResult
from farm.hardware import Roofs, peaks
from farm.schema import Failure
from tests.workers import make
from tests.workers.roofs.turns import BUSY, Turns, station
from workers import lease
from workers.record import Assignment
from workers.roofs import lines, measure

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SYSTEM = make.card().system_id


def steady(assignment: Assignment) -> Sequence[float]:
    """Products at 100 GFLOP/s, streams at 12 GB/s each."""
    spec = assignment.job.workload.inputs.spec
    if not spec:
        batch = assignment.job.workload.batch
        return [1.0 * batch, batch / 3, batch / 1.5]
    return [2 * int(each.shape[0]) ** 3 / 100 for each in list(spec.values())[::2]]


def quiet(_text: str) -> None:
    pass


def test_every_format_and_every_working_set_is_measured(tmp_path: Path) -> None:
    said: list[str] = []
    child = Turns(steady)

    found = measure(station(tmp_path, child), said.append, now=lambda: NOON)

    schema.encode(found)
    assert (SYSTEM, "test cpu", 1, "2026-11-30T12:00:00Z") == (
        found.system_id,
        found.device,
        found.threads,
        found.tried_at,
    )
    assert ["fp32", "bf16", "fp16"] == [word for word, each in found.products.items() if each]
    assert found.memory is not None
    assert 3 == len(found.caches)
    assert sorted(each.working_set_bytes for each in found.caches) == [
        each.working_set_bytes for each in found.caches
    ]
    assert peaks(found).peak_flops_per_s["fp32"] == pytest.approx(1e11, rel=1e-4)
    assert peaks(found).peak_bytes_per_s == pytest.approx(12e9, rel=1e-4)
    assert 7 == len(child.asked)
    assert "fp32: 100.0 GFLOP/s, matrices of 256" in said


def test_what_could_not_be_had_is_null_with_its_reason(tmp_path: Path) -> None:
    """The caches of this machine are not shown; bf16 is not there; fp16 was disturbed twice."""
    busy = {"latency_edges": BUSY}
    no_bf16 = {"failure": Failure(kind="unsupported", phase="load", message="no such kernel")}

    found = measure(station(tmp_path, Turns(steady, {}, no_bf16, busy, busy)), quiet)

    schema.encode(found)
    assert found.products["bf16"] is None
    assert found.products["fp16"] is None
    assert {
        "cache_bytes": "not_supported: this machine does not show its caches",
        "products.bf16": "not_supported: unsupported: no such kernel",
        "products.fp16": "not_probed: the peaks were disturbed: contended",
    } == found.null_reasons


def test_the_device_is_free_between_trials(tmp_path: Path) -> None:
    """Each is a job of its own: who waits for the device gets it before the last one ends."""
    bench = station(tmp_path, Turns(steady))

    def say(_text: str) -> None:
        lease.Lock(bench.lock_dir / "cpu-0.lease", what="the device").release()

    assert not measure(bench, say).is_empty


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def test_roofs_are_lines_for_people(tmp_path: Path) -> None:
    busy = {"latency_edges": BUSY}

    said = list(lines(measure(station(tmp_path, Turns(steady, {}, busy, busy)), quiet)))

    assert "fp32    100.0 GFLOP/s, matrices of 256" == said[0]
    assert "bf16    –  not_probed: the peaks were disturbed: contended" == said[1]
    assert said[-1].startswith("memory  12.0 GB/s over ")
    assert said[-1].endswith("(triad 12.0, read 12.0)")


def test_no_peak_at_all_is_no_result(tmp_path: Path) -> None:
    nothing = {"failure": Failure(kind="environment", phase="load", message="no torch")}
    found: Roofs = measure(station(tmp_path, Turns(steady, *[nothing] * 9)), quiet)

    with pytest.raises(NoResult, match="no peak of this machine could be measured") as caught:
        list(lines(found))
    assert "library_missing: environment: no torch" in caught.value.why
