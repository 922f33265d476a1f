"""The store: one that is broken is found, one that is not made is left alone."""

import errno
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farm.doctor import Finding, Surroundings, storage
from farm.store import Denied, LocalStore, Store
from farm.store.s3 import S3Store
from tests.farm.doctor.sound import one, surroundings, write
from tests.store.proxy import Answer, Forward, Request, between
from tests.store.servers import ANYONE, BUCKET, Identity, Server


def _look(folder: Path, store: Callable[[str], Store] | None = None) -> list[Finding]:
    changes: dict[str, Any] = {"open_store": store} if store else {}
    return list(storage.look(str(folder / "store"), surroundings(folder, **changes)))


@pytest.fixture
def made(store: LocalStore) -> Path:
    """The folder of a store that a farm has laid out."""
    store.probe()
    return store.root


def _files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_a_store_that_keeps_its_promise_is_ok_and_left_as_it_was(
    tmp_path: Path, made: Path
) -> None:
    before = _files(made)

    found = _look(tmp_path)

    assert ["writing", "parallel writers", "space"] == [each.name for each in found]
    assert {"ok"} == {each.state for each in found}
    assert before == _files(made)


def test_a_store_that_is_not_made_is_not_made_by_looking(tmp_path: Path) -> None:
    found = one(_look(tmp_path), "writing")

    assert ("ok", f"{tmp_path / 'store'}: not made yet; the first run makes it") == (
        found.state,
        found.said,
    )
    assert not (tmp_path / "store").exists()


def test_a_folder_that_is_no_store_yet_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "store" / "letter.txt", "")

    assert "not made yet" in one(_look(tmp_path), "writing").said
    assert ["letter.txt"] == _files(tmp_path / "store")


def test_a_file_in_place_of_the_store_fails(tmp_path: Path) -> None:
    file = write(tmp_path / "store", "")

    found = one(_look(tmp_path), "writing")

    assert ("fail", f"{file} is not a folder", 2) == (found.state, found.said, found.code)
    assert f"mv {file} {file}.old" == found.cure


def test_a_place_that_cannot_be_written_fails(tmp_path: Path) -> None:
    found = one(list(storage.look("/proc/self/store", surroundings(tmp_path))), "writing")

    assert ("fail", 4) == (found.state, found.code)


def test_a_store_that_a_newer_farm_laid_out_fails(tmp_path: Path) -> None:
    write(tmp_path / "store/meta/layout.json", '{"layout": 2}\n')

    found = one(_look(tmp_path), "writing")

    assert ("fail", 2) == (found.state, found.code)
    assert 'laid out by another version of the farm; {"layout": 2}' in found.said
    assert "upgrade this farm" in found.cure


