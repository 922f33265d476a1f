"""GPUs and slices as slots: how they are counted, chosen, pinned and locked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from farm import schema
from farm.errors import NoResult, Refused
from workers import lease
from workers.devices import Slot, slots, visible
from workers.gpu import Board, Reading, Seen
from workers.node import Served, offer, take

GIB = 1 << 30


def board(index: int, **more: Any) -> Board:
    fields: dict[str, Any] = {
        "uuid": f"GPU-{index:08x}-aaaa",
        "kind": "gpu",
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bdf": f"0000:{0x10 + index:02x}:00.0",
        "index": index,
        "memory_bytes": 80 * GIB,
        "sm_count": 132,
    }
    return Board(**{**fields, **more})


def cut(gpu: int, at: int, *, siblings: bool = True) -> Board:
    return board(
        gpu,
        uuid=f"MIG-{gpu:04x}-{at}",
        kind="mig",
        parent=board(gpu).uuid,
        profile="1g.10gb",
        memory_bytes=10 * GIB,
        sm_count=16,
        sm_ratio="16/132",
        memory_ratio="10/80",
        has_siblings=siblings,
    )


BOARDS = [board(0), cut(1, 0), cut(1, 1), board(2)]


@pytest.fixture
def sixteen(machine: Any) -> Any:
    machine.cpus(*([n] for n in range(16)))
    return machine


def chosen(machine: Any, selector: str, boards: Sequence[Board] = BOARDS) -> list[str]:
    found = slots(machine.host, selector, affinity=set(range(16)), boards=boards)
    return [slot.name for slot in found]


# ── which one is meant ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("all", ["gpu:0", "mig:1.0", "mig:1.1", "gpu:2", "cpu:0"]),
        ("gpu", ["gpu:0", "mig:1.0", "mig:1.1", "gpu:2"]),
        ("cpu", ["cpu:0"]),
        ("gpu:2", ["gpu:2"]),
        ("mig:1.1", ["mig:1.1"]),
        ("2", ["gpu:2"]),
        ("1", ["mig:1.0", "mig:1.1"]),
        ("GPU-00000002", ["gpu:2"]),
        ("gpu-00000002-aaaa", ["gpu:2"]),
        ("MIG-0001-1", ["mig:1.1"]),
        ("0000:12:00.0", ["gpu:2"]),
        ("00000000:12:00.0", ["gpu:2"]),
        ("10:00.0", ["gpu:0"]),
    ],
)
def test_a_selector_names_devices(sixteen: Any, selector: str, names: list[str]) -> None:
    assert names == chosen(sixteen, selector)


@pytest.mark.parametrize(
    "selector", ["gpu:1", "gpu:3", "mig:0.0", "7", "GPU-ffff", "0000:aa:00.0", "0001:12:00.0"]
)
def test_a_gpu_that_is_not_here_is_no_result(sixteen: Any, selector: str) -> None:
    """The GPU that is cut into slices is no device either."""
    with pytest.raises(NoResult, match="no device") as caught:
        chosen(sixteen, selector)

    assert "this node has gpu:0, mig:1.0, mig:1.1, gpu:2, cpu:0" == caught.value.why


def test_a_beginning_of_several_uuids_names_none(sixteen: Any) -> None:
    with pytest.raises(Refused, match="several devices") as caught:
        chosen(sixteen, "GPU-0000000")

    assert "gpu:0, gpu:2" == caught.value.why


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [0, 2]),
        ("GPU-00000001", [1]),
        ("0,7,1", [0]),  # as CUDA does: the list ends where a word names nothing
        ("-1,0", []),
    ],
)
def test_an_operator_may_leave_some_of_them(setting: str | None, kept: list[int]) -> None:
    """By PCI address, whatever order the driver has."""
    boards = [board(2), board(0), board(1)]

    assert kept == [each.index for each in visible(boards, setting)]


def test_a_slice_is_left_by_its_own_uuid_or_with_its_gpu() -> None:
    assert [["MIG-0001-1"], ["MIG-0001-0", "MIG-0001-1"]] == [
        [each.uuid for each in visible(BOARDS, setting)] for setting in ("MIG-0001-1", "1")
    ]


# ── what it has ──────────────────────────────────────────────────────────────────────────────────


def test_a_slot_of_a_gpu_has_cores_and_says_what_it_is(sixteen: Any) -> None:
    gpu, part, *_ = slots(sixteen.host, affinity=set(range(16)), boards=BOARDS)

    assert ("gpu", "NVIDIA H100 80GB HBM3") == (gpu.device(None).kind, gpu.device(None).name)
    assert ("mig", "NVIDIA H100 80GB HBM3 1g.10gb") == (
        part.device(None).kind,
        part.device(None).name,
    )
    assert not set(gpu.cpus) & set(part.cpus)
    assert gpu.cpus


def test_a_slice_beside_others_is_never_quiet(sixteen: Any) -> None:
    """It shares the memory's bandwidth with them."""
    both = slots(sixteen.host, "gpu", affinity=set(range(16)), boards=BOARDS)
    alone = slots(sixteen.host, "gpu", affinity=set(range(16)), boards=[cut(0, 0, siblings=False)])

    assert [(), ("busy_siblings",), ("busy_siblings",), ()] == [slot.flags for slot in both]
    assert [()] == [slot.flags for slot in alone]


