"""The fake of the driver's library, compiled, and the file that its answers come from."""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("fake_nvml.c")
_NAME: Final = "libnvidia-ml.so.1"


def has_compiler() -> bool:
    return shutil.which("cc") is not None


def built(folder: Path, *, without: Collection[str] = ()) -> Path:
    """Return the folder of a library, compiled into it; without: symbols that an old driver lacks.

    It is for LD_LIBRARY_PATH, which counts only before an interpreter starts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "symbols.map"
    hidden = "".join(f" {name};" for name in without)
    script.write_text(f"{{ global: nvml*; local:{hidden or ' none;'} }};")
    command = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-O1", "-w"]
    linked = [f"-Wl,-soname,{_NAME}", f"-Wl,--version-script={script}"]
    subprocess.run([*command, *linked, "-o", folder / _NAME, SOURCE], check=True)
    return folder


class State:
    """What the library answers with; each change is seen whole by the next call."""

    def __init__(self, path: Path, **lines: object) -> None:
        self.path = path
        self._lines: dict[str, list[str]] = {}
        self.set(**lines)

    def set(self, **lines: object) -> None:
        """Replace lines by their keys, `__` for a dot; a list is a line for each, None is none."""
        for name, value in lines.items():
            key = name.lstrip("_").replace("__", ".")
            values = value if isinstance(value, list) else [value]
            self._lines[key] = [str(each) for each in values if each is not None]
        partial = self.path.with_name(f".{self.path.name}")
        text = (f"{key}={each}\n" for key, found in self._lines.items() for each in found)
        partial.write_text("".join(text))
        partial.rename(self.path)

    def environ(self, library: Path, *, log: Path | None = None) -> Mapping[str, str]:
        """Return the environment of a process that shall see these devices."""
        more = {} if log is None else {"FAKE_NVML_LOG": str(log)}
        paths = {"LD_LIBRARY_PATH": str(library), "FAKE_NVML_STATE": str(self.path)}
        return {**os.environ, **paths, **more}
