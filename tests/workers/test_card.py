"""The system card: every null has a reason, nothing is private, and the ids follow the parts."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.schema import SystemCard
from workers.card import collect, driver_version, system_class
from workers.devices import Slot
from workers.host import Host
from workers.ids import node_id

SLOT = Slot(0, (1, 2), (0,))
CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 7B13 64-Core Processor
flags\t\t: fpu sse4_2 fma avx avx2 hypervisor vaes
microcode\t: 0xa0011d1
"""
NVIDIA = (
    "NVRM version: NVIDIA UNIX {kind}  {version}  Wed Oct 25 20:21:31 UTC 2023\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
EVERYTHING = {
    "proc/cpuinfo": CPUINFO,
    "proc/meminfo": "MemTotal: 24684096 kB\nMemAvailable: 5 kB\nSwapTotal: 8 kB\nHugetlb: 0 kB\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=secret-disk mitigations=off\n",
    "proc/1/cgroup": "0::/kubepods/burstable/pod7\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "proc/sys/kernel/perf_event_paranoid": "-1\n",
    "proc/sys/kernel/random/boot_id": "0f1e2d3c-4b5a\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/cpu/cpufreq/boost": "0\n",
    "sys/devices/system/cpu/cpu1/cpufreq/base_frequency": "2450000\n",
    "sys/devices/system/cpu/cpu1/cache/index0/level": "1\n",
    "sys/devices/system/cpu/cpu1/cache/index0/type": "Data\n",
    "sys/devices/system/cpu/cpu1/cache/index0/size": "32K\n",
    "sys/devices/system/cpu/cpu1/cache/index1/level": "1\n",
    "sys/devices/system/cpu/cpu1/cache/index1/type": "Instruction\n",
    "sys/devices/system/cpu/cpu1/cache/index1/size": "64K\n",
    "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "proc/driver/nvidia/version": NVIDIA.format(kind="x86_64 Kernel Module", version="535.129.03"),
    "etc/os-release": 'PRETTY_NAME="x"\nID=debian\nVERSION_ID="12"\n',
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq": "3500000\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cache/index2/level": "2\n",
    "sys/devices/system/cpu/cpu1/cache/index2/size": "512K\n",
    "sys/devices/system/cpu/cpu1/cache/index3/level": "3\n",
    "sys/devices/system/cpu/cpu1/cache/index3/size": "32768K\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/class/dmi/id/product_name": "Google Compute Engine\n",
}


def installed(**of: str) -> Callable[[str], str]:
    def version(package: str) -> str:
        if package not in of:
            raise PackageNotFoundError(package)
        return of[package]

    return version


def card(host: Host, **more: Any) -> SystemCard:
    asked = {
        "node_id": "5a" * 16,
        "lease_scope": "host",
        "versions": installed(torch="2.13.0+cpu", numpy="2.4.6"),
        "clock": lambda: datetime(2024, 2, 29, 12, 0, 5, tzinfo=UTC),
        **more,
    }
    return collect(SLOT, host, **asked)


@pytest.fixture
def whole(machine: Any) -> Any:
    """A machine that answers every question."""
    machine.cpus([0, 4], [1, 5], [2, 6], [3, 7], sockets=2)
    machine.quota("400000 100000")
    for path, text in EVERYTHING.items():
        machine.write(path, text)
    return machine


def test_a_machine_that_answers_everything_has_no_null_but_libc_may_be(whole: Any) -> None:
    """Each fact from its file; the document round-trips."""
    found = card(whole.host)
    cpu, stable = found.stable.cpu, found.stable

    assert ("AuthenticAMD", "AMD EPYC 7B13 64-Core Processor") == (cpu.vendor, cpu.model)
    assert (2, 4, 8, 2) == (cpu.sockets, cpu.physical_cores, cpu.logical_cpus, cpu.leased_cores)
    assert (True, ["avx", "avx2", "fma", "sse4_2"]) == (cpu.smt, cpu.isa)
    assert (3_500_000_000, "performance") == (cpu.max_hz, cpu.governor)
    assert (32 << 20, 1) == (cpu.l3_bytes, cpu.numa_nodes)
    assert ("kvm", 24_684_096 * 1024) == (stable.virtualization, stable.memory_bytes)
    assert ("debian 12", "6.1.0-18-amd64", "tsc") == (
        stable.os.distro,
        stable.os.kernel,
        stable.os.clocksource,
    )
    assert ("535.129.03", "2.13.0+cpu") == (stable.drivers.nvidia, stable.frameworks.torch)
    assert ("5a5a5a5a", 4, [1, 2], [0]) == (
        found.node.name,
        found.node.cgroup_cpus,
        found.node.leased_cpus,
        found.node.housekeeping_cpus,
    )
    assert "2024-02-29T12:00:05Z" == found.node.collected_at
    assert set(found.null_reasons) <= {"stable.os.libc"}
    assert found == schema.decode(schema.encode(found), SystemCard)


def test_what_a_number_depends_on_is_told_of_the_host(whole: Any) -> None:
    """Clocks, caches, pages, mitigations; of the boot's words none but that one."""
    made = card(whole.host)

    cpu, system, node = made.stable.cpu, made.stable.os, made.node
    assert (2_450_000_000, False, 32 << 10, 512 << 10, "0xa0011d1") == (
        *(cpu.base_hz, cpu.boost, cpu.l1d_bytes, cpu.l2_bytes, cpu.microcode),
    )
    assert ("madvise", "off") == (system.thp, system.mitigations)
    assert ("kubepods", 8 << 10, 0, -1, True) == (
        *(node.container, node.swap_bytes, node.hugepages_bytes),
        *(node.perf_event_paranoid, node.has_psi),
    )
    assert "cpu" == made.stable.frameworks.torch_build
    assert "secret-disk" not in schema.encode(made).decode()
    assert "0f1e2d3c" not in schema.encode(made).decode()


def test_a_machine_without_trees_has_nulls_with_reasons(machine: Any) -> None:
    """As on macOS: the card is written, and every null says why."""
    found = card(machine.host, versions=installed())

    schema.encode(found)

    assert "library_missing" == found.null_reasons["stable.frameworks.torch"]
    assert "driver_not_loaded" == found.null_reasons["stable.drivers.nvidia"]
    assert found.null_reasons["stable.cpu.model"].startswith("not_supported: no /proc")
    assert "not_applicable: no quota" == found.null_reasons["node.cgroup_cpus"]
    assert "cpu_2c" == found.system_class


@given(st.sets(st.sampled_from(sorted(EVERYTHING))))
def test_a_missing_file_gives_null_and_never_zero_or_nothing(missing: set[str]) -> None:
    """Whatever cannot be read is null with a reason, and no number or text stands in for it."""
    host = Absent(missing)

    found = card(host)

    schema.encode(found)
    leaves = list(_leaves(msgspec.to_builtins(found.stable)))
    assert not [path for path, value in leaves if value in (0, "") and value is not False]
    if "proc/meminfo" in missing:
        assert "stable.memory_bytes" in found.null_reasons
    if "proc/cpuinfo" in missing:
        assert {"stable.cpu.model", "stable.cpu.isa", "stable.virtualization"} <= set(
            found.null_reasons
        )


def test_the_card_of_this_machine_can_be_written() -> None:
    """The real thing, with the real frameworks asked by their metadata alone."""
    program = (
        "import sys, os\n"
        "from farm import schema\n"
        "from workers import card, cores, devices, host\n"
        "here = host.Host(); slot = devices.slots(here, affinity=cores.own_affinity())[0]\n"
        "found = card.collect(slot, here, node_id='ab' * 16, lease_scope='user',"
        " environment=os.environ)\n"
        "schema.encode(found)\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "sys.exit(bool(loaded & {'torch', 'onnxruntime', 'pynvml', 'scipy', 'numpy'}))\n"
    )

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode


def test_nothing_private_is_on_the_card(whole: Any) -> None:
    """Planted host name, user, home, address, serial and tokens appear nowhere."""
    whole.write("proc/sys/kernel/hostname", "hunter2-laptop\n")
    whole.write("etc/hostname", "hunter2-laptop\n")
    whole.write("etc/machine-id", "hunter2machineid\n")
    whole.write("proc/self/environ", "USER=hunter2\0")
    whole.write("sys/class/dmi/id/product_serial", "hunter2serial\n")
    whole.write("sys/class/dmi/id/product_uuid", "hunter2uuid\n")
    whole.write("sys/class/net/eth0/address", "hunter2mac\n")
    whole.write("proc/driver/nvidia/gpus/0000:01:00.0/information", "GPU UUID: GPU-hunter2\n")
    environment = {
        "HOME": "/home/hunter2",
        "USER": "hunter2",
        "TORCH_HOME": "/home/hunter2/torch",
        "CUDA_CACHE_PATH": "/home/hunter2/cache",
        "NCCL_TOKEN": "hunter2",
        "OMP_PROC_BIND": "true",
    }

    text = schema.encode(card(whole.host, environment=environment)).decode()

    assert "hunter2" not in text
    assert '"OMP_PROC_BIND":"true"' in text


CHANGES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "torch": lambda _: {"versions": installed(torch="2.14.0+cpu", numpy="2.4.6")},
    "driver": lambda machine: (
        machine.write(
            "proc/driver/nvidia/version",
            NVIDIA.format(kind="Open Kernel Module for x86_64", version="570.86.10"),
        )
        or {}
    ),
    "kernel": lambda machine: machine.write("proc/sys/kernel/osrelease", "6.2.0\n") or {},
    "settings": lambda _: {"environment": {"OMP_PROC_BIND": "true"}},
}


