"""Which cores a slot gets, how devices are named, and what a child's environment holds."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import NoResult, Refused
from workers.devices import (
    Slot,
    _share,
    child_environment,
    core_names,
    measuring_settings,
    own_affinity,
    slots,
)
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
        assert [cores] * count == [_share(cores, i, count) for i in range(count)]
        return

    shares = [_share(cores, i, count) for i in range(count)]

    assert cores == [core for share in shares for core in share]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_core_has_one_name_whichever_thread_is_used(machine: Any) -> None:
    """Two workers with different threads of one core meet at its lock."""
    machine.cpus([0, 4], [1, 5])

    assert [0] == core_names(machine.host, [4])
    assert [0, 1] == core_names(machine.host, [5, 0, 4])


def test_this_machine_has_a_slot() -> None:
    """Whatever runs this test can be measured on, within what it may use."""
    affinity = own_affinity()
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
@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(0, "there is no GPU here"), (1, "there is 1 NVIDIA GPU here"), (2, "are 2 NVIDIA GPUs here")],
)
def test_gpus_are_counted_and_not_served(
    machine: Any, selector: str, gpus: int, expected: str
) -> None:
    """Exit 3: the request is right, this version serves CPU slots, and so many GPUs are idle."""
    for index in range(gpus):
        machine.write(f"proc/driver/nvidia/gpus/0000:0{index}:00.0/information", "Model: x\n")

    with pytest.raises(NoResult) as caught:
        slots(machine.host, selector, affinity={0})

    assert "this version serves CPU slots" in caught.value.why
    assert expected in caught.value.why


@pytest.mark.parametrize("selector", ["", "cpus", "cpu:", "cpu:x", "cpu:-1", "tpu"])
def test_other_words_are_refused(machine: Any, selector: str) -> None:
    """Exit 2, with what is known."""
    with pytest.raises(Refused, match="unknown device selector") as caught:
        slots(machine.host, selector, affinity={0})

    assert "known: all, cpu, cpu:0, gpu" == caught.value.why


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


# ── the child's environment ──────────────────────────────────────────────────────────────────────

PRIVATE = {
    "FARM_BROKER": "rediss://worker:hunter2@broker:6379/0",
    "FARM_STORE": "s3://farm",
    "AWS_ACCESS_KEY_ID": "AKIA",
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "HTTPS_PROXY": "http://hunter2@proxy",
    "SSH_AUTH_SOCK": "/home/hunter2/agent",
    "USER": "hunter2",
    "HOSTNAME": "hunter2",
    "TORCH_HUB_TOKEN": "hunter2",
    "CUDA_API_KEY": "hunter2",
    "MKL_Secret": "hunter2",
    "OMP_PASSWORD": "hunter2",
    "NCCL_CREDENTIALS": "hunter2",
    "LD_PRELOAD": "/home/hunter2/evil.so",
    "PYTHONPATH": "/home/hunter2/src",
}


def test_a_child_sees_no_secret_and_no_address() -> None:
    """Only names on the list pass, and those that look like a secret not even then."""
    found = child_environment(PRIVATE, threads=1, folder=Path("/work/1"))

    assert not any("hunter2" in value for value in found.values())
    assert PRIVATE.keys().isdisjoint(found)


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_nothing_passes_that_is_not_on_the_list(parent: dict[str, str]) -> None:
    """Whatever the parent holds, only our own names and allowed ones come out."""
    ours = child_environment({}, threads=1, folder=Path("/f")).keys()
    allowed = ("CUDA_", "OMP_", "MKL_", "OPENBLAS_", "TORCH_", "PYTORCH_", "TRITON_", "NCCL_")

    for name in child_environment(parent, threads=1, folder=Path("/f")).keys() - ours:
        assert name in ("PATH", "LANG", "LD_LIBRARY_PATH") or name.startswith(allowed)


def test_what_a_model_needs_passes() -> None:
    """Search paths and the settings of the numeric libraries."""
    parent = {"PATH": "/bin", "LANG": "C", "LD_LIBRARY_PATH": "/lib", "OMP_PROC_BIND": "true"}

    found = child_environment(parent, threads=1, folder=Path("/f"))

    assert parent.items() <= found.items()


def test_threads_cores_and_devices_are_pinned_whatever_the_parent_says() -> None:
    """Pool sizes equal the lease, and a CPU slot shows no GPU."""
    parent = {"OMP_NUM_THREADS": "64", "MKL_NUM_THREADS": "64", "CUDA_VISIBLE_DEVICES": "0,1"}

    found = child_environment(parent, threads=3, folder=Path("/f"))

    assert {"3"} == {found[f"{name}_NUM_THREADS"] for name in ("OMP", "MKL", "OPENBLAS")}
    assert "" == found["CUDA_VISIBLE_DEVICES"]


def test_home_and_temporary_files_are_private() -> None:
    """They lie in the child's folder; compiled code may outlive it in the slot's cache."""
    cold = child_environment(os.environ, threads=1, folder=Path("/w/1"))
    warm = child_environment(os.environ, threads=1, folder=Path("/w/1"), cache=Path("/s/cache"))

    assert ("/w/1", "/w/1") == (cold["HOME"], cold["TMPDIR"])
    assert cold["TORCHINDUCTOR_CACHE_DIR"].startswith("/w/1/")
    assert warm["TORCHINDUCTOR_CACHE_DIR"].startswith("/s/cache/")
    assert "1" == warm["HF_HUB_OFFLINE"]


def test_a_card_shows_the_settings_that_change_numbers() -> None:
    """Not paths, which may name a person, and not what the card says elsewhere."""
    environment = {
        "OMP_PROC_BIND": "true",
        "NVIDIA_TF32_OVERRIDE": "0",
        "OMP_NUM_THREADS": "4",
        "TORCH_HOME": "/home/hunter2/torch",
        "TORCH_TOKEN": "hunter2",
        "PATH": "bin",
        "USER": "hunter2",
    }

    expected = {"NVIDIA_TF32_OVERRIDE": "0", "OMP_PROC_BIND": "true"}
    assert expected == measuring_settings(environment)


@pytest.mark.seed("S1.20", "S1.21")
@pytest.mark.parametrize("given", ["0,1", "", None])
def test_a_child_on_a_gpu_sees_those_that_its_parent_was_given(given: str | None) -> None:
    """The caller's choice is obeyed, and no other is made; a child on the CPU sees none."""
    parent = {"PATH": "/bin"} | ({} if given is None else {"CUDA_VISIBLE_DEVICES": given})
    folder = Path("/f")

    on_gpu = child_environment(parent, threads=1, folder=folder, accelerator="cuda")
    on_cpu = child_environment(parent, threads=1, folder=folder)

    assert (given, "") == (on_gpu.get("CUDA_VISIBLE_DEVICES"), on_cpu["CUDA_VISIBLE_DEVICES"])