def test_simulated_devices_stand_in_for_all(sixteen: Any) -> None:
    found = slots(sixteen.host, affinity=set(range(16)), boards=[board(0)], simulated=True)

    assert [("gpu:0", True)] == [(slot.name, slot.simulated) for slot in found]
    with pytest.raises(NoResult, match="no device 'cpu'"):
        slots(sixteen.host, "cpu", affinity={0}, boards=[board(0)], simulated=True)


# ── a node with GPUs ─────────────────────────────────────────────────────────────────────────────


FACTS = {
    "ecc": Reading(True),
    "power_limit_w": Reading(700),
    "vbios": Reading(reason="no_permission"),
    "nvidia": Reading("580.65.06"),
    "cuda_driver": Reading("13.0"),
}


class Node:
    def __init__(self, machine: Any, folder: Path) -> None:
        self.machine, self.folder = machine, folder

    def offer(self, *boards: Board, selector: str = "gpu", simulated: bool = False) -> list[Served]:
        fake = "2xH100" if simulated else ""
        seen = Seen(boards, {each.uuid: FACTS for each in boards}, fake=fake)
        return offer(
            self.folder / "state",
            selector=selector,
            name="n1",
            lock_dir=str(self.folder / "locks"),
            count=1,
            host=self.machine.host,
            seen=seen,
        )


@pytest.fixture
def node(sixteen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return Node(sixteen, tmp_path)


def test_a_gpu_is_offered_to_jobs_of_its_class_its_family_and_any_gpu(node: Node) -> None:
    (served,) = node.offer(board(0))

    assert "h100-sxm-80g_cpu" == served.slot.system_class
    assert [
        "dev.n1.0",
        "node.n1",
        "hw.h100-sxm-80g_cpu",
        "hw.h100-sxm",
        "hw.h100",
        "hw.gpu",
        "any",
    ] == (served.slot.classes)


def test_its_card_has_the_leased_device_and_no_word_that_names_it(node: Node) -> None:
    first, second = (node.offer(board(at))[0].card for at in (0, 1))
    data = schema.encode(first)

    assert first.stable.accelerators is not UNSET
    (found,) = first.stable.accelerators
    assert ("sxm", True, 700, None) == (
        found.form_factor,
        found.ecc,
        found.power_limit_w,
        found.vbios,
    )
    assert ("580.65.06", "13.0") == (first.stable.drivers.nvidia, first.stable.drivers.cuda_driver)
    assert "no_permission" == first.null_reasons["stable.accelerators.0.vbios"]
    assert b"GPU-" not in data
    assert b"aaaa" not in data
    assert first.node.device_hash != second.node.device_hash
    assert first.system_id == second.system_id  # equal machines are one system


def test_a_cpu_slot_of_the_same_node_has_no_gpu_on_its_card(node: Node) -> None:
    """One that is not used labels no result."""
    (served,) = node.offer(board(0), selector="cpu")

    assert (UNSET, UNSET) == (served.card.stable.accelerators, served.card.node.device_hash)


def test_a_slice_is_a_class_of_its_own(node: Node) -> None:
    whole, part = node.offer(board(0))[0], node.offer(cut(1, 0))[0]

    assert "h100-sxm-10g-1g-10gb_cpu" == part.slot.system_class
    assert whole.slot.system_id != part.slot.system_id
    (found,) = part.card.stable.accelerators or []
    assert ("1g.10gb", "16/132", "10/80") == (
        found.mig and (found.mig.profile, found.mig.sm_ratio, found.mig.memory_ratio)
    )


def test_a_gpu_that_no_table_knows_is_still_offered(node: Node) -> None:
    (served,) = node.offer(board(0, name="NVIDIA Future 9000"))

    assert "future-9000-80g_cpu" == served.slot.system_class
    assert served.card.null_reasons["stable.accelerators.0.form_factor"].startswith(
        "unknown_device"
    )


def test_a_simulated_device_says_so_in_its_class_and_card(node: Node) -> None:
    (served,) = node.offer(board(0), simulated=True)

    assert (True, "sim-h100-sxm-80g_cpu") == (
        served.card.stable.simulated,
        served.slot.system_class,
    )


def test_a_device_is_served_once_whatever_it_is_called(node: Node) -> None:
    """By its UUID: it was `gpu:0` before another came at a lower address."""
    (held,) = take(node.offer(board(5)), wait=lambda _: False)
    both = node.offer(board(0), board(5))

    with pytest.raises(lease.Taken, match="device gpu:1 is taken"):
        take(both[1:], wait=lambda _: False)
    (other,) = take(both[:1], wait=lambda _: False)

    for each in (held, other):
        assert each.lock is not None
        each.lock.release()


def test_slices_share_their_gpu_and_nobody_has_the_whole_of_it(tmp_path: Path) -> None:
    """As one who still takes it for uncut would."""
    gpu, first, second = "GPU-1", "MIG-1-0", "MIG-1-1"
    with (
        lease.hold(first, [], directory=tmp_path, parent=gpu) as one,
        lease.hold(second, [], directory=tmp_path, parent=gpu) as two,
    ):
        assert (2, 2) == (len(one.fds), len(two.fds))
        for device, parent in ((gpu, ""), (first, gpu)):
            with (
                pytest.raises(lease.Taken, match="device slot is taken"),
                lease.hold(device, [], directory=tmp_path, parent=parent, called="slot", wait_s=0),
            ):
                pass
    with lease.hold(gpu, [], directory=tmp_path):
        pass


def test_a_slot_without_a_board_is_known_by_its_name() -> None:
    assert ("cpu:3", "GPU-00000001-aaaa") == (
        Slot(3, (1,), (0,)).key,
        Slot(0, (1,), (0,), board=board(1), place="1").key,
    )