@pytest.mark.parametrize("what", CHANGES)
def test_other_software_is_another_system_of_the_same_class(whole: Any, what: str) -> None:
    """A new torch, driver, kernel or setting: measured again, in the same series."""
    before = card(whole.host)
    after = card(whole.host, **CHANGES[what](whole))

    assert before.system_id != after.system_id
    assert before.system_class == after.system_class


def test_a_machine_without_onnx_runtime_is_the_one_it_was(whole: Any) -> None:
    """Cards of before the runtime was asked for read as before, and keep their system."""
    without = card(whole.host)
    versions = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
    cpu = card(whole.host, versions=installed(**versions, onnxruntime="1.32.0"))
    gpu = card(whole.host, versions=installed(**versions, **{"onnxruntime-gpu": "1.32.0"}))

    assert b"onnxruntime" not in schema.encode(without)
    assert without.null_reasons.keys() <= {"stable.os.libc"}
    assert "1.32.0" == cpu.stable.frameworks.onnxruntime == gpu.stable.frameworks.onnxruntime
    assert without.system_id != cpu.system_id == gpu.system_id
    assert without.system_class == cpu.system_class


def test_where_and_when_do_not_change_the_system(whole: Any) -> None:
    """Equal machines share an id, whatever they are called and whenever they are asked."""
    before = card(whole.host)
    after = card(
        whole.host,
        node_id="77" * 16,
        name="gpu-03",
        labels={"rack": "4"},
        clock=lambda: datetime(2025, 1, 1, tzinfo=UTC),
    )

    assert before.system_id == after.system_id
    assert "gpu-03" == after.node.name


