"""NVIDIA: the driver, the library that reports on its devices, and the binding to that."""

from collections.abc import Iterator, Sequence
from typing import Final

from farm.doctor.findings import About, Finding
from farm.doctor.install import is_within, pip
from farm.doctor.machine import text
from farm.doctor.surroundings import Installed, Surroundings
from farm.report import words

BINDING: Final = "nvidia-ml-py"
BOUNDS: Final = ">=12.560,<14"  # before it, a process structure that drivers do not fill
# Both bring a module `pynvml` of their own over that of the binding.
IMPOSTORS: Final = ("pynvml", "nvidia-ml-py3")
_NVIDIA: Final = About("nvidia")

# In a process of its own: a driver that hangs must not take us along.
_ASK: Final = """
import ctypes
try:
    library = ctypes.CDLL("libnvidia-ml.so.1")
except OSError:
    raise SystemExit("missing")
code = library.nvmlInit_v2()
count = ctypes.c_uint(0)
code = code or library.nvmlDeviceGetCount_v2(ctypes.byref(count))
print(code, count.value)
"""
_CODES: Final = {
    4: ("no permission", 'sudo usermod -aG video,render "$(id -un)"  # then log in again'),
    9: ("the driver is not loaded", "sudo modprobe nvidia"),
    12: ("the driver's library is missing", "docker run --gpus all …"),
    15: ("a device fell off the bus", "sudo reboot"),
    16: ("a device needs a reset", "sudo nvidia-smi --gpu-reset"),
    18: ("library and kernel module are of different driver versions", "sudo reboot"),
    999: ("unknown error; a container may have lost its devices", "start the container again"),
}


def look(around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about driver and binding; where there is no device, hardly anything."""
    has_device = _has_device(around)
    yield _binding(around.distributions(), around, has_device=has_device)
    if has_device:
        yield _driver(around)
    else:
        yield _NVIDIA.skipped("driver", "no NVIDIA device here")


def _has_device(around: Surroundings) -> bool:
    nodes = (around.root / "dev").glob("nvidia[0-9]*")
    return any(True for _ in nodes) or bool(text(around.root / "proc/driver/nvidia/version"))


def _binding(have: Sequence[Installed], around: Surroundings, *, has_device: bool) -> Finding:
    versions = {each.name: each.version for each in have}
    wanted = f"{BINDING}{BOUNDS}"
    impostors = [each for each in IMPOSTORS if each in versions]
    mine = versions.get(BINDING)
    if impostors:
        beside = f"beside {BINDING} {mine}" if mine else f"in place of {BINDING}"
        said = f"the distribution {' and '.join(impostors)} {beside} brings another `pynvml`"
        # What is uninstalled takes the shared file along, so the right one is laid down anew.
        cure = pip(around, "uninstall", "-y", *impostors)
        cure += f" && {pip(around, 'install', '--force-reinstall', wanted)}"
        judge = _NVIDIA.fail if has_device else _NVIDIA.warn
        return judge("binding", said, cure=cure)
    cure = pip(around, "install", wanted)
    if mine is None:
        if not has_device:
            return _NVIDIA.skipped("binding", f"no NVIDIA device here, and no {BINDING}")
        said = f"{BINDING} is missing: clock, heat and neighbours of the devices stay unknown"
        return _NVIDIA.warn("binding", said, cure=cure)
    if not is_within(mine, BOUNDS):
        return _NVIDIA.warn("binding", f"{BINDING} {mine} is not {BOUNDS}", cure=cure)
    return _NVIDIA.ok("binding", f"{BINDING} {mine}")


def _driver(around: Surroundings) -> Finding:
    ran = around.run([str(around.python), "-I", "-c", _ASK])
    if ran is None:
        said = "NVML does not answer; without persistence each start wakes the devices"
        return _NVIDIA.warn("driver", said, cure="sudo nvidia-smi -pm 1")
    code, _, count = ran.said.partition(" ")
    if ran.code == 0 and code == "0":
        return _NVIDIA.ok("driver", f"NVML sees {words.count(int(count), 'device')}")
    known = _CODES[12] if code == "missing" else _CODES.get(int(code) if code.isdecimal() else 0)
    why, cure = known or (f"it says {ran.said[:60]!r}", "nvidia-smi  # says more")
    return _NVIDIA.fail("driver", f"a driver is here and NVML is of no use: {why}", cure=cure)
