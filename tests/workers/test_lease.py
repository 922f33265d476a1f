"""Locks on devices and cores: one holder at a time, and heirs that outlive a killed parent."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import pytest

from farm.errors import NoResult
from workers.lease import Lock, Taken, hold, lock_directory, slot_lock

# Takes a lock, gives it to a child that ends when its input closes, and says when both are there.
PARENT = """
import subprocess, sys
from pathlib import Path
from workers.lease import hold
with hold("cpu:0", [3], directory=Path(sys.argv[1]), holder="job j-1") as lease:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('child', flush=True); sys.stdin.read()"],
        pass_fds=lease.fds if sys.argv[2] == "heir" else (),
    )
    child.wait()
"""

# Writes when it comes and when it goes, in between two more lines that nobody may come between.
VISITOR = """
import os, sys
from pathlib import Path
from workers.lease import hold
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for _ in range(5):
    with hold("cpu:0", [1, 2], directory=Path(sys.argv[1])):
        for word in ("in", "stays", "out"):
            os.write(log, f"{os.getpid()} {word}\\n".encode())
"""


class Turned:
    """A clock that only sleeping moves; `then` is called at each sleep."""

    def __init__(self, then: object = None) -> None:
        self.now, self.then = 0.0, then

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if callable(self.then):
            self.then()


def test_a_second_holder_is_told_who_has_it(tmp_path: Path) -> None:
    """A device is never served twice, and the answer names the first."""
    with (
        slot_lock("cpu:0", directory=tmp_path, holder="farm-worker of node a1"),
        pytest.raises(Taken, match="device cpu:0 is taken") as caught,
    ):
        slot_lock("cpu:0", directory=tmp_path)

    assert f"held by pid {os.getpid()}, farm-worker of node a1" == caught.value.why
    assert 3 == caught.value.exit_code


def test_a_lock_is_free_after_its_release(tmp_path: Path) -> None:
    """Releasing twice does no harm."""
    first = slot_lock("cpu:0", directory=tmp_path)
    first.release()
    first.release()

    with slot_lock("cpu:0", directory=tmp_path):
        assert not (tmp_path / "cpu-0.slot").read_text().startswith("pid 0")


def test_serving_and_measuring_are_different_locks(tmp_path: Path) -> None:
    """The worker that serves a device takes its lease for each job."""
    with slot_lock("cpu:0", directory=tmp_path), hold("cpu:0", [1], directory=tmp_path) as lease:
        assert 2 == len(lease.fds)


def test_a_lease_holds_the_device_and_every_core(tmp_path: Path) -> None:
    """Cores in ascending order, whatever order they came in; two slots cannot share one."""
    with hold("cpu:0", [3, 1, 3], directory=tmp_path, wait_s=0) as lease:
        held = [os.fstat(fd).st_ino for fd in lease.fds]
        with (
            pytest.raises(Taken, match="core 3"),
            hold("cpu:1", [2, 3], directory=tmp_path, wait_s=0),
        ):
            pass
        with hold("cpu:1", [2], directory=tmp_path, wait_s=0):
            pass

    names = ["cpu-0.lease", "core-1.lease", "core-3.lease"]
    assert [(tmp_path / name).stat().st_ino for name in names] == held


def test_a_failed_lease_holds_nothing(tmp_path: Path) -> None:
    """What was taken before the one that was not free is given back."""
    with (
        hold("cpu:0", [2], directory=tmp_path),
        pytest.raises(Taken),
        hold("cpu:1", [1, 2], directory=tmp_path, wait_s=0),
    ):
        pass

    with hold("cpu:1", [1], directory=tmp_path, wait_s=0):
        pass


def test_a_waiter_gets_the_lock_when_it_is_freed(tmp_path: Path) -> None:
    """It asks again until then."""
    first = Lock(tmp_path / "core-1.lease", what="core 1")
    clock = Turned(then=lambda: first.release() if clock.now > 3.0 else None)

    with hold("cpu:0", [1], directory=tmp_path, wait_s=5.0, clock=clock, sleep=clock.sleep):
        assert 3.0 < clock.now < 5.0


def test_a_waiter_gives_up_at_its_limit(tmp_path: Path) -> None:
    """The limit is one for all locks together, and names who has the last."""
    clock = Turned()
    with (
        Lock(tmp_path / "core-1.lease", what="core 1", holder="somebody"),
        pytest.raises(Taken, match="core 1 is taken") as caught,
        hold("cpu:0", [1], directory=tmp_path, wait_s=5.0, clock=clock, sleep=clock.sleep),
    ):
        pass

    assert "somebody" in caught.value.why
    assert 5.0 <= clock.now < 6.0


def test_a_lock_stays_while_a_child_of_a_killed_parent_lives(tmp_path: Path) -> None:
    """The descriptor carries the lock: killing the parent frees nothing, the child's end does."""
    parent, theirs = _parent(tmp_path, "heir")
    parent.kill()
    parent.wait()

    with pytest.raises(Taken) as caught, hold("cpu:0", [3], directory=tmp_path, wait_s=0):
        pass
    theirs.close()
    with hold("cpu:0", [3], directory=tmp_path, wait_s=20.0):
        pass

    assert "job j-1 (ended; a child of it goes on)" in caught.value.why
    assert f"pid {parent.pid}" in caught.value.why


