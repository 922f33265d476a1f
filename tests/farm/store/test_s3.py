"""What a store on S3 asks for, seen from a client that only writes it down; and big listings."""

import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.address import Address
from farm.store import open_store
from farm.store.bucket import PART, _just_before
from farm.store.keys import is_key
from farm.store.s3 import S3Store
from tests.store.proxy import Answer, Forward, Request, between

ADDRESS = Address(bucket="bucket", prefix="farm")


class Notes:
    """Answers every request with success, and notes what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, verb: str) -> Any:
        def answer(**given: Any) -> dict[str, Any]:
            self.asked.append((verb, given))
            if verb == "head_object":
                return {"ContentLength": 0, "ETag": '"none"', "Metadata": {"sha256": ""}}
            return {"ETag": '"e"', "UploadId": "u"}

        return answer

    def one(self, verb: str) -> dict[str, Any]:
        [found] = [given for name, given in self.asked if name == verb]
        return found


@pytest.fixture
def notes() -> Notes:
    return Notes()


def test_a_write_is_conditional_and_carries_two_checksums(notes: Notes) -> None:
    S3Store(ADDRESS, client=notes).put_new("a/b.json", b"1", media_type="text/x")

    md5 = base64.b64encode(hashlib.md5(b"1").digest()).decode()
    assert {
        "Bucket": "bucket",
        "Key": "farm/a/b.json",
        "Body": b"1",
        "ContentType": "text/x",
        "ContentMD5": md5,
        "IfNoneMatch": "*",
        "Metadata": {"sha256": hashlib.sha256(b"1").hexdigest()},
    } == notes.one("put_object")


@pytest.mark.parametrize(("expect", "name"), [(None, "IfNoneMatch"), ("abc", "IfMatch")])
def test_a_swap_is_conditional(notes: Notes, expect: str | None, name: str) -> None:
    assert "e" == S3Store(ADDRESS, client=notes).swap("tags/x.json", b"1", expect=expect)

    assert ("*" if expect is None else '"abc"') == notes.one("put_object")[name]


@pytest.mark.parametrize(
    ("sse", "sent"),
    [
        ("none", {}),
        ("aes256", {"ServerSideEncryption": "AES256"}),
        ("kms:k", {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}),
    ],
)
def test_encryption_is_asked_for_with_every_object(notes: Notes, sse: str, sent: Any) -> None:
    store = S3Store(Address(bucket="bucket", sse=sse), client=notes)

    store.put_new("a/small.json", b"1")

    asked = notes.one("put_object")
    assert sent == {each: asked[each] for each in asked if each.startswith(("Server", "SSE"))}


def test_what_is_big_is_sent_in_parts_of_16_mib(notes: Notes, tmp_path: Path) -> None:
    """The condition goes with the last request, the media type and the digest with the first."""
    address = Address(bucket="bucket", sse="aes256")
    store, source = S3Store(address, client=GoneNotes(notes)), tmp_path / "source"
    source.write_bytes(b"x" * (2 * PART + 1))

    assert store.put_new("a/big.bin", source, media_type="x/y")

    made, last = notes.one("create_multipart_upload"), notes.one("complete_multipart_upload")
    assert ("x/y", "AES256") == (made["ContentType"], made["ServerSideEncryption"])
    assert hashlib.sha256(source.read_bytes()).hexdigest() == made["Metadata"]["sha256"]
    parts = [given for verb, given in notes.asked if verb == "upload_part"]
    assert [PART, PART, 1] == [len(each["Body"]) for each in parts]
    assert [1, 2, 3] == [each["PartNumber"] for each in last["MultipartUpload"]["Parts"]]
    assert ("*", "u") == (last["IfNoneMatch"], last["UploadId"])
    assert not [verb for verb, _ in notes.asked if verb == "abort_multipart_upload"]


class GoneNotes:
    """Notes of a bucket in which nothing is there yet."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def __getattr__(self, verb: str) -> Any:
        from botocore.exceptions import ClientError

        def missing(**_given: Any) -> Any:
            status = {"HTTPStatusCode": 404}
            raise ClientError({"Error": {"Code": "404"}, "ResponseMetadata": status}, verb)

        return missing if verb == "head_object" else getattr(self._notes, verb)


def test_a_store_says_its_address_and_no_more() -> None:
    url = "s3://bucket/farm?endpoint_url=http%3A%2F%2Fhost%3A8333"

    assert f"S3Store({url!r})" == repr(open_store(url))


KEYS = st.from_regex(r"([ab0=_-]{1,3}/){0,2}[ab0=_-]{1,3}\.[ab0]", fullmatch=True).filter(is_key)
CUTS = st.one_of(KEYS, st.from_regex(r"([ab0=_-]{1,3}/){0,2}[ab0=_-]{0,3}", fullmatch=True))


@given(KEYS, CUTS)
def test_a_listing_starts_before_the_first_key_that_it_must_hold(key: str, after: str) -> None:
    """And no earlier than it needs: no key lies between."""
    assert (key > after) <= (key > _just_before(after))
    assert (key > _just_before(after)) <= (key >= after)


def _page(number: int, of: int) -> bytes:
    entries = "".join(
        f"<Contents><Key>inbox/v1/date=2026-11-30/{number:032x}.{each:064x}.json</Key>"
        "<LastModified>2026-11-30T00:00:00.000Z</LastModified>"
        '<ETag>"d41d8cd98f00b204e9800998ecf8427e"</ETag><Size>3000</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
        for each in range(1000)
    )
    more = f"<NextContinuationToken>{number + 1}</NextContinuationToken>" if number + 1 < of else ""
    return (
        '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{entries}"
        "</ListBucketResult>"
    ).encode()


@pytest.mark.long
def test_a_hundred_thousand_keys_are_listed_in_a_stream() -> None:
    """Less than 15 s, and less than 50 MB of growth."""

    def pages(request: Request, _forward: Forward) -> Answer:
        token = request.path.partition("continuation-token=")[2].partition("&")[0]
        body = _page(int(token or 0), 100)
        headers = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
        return Answer(200, headers, body)

    with between("http://127.0.0.1:1", pages) as endpoint:
        url = Address(bucket="bucket", endpoint_url=endpoint).url
        code = f"""if True:
            import resource, time
            from farm.store import open_store
            size = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            listing = open_store({url!r}).list()
            next(listing)
            before, began = size(), time.monotonic()
            count = 1 + sum(1 for _ in listing)
            print(count, time.monotonic() - began < 15, size() - before < 50_000)
        """
        said = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"},
        )

    assert b"100000 True True\n" == said.stdout
