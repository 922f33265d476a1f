"""What only a folder can do wrong: no links, no space, no rights, a half-written file."""

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from farm.errors import Refused
from farm.errors import Unreachable as FarmUnreachable
from farm.store import Corrupt, Denied, LocalStore, NotFound, Unreachable, Unsupported, open_store


def _failing(number: int, *, done: bool = False):  # type: ignore[no-untyped-def]
    def link(source: Path, target: Path) -> None:
        if done:
            os.link(source, target)
        raise OSError(number, os.strerror(number))

    return link


def _names(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


@pytest.mark.parametrize("number", [errno.EIO, errno.EEXIST, errno.EPERM])
def test_a_link_whose_answer_was_lost_has_happened(tmp_path: Path, number: int) -> None:
    """On NFS the first answer may be lost; two links on the temporary file are the proof."""
    store = LocalStore(tmp_path, fsync=False, link=_failing(number, done=True))

    assert store.put_new("a/b.json", b"one")

    assert ["a/b.json"] == _names(tmp_path)


def test_a_folder_without_hard_links_is_unsupported(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, fsync=False, link=_failing(errno.EPERM))

    with pytest.raises(Unsupported) as caught:
        store.probe()

    assert 2 == caught.value.exit_code
    assert [] == _names(tmp_path)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, Unreachable),
        (errno.EDQUOT, Unreachable),
        (errno.EIO, Unreachable),
        (errno.EROFS, Denied),
        (errno.EACCES, Denied),
    ],
)
def test_a_full_or_closed_disk_says_so_and_leaves_nothing(
    tmp_path: Path, number: int, kind: type[Exception]
) -> None:
    store = LocalStore(tmp_path, fsync=False, link=_failing(number))

    with pytest.raises(kind, match=os.strerror(number)) as caught:
        store.put_new("a/b.json", b"one")

    assert isinstance(caught.value, FarmUnreachable)
    assert 4 == caught.value.exit_code
    assert [] == _names(tmp_path)


def test_a_write_that_stops_half_way_leaves_nothing(tmp_path: Path) -> None:
    """The system cuts the file at 1 MiB: an error, no object, no temporary file."""
    code = f"""if True:
        import resource
        from pathlib import Path
        from farm.store import *
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            LocalStore(Path({str(tmp_path)!r})).put_new("a/b.bin", bytes(5 << 20))
        except Unreachable as error:
            print(error.exit_code)
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert b"4\n" == said.stdout
    assert [] == _names(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = LocalStore(tmp_path / "file")

    for act in (store.probe, lambda: store.get("a/b.json"), lambda: list(store.list())):
        with pytest.raises(Unsupported):
            act()


def test_a_missing_source_is_refused_and_is_no_missing_key(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store", fsync=False)

    with pytest.raises(Refused):
        store.put_new("a/b.json", tmp_path / "absent")

    with pytest.raises(NotFound):
        store.get("a/b.json")


def test_an_unwritable_target_is_told_by_its_own_name(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, fsync=False)
    store.put_new("a/b.json", b"one")

    with pytest.raises(FarmUnreachable, match="/proc/none"):
        store.get("a/b.json", to=Path("/proc/none/out"))


def test_probe_marks_the_layout_once_and_refuses_another(tmp_path: Path) -> None:
    """A store laid out by a newer farm is not written to."""
    LocalStore(tmp_path, fsync=False).probe()
    LocalStore(tmp_path, fsync=False).probe()
    assert ["meta/layout.json"] == _names(tmp_path)
    (tmp_path / "meta/layout.json").write_text('{"layout": 2}\n')

    with pytest.raises(Unsupported, match='"layout": 2'):
        LocalStore(tmp_path, fsync=False).probe()


def test_foreign_and_temporary_files_are_in_no_listing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, fsync=False)
    store.put_new("a/b.json", b"one")
    for name in (".lock", ".tmp-1-2", "README", "UPPER.json", "a/.tmp-3", "a/.DS_Store"):
        (tmp_path / name).write_text("")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text("")

    assert ["a/b.json"] == [each.key for each in store.list()]


def test_with_fsync_every_promise_holds(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "deep" / "store")
    store.probe()

    assert store.put_new("a/b/c.json", b"one")
    assert not store.put_new("a/b/c.json", b"one")
    store.swap("tags/x.json", b"1", expect=None)

    assert ["a/b/c.json", "meta/layout.json", "tags/x.json"] == [e.key for e in store.list()]


def test_a_path_and_a_file_url_open_the_same_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    LocalStore(folder, fsync=False).put_new("a/b.json", b"one")

    for url in (folder, str(folder), folder.as_uri(), f"file://localhost{folder}"):
        assert b"one" == open_store(url).get("a/b.json")


# ── kills ────────────────────────────────────────────────────────────────────────────────────────


def test_a_killed_writer_leaves_no_half_object(tmp_path: Path, seed: int) -> None:
    """20 times SIGKILL at any moment: what is listed is whole."""
    store = LocalStore(tmp_path, fsync=False)
    code = f"""if True:
        import hashlib, os
        from pathlib import Path
        from farm.store import *
        store = LocalStore(Path({str(tmp_path)!r}), fsync=False)
        print("ready", flush=True)
        while True:
            data = os.urandom(200_000)
            store.put_new(blob_key("trace", hashlib.sha256(data).hexdigest(), "bin"), data)
    """
    rng = random.Random(seed)

    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(rng.uniform(0.005, 0.05))
            writer.kill()

    found = list(store.list("blobs/"))
    assert 20 <= len(found)
    for entry in found:
        assert 200_000 == entry.size
        store.get(entry.key, sha256=entry.key.rpartition("/")[2].removesuffix(".bin"))


@pytest.mark.long
def test_a_hundred_thousand_keys_are_listed_in_a_stream(tmp_path: Path) -> None:
    """Less than 3 s, and less than 50 MB of growth."""
    for folder in range(100):
        (tmp_path / f"inbox/d{folder}").mkdir(parents=True)
        for number in range(1000):
            (tmp_path / f"inbox/d{folder}/{'0' * 32}.{number:064x}.json").touch()
    code = f"""if True:
        import resource, time
        from pathlib import Path
        from farm.store import LocalStore
        size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before, began = size(), time.monotonic()
        count = sum(1 for _ in LocalStore(Path({str(tmp_path)!r})).list())
        print(count, time.monotonic() - began < 3, size() - before < 50_000)
    """

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert b"100000 True True\n" == said.stdout


def test_what_is_no_file_is_in_no_listing(store):
    """A link that leads nowhere, a pipe: nothing waits for either, and nothing stops at them."""
    store.put_new("a/one.json", b"{}")
    (store.root / "a/gone.json").symlink_to("nowhere")
    os.mkfifo(store.root / "a/pipe.json")

    assert ["a/one.json"] == [each.key for each in store.list("a/")]


def test_a_folder_in_place_of_an_object_is_damage(store):
    (store.root / "a/b.json").mkdir(parents=True)

    with pytest.raises(Corrupt, match="is no file"):
        store.get("a/b.json")


def test_a_pipe_in_place_of_an_object_is_damage(store, tmp_path):
    """Nobody waits for what may come through it."""
    (store.root / "a").mkdir(parents=True)
    os.mkfifo(store.root / "a/b.json")

    with pytest.raises(Corrupt, match="is no file"):
        store.get("a/b.json")
    with pytest.raises(Corrupt, match="is no file"):
        store.get("a/b.json", to=tmp_path / "out")
    with pytest.raises(Corrupt, match="is no file"):
        store.put_new("a/b.json", b"{}")
