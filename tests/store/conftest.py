"""Every backend of a store, each made empty for a test; the servers start once in a session.

FARM_TEST_S3 names a real bucket, such as s3://bucket/prefix, to run the suite on as well.
"""

import os
import random
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from farm.address import Address, parse
from farm.store import LocalStore, Store
from farm.store.s3 import S3Store
from tests.store import servers
from tests.store.proxy import Bend, between


class Backend(NamedTuple):
    """An empty store, and what may be asked of it within the time of a test.

    words: how another process opens it, with these variables. rounds, writers: of a race. keys: of
    a long listing. cuts: how many a listing is cut at. sorts: whether its listings are
    in byte order even where a folder's name begins the name of its neighbour.
    """

    store: Store
    words: str = ""
    environ: Mapping[str, str] = {}
    rounds: int = 20
    writers: int = 12
    keys: int = 1010
    cuts: int = 100
    sorts: bool = True


def _local(_request: pytest.FixtureRequest, folder: Path) -> Iterator[Backend]:
    root = folder / "store"
    words = f"LocalStore(Path({str(root)!r}))"
    yield Backend(LocalStore(root, fsync=False), words, keys=5000, cuts=1000)


def _moto(_request: pytest.FixtureRequest, _folder: Path) -> Iterator[Backend]:
    address = Address(bucket=f"in-process-{secrets.token_hex(8)}")
    with servers.moto_in_process():
        client = servers.ANYONE.client(address)
        client.create_bucket(Bucket=address.bucket)
        yield Backend(S3Store(address, client=client))


def _server(name: str, **most: Any) -> Callable[..., Iterator[Backend]]:
    def make(request: pytest.FixtureRequest, _folder: Path) -> Iterator[Backend]:
        server: servers.Server = request.getfixturevalue(name)
        address = server.address(prefix=f"t/{secrets.token_hex(8)}")
        store = S3Store(address, client=server.client())
        words = f"open_store({address.url!r})"
        yield Backend(store, words, servers.ANYONE.environ, **most)

    return make


def _real(_request: pytest.FixtureRequest, _folder: Path) -> Iterator[Backend]:
    url = f"{os.environ['FARM_TEST_S3'].rstrip('/')}/{secrets.token_hex(8)}"
    yield Backend(S3Store(parse(url)), f"open_store({url!r})")


_WAYS: dict[str, Callable[..., Iterator[Backend]]] = {
    "local": _local,
    "moto": _moto,
    "moto-server": _server("moto_server", keys=100),  # it takes 10 ms for each
    # Two writers of one key that meet there wait a whole second: few meet in a short test.
    "seaweedfs": _server("seaweedfs", rounds=2, writers=5, sorts=False),
    "seaweedfs-long": _server("seaweedfs"),
    "real": _real,
}
_MARKS = {
    **dict.fromkeys(("moto-server", "seaweedfs", "real"), (pytest.mark.s3,)),
    "seaweedfs-long": (pytest.mark.s3, pytest.mark.long),
}
_REAL = ("real",) if "FARM_TEST_S3" in os.environ else ()


def _ways(*names: str) -> list[Any]:
    return [pytest.param(each, marks=_MARKS.get(each, ())) for each in (*names, *_REAL)]


@pytest.fixture(params=_ways("local", "moto", "moto-server", "seaweedfs"))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """One of the backends, empty."""
    yield from _WAYS[request.param](request, tmp_path)


# Not moto: it looks, then writes, and two threads that meet in between both win (1 round of 60).
@pytest.fixture(params=_ways("local", "seaweedfs", "seaweedfs-long"))
def raced(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """One of the backends whose conditional write is one step, empty."""
    yield from _WAYS[request.param](request, tmp_path)


@pytest.fixture
def store(backend: Backend) -> Store:
    """The store of the backend, as a writer finds it."""
    backend.store.probe()
    return backend.store


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which the standard chain finds nothing, and asks nobody."""
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))


class Through(S3Store):
    """A store behind a proxy; `slept` counts its pauses, which take no time."""

    slept: list[float]


@pytest.fixture
def through(moto_server: servers.Server) -> Iterator[Callable[..., Through]]:
    """Make a store that is reached through what a proxy does; moto holds it."""
    with ExitStack() as kept:
        prefix = f"t/{secrets.token_hex(8)}"

        def make(bend: Bend, *, server: servers.Server = moto_server, attempts: int = 3) -> Through:
            near = server._replace(endpoint=kept.enter_context(between(server.endpoint, bend)))
            slept: list[float] = []
            store = Through(
                near.address(prefix),
                client=near.client(attempts=attempts),
                sleep=slept.append,
                rng=random.Random(1),
            )
            store.slept = slept
            return store

        yield make
