"""What a child's environment holds: what it needs, what pins it, and nothing private."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.environment import child_environment, measuring_settings

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
    found = child_environment(PRIVATE, threads=1, folder=Path("/jobs/1"))

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


def test_a_child_that_is_pinned_sees_its_gpu_and_no_other() -> None:
    """By its UUID, whatever the parent was given: numbers mean another GPU after a reboot."""
    parent = {"CUDA_VISIBLE_DEVICES": "0,1", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}

    found = child_environment(
        parent, threads=1, folder=Path("/f"), accelerator="cuda", visible="GPU-5a1b"
    )

    assert ("GPU-5a1b", "PCI_BUS_ID") == (
        found["CUDA_VISIBLE_DEVICES"],
        found["CUDA_DEVICE_ORDER"],
    )
