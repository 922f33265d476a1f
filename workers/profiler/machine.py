"""The machine as this process finds it: whoever measures in a program of their own has no slot."""

import os

from farm.schema import SystemCard
from workers import card, cores, devices
from workers.host import Host


def system_card() -> SystemCard:
    """Return the card of this process, on the CPUs that it may use; its node is nobody's."""
    cpus = tuple(sorted(cores.own_affinity() or range(os.cpu_count() or 1)))
    return card.collect(
        devices.Slot(number=0, cpus=cpus, housekeeping=()),
        Host(),
        node_id="",
        lease_scope="user",
        environment=os.environ,
    )
