"""What a node offers: cards that stay the same while the facts do, classes, and its locks."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farm import schema
from farm.errors import NoResult, Refused
from farm.schema import SystemCard
from tests.workers.conftest import Machine
from workers import lease
from workers.node import Patience, Served, classes, default_state, offer, take


@pytest.fixture
def whole(machine: Machine) -> Machine:
    """Four cores of two threads each."""
    machine.cpus([0, 4], [1, 5], [2, 6], [3, 7])
    machine.write("proc/cpuinfo", "model name\t: AMD EPYC 7B13 64-Core Processor\nflags\t: avx2\n")
    machine.write("proc/sys/kernel/osrelease", "6.1.0\n")
    return machine


class Node:
    """A node with a state folder and a lock folder of its own."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine, self.state, self.locks = machine, folder / "state", folder / "locks"

    def offer(self, selector: str = "all", *, name: str = "n1", count: int = 1) -> list[Served]:
        return offer(
            self.state,
            selector=selector,
            name=name,
            lock_dir=str(self.locks),
            count=count,
            host=self.machine.host,
        )


@pytest.fixture
def node(whole: Machine, tmp_path: Path) -> Node:
    return Node(whole, tmp_path)


# ── slots ────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_is_offered_with_its_card_its_device_and_its_classes(node: Node) -> None:
    """The scheduler learns what it needs, the worker the rest."""
    (served,) = node.offer()

    assert ("n1", "cpu:0") == (served.slot.node, served.slot.slot)
    assert served.slot.system_id == served.card.system_id
    assert served.slot.system_class == served.card.system_class
    assert served.slot.device == served.device.name == "AMD EPYC 7B13 64-Core Processor"
    assert served.device.cpus == served.card.node.leased_cpus
    assert ("default", node.locks, None) == (served.environment, served.lock_dir, served.lock)
    assert [
        "dev.n1.0",
        "node.n1",
        f"hw.{served.card.system_class}",
        "hw.cpu",
        "any",
    ] == served.slot.classes


def test_every_slot_of_the_node_has_classes_and_a_card_of_its_own(node: Node) -> None:
    first, second = node.offer(count=2)

    assert ("dev.n1.0", "dev.n1.1") == (first.slot.classes[0], second.slot.classes[0])
    assert ("cpu:0", "cpu:1") == (first.device.slot, second.device.slot)
    assert ["0.json", "1.json"] == sorted(p.name for p in (node.state / "cards").iterdir())


@pytest.mark.parametrize(("selector", "slots"), [("cpu", 2), ("cpu:1", 1), ("all", 2)])
def test_a_selector_chooses_among_the_slots(node: Node, selector: str, slots: int) -> None:
    assert slots == len(node.offer(selector, count=2))


def test_a_queue_is_heard_from_the_narrowest_to_the_widest() -> None:
    """`queue.md` §3."""
    assert ["dev.n.3", "node.n", "hw.c", "hw.cpu", "any"] == classes("n", 3, ["c", "cpu"])
    assert ["dev.n.3", "node.n", "hw.c", "any"] == classes("n", 3, ["c", "c"])


@pytest.mark.parametrize("name", ["Gpu-1", "a b", "-x", "a/b", "a.b", "x" * 65, "ä", "a\n", "*"])
def test_a_name_that_makes_no_queue_is_refused(node: Node, name: str) -> None:
    with pytest.raises(Refused, match="no name of a node"):
        node.offer(name=name)


def test_without_a_name_a_node_is_called_by_its_id(node: Node) -> None:
    """Eight digits of it, the same at every start."""
    (served,) = node.offer(name="")
    (again,) = node.offer(name="")

    assert served.card.node.node_id[:8] == served.slot.node == again.slot.node


@pytest.mark.parametrize(("selector", "kind"), [("gpu", NoResult), ("bogus", Refused)])
def test_a_selector_that_names_nothing_here_is_said_so(
    node: Node, selector: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        node.offer(selector)


# ── cards ────────────────────────────────────────────────────────────────────────────────────────


def test_a_card_is_the_same_document_while_the_facts_are(node: Node) -> None:
    """Only the time differs, so the former card stands, byte for byte."""
    (first,) = node.offer()
    file = node.state / "cards/0.json"
    stored = json.loads(file.read_text())
    stored["node"]["collected_at"] = "2020-01-01T00:00:00Z"
    file.write_text(json.dumps(stored))

    (second,) = node.offer()

    assert "2020-01-01T00:00:00Z" == second.card.node.collected_at
    assert first.card.system_id == second.card.system_id


def test_a_changed_fact_makes_a_new_card(node: Node) -> None:
    """A new kernel is another system."""
    (first,) = node.offer()
    node.machine.write("proc/sys/kernel/osrelease", "6.2.0\n")

    (second,) = node.offer()

    assert first.card.system_id != second.card.system_id
    assert second.card == schema.decode((node.state / "cards/0.json").read_bytes(), SystemCard)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"schema": "farm.profile/v1"}'])
