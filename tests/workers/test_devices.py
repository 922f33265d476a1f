"""Which cores a slot gets, how devices are named, and what a child's environment holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import NoResult, Refused
from workers import cores
from workers.cores import share
from workers.devices import Slot, slots
from workers.host import Host


def only(machine: Any, *, affinity: set[int] | None) -> Slot:
    (slot,) = slots(machine.host, "all", affinity=affinity)
    return slot


# ── cores ────────────────────────────────────────────────────────────────────────────────────────


def test_one_core_is_shared_with_housekeeping(machine: Any) -> None:
    """There is no second one, and every job says so."""
    machine.cpus([0])

    expected = Slot(0, (0,), (0,), ("no_housekeeping_core",))
    assert expected == only(machine, affinity={0})


def test_two_cores_are_one_for_housekeeping_and_one_to_lease(machine: Any) -> None:
    """The first is kept, the second measures."""
    machine.cpus([0], [1])

    assert Slot(0, (1,), (0,)) == only(machine, affinity={0, 1})


def test_two_threads_of_one_core_are_one_core(machine: Any) -> None:
    """A pair shares its units: it is leased whole, one thread of it is used."""
    machine.cpus([0, 1])

    assert Slot(0, (0,), (0,), ("no_housekeeping_core",)) == only(machine, affinity={0, 1})


def test_one_thread_of_each_leased_core_is_used(machine: Any) -> None:
    """Four cores of two threads: three leased, no sibling of theirs kept for housekeeping."""
    machine.cpus([0, 4], [1, 5], [2, 6], [3, 7])

    assert Slot(0, (1, 2, 3), (0,)) == only(machine, affinity=set(range(8)))


def test_two_sockets_are_one_slot(machine: Any) -> None:
    """Four cores on each of two sockets: seven to lease."""
    machine.cpus(*([n] for n in range(8)), sockets=2)

    assert tuple(range(1, 8)) == only(machine, affinity=set(range(8))).cpus


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("150000 100000", Slot(0, (0,), (0,), ("no_housekeeping_core",))),
        ("50000 100000", Slot(0, (0,), (0,), ("no_housekeeping_core",))),
        ("350000 100000", Slot(0, (1, 2), (0,))),
        ("max 100000", Slot(0, (1, 2, 3), (0,))),
    ],
)
def test_a_quota_counts_in_whole_cores(machine: Any, quota: str, expected: Slot) -> None:
    """1.5 CPUs are one core: a job on more would be stopped in the middle."""
    machine.cpus([0], [1], [2], [3])
    machine.quota(quota)

    assert expected == only(machine, affinity={0, 1, 2, 3})


def test_affinity_and_cpuset_both_limit(machine: Any) -> None:
    """Only what every one of them allows, and is online."""
    machine.cpus([0], [1], [2], [3])
    machine.write("proc/self/cgroup", "0::/\n")
    machine.write("sys/fs/cgroup/cpuset.cpus.effective", "0-2\n")

    assert Slot(0, (2,), (1,)) == only(machine, affinity={1, 2, 3, 9})


def test_hidden_topology_makes_each_cpu_a_core(machine: Any) -> None:
    """A sandbox without /sys still has cores to lease."""
    assert Slot(0, (3, 5), (2,)) == only(machine, affinity={2, 3, 5})


def test_a_system_that_cannot_pin_says_so(machine: Any) -> None:
    """macOS has no affinity: its CPUs are counted, and every job carries the flag."""
    machine.cpus([0], [1])

    assert ("not_pinned",) == only(machine, affinity=None).flags
    assert slots(machine.host.__class__(machine.root / "none"), affinity=None)


def test_several_slots_share_the_cores_evenly(machine: Any) -> None:
    """Neighbouring cores, disjoint, the housekeeping core in none."""
    machine.cpus(*([n] for n in range(6)))

    found = slots(machine.host, "cpu", affinity=set(range(6)), count=2)

    assert [(1, 2), (3, 4, 5)] == [slot.cpus for slot in found]
    assert ["cpu:0", "cpu:1"] == [slot.name for slot in found]


def test_more_slots_than_cores_take_turns(machine: Any) -> None:
    """Each gets them all, flagged; the leases of the cores keep them apart."""
    machine.cpus([0], [1])

    found = slots(machine.host, "cpu", affinity={0, 1}, count=2)

    assert [(1,), (1,)] == [slot.cpus for slot in found]
    assert {("shared_cores",)} == {slot.flags for slot in found}


@given(st.lists(st.integers(0, 300), unique=True, min_size=1).map(sorted), st.integers(1, 20))
def test_shares_are_disjoint_and_even_and_lose_no_core(cores: list[int], count: int) -> None:
    """The law of sharing, for any numbers, while there are as many cores as slots."""
    if len(cores) < count:
        assert [cores] * count == [share(cores, i, count) for i in range(count)]
        return

    shares = [share(cores, i, count) for i in range(count)]

    assert cores == [core for share in shares for core in share]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_core_has_one_name_whichever_thread_is_used(machine: Any) -> None:
    """Two workers with different threads of one core meet at its lock."""
    machine.cpus([0, 4], [1, 5])

    assert [0] == cores.names(machine.host, [4])
    assert [0, 1] == cores.names(machine.host, [5, 0, 4])


def test_this_machine_has_a_slot() -> None:
    """Whatever runs this test can be measured on, within what it may use."""
    affinity = cores.own_affinity()
    (slot,) = slots(Host(), affinity=affinity)

    assert slot.cpus
    assert affinity is None or set(slot.cpus) <= affinity


# ── selectors ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("selector", ["all", "cpu", "cpu:0"])
def test_a_selector_names_the_cpu_slot(machine: Any, selector: str) -> None:
    """All of these are the one slot of a small machine."""
    machine.cpus([0], [1])

    assert [0] == [slot.number for slot in slots(machine.host, selector, affinity={0, 1})]


def test_a_slot_that_is_not_here_is_no_result(machine: Any) -> None:
    """The words are right, and this node says what it has."""
    machine.cpus([0], [1])

    with pytest.raises(NoResult, match="no device 'cpu:1' here") as caught:
        slots(machine.host, "cpu:1", affinity={0, 1})

    assert "this node has cpu:0" == caught.value.why
    assert 3 == caught.value.exit_code


@pytest.mark.parametrize("selector", ["gpu", "gpu:0", "0", "GPU-5a1b", "MIG-77", "0000:65:00.0"])
def test_where_no_gpu_is_a_person_learns_why(machine: Any, selector: str) -> None:
    """Exit 3: the request is right, and this machine has none, or its driver does not answer."""
    with pytest.raises(NoResult, match="no device") as caught:
        slots(machine.host, selector, affinity={0}, missing="driver_not_loaded")

    assert "this node has cpu:0; no GPU here: driver_not_loaded" == caught.value.why
    assert "say `cpu`" == caught.value.hint


@pytest.mark.parametrize(
    "selector", ["", "cpus", "cpu:", "cpu:x", "cpu:-1", "tpu", "gpu:", "mig:0", "GPU-", "-1"]
)
def test_other_words_are_refused(machine: Any, selector: str) -> None:
    """Exit 2, with what is known."""
    with pytest.raises(Refused, match="unknown device selector") as caught:
        slots(machine.host, selector, affinity={0})

    assert caught.value.why.startswith("known: all, cpu, cpu:0, gpu")


def test_a_node_serves_at_least_one_slot(machine: Any) -> None:
    """No slots are no node."""
    with pytest.raises(Refused):
        slots(machine.host, affinity={0}, count=0)


def test_a_device_carries_its_slot_and_cpus() -> None:
    """As a profile shows it, with the model where it is known."""
    device = Slot(0, (1, 2), (0,)).device("AMD EPYC 7B13")

    assert ("AMD EPYC 7B13", "cpu:0", "cpu", [1, 2]) == (
        device.name,
        device.slot,
        device.kind,
        device.cpus,
    )
    assert "cpu" == Slot(0, (1,), (0,)).device(None).name
