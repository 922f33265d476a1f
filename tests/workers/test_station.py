"""A device and what is needed to measure on it: its locks, the files of the job, its artefacts."""

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from farm import archive, bundle, identity, schema
from farm.errors import NoResult
from farm.schema import Inputs, Model, Order, Profile
from farm.store import LocalStore, NotFound
from tests.workers import make
from tests.workers.scripted import Child, order
from workers import folders, lease
from workers.gpu import Board
from workers.host import Host
from workers.launch import SILENCE_S
from workers.measure import Interrupted
from workers.station import Station, _limits


class Bench:
    """A station with scripted children, and the folder of one attempt."""

    def __init__(self, folder: Path, store: LocalStore | None) -> None:
        (folder / "locks").mkdir()
        self.folder = folder / "attempt"
        self.heard: list[tuple[int, str, int]] = []
        self.stop_r, self.stop_w = os.pipe()
        self.station = Station(
            node="n1",
            worker="n1/cpu:0#a",
            device=make.device(),
            card=make.card(),
            environment="default",
            flags=("no_housekeeping_core",),
            cache=folder / "cache",
            lock_dir=folder / "locks",
            store=store,
            version="0.1.0",
            host=Host(),
        )

    def measure(self, child: Child, asked: Order | None = None, **more: Any) -> Profile:
        return replace(self.station, start=child, **more).measure(
            asked or order(),
            run_id="r-1",
            attempt=2,
            fence=7,
            queue_s=0.25,
            folder=self.folder,
            stop_fd=self.stop_r,
            on_progress=lambda *said: self.heard.append(said),
        )

    def close(self) -> None:
        os.close(self.stop_r)
        os.close(self.stop_w)


@pytest.fixture
def bench(tmp_path: Path, store: LocalStore) -> Iterator[Bench]:
    made = Bench(tmp_path, store)
    yield made
    made.close()


# ── measuring ────────────────────────────────────────────────────────────────────────────────────


def test_a_profile_says_where_it_was_taken_and_under_which_card(bench: Bench) -> None:
    found = bench.measure(Child())

    execution = found.execution
    assert ("n1", "n1/cpu:0#a", "cpu:0", [1], 1) == (
        execution.node,
        execution.worker,
        execution.device.slot,
        execution.device.cpus,
        execution.threads,
    )
    assert ("r-1", 2, 7, 0.25) == (found.run_id, found.attempt, found.fence, execution.queue_s)
    assert identity.content_id(schema.encode(bench.station.card)) == found.card_id
    assert bench.station.card.system_id == found.system_id
    assert isinstance(found.quality, schema.Quality)
    assert "no_housekeeping_core" in found.quality.flags


def test_progress_counts_repeats_from_one(bench: Bench) -> None:
    bench.measure(Child(), order(repeats=2))

    assert [(1, "load", 0), (1, "latency", 40), (2, "load", 0), (2, "latency", 40)] == bench.heard


def test_the_instrumented_child_comes_last_and_has_no_number(bench: Bench) -> None:
    """It is the one of no repeat: 0."""
    bench.measure(Child(), make.order(1))

    assert [(1, "load", 0), (1, "latency", 40), (0, "load", 0), (0, "latency", 40)] == bench.heard


def test_the_device_and_its_cores_are_held_and_handed_to_the_child(bench: Bench) -> None:
    """Nobody else measures there meanwhile; afterwards everybody may."""
    held = []

    def look(_index: int) -> None:
        names = sorted(each.name for each in bench.station.lock_dir.iterdir())
        for name in names:
            with pytest.raises(lease.Taken):
                lease.Lock(bench.station.lock_dir / name, what=name)
        held.extend(names)

    child = Child(during=look)
    bench.measure(child)

    assert ["core-1.lease", "cpu-0.lease"] == held
    assert 2 == len(child.leases[0])
    for name in held:
        lease.Lock(bench.station.lock_dir / name, what=name).release()


def test_the_child_is_told_its_cores_its_folder_and_its_memory(bench: Bench) -> None:
    """The limit of the effort, or what the machine has to give."""
    child, limited = Child(), make.order(1, memory_limit_bytes=1 << 30, layers=False, flops=False)
    bench.measure(child)
    bench.folder = bench.folder.with_name("another")
    bench.measure(child, limited)

    free, told = (each.effort.memory_limit_bytes for each in child.asked)
    assert (1 << 30, True) == (told, free > 1 << 28)
    assert ([1], 1) == (child.asked[0].cores, child.asked[0].threads)
    assert str(bench.folder / "repeat-0") == child.asked[1].folder
    assert str(bench.folder / "repeat-0" / "home") == child.environment["HOME"]


GPU = Board(uuid="GPU-5a1b", kind="gpu", name="X", pci_bdf="", index=0, memory_bytes=1, sm_count=1)
SLICE = Board(
    uuid="MIG-77", kind="mig", name="X", pci_bdf="", index=0, memory_bytes=1, sm_count=1,
    parent="GPU-5a1b",
)  # fmt: skip


def test_a_child_on_a_gpu_is_pinned_to_it_and_has_no_limit_of_addresses(bench: Bench) -> None:
    child = Child()
    found = bench.measure(child, board=GPU)

    assert ("cuda", "GPU-5a1b") == (child.asked[0].accelerator, child.asked[0].device_uuid)
    assert "GPU-5a1b" == child.environment["CUDA_VISIBLE_DEVICES"]
    assert (0, "none") == (
        child.asked[0].effort.memory_limit_bytes,
        found.execution.memory_limit,
    )