def test_a_few_pages_of_memory_do_not_change_the_system(whole: Any) -> None:
    """What the kernel keeps for itself moves from version to version."""
    before = card(whole.host)
    whole.write("proc/meminfo", "MemTotal:       24684000 kB\n")

    assert before.system_id == card(whole.host).system_id


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("AMD EPYC 7B13 64-Core Processor", "epyc-7b13_2c"),
        ("AMD EPYC", "epyc_2c"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "xeon-platinum-8481c_2c"),
        ("12th Gen Intel(R) Core(TM) i7-12700H", "core-i7-12700h_2c"),
        ("AMD Ryzen 7 PRO 4750U with Radeon Graphics", "ryzen-7-pro-4750u_2c"),
        ("Apple M1 Pro", "apple-m1-pro_2c"),
        ("Intel(R) CPU @ 2.20GHz", "cpu_2c"),
    ],
)
def test_a_class_reads_like_the_machine(whole: Any, model: str, expected: str) -> None:
    """CPU model without the words that all share, and leased cores."""
    whole.write("proc/cpuinfo", CPUINFO.replace("AMD EPYC 7B13 64-Core Processor", model))

    assert expected == card(whole.host).system_class


@given(st.text(max_size=120), st.booleans())
def test_any_model_gives_a_name_that_queues_accept(model: str, simulated: bool) -> None:
    """The grammar of queue names holds whatever a vendor writes; simulated ones say so."""
    stable = msgspec.structs.replace(card(Absent(set())).stable, simulated=simulated)
    cpu = msgspec.structs.replace(stable.cpu, model=model)
    found = system_class(msgspec.structs.replace(stable, cpu=cpu))

    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", found)
    assert found.endswith("_2c")
    assert not simulated or found.startswith("sim-")


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("x86_64 Kernel Module", "535.129.03"),
        ("Open Kernel Module for x86_64", "570.86.10"),
        ("Open Kernel Module for aarch64", "580.65"),
    ],
)
def test_the_driver_is_read_from_its_file(machine: Any, kind: str, version: str) -> None:
    """Closed and open modules write it at different places of the line."""
    machine.write("proc/driver/nvidia/version", NVIDIA.format(kind=kind, version=version))

    assert version == driver_version(machine.host)


