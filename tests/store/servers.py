"""S3 servers for tests: each on free ports of this machine, with a folder that goes with it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from botocore.exceptions import ClientError
from moto import mock_aws
from moto.server import ThreadedMotoServer

from farm.address import Address
from farm.store import wire

BUCKET: Final = "farm"
ROLES: Final = Path(__file__).parents[2] / "deploy" / "s3" / "seaweedfs.json"
_WEED: Final = Path(sys.executable).with_name("weed")
_PORTS: Final = ("master.port", "volume.port", "filer.port", "s3.port")
_START_S: Final = 60.0


class Identity(NamedTuple):
    """Who asks: the two halves of a credential, as boto3 and the environment call them."""

    access_key: str
    secret_key: str

    def client(self, address: Address, *, attempts: int = 3) -> Any:
        """A client as the store makes it, but with these credentials."""
        return wire.new_client(_session(self), address, wire.Patience(attempts), env={})

    @property
    def environ(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }


@cache  # the first client of a session takes a tenth of a second to make, the others a hundredth
def _session(who: Identity) -> Any:
    return wire.new_session(
        aws_access_key_id=who.access_key,
        aws_secret_access_key=who.secret_key,
        region_name="us-east-1",
    )


ANYONE: Final = Identity("test-anyone", "secret-of-anyone")  # reads, writes and lists; no admin
_ADMIN: Final = Identity("test-admin", "secret-of-admin")


class Server(NamedTuple):
    """A server that holds an empty bucket `farm`; admin may do anything there."""

    endpoint: str
    admin: Identity = ANYONE

    def address(self, prefix: str = "", bucket: str = BUCKET) -> Address:
        return Address(bucket=bucket, prefix=prefix, endpoint_url=self.endpoint)

    def client(self, who: Identity = ANYONE, *, attempts: int = 3) -> Any:
        return who.client(self.address(), attempts=attempts)


@contextmanager
def moto() -> Iterator[Server]:
    """Yield moto as a server: quick, and it believes every credential and checksum."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        found = Server(f"http://{host}:{port}")
        found.client().create_bucket(Bucket=BUCKET)
        yield found
    finally:
        server.stop()


@contextmanager
def moto_in_process() -> Iterator[None]:
    """Answer every client of AWS in this process; what the server of moto holds there stays."""
    mock = mock_aws()
    mock.start(reset=False)
    try:
        yield
    finally:
        mock.stop(remove_data=False)


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Server]:
    """Yield SeaweedFS with the roles of `deploy/s3`, and two identities of the tests' own."""
    with ExitStack() as kept:
        for _ in range(3):  # somebody else may be quicker with a port that was free
            ports = dict(zip(_PORTS, _free_ports(len(_PORTS) * 2), strict=False))
            process = kept.enter_context(_started(folder, ports))
            server = Server(f"http://127.0.0.1:{ports['s3.port']}", _ADMIN)
            if _has_bucket(server, process):
                yield server
                return
        raise AssertionError((folder / "log").read_text()[-3000:])


@contextmanager
def _started(folder: Path, ports: Mapping[str, int]) -> Iterator[subprocess.Popen[bytes]]:
    data, config = folder / "data", folder / "s3.json"
    data.mkdir(parents=True)
    config.write_text(json.dumps(_configuration()))
    words = [
        *(str(_WEED), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.volumeSizeLimitMB=256", "-volume.max=20", "-filer", "-s3"),
        *(f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        "-master.telemetry=false",  # else it tells its makers that it runs
        *(f"-{name}={port}" for name, port in ports.items()),
        *(f"-{name}.grpc={port}" for name, port in zip(_PORTS, _free_ports(4), strict=True)),
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            words, cwd=folder, env=env | {"HOME": str(folder)}, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()  # asked politely, it takes 25 s
        process.wait()
        shutil.rmtree(data)


def _configuration() -> Any:
    config = json.loads(ROLES.read_text())
    for name, who, actions in (
        ("test-admin", _ADMIN, ["Admin"]),
        ("test-anyone", ANYONE, ["Read", "Write", "List", "Tagging"]),
    ):
        keys = [{"accessKey": who.access_key, "secretKey": who.secret_key}]
        config["identities"].append({"name": name, "credentials": keys, "actions": actions})
    return config


def _has_bucket(server: Server, process: subprocess.Popen[bytes]) -> bool:
    """Make the bucket as soon as the server takes it; False if it ended before."""
    deadline = time.monotonic() + _START_S
    client = server.client(server.admin)
    while process.poll() is None and time.monotonic() < deadline:
        try:
            client.create_bucket(Bucket=BUCKET)
        except (ClientError, *wire.TROUBLE):
            time.sleep(0.05)
        else:
            return True
    return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as kept:
        held = [kept.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in held:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in held]
