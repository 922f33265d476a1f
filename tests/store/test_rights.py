"""What each role may do, on a real server with the policies that are shipped, and nothing more."""

import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from farm.address import Address
from farm.store import Conflict, Denied, Store
from farm.store.s3 import S3Store
from tests.store import servers
from tests.store.servers import BUCKET, Identity, Server

SHIPPED = servers.ROLES.parent
ROLES = ("worker", "submitter", "scheduler", "reader")
FOLDERS = (
    *("inbox", "blobs", "cards", "meta", "jobs", "runs", "bundles", "events", "tags"),
    *("tables", "reports"),
)
MAY_PUT = {
    "worker": {"inbox", "blobs", "cards", "meta"},
    "submitter": {"jobs", "runs", "bundles", "events", "tags", "meta"},
    "scheduler": set(FOLDERS) - {"blobs", "cards"},
    "reader": set(),
}
MAY_GET = {each: set(FOLDERS) for each in ROLES} | {"worker": MAY_PUT["worker"] | {"bundles"}}

on_the_server = pytest.mark.s3


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as its operator is asked to set it up: with the roles, and keeping versions."""
    with servers.seaweedfs(tmp_path_factory.mktemp("roles")) as found:
        found.client(found.admin).put_bucket_versioning(
            Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"}
        )
        yield found


@pytest.fixture(scope="session")
def clients(server: Server) -> dict[str, Any]:
    """A client for each role."""
    config = json.loads(servers.ROLES.read_text())
    who = {
        each["name"]: Identity(
            *(each["credentials"][0][name] for name in ("accessKey", "secretKey"))
        )
        for each in config["identities"]
    }
    return {name: server.client(each, attempts=1) for name, each in who.items()}


@pytest.fixture
def a_store(server: Server, clients: dict[str, Any]) -> Callable[[str], Store]:
    return lambda role: S3Store(server.address(), client=clients[role])


@pytest.fixture
def anyones(server: Server) -> Store:
    """The store of one who may put and get everywhere."""
    return S3Store(server.address(), client=server.client())


def _key(folder: str) -> str:
    return f"{folder}/v1/{secrets.token_hex(16)}.x.json"


def _is_denied(act: Callable[[], object]) -> bool:
    try:
        act()
    except Denied:
        return True
    except ClientError as error:
        if 403 != error.response["ResponseMetadata"]["HTTPStatusCode"]:
            raise
        return True
    return False


@on_the_server
@pytest.mark.parametrize("role", ROLES)
def test_a_role_puts_where_it_may_and_nowhere_else(a_store, role: str) -> None:
    store, keys = a_store(role), {each: _key(each) for each in FOLDERS}

    may = {
        each
        for each, key in keys.items()
        if not _is_denied(lambda key=key: store.put_new(key, b"1"))
    }

    assert MAY_PUT[role] == may


@on_the_server
@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_where_it_may_and_nowhere_else(a_store, anyones: Store, role: str) -> None:
    store, keys = a_store(role), {each: _key(each) for each in FOLDERS}
    for key in keys.values():
        anyones.put_new(key, b"1")

    may = {each for each, key in keys.items() if not _is_denied(lambda key=key: store.get(key))}

    assert MAY_GET[role] == may


@on_the_server
@pytest.mark.parametrize("role", ROLES)
def test_all_but_workers_list(a_store, role: str) -> None:
    store = a_store(role)

    for prefix in ("", "inbox/v1/", "inbox/v1/date=2026-11-30/"):
        assert (role == "worker") == _is_denied(lambda prefix=prefix: list(store.list(prefix)))


@on_the_server
@pytest.mark.parametrize("role", ROLES)
def test_nobody_deletes(clients, anyones: Store, role: str) -> None:
    """Neither one object, nor several, nor a version, nor the bucket."""
    client, keys = clients[role], [_key(each) for each in FOLDERS]
    for key in keys:
        anyones.put_new(key, b"1")
        assert _is_denied(lambda key=key: client.delete_object(Bucket=BUCKET, Key=key))
    several = {"Objects": [{"Key": each} for each in keys]}
    said = client.delete_objects(Bucket=BUCKET, Delete=several)

    assert [] == said.get("Deleted", [])
    assert {"AccessDenied"} == {each["Code"] for each in said["Errors"]}
    assert _is_denied(lambda: client.delete_bucket(Bucket=BUCKET))
    assert [b"1"] * len(keys) == [anyones.get(each) for each in keys]


@on_the_server
@pytest.mark.parametrize("role", [each for each in ROLES if each != "reader"])
def test_a_role_overwrites_nothing_through_the_store(a_store, role: str) -> None:
    """The condition that goes with every PUT holds for each of them, in parts as well."""
    store, folder = a_store(role), min(MAY_PUT[role])
    store.probe()
    for first, second in ((b"1", b"2"), (b"1" * (17 << 20), b"2" * (17 << 20))):
        key = _key(folder)
        assert store.put_new(key, first)
        assert not store.put_new(key, first)
        with pytest.raises(Conflict):
            store.put_new(key, second)

        assert first == store.get(key)


@on_the_server
def test_what_a_worker_overwrites_past_the_store_is_not_lost(server: Server, clients) -> None:
    """SeaweedFS has no right that forbids it, so the bucket keeps what was there before."""
    worker, admin, key = clients["worker"], server.client(server.admin), _key("inbox")
    store = S3Store(server.address(), client=worker)
    store.put_new(key, b"ours")

    worker.put_object(Bucket=BUCKET, Key=key, Body=b"forged")  # no condition: the server takes it

    assert b"forged" == store.get(key)
    kept = admin.list_object_versions(Bucket=BUCKET, Prefix=key)["Versions"]
    names = [each["VersionId"] for each in kept]
    read = admin.get_object
    bodies = [read(Bucket=BUCKET, Key=key, VersionId=each)["Body"].read() for each in names]
    assert [b"forged", b"ours"] == bodies
    remove = worker.delete_object
    for each in names:
        assert _is_denied(lambda each=each: remove(Bucket=BUCKET, Key=key, VersionId=each))


@on_the_server
def test_roles_change_no_rule_of_the_bucket(clients) -> None:
    for client in clients.values():
        off = {"Status": "Suspended"}
        assert _is_denied(
            lambda client=client, off=off: client.put_bucket_versioning(
                Bucket=BUCKET, VersioningConfiguration=off
            )
        )
        assert _is_denied(
            lambda client=client: client.put_bucket_policy(
                Bucket=BUCKET, Policy=(SHIPPED / "bucket.json").read_text()
            )
        )
        assert _is_denied(lambda client=client: client.delete_bucket_lifecycle(Bucket=BUCKET))


# ── the files ────────────────────────────────────────────────────────────────────────────────────


def test_the_configuration_of_seaweedfs_holds_the_policies_beside_it() -> None:
    config = json.loads(servers.ROLES.read_text())

    assert list(ROLES) == [each["name"] for each in config["identities"]]
    assert [[each] for each in ROLES] == [each["policyNames"] for each in config["identities"]]
    assert not any("actions" in each for each in config["identities"])
    for each in config["policies"]:
        assert json.loads((SHIPPED / f"{each['name']}.json").read_text()) == each["document"]


def test_no_policy_allows_to_delete() -> None:
    for path in sorted(SHIPPED.glob("*.json")):
        assert "Delete" not in path.read_text()


def test_the_policy_of_the_bucket_leaves_out_what_is_swapped() -> None:
    """Tags, pages of the site and the hint are replaced, parts of an upload have no condition."""
    [rule] = json.loads((SHIPPED / "bucket.json").read_text())["Statement"]

    assert ("Deny", "*", "s3:PutObject") == (rule["Effect"], rule["Principal"], rule["Action"])
    assert [
        "arn:aws:s3:::farm/tags/*",
        "arn:aws:s3:::farm/reports/site/*",
        "arn:aws:s3:::farm/tables/profiles/v1/head.json",
    ] == rule["NotResource"]
    assert {
        "Null": {"s3:if-none-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    } == rule["Condition"]


def test_the_rules_of_retention_are_taken_as_they_are() -> None:
    """By the model of S3 that moto has; what they name exists."""
    rules = json.loads((SHIPPED / "lifecycle.json").read_text())
    policy = (SHIPPED / "bucket.json").read_text()
    bucket = secrets.token_hex(8)
    with servers.moto_in_process():
        client = servers.ANYONE.client(Address(bucket=bucket))
        client.create_bucket(Bucket=bucket)
        client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=rules)
        client.put_bucket_policy(Bucket=bucket, Policy=policy)

        told = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]

    days = {
        each["Filter"]["Prefix"]: each["Expiration"]["Days"]
        for each in told
        if "Expiration" in each
    }
    assert {"blobs/v1/trace/": 90, "blobs/v1/samples/": 400} == days
    [unfinished] = [each for each in told if "AbortIncompleteMultipartUpload" in each]
    assert {"DaysAfterInitiation": 2} == unfinished["AbortIncompleteMultipartUpload"]
