"""The caches of a machine, as the kernel shows them."""

from tests.workers.conftest import Machine
from workers.host import Host
from workers.host.caches import cache_bytes

MIB = 1 << 20


def show(machine: Machine, caches: dict[int, list[tuple[int, str, str, str]]]) -> Host:
    """Let its CPUs show caches of (level, type, size, CPUs that share it)."""
    for cpu, indices in caches.items():
        for number, words in enumerate(indices):
            folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{number}"
            names = ("level", "type", "size", "shared_cpu_list")
            for name, word in zip(names, words, strict=True):
                machine.write(f"{folder}/{name}", f"{word}\n")
    return machine.host


def levels(shared: str, size: str = "32768K") -> list[tuple[int, str, str, str]]:
    return [
        (1, "Data", "48K", "0"),
        (1, "Instruction", "64K", "0"),
        (2, "Unified", "2048K", "0"),
        (3, "Unified", size, shared),
    ]


def test_a_cache_that_cores_share_counts_once(machine: Machine) -> None:
    host = show(machine, {0: levels("0-1"), 1: levels("0-1")})

    assert 32 * MIB == cache_bytes(host, [0, 1])


def test_caches_of_several_groups_of_cores_add_up(machine: Machine) -> None:
    host = show(machine, {0: levels("0-7"), 8: levels("8-15"), 16: levels("16-23")})

    assert 64 * MIB == cache_bytes(host, [0, 8])


def test_the_last_level_that_holds_data_counts(machine: Machine) -> None:
    """Two cores whose second level is their last one, each with its own."""
    second = [(2, "Unified", "1M", "")]
    host = show(machine, {0: second, 1: second})

    assert 2 * MIB == cache_bytes(host, [0, 1])


def test_a_machine_may_show_nothing(machine: Machine) -> None:
    assert cache_bytes(machine.host, [0, 1]) is None
