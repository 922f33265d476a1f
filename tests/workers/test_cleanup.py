"""What a child leaves is found and killed, whatever it did to escape; a bystander never is."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workers.cleanup import WORD, Cleanup
from workers.host import Host

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
# A child that leaves a grandchild in a session of its own, which minds no SIGTERM.
ESCAPE = """
import os, signal, sys, time
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
os.close(0), os.close(1), os.close(2)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def until(check: Callable[[], object], why: str, *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, why
        time.sleep(0.01)


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of the same user and command, which is none of ours to end."""
    code = "import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as process:
        yield process.pid
        process.kill()


def escaped(cleanup: Cleanup, folder: Path, *, environ: dict[str, str] | None = None) -> int:
    """Start a child under the word of a cleanup, and return the grandchild that got away."""
    word = cleanup.begin()
    file = folder / "pid"
    told = {**os.environ, **word} if environ is None else environ
    subprocess.run([sys.executable, "-c", ESCAPE, str(file)], env=told, check=True)
    until(lambda: file.exists() and file.read_text(), "no grandchild")
    return int(file.read_text())


@needs_linux
def test_a_grandchild_that_got_away_is_killed_and_a_bystander_is_not(
    tmp_path: Path, bystander: int
) -> None:
    """N11."""
    cleanup = Cleanup(tmp_path / "held/cpu:0.json", Host())
    grandchild = escaped(cleanup, tmp_path)
    assert alive(grandchild)

    assert [] == cleanup.end()

    until(lambda: not alive(grandchild), "it lives")
    assert alive(bystander)
    assert not (tmp_path / "held/cpu:0.json").exists()


@needs_linux
def test_who_is_killed_leaves_the_word_for_who_comes_next(tmp_path: Path, bystander: int) -> None:
    """A worker that died with SIGKILL could end nothing."""
    grandchild = escaped(Cleanup(tmp_path / "held.json", Host()), tmp_path)

    assert [] == Cleanup(tmp_path / "held.json", Host()).settle()

    until(lambda: not alive(grandchild), "it lives")
    assert alive(bystander)
    assert [] == Cleanup(tmp_path / "held.json", Host()).settle()  # there is nothing left to do


@needs_linux
def test_a_grandchild_without_our_word_is_ours_where_orphans_are_adopted(tmp_path: Path) -> None:
    """A worker does that, in a process of its own here: it would outlive this test."""
    program = textwrap.dedent(f"""
        import subprocess, sys, time
        from pathlib import Path
        from workers.cleanup import Cleanup, adopt_orphans
        from workers.host import Host
        adopt_orphans()
        cleanup = Cleanup(Path({str(tmp_path)!r}) / "held.json", Host())
        cleanup.begin()
        file = Path({str(tmp_path)!r}) / "pid"
        subprocess.run([sys.executable, "-c", {ESCAPE!r}, str(file)], env={{}}, check=True)
        while not (file.exists() and file.read_text()):
            time.sleep(0.01)
        print(cleanup.end())
    """)

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert b"[]\n" == ended.stdout
    assert not alive(int((tmp_path / "pid").read_text()))


@needs_linux
def test_a_word_that_nobody_wrote_kills_nobody(tmp_path: Path, bystander: int) -> None:
    """A file that was tampered with, or is half written."""
    for text in ("", "{", "[]", '{"word": ""}', '{"word": 7}', '{"word": "short"}'):
        (tmp_path / "held.json").write_text(text)
        assert [] == Cleanup(tmp_path / "held.json", Host()).settle()

    assert alive(bystander)


def test_what_cannot_be_killed_is_told(tmp_path: Path) -> None:
    """Here by a host whose process is not one of this machine: it stays for ever."""
    proc = tmp_path / "host/proc/4194399"
    proc.mkdir(parents=True)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    cleanup = Cleanup(
        tmp_path / "held.json", Host(tmp_path / "host"), clock=lambda: now[0], sleep=sleep
    )
    word = cleanup.begin()[WORD]
    (proc / "environ").write_text(f"A=b\0{WORD}={word}\0")
    (proc / "stat").write_text("4194399 (stuck) D 1 1 1")

    assert [4194399] == cleanup.end()

    assert now[0] >= 10
    assert (tmp_path / "held.json").exists()  # for whoever looks next


@needs_linux
def test_a_child_that_is_ours_from_before_is_left_alone(tmp_path: Path) -> None:
    """As the probe of the driver is."""
    code = "import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code]) as probe:
        cleanup = Cleanup(tmp_path / "held.json", Host())
        cleanup.begin()

        assert [] == cleanup.end()

        assert alive(probe.pid)
        os.kill(probe.pid, signal.SIGKILL)
