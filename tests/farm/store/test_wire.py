"""How S3 is talked to: every knob of the client, and one client for all who share a process."""

import threading

import pytest

import farm
from farm.address import Address
from farm.store import wire

AWS = Address(bucket="bucket")
OTHER = Address(bucket="bucket", endpoint_url="http://127.0.0.1:8333")
CREDENTIALS = {
    "aws_access_key_id": "key",
    "aws_secret_access_key": "secret",
    "region_name": "eu-central-1",
}


def _config(address: Address, patience: wire.Patience = wire.USUAL, **env: str):  # type: ignore[no-untyped-def]
    return wire.new_client(wire.new_session(**CREDENTIALS), address, patience, env=env).meta.config


def test_a_request_is_tried_six_times_and_waits_for_an_answer() -> None:
    config = _config(AWS)

    assert {"mode": "standard", "total_max_attempts": 6} == config.retries
    assert (5, 60, 32) == (
        config.connect_timeout,
        config.read_timeout,
        config.max_pool_connections,
    )
    assert config.tcp_keepalive
    assert f"farm/{farm.__version__}" in config.user_agent


def test_who_is_in_a_hurry_waits_for_seconds() -> None:
    config = _config(OTHER, wire.HASTY)

    assert 2 == config.retries["total_max_attempts"]
    assert config.connect_timeout + config.read_timeout < 15


@pytest.mark.parametrize(
    ("address", "style"),
    [
        (AWS, "virtual"),
        (OTHER, "path"),
        (Address(bucket="bucket", path_style="true"), "path"),
        (Address(bucket="b1t", endpoint_url="https://h", path_style="false"), "virtual"),
    ],
)
def test_the_bucket_stands_where_the_server_wants_it(address: Address, style: str) -> None:
    assert style == _config(address).s3["addressing_style"]


def test_checksums_that_only_aws_knows_are_sent_to_aws_alone() -> None:
    """Unless the person says otherwise, as every AWS program is told."""
    there = _config(OTHER)
    said = _config(OTHER, AWS_REQUEST_CHECKSUM_CALCULATION="when_supported")

    assert ("when_required", "when_required") == (
        there.request_checksum_calculation,
        there.response_checksum_validation,
    )
    assert "when_supported" == _config(AWS).request_checksum_calculation
    assert "when_supported" == said.request_checksum_calculation


def test_the_address_alone_says_where_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that the settings have not read does not move a store."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://elsewhere:1")

    client = wire.new_client(wire.new_session(**CREDENTIALS), AWS, env={})

    assert "https://s3.eu-central-1.amazonaws.com" == client.meta.endpoint_url


def test_a_server_needs_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")

    session = wire.new_session(aws_access_key_id="key", aws_secret_access_key="secret")
    client = wire.new_client(session, OTHER, env={})

    assert "us-east-1" == client.meta.region_name


def test_the_threads_of_a_process_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so do the stores on one server; another server has another client."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    address = Address(bucket="one", endpoint_url="http://127.0.0.1:2")
    gate, made = threading.Barrier(4), []

    def make() -> None:
        gate.wait()
        made.append(wire.shared_client(address))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert 1 == len(set(map(id, made)))
    near = Address(bucket="two", prefix="p", endpoint_url="http://127.0.0.1:2")
    assert made[0] is wire.shared_client(near)
    assert made[0] is not wire.shared_client(
        Address(bucket="one", endpoint_url="http://127.0.0.1:3")
    )
