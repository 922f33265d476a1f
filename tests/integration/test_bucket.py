"""The whole path over a real S3 server: measured, stored, queried; the server away meanwhile."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.farm_here import Place, until
from tests.store import servers

pytestmark = [pytest.mark.redis, pytest.mark.s3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A server of these tests' own: one of them stops it for a while."""
    with servers.seaweedfs(tmp_path_factory.mktemp("bucket")) as made:
        yield made


@pytest.fixture
def bucket(place: Place, server: servers.Server) -> Place:
    """A place whose store is a bucket, in a corner of its own."""
    place.environ |= {
        **servers.ANYONE.environ,
        "FARM_STORE": f"s3://{servers.BUCKET}/{place.folder.name.replace('_', '-')}",
        "FARM_ENDPOINT_URL": server.endpoint,
        "XDG_CACHE_HOME": str(place.folder / "cache"),
    }
    return place


def test_a_run_over_a_bucket_is_stored_reported_and_queried(bucket: Place) -> None:
    sweep = bucket.sweep("bucket", batches=[1, 2], iterations=20)

    bucket.farm("run", sweep)

    assert "2 cells: 2 ok" in bucket.farm("report", "@last").out
    assert 0 == json.loads(bucket.farm("store", "compact", "--json").out)["unreadable"]
    rows = json.loads(bucket.farm("query", "SELECT batch FROM winners ORDER BY 1", "--json").out)
    assert [[1], [2]] == rows["rows"]
    assert "no damage found" in bucket.farm("store", "check", "--deep").out
    assert not (bucket.folder / ".farm/store").exists()
    assert "2 jobs not measured again" in bucket.farm("run", sweep).err


def test_a_server_that_is_away_meanwhile_costs_a_run_nothing(
    bucket: Place, server: servers.Server
) -> None:
    """It hangs, which is worse than being gone: the jobs go on and are stored once it is back."""
    sweep = bucket.sweep("away", batches=[1, 2], iterations=20)
    running = bucket.start("run", sweep)
    until(lambda: bucket.pids("workers.child"), "nothing is measured")
    (weed,) = [
        int(pid)
        for pid in filter(str.isdigit, os.listdir("/proc"))
        if server.endpoint.rpartition(":")[2].encode() in _words(pid) and b"weed" in _words(pid)
    ]
    os.kill(weed, signal.SIGSTOP)
    try:
        waiting = ".farm/spool/*/[0-9]*"
        until(lambda: len(list(bucket.folder.glob(waiting))) == 2, "the device waits for the store")
    finally:
        os.kill(weed, signal.SIGCONT)

    out, err = running.communicate(timeout=120)

    assert 0 == running.returncode, out + err
    rows = json.loads(bucket.farm("query", "SELECT status, attempt FROM profiles", "--json").out)[
        "rows"
    ]
    assert [["ok", 1], ["ok", 1]] == rows
    assert [] == list(bucket.folder.glob(waiting))


def _words(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
