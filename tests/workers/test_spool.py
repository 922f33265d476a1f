"""What lies in the spool is whole and as it was written, whatever happened to its writer."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from farm.errors import Bad, Unreachable
from workers.spool import Parcel, Spool, goods

PROFILE = b'{"a": 1}'


def page(data: bytes = PROFILE, **changes: str) -> Parcel:
    made = Parcel(
        entry="a.base",
        run="r-1",
        fence="17",
        effort="e",
        end="DONE",
        cause="ok",
        job_id="0123456789abcdef",
        goods=[
            goods("blobs/v1/log/aa/aa.txt.gz", b"log", file="log.txt.gz"),
            goods("", data, file="profile.json"),
        ],
        sent_as="inbox/v1/date=2026-11-30/x.y.json",
    )
    return replace(made, **changes)


class Clock:
    """Nanoseconds that a test turns."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool", place="/the/store", clock_ns=Clock())
    yield made
    made.disown()


def test_a_parcel_is_read_as_it_was_written(spool: Spool) -> None:
    name = spool.write(page(), [b"log", PROFILE])

    found = spool.read(name)

    assert ([name], page(), 3 + len(PROFILE)) == (spool.names(), found.parcel, found.bytes)
    assert 1_800_000_000 == round(found.since)
    assert [b"log", PROFILE] == [spool.path(name, each).read_bytes() for each in found.parcel.goods]


def test_names_are_in_the_order_of_writing(spool: Spool) -> None:
    written = [spool.write(page(), [b"log", PROFILE]) for _ in range(5)]

    assert written == spool.names()


def test_a_spool_that_was_never_written_is_empty(spool: Spool) -> None:
    assert ([], 0) == (spool.names(), spool.aside())


def test_stores_do_not_share_a_spool(tmp_path: Path) -> None:
    """What was measured for one must not go into another."""
    one, other = (Spool(tmp_path, place=place) for place in ("/a", "/b"))

    one.write(page(), [b"log", PROFILE])

    assert (1, 0) == (len(one.names()), len(other.names()))


def test_a_new_page_replaces_the_old_one_and_leaves_the_goods(spool: Spool) -> None:
    name = spool.write(page(), [b"log", PROFILE])

    spool.rewrite(name, page(sent_as="other"))

    assert "other" == spool.read(name).parcel.sent_as
    assert 3 == len(list((spool.folder / name).iterdir()))


def test_a_parcel_that_arrived_is_gone(spool: Spool) -> None:
    name = spool.write(page(), [b"log", PROFILE])

    spool.remove(name)
    spool.remove(name)

    left = [each.name for each in spool.folder.iterdir()]
    assert ([], ["store.txt"]) == (spool.names(), left)
    assert "/the/store\n" == (spool.folder / "store.txt").read_text()


def test_what_is_set_aside_is_kept_with_its_reason(spool: Spool) -> None:
    name = spool.write(page(), [b"log", PROFILE])

    place = spool.set_aside(name, "the store holds other bytes")

    assert ([], 1) == (spool.names(), spool.aside())
    assert "the store holds other bytes\n" == (place / "why.txt").read_text()
    assert PROFILE == (place / "profile.json").read_bytes()


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"schema": "farm.parcel/v9"}'])
def test_a_damaged_page_is_told_and_does_not_crash(spool: Spool, damage: bytes) -> None:
    name = spool.write(page(), [b"log", PROFILE])
    (spool.folder / name / "parcel.json").write_bytes(damage)

    with pytest.raises(Bad, match=r"cannot be read|was changed or damaged"):
        spool.read(name)


def test_a_flipped_bit_does_not_leave_this_disk(spool: Spool) -> None:
    name = spool.write(page(), [b"log", PROFILE])
    parcel = spool.read(name).parcel
    (spool.folder / name / "profile.json").write_bytes(b'{"a": 0}')

    with pytest.raises(Bad, match="damaged"):
        spool.path(name, parcel.goods[1])

    (spool.folder / name / "log.txt.gz").unlink()
    with pytest.raises(Bad, match="cannot be read"):
        spool.path(name, parcel.goods[0])


def test_a_disk_that_takes_nothing_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")

    with pytest.raises(Unreachable) as caught:
        Spool(tmp_path / "spool", place="x").write(page(), [b"log", PROFILE])

    assert "FARM_SPOOL" in caught.value.hint


def test_one_process_has_the_sending_side(spool: Spool, tmp_path: Path) -> None:
    """Another takes over when it is left; asking again changes nothing."""
    other = Spool(tmp_path / "spool", place="/the/store")

    assert (True, True, False) == (spool.own(), spool.own(), other.own())
    spool.disown()
    assert other.own()
    other.disown()


def test_half_written_parcels_are_swept_once_they_are_old(spool: Spool) -> None:
    """A young one has a writer."""
    old, young = (spool.folder / f".tmp-{name}" for name in ("old", "young"))
    for each in (old, young):
        each.mkdir(parents=True)
        (each / "profile.json").write_bytes(PROFILE)
    os.utime(old, (1_799_990_000, 1_799_990_000))
    os.utime(young, (1_799_999_990, 1_799_999_990))

    spool.sweep(age_s=3600)

    assert [young] == list(spool.folder.iterdir())


def test_a_killed_writer_leaves_whole_parcels_alone(tmp_path: Path, seed: int) -> None:
    """SIGKILL at any moment: what has a name is whole, and the rest has none."""
    code = f"""if True:
        from pathlib import Path
        from tests.workers.test_spool import PROFILE, page
        from workers.spool import Spool
        spool = Spool(Path({str(tmp_path)!r}), place="x")
        print("ready", flush=True)
        while True:
            spool.write(page(), [b"log", PROFILE])
    """
    rng = random.Random(seed)
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(rng.uniform(0.002, 0.03))
            writer.kill()

    spool = Spool(tmp_path, place="x")

    assert len(spool.names()) >= 4
    for name in spool.names():
        parcel = spool.read(name).parcel
        assert [b"log", PROFILE] == [spool.path(name, each).read_bytes() for each in parcel.goods]