def test_a_silent_child_is_ended_unless_a_person_waits_for_it(bench: Bench) -> None:
    """Whoever captures by hand has Ctrl-C."""
    child = Child()
    bench.measure(child)
    job = child.asked[0]
    by_hand = msgspec.structs.replace(job, capture=schema.Capture())

    assert [SILENCE_S, math.inf] == [_limits(each).silence_s for each in (job, by_hand)]


def test_a_child_on_a_gpu_that_is_not_there_computes_on_the_cpu(bench: Bench) -> None:
    child = Child()
    bench.measure(child, board=GPU, simulated=True)

    assert ("", "", "") == (
        child.asked[0].accelerator,
        child.asked[0].device_uuid,
        child.environment["CUDA_VISIBLE_DEVICES"],
    )


@pytest.mark.parametrize(
    ("board", "names"),
    [(GPU, ["GPU-5a1b.lease"]), (SLICE, ["GPU-5a1b.lease", "MIG-77.lease"])],
)
def test_a_gpu_is_held_by_its_uuid_and_a_slice_with_its_gpu(
    bench: Bench, board: Board, names: list[str]
) -> None:
    held: list[str] = []
    child = Child(
        during=lambda _: held.extend(each.name for each in bench.station.lock_dir.iterdir())
    )

    bench.measure(child, board=board)

    assert [*names, "core-1.lease"] == sorted(set(held))
    assert len(names) + 1 == len(child.leases[0])


def test_a_stop_stores_nothing_and_lets_go(bench: Bench) -> None:
    """The repeats that ended stay for whoever comes next."""
    child = Child(during=lambda index: os.write(bench.stop_w, b"x") if index == 1 else None)

    with pytest.raises(Interrupted):
        bench.measure(child, order(repeats=3))

    assert ["repeat-0", "repeat-1"] == sorted(each.name for each in bench.folder.iterdir())
    lease.Lock(bench.station.lock_dir / "cpu-0.lease", what="it").release()


def test_a_stop_ends_the_wait_for_a_device_that_somebody_else_holds(bench: Bench) -> None:
    """A drain does not wait for another farm's job."""
    os.write(bench.stop_w, b"x")
    child = Child()

    with (
        lease.Lock(bench.station.lock_dir / "core-1.lease", what="core 1", holder="another"),
        pytest.raises(Interrupted),
    ):
        bench.measure(child)

    assert [] == child.asked
    lease.Lock(bench.station.lock_dir / "cpu-0.lease", what="it").release()


@pytest.mark.parametrize("wanted", [True, False])
def test_a_sweep_traces_where_that_was_asked(bench: Bench, wanted: bool) -> None:
    """`measure.trace: true`; the instrumented child is told, and clean ones never."""
    child = Child()

    found = bench.measure(child, make.order(2, trace=wanted))

    told = ("layers", *(["trace"] if wanted else []), "flops")
    assert [(), (), told] == [each.instruments for each in child.asked]
    assert (wanted, wanted) == (
        isinstance(found.trace, schema.Traced),
        folders.trace(bench.folder) is not None,
    )


# ── what a job brings along ──────────────────────────────────────────────────────────────────────


def bundled(store: LocalStore, folder: Path) -> Order:
    code = folder / "model.py"
    code.write_text("def build(): return 1\n")
    digest, data = archive.pack([("model.py", code)])
    bundle.put(store, data)
    return order(
        model=Model(name="own", ref="model.py:build", source="file", digest=digest, bundled=True)
    )


def with_arrays(store: LocalStore, folder: Path) -> Order:
    path = folder / "x.npz"
    np.savez(path, x=np.zeros(3))
    bundle.put(store, path, ext="npz")
    digest = identity.content_id(path.read_bytes())
    return order(inputs=Inputs(spec={}, digest=digest))


def test_code_and_arrays_are_staged_before_the_child_starts(
    bench: Bench, store: LocalStore, tmp_path: Path
) -> None:
    child = Child()

    bench.measure(child, bundled(store, tmp_path))
    bench.folder = bench.folder.with_name("another")
    bench.measure(child, with_arrays(store, tmp_path))

    code, arrays = child.asked
    assert "def build(): return 1\n" == (Path(code.bundle) / "model.py").read_text()
    assert ("", "") == (code.npz, arrays.bundle)
    with np.load(arrays.npz) as found:
        assert [0.0] * 3 == list(found["x"])


@pytest.mark.parametrize("brings", [bundled, with_arrays])
def test_files_that_are_in_no_store_are_no_result(
    bench: Bench, store: LocalStore, tmp_path: Path, brings: Any
) -> None:
    """Without a store the way to one is named; with the wrong one, the key that it lacks."""
    asked = brings(store, tmp_path)
    child = Child()

    with pytest.raises(NoResult) as caught:
        bench.measure(child, asked, store=None)
    with pytest.raises(NotFound):
        bench.measure(child, asked, store=LocalStore(tmp_path / "other"))

    assert "FARM_STORE" in caught.value.hint
    assert [] == child.asked


def test_a_zoo_model_needs_no_store(bench: Bench) -> None:
    assert "ok" == bench.measure(Child(), store=None).status


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────