def test_a_damaged_former_card_is_replaced(node: Node, data: bytes) -> None:
    node.offer()
    (node.state / "cards/0.json").write_bytes(data)

    (served,) = node.offer()

    assert served.card == schema.decode((node.state / "cards/0.json").read_bytes(), SystemCard)


def test_two_commands_may_ask_for_the_first_card_at_once(node: Node) -> None:
    """`farm plan` beside `farm run` in a fresh folder: neither takes the other's file away."""

    def ask(_: int) -> list[Served]:
        (node.state / "cards/0.json").unlink(missing_ok=True)
        return node.offer()

    node.offer()
    with ThreadPoolExecutor(4) as several:
        found = list(several.map(ask, range(60)))

    assert 1 == len({each.card.system_id for (each,) in found})
    assert {"0.json"} >= {each.name for each in (node.state / "cards").iterdir()}


@pytest.mark.parametrize("spoiled", ["state", "state/cards"])
def test_a_state_folder_that_cannot_be_written_is_refused(node: Node, spoiled: str) -> None:
    """A file stands where a folder should be."""
    path = node.state.parent / spoiled
    path.parent.mkdir(exist_ok=True)
    path.write_text("")

    with pytest.raises(Refused, match="cannot write the state folder"):
        node.offer()


def test_a_node_keeps_its_state_in_a_folder_of_the_user() -> None:
    assert default_state().is_relative_to(Path.home())
    assert "farm" == default_state().name


# ── locks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def taken(node: Node) -> Iterator[list[Served]]:
    """Both slots, taken."""
    served = take(node.offer(count=2), wait=lambda _taken: False)
    yield served
    for each in served:
        assert each.lock is not None
        each.lock.release()


def test_a_device_that_is_served_cannot_be_served_twice(node: Node, taken: list[Served]) -> None:
    """The error names the holder."""
    with pytest.raises(lease.Taken) as caught:
        take(node.offer(count=2), wait=lambda _taken: False)

    assert "n1" in caught.value.why


def test_whoever_gives_up_holds_nothing(node: Node, taken: list[Served]) -> None:
    """All of them or none: the lock of the first slot is let go when the second is taken."""
    assert taken[0].lock is not None
    taken[0].lock.release()

    with pytest.raises(lease.Taken):
        take(node.offer(count=2), wait=lambda _taken: False)

    (again,) = take(node.offer("cpu:0", count=2), wait=lambda _taken: False)
    assert again.lock is not None
    again.lock.release()


def test_a_lock_that_cannot_be_made_leaves_none_behind(node: Node) -> None:
    """A folder stands where the second slot's lock should be."""
    served = node.offer(count=2)
    (node.locks / "cpu-1.slot").mkdir()

    with pytest.raises(NoResult):
        take(served, wait=lambda _taken: pytest.fail("nobody will let go of it"))

    (first,) = take(served[:1], wait=lambda _taken: False)
    assert first.lock is not None
    first.lock.release()


def test_a_device_is_waited_for_as_long_as_somebody_wants_it(
    node: Node, taken: list[Served]
) -> None:
    """A second `farm run` has its own workers ready for when those of the first end."""
    asked = []

    def wait(held: lease.Taken) -> bool:
        asked.append(held.what)
        for each in taken if len(asked) == 3 else []:
            assert each.lock is not None
            each.lock.release()
        return True

    again = take(node.offer(count=2), wait=wait)

    assert ["device cpu:0 is taken"] * 3 == asked
    for each in again:
        assert each.lock is not None
        each.lock.release()


def test_patience_lasts_as_long_as_whoever_started_us(caplog: pytest.LogCaptureFixture) -> None:
    """Without a lifeline nobody waits; the holder is named once."""
    caplog.set_level("INFO")
    held = lease.Taken("device cpu:0 is taken", why="held by pid 7")
    read, write = os.pipe()
    patience = Patience(read)

    assert (False, True, True) == (Patience(None)(held), patience(held), patience(held))
    os.close(write)
    assert not patience(held)

    os.close(read)
    said = "waiting for a device: device cpu:0 is taken: held by pid 7"
    assert [said] == [each.message for each in caplog.records]
