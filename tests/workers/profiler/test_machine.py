"""The machine of a process that has no slot."""

import os

from workers.cores import own_affinity
from workers.profiler.machine import system_card


def test_the_card_is_that_of_this_process_and_of_nobodys_node() -> None:
    """Nothing says whose machine it is."""
    found = system_card()

    assert ("", "", {}) == (found.node.node_id, found.node.name, found.node.labels)
    assert found.system_id
    assert len(found.node.leased_cpus) == found.stable.cpu.leased_cores


def test_its_processors_are_those_that_the_process_may_use() -> None:
    allowed = own_affinity() or set(range(os.cpu_count() or 1))

    assert sorted(allowed) == system_card().node.leased_cpus