def test_without_the_descriptor_the_lock_goes_with_the_parent(tmp_path: Path) -> None:
    """Why it is handed over: else a killed worker frees the cores that its job still uses."""
    parent, theirs = _parent(tmp_path, "orphan")
    parent.kill()
    parent.wait()

    with hold("cpu:0", [3], directory=tmp_path, wait_s=0):
        theirs.close()


def test_releasing_in_the_parent_leaves_the_heirs_lock(tmp_path: Path) -> None:
    """Closing is not unlocking."""
    lock = slot_lock("cpu:0", directory=tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        pass_fds=(lock.fd,),
    ) as heir:
        lock.release()
        with pytest.raises(Taken):
            slot_lock("cpu:0", directory=tmp_path)
        assert heir.stdin is not None
        heir.stdin.close()

    slot_lock("cpu:0", directory=tmp_path).release()


def test_processes_take_turns(tmp_path: Path) -> None:
    """Three of them, five visits each: nobody comes between the lines of another."""
    log = tmp_path / "log"
    visitors = [
        subprocess.Popen([sys.executable, "-c", VISITOR, str(tmp_path), str(log)]) for _ in range(3)
    ]
    assert [0, 0, 0] == [each.wait(timeout=60) for each in visitors]

    lines = [line.split() for line in log.read_text().splitlines()]

    assert 45 == len(lines)
    for visit in (lines[i : i + 3] for i in range(0, 45, 3)):
        assert ["in", "stays", "out"] == [word for _, word in visit]
        assert 1 == len({pid for pid, _ in visit})


def test_threads_of_one_process_exclude_each_other_too(tmp_path: Path) -> None:
    """The lock belongs to the open file: opening it again makes another holder."""
    refused: list[str] = []

    def second() -> None:
        try:
            slot_lock("cpu:0", directory=tmp_path)
        except Taken as error:
            refused.append(error.what)

    with slot_lock("cpu:0", directory=tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    assert ["device cpu:0 is taken"] == refused


def test_a_descriptor_can_be_inherited(tmp_path: Path) -> None:
    """It is made for the child."""
    with slot_lock("cpu:0", directory=tmp_path) as lock:
        assert os.get_inheritable(lock.fd)


# ── files and folders ────────────────────────────────────────────────────────────────────────────


def test_lock_files_can_be_opened_by_everybody(tmp_path: Path) -> None:
    """Mode 0644 whatever the umask, because others lock them through a read-only descriptor."""
    before = os.umask(0o077)
    try:
        slot_lock("cpu:0", directory=tmp_path).release()
    finally:
        os.umask(before)

    assert 0o644 == (tmp_path / "cpu-0.slot").stat().st_mode & 0o7777


def test_a_link_or_a_pipe_in_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    """Anybody may plant something in a shared folder; it is neither followed nor waited for."""
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "a.slot").symlink_to(target)
    os.mkfifo(tmp_path / "b.slot")

    for device in ("a", "b"):
        with pytest.raises(NoResult, match="lock file"):
            slot_lock(device, directory=tmp_path)
    assert target.read_text() == ""


def test_the_shared_folder_is_made_for_everybody(tmp_path: Path) -> None:
    """Mode 1777 and scope host, also when it was there."""
    shared = tmp_path / "lock" / "farm"

    assert (shared, "host") == lock_directory(shared=shared)
    assert 0o1777 == shared.stat().st_mode & 0o7777
    assert (shared, "host") == lock_directory(shared=shared)


@pytest.mark.parametrize("obstacle", ["file", "private", "link"])
def test_without_a_shared_folder_locks_bind_one_user(tmp_path: Path, obstacle: str) -> None:
    """No folder there, one that others cannot enter, or a link: the scope is `user`."""
    shared, runtime = tmp_path / "farm", tmp_path / "run"
    if obstacle == "file":
        shared = tmp_path / "file" / "farm"
        shared.parent.touch()
    elif obstacle == "private":
        shared.mkdir(mode=0o700)
    else:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere").chmod(0o1777)
        shared.symlink_to(tmp_path / "elsewhere")

    folder, scope = lock_directory(shared=shared, runtime=runtime)

    assert "user" == scope
    assert runtime == folder.parent
    assert 0o700 == folder.stat().st_mode & 0o7777


def test_an_operators_folder_is_taken_or_refused(tmp_path: Path) -> None:
    """Its scope is what its mode says; one that cannot be used is not replaced silently."""
    private = tmp_path / "private"
    private.mkdir(mode=0o755)
    (tmp_path / "file").touch()

    assert (private, "user") == lock_directory(private)
    assert (tmp_path / "new", "host") == lock_directory(tmp_path / "new")
    with pytest.raises(NoResult, match="cannot be used"):
        lock_directory(tmp_path / "file")


def test_no_folder_at_all_is_no_result(tmp_path: Path) -> None:
    """Without a place for locks nothing is measured."""
    (tmp_path / "file").touch()

    with pytest.raises(NoResult, match="no folder for locks"):
        lock_directory(shared=tmp_path / "file" / "a", runtime=tmp_path / "file" / "b")


def _parent(folder: Path, kind: str) -> tuple["subprocess.Popen[bytes]", IO[bytes]]:
    """Start one whose child has its lock; what is returned with it keeps that child alive."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    assert b"child\n" == parent.stdout.readline()
    parent.stdout.close()
    return parent, parent.stdin