@pytest.mark.parametrize(
    ("info", "product", "expected"),
    [
        ("flags\t: fpu avx\n", "", "none"),
        ("flags\t: fpu hypervisor\n", "", "vm"),
        ("flags\t: fpu hypervisor\n", "KVM", "kvm"),
        ("flags\t: fpu hypervisor\n", "VMware7,1", "vmware"),
        ("Features\t: asimd\n", "", None),
    ],
)
def test_virtualisation_is_named_where_it_can_be_told(
    machine: Any, info: str, product: str, expected: str | None
) -> None:
    """Bare metal only where the CPU says so; other architectures do not tell."""
    machine.write("proc/cpuinfo", info)
    machine.write("sys/class/dmi/id/product_name", product)

    assert expected == card(machine.host).stable.virtualization


def test_an_arm_machine_has_its_vendor_and_instructions(machine: Any) -> None:
    """Other keys, same facts."""
    machine.write("proc/cpuinfo", "Features\t: fp asimd sve\nCPU implementer\t: 0x41\n")

    found = card(machine.host).stable.cpu

    assert ("ARM", ["asimd", "sve"], None) == (found.vendor, found.isa, found.model)


def test_a_node_keeps_its_id(tmp_path: Path) -> None:
    """Random at first, then what the folder holds, also when two start at once."""
    first = node_id(tmp_path / "state", environment={}, random=lambda: "a" * 32)
    second = node_id(tmp_path / "state", environment={}, random=lambda: "b" * 32)

    assert "a" * 32 == first == second
    assert ["node_id"] == [file.name for file in (tmp_path / "state").iterdir()]


def test_a_starter_that_comes_second_takes_the_id_of_the_first(tmp_path: Path) -> None:
    """Between looking and writing another process was faster."""

    def slow() -> str:
        (tmp_path / "node_id").write_text("first\n")
        return "second"

    assert "first" == node_id(tmp_path, environment={}, random=slow)


def test_a_given_node_id_is_hashed(tmp_path: Path) -> None:
    """FARM_NODE_ID may be a host name: only its hash is used, and nothing is kept."""
    found = node_id(tmp_path / "state", environment={"FARM_NODE_ID": "hunter2-laptop"})

    assert re.fullmatch(r"[0-9a-f]{32}", found)
    assert found == node_id(tmp_path, environment={"FARM_NODE_ID": "hunter2-laptop"})
    assert not (tmp_path / "state").exists()


class Absent(Host):
    """The machine that answers everything, but for some files."""

    def __init__(self, missing: set[str]) -> None:
        super().__init__(Path("/nowhere"))
        object.__setattr__(self, "missing", missing)

    def text(self, path: str) -> str | None:
        return None if path in self.missing else EVERYTHING.get(path)  # type: ignore[attr-defined]

    def names(self, path: str) -> list[str]:
        there = [each for each in EVERYTHING if each not in self.missing]  # type: ignore[attr-defined]
        inside = [each[len(path) + 1 :] for each in there if each.startswith(path + "/")]
        return sorted({each.partition("/")[0] for each in inside})


def _leaves(plain: Any, path: str = "") -> Any:
    if isinstance(plain, dict):
        for key, each in plain.items():
            yield from _leaves(each, f"{path}.{key}")
    elif not isinstance(plain, list):
        yield path, plain
