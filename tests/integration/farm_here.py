"""A folder with a farm of its own, driven through the real command as a person would."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from farm.cli import main
from tests.cli.published import checked

FARM = str(Path(sys.executable).with_name("farm"))

SWEEP = """
name: {name}
matrix: {{model: mlp, backend: fake, batch: {batches}, device: cpu}}
measure: {{repeats: {repeats}, warmup: 2, iterations: {iterations}, timeout: {timeout},
          budget_ms: 1000, layers: false, flops: false}}
backend_options: {options}
"""


class Place:
    """One folder: its sweeps, its store, and the processes that were started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Locks are shared by the whole machine; each place has its own, so that tests that run
        # side by side do not wait for each other's device.
        self.environ = {
            **os.environ,
            "FARM_LEASE_S": "3",
            "FARM_GATES": "off",  # a quiet machine is not what they are about
            "HOME": str(folder),
            "NO_COLOR": "1",
        }

    def sweep(
        self,
        name: str,
        *,
        batches: list[int] | None = None,
        repeats: int = 1,
        iterations: int = 200,
        timeout: str = "60s",
        **options: Any,
    ) -> str:
        """Write a sweep of the fake backend and return its name."""
        text = SWEEP.format(
            name=name,
            batches=batches or [1],
            repeats=repeats,
            iterations=iterations,
            timeout=timeout,
            options=json.dumps({"duration_us": 1000, **options}),
        )
        return self.write(f"{name}.yaml", text)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def start(
        self, *words: str, environ: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [FARM, *words],
            cwd=self.folder,
            env={**self.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_ctrl_c,
        )

    def farm(self, *words: str, code: int = 0, environ: Mapping[str, str] | None = None) -> "Said":
        """Run a command to its end and return what it said; its exit code must be this one."""
        process = self.start(*words, environ=environ)
        out, err = process.communicate(timeout=120)
        assert code == process.returncode, f"exit {process.returncode}\n{out}\n{err}"
        assert "Traceback" not in err
        if "--json" in words:
            checked(out)
        return Said(out, err)

    def told(self, *words: str, code: int = 0) -> "Said":
        """Run a command that only reads in this process: a second for each start is saved."""
        out, err = io.StringIO(), io.StringIO()
        here = (chdir(self.folder), redirect_stdout(out), redirect_stderr(err))
        with here[0], here[1], here[2], pytest.raises(SystemExit) as ended:
            main(list(words))
        assert code == (ended.value.code or 0), err.getvalue()
        if "--json" in words and not code:
            checked(out.getvalue())
        return Said(out.getvalue(), err.getvalue())

    def profiles(self) -> list[dict[str, Any]]:
        """Return every profile document of the store, in the order of their keys."""
        found = sorted((self.folder / ".farm/store/inbox").rglob("*.json"))
        return [json.loads(each.read_text()) for each in found]

    def manifest(self) -> dict[str, Any]:
        """Return the newest manifest."""
        found = [json.loads(e.read_text()) for e in self.folder.glob(".farm/store/runs/v1/*/*")]
        newest: dict[str, Any] = max(found, key=lambda each: each["submitted_at"])
        return newest

    def pids(self, word: str) -> list[int]:
        """Return the live processes of this place whose command line holds the word."""
        mine = str(self.folder).encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                around = line + Path(f"/proc/{pid}/environ").read_bytes()
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word.encode() in line and mine in around and state != "Z":
                found.append(int(pid))
        return found

    def kill(self, word: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to the one process of that word, as soon as there is one."""
        pids = until(lambda: self.pids(word), f"no process {word!r}")
        os.kill(pids[0], number)
        return pids[0]

    def assert_quiet(self) -> None:
        """Nothing that was started here is left."""
        words = ("workers.child", "workers.tasks", "farm-worker", "valkey-server", "redis-server")
        until(lambda: not any(self.pids(word) for word in words), "processes are left")


def complete(out: str, cells: int) -> bool:
    """Whether a run says that every cell has its figures; a busy machine makes some invalid."""
    found = re.search(r"(\d+) cells?: (.*?)   COMPLETE", out)
    if found is None or int(found[1]) != cells:
        return False
    counts = {word: int(many) for many, word in re.findall(r"(\d+) (\w+)", found[2])}
    return set(counts) <= {"ok", "invalid"} and sum(counts.values()) == cells


def _hear_ctrl_c() -> None:
    """A shell lets what it runs in the background ignore Ctrl-C, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Said:
    """What a command printed."""

    def __init__(self, out: str, err: str) -> None:
        self.out, self.err = out, err

    @property
    def page(self) -> str:
        return self.out.strip().splitlines()[-1]


def until(check: Callable[[], Any], why: str, *, seconds: float = 40) -> Any:
    """Return what the check finds as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = check()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(why)
