"""A machine that a test writes: files of /proc and /sys under a temporary folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.store import LocalStore
from tests.workers.agents import Place
from workers.host import Host


class Machine:
    """Its files, by paths below the root, and its CPUs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = Host(root)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cpus(self, *cores: list[int], sockets: int = 1) -> None:
        """Give the machine these physical cores, each a list of its logical CPUs."""
        logical = sorted(cpu for core in cores for cpu in core)
        self.write("sys/devices/system/cpu/online", f"{logical[0]}-{logical[-1]}\n")
        for index, core in enumerate(cores):
            for cpu in core:
                topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
                self.write(f"{topology}/core_cpus_list", ",".join(map(str, core)) + "\n")
                self.write(f"{topology}/core_id", f"{index}\n")
                package = index * sockets // len(cores)
                self.write(f"{topology}/physical_package_id", f"{package}\n")

    def quota(self, text: str) -> None:
        """Put this process into a control group of version 2 with that `cpu.max`."""
        self.write("proc/self/cgroup", "0::/farm.slice/worker\n")
        self.write("sys/fs/cgroup/farm.slice/cpu.max", text + "\n")
        self.write("sys/fs/cgroup/farm.slice/worker/cpu.max", "max 100000\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


@pytest.fixture
def place(tmp_path: Path, redis_url: str, store: LocalStore) -> Iterator[Place]:
    """A place for agents; none of them is left afterwards."""
    made = Place(tmp_path, redis_url, store)
    yield made
    made.end()
