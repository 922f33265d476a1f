"""The laws of the archive: bytes that depend on names and contents alone, and a safe way back."""

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import archive
from farm.errors import Bad


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = link
    return member


def test_the_digest_knows_names_and_contents_only(tmp_path: Path) -> None:
    """Order, times, rights and the folder of the files change no byte of the archive."""
    one, two = tmp_path / "one.py", tmp_path / "elsewhere.py"
    one.write_text("x = 1")
    two.write_text("y = 2")
    before = archive.pack([("a/one.py", one), ("two.py", two)])

    os.utime(one, (1, 1))
    one.chmod(0o700)
    after = archive.pack([("two.py", two), ("a/one.py", one)])

    assert before == after
    assert before[0] == archive.digest([("a/one.py", one), ("two.py", two)])
    assert before[0] != archive.digest([("a/one.py", one), ("too.py", two)])


def test_the_digest_is_the_same_for_ever(tmp_path: Path) -> None:
    """The bytes of an archive are part of the identity of jobs: this value must never change."""
    path = tmp_path / "m.py"
    path.write_text("def build():\n    return 1\n")

    digest = archive.digest([("model.py", path), ("päckchen/" + "n" * 120 + ".py", path)])

    assert "60751cad08cf727f2df944aaabacb0f9c41c7c1312a0b6c7d0d7a87fa68a321f" == digest


_NAMES = st.text("abcäß_", min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.lists(_NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=64)))
def test_what_is_packed_comes_back(tmp_path_factory, tree: dict[tuple[str, ...], bytes]) -> None:
    """Unpacking gives the same names and contents, and packs to the same digest again."""
    folder = tmp_path_factory.mktemp("tree")
    files = []
    for index, (parts, data) in enumerate(tree.items()):
        path = folder / str(index)
        path.write_bytes(data)
        files.append(("/".join([*(f"{part}.d" for part in parts[:-1]), f"{parts[-1]}.py"]), path))

    digest, data = archive.pack(files)
    archive.unpack(data, folder / "out")

    back = archive.contents(folder / "out")
    assert sorted(name for name, _ in files) == sorted(name for name, _ in back)
    assert digest == archive.digest(back)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../out", "a/../../out", "a//b", "./a", "a\\..\\b", ".."]
)
def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Absolute names, `..` and their disguises are refused before anything is written."""
    data = _tar((_member("good.py"), b"x"), (_member(name), b"x"))

    with pytest.raises(Bad, match="would lie outside"):
        archive.unpack(data, tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_only_plain_files_are_unpacked(tmp_path: Path, kind: bytes) -> None:
    """Links, devices, pipes and bare folders are refused."""
    data = _tar((_member("a", kind, "/etc/passwd"), b""))

    with pytest.raises(Bad, match="not a plain file"):
        archive.unpack(data, tmp_path / "out")


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    """A member of a terabyte in a few bytes does not fill the disk."""
    member = _member("a")
    member.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 40)}
    data = _tar((member, b"x"))

    with pytest.raises(Bad, match="not a plain file"):
        archive.unpack(data, tmp_path / "out")


@pytest.mark.parametrize(
    "data",
    [
        b"not a tar" * 100,
        _tar((_member("a"), b"1"), (_member("a"), b"2")),
        _tar((_member("a"), b"1"), (_member("a/b"), b"2")),
        _tar((_member("a"), b"1" * 5000))[:2048],
    ],
)
def test_a_damaged_tar_is_bad(tmp_path: Path, data: bytes) -> None:
    """Whatever is no tar of distinct files raises Bad and nothing else."""
    with pytest.raises(Bad):
        archive.unpack(data, tmp_path / "out")