def test_a_file_system_without_hard_links_fails(tmp_path: Path, made: Path) -> None:
    def link(_source: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    found = one(_look(tmp_path, lambda _url: LocalStore(made, link=link)), "writing")

    assert ("fail", 2) == (found.state, found.code)
    assert "has no hard links" in found.said


def test_a_store_that_refuses_us_is_made_ours(tmp_path: Path, made: Path) -> None:
    class Refusing(LocalStore):
        def probe(self) -> None:
            raise Denied("the store refuses 'x'", key="x", store=str(made), why="no permission")

    found = one(_look(tmp_path, lambda _url: Refusing(made)), "writing")

    assert ("fail", 4) == (found.state, found.code)
    assert f'sudo chown -R "$(id -un)" {made}' == found.cure


def test_a_store_that_lets_two_writers_win_fails(tmp_path: Path, made: Path) -> None:
    """Such a store overwrites silently."""

    class Overwriting(LocalStore):
        def put_new(self, key: str, source: bytes | Path, *, media_type: str = "") -> bool:
            if key.startswith("meta/race-"):
                write(made / key, "")
                return True
            return super().put_new(key, source)

    found = one(_look(tmp_path, lambda _url: Overwriting(made)), "parallel writers")

    assert ("fail", 2) == (found.state, found.code)
    assert "16 of 16 writers of one key were told that they were first" == found.said
    assert not list((made / "meta").glob("race-*"))


def test_an_address_that_no_store_has_fails(tmp_path: Path) -> None:
    found = one(list(storage.look("ftp://box/store", surroundings(tmp_path))), "address")

    assert ("fail", 2) == (found.state, found.code)


def test_a_folder_of_somebody_else_in_the_store_is_found(tmp_path: Path, made: Path) -> None:
    """One `sudo farm run` is enough to leave one."""
    (made / "inbox").mkdir()
    around = surroundings(tmp_path, may_write=lambda folder: folder.name != "inbox")

    found = one(list(storage.look(str(made), around)), "writing")

    assert ("fail", f"{made / 'inbox'} belongs to somebody else") == (found.state, found.said)


def test_where_nothing_can_be_written_nobody_races(tmp_path: Path, made: Path) -> None:
    (made / "meta/layout.json").write_text('{"layout": 2}\n')

    assert "skipped" == one(_look(tmp_path), "parallel writers").state


# ── a bucket ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """Look at a store on a server, with these credentials."""

    def look(server: Server, who: Identity = ANYONE, name: str = BUCKET) -> list[Finding]:
        address = server.address(secrets.token_hex(8), bucket=name)
        client = server.client(who, attempts=1)
        opened = surroundings(tmp_path, open_store=lambda _url: S3Store(address, client=client))
        return list(storage.look(address.url, opened))

    return look


@pytest.mark.s3
def test_a_bucket_that_keeps_its_promise_is_ok(bucket, seaweedfs: Server) -> None:
    found = bucket(seaweedfs)

    assert ["writing", "parallel writers"] == [each.name for each in found]
    assert {"ok"} == {each.state for each in found}
    assert found[0].said.startswith("s3://farm/")
    assert "of 16 writers of one key exactly one won" == found[1].said


@pytest.mark.s3
def test_a_bucket_that_refuses_us_says_what_to_set(bucket, seaweedfs: Server) -> None:
    found = one(bucket(seaweedfs, Identity("nobody", "s3cret")), "writing")

    assert ("fail", 4) == (found.state, found.code)
    assert "the store refuses 'meta/probe.json'; 403 InvalidAccessKeyId" in found.said
    assert "AWS_ACCESS_KEY_ID" in found.cure
    assert "s3cret" not in found.said + found.cure


@pytest.mark.s3
def test_a_bucket_that_is_not_there_fails(bucket, moto_server: Server) -> None:
    found = one(bucket(moto_server, name="elsewhere"), "writing")

    assert ("fail", 4) == (found.state, found.code)
    assert "there is no bucket 'elsewhere'" in found.said


@pytest.mark.s3
def test_a_bucket_that_overwrites_fails(bucket, moto_server: Server) -> None:
    def ignoring(request: Request, forward: Forward) -> Answer:
        kept = {k: v for k, v in request.headers.items() if k.lower() != "if-none-match"}
        return forward(request._replace(headers=kept))

    with between(moto_server.endpoint, ignoring) as endpoint:
        found = one(bucket(Server(endpoint)), "writing")

    assert ("fail", 2) == (found.state, found.code)
    assert "the store overwrites what is there" in found.said
    assert "operator guide" in found.cure


def test_a_server_that_does_not_listen_is_told_soon(tmp_path: Path, monkeypatch) -> None:
    """A real look asks a few times, not for a minute."""
    for name, value in ANYONE.environ.items():
        monkeypatch.setenv(name, value)
    url = Server("http://127.0.0.1:9").address().url
    real = Surroundings.real(environ={})
    began = time.monotonic()

    found = one(storage.look(url, real), "writing")

    assert ("fail", 4) == (found.state, found.code)
    assert "the store cannot be reached" in found.said
    assert time.monotonic() - began < storage.patience_s(url, 3.0)


def test_a_server_has_longer_to_answer_than_a_folder() -> None:
    assert 3.0 == storage.patience_s("/srv/store", 3.0)
    assert 10.0 < storage.patience_s("s3://bucket", 3.0)
