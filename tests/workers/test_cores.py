"""Who gets which cores: housekeeping one, GPUs near them, CPU slots what is left."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.cores import Division, divide


def every(found: Division) -> list[int]:
    return [cpu for each in (*found.gpus, *found.slots) for cpu in each.cpus]


def test_a_gpu_takes_cores_near_it_and_the_cpu_slot_has_the_rest() -> None:
    """Two sockets of eight cores: the second GPU is at the second one."""
    found = divide(range(16), near=[range(8), range(8, 16)], slots=1)

    assert (0,) == found.housekeeping
    assert [(1, 2, 3, 4, 5), (8, 9, 10, 11, 12)] == [each.cpus for each in found.gpus]
    assert [(6, 7, 13, 14, 15)] == [each.cpus for each in found.slots]
    assert {()} == {each.flags for each in (*found.gpus, *found.slots)}


def test_a_gpu_takes_no_more_than_eight() -> None:
    found = divide(range(64), near=[()], slots=1)

    assert 8 == len(found.gpus[0].cpus)
    assert 55 == len(found.slots[0].cpus)


def test_cores_that_are_far_are_better_than_none() -> None:
    found = divide(range(8), near=[range(4), range(4)], slots=0)

    assert [(1, 2, 3), (4, 5, 6)] == [each.cpus for each in found.gpus]


@pytest.mark.parametrize("gpus", [1, 8])
def test_who_finds_none_takes_turns_on_all(gpus: int) -> None:
    """Two cores: one is for housekeeping, and all slots share the other."""
    found = divide([0, 1], near=[()] * gpus, slots=1)

    assert {(1,)} == {each.cpus for each in (*found.gpus, *found.slots)}
    assert {("shared_cores",)} == {each.flags for each in (*found.gpus, *found.slots)}


def test_a_single_core_is_shared_with_housekeeping_too() -> None:
    found = divide([3], near=[()], slots=1)

    assert ((3,), (3,), (3,)) == (found.housekeeping, found.gpus[0].cpus, found.slots[0].cpus)
    assert "no_housekeeping_core" in found.gpus[0].flags


@given(
    st.lists(st.integers(0, 300), unique=True, min_size=1).map(sorted),
    st.lists(st.frozensets(st.integers(0, 300)), max_size=10),
    st.integers(0, 10),
)
def test_no_core_is_in_two_shares_unless_they_say_so(
    cores: list[int], near: list[frozenset[int]], slots: int
) -> None:
    """Whatever machine; nobody is without a core, and housekeeping has its own where it can."""
    found = divide(cores, near=near, slots=slots)
    takes = Counter(every(found))

    assert (len(near), slots) == (len(found.gpus), len(found.slots))
    for each in (*found.gpus, *found.slots):
        is_shared = any(takes[cpu] > 1 for cpu in each.cpus)
        assert is_shared == ("shared_cores" in each.flags)
    if len(near) + slots < len(cores):
        assert {1} >= set(takes.values())
    assert all(each.cpus for each in (*found.gpus, *found.slots))
    assert set(every(found)) <= set(cores)
    assert len(cores) == 1 or found.housekeeping[0] not in every(found)
