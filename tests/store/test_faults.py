"""What may go wrong between us and a bucket, and that nothing is lost, doubled or believed."""

import hashlib
import logging
from pathlib import Path

import pytest

from farm.errors import FarmError
from farm.store import (
    Conflict,
    Denied,
    NotFound,
    Unreachable,
    Unsupported,
    blob_key,
)
from farm.store.s3 import S3Store
from tests.store.proxy import Answer, Forward, Refuses, Request, straight

pytestmark = pytest.mark.s3

KEY = "a/b.json"
MIB = 1 << 20


# ── the answer is lost ───────────────────────────────────────────────────────────────────────────


class LosesAnswers:
    """Lets the first `count` requests of a method act, and drops what they are answered."""

    def __init__(self, method: str, *, count: int = 1) -> None:
        self.method, self.left = method, count

    def __call__(self, request: Request, forward: Forward) -> Answer | None:
        answer = forward(request)
        if request.method == self.method and self.left > 0:
            self.left -= 1
            return None
        return answer


@pytest.mark.parametrize("kind", ["moto_server", "seaweedfs"])
def test_a_lost_answer_to_a_write_is_no_conflict(
    through, request: pytest.FixtureRequest, kind: str
) -> None:
    """The repeated PUT meets our own object: False, and it is there once."""
    store = through(LosesAnswers("PUT"), server=request.getfixturevalue(kind))

    assert not store.put_new(KEY, b"1")

    assert [KEY] == [each.key for each in store.list()]
    with pytest.raises(Conflict):
        store.put_new(KEY, b"2")


@pytest.mark.parametrize("kind", ["moto_server", "seaweedfs"])
def test_lost_answers_to_an_upload_in_parts_are_no_conflict(
    through, request: pytest.FixtureRequest, kind: str
) -> None:
    """To its beginning and to its end; a store may know its own upload again, so True or False."""
    store = through(LosesAnswers("POST", count=2), server=request.getfixturevalue(kind))
    data = b"x" * (17 * MIB)

    store.put_new(KEY, data)

    assert not store.put_new(KEY, data)
    assert [(KEY, len(data))] == [(each.key, each.size) for each in store.list()]


def test_a_lost_answer_to_a_swap_is_success(through) -> None:
    first = through(straight).swap("tags/x.json", b"1", expect=None)
    store = through(LosesAnswers("PUT"))

    second = store.swap("tags/x.json", b"2", expect=first)

    [entry] = store.list("tags/")
    assert second == entry.etag
    assert b"2" == store.get("tags/x.json")


def test_a_connection_that_is_dropped_for_ever_is_unreachable(through) -> None:
    store = through(lambda _request, _forward: None, attempts=1)

    for act in (
        lambda: store.put_new(KEY, b"1"),
        lambda: store.get(KEY),
        lambda: list(store.list()),
        lambda: store.swap(KEY, b"1", expect=None),
        store.probe,
    ):
        with pytest.raises(Unreachable) as caught:
            act()
        assert 4 == caught.value.exit_code


# ── the store cannot decide, or has trouble ──────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 17 * MIB])
def test_a_409_is_tried_again_until_the_store_decides(through, size: int) -> None:
    """botocore lets it through; in parts, the whole upload starts again."""
    refuses = Refuses("PUT", 409, "ConditionalRequestConflict", count=2)
    store = through(refuses)

    assert store.put_new(KEY, b"x" * size)

    assert 2 == len(store.slept)
    assert b"x" * size == store.get(KEY)
    assert [] == _unfinished(store)


def test_a_409_for_ever_is_unreachable_after_eight_tries(through) -> None:
    refuses = Refuses("PUT", 409, "ConditionalRequestConflict")
    store = through(refuses)

    with pytest.raises(Unreachable, match=r"does not decide who writes a/b\.json") as caught:
        store.put_new(KEY, b"1")

    assert 4 == caught.value.exit_code
    assert 8 == refuses.seen
    assert all(0 <= each <= 2 for each in store.slept)
    with pytest.raises(NotFound):
        store.get(KEY)


def test_a_503_twice_is_endured(through) -> None:
    store = through(Refuses("PUT", 503, "SlowDown", count=2))

    assert store.put_new(KEY, b"1")


@pytest.mark.parametrize("code", ["BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"])
def test_bytes_that_were_damaged_on_their_way_are_sent_again(through, code: str) -> None:
    """botocore does not repeat these in its standard mode."""
    store = through(Refuses("PUT", 400, code, count=2))

    assert store.put_new(KEY, b"1")

    assert 2 == len(store.slept)


@pytest.mark.parametrize(
    ("method", "status", "code", "kind", "said"),
    [
        ("PUT", 500, "InternalError", Unreachable, "the store has trouble of its own"),
        ("PUT", 429, "SlowDown", Unreachable, "the store has trouble of its own"),
        ("PUT", 501, "NotImplemented", Unsupported, "the store cannot do what 'a/b.json' needs"),
        ("PUT", 400, "InvalidArgument", Unsupported, "the store cannot do what 'a/b.json' needs"),
        ("PUT", 403, "AccessDenied", Denied, "the store refuses 'a/b.json'"),
        ("PUT", 403, "RequestTimeTooSkewed", Denied, "the store refuses 'a/b.json'"),
        ("PUT", 400, "ExpiredToken", Denied, "the store refuses 'a/b.json'"),
        ("PUT", 404, "NoSuchBucket", Unreachable, "there is no bucket 'farm'"),
        ("PUT", 405, "MethodNotAllowed", Unreachable, "does not answer as S3 does"),
        ("GET", 404, "NotFound", Unreachable, "does not answer as S3 does"),
        ("GET", 404, "NoSuchBucket", Unreachable, "there is no bucket 'farm'"),
        ("GET", 403, "AccessDenied", Denied, "the store refuses 'a/b.json'"),
    ],
)
def test_every_answer_has_its_error(through, method, status, code, kind, said) -> None:
    """And each says what to do next; only 412 ever means that something is there."""
    store = through(Refuses(method, status, code), attempts=1)

    with pytest.raises(FarmError, match=said) as caught:
        store.put_new(KEY, b"1") if method == "PUT" else store.get(KEY)

    assert kind is type(caught.value)
    assert code in caught.value.why
    assert caught.value.hint


def test_an_unfinished_upload_is_taken_back(through) -> None:
    """A part that cannot be sent leaves nothing behind."""
    store = through(Refuses("PUT", 403, "AccessDenied"))

    with pytest.raises(Denied):
        store.put_new(KEY, b"x" * (17 * MIB))

    assert [] == _unfinished(store)
    with pytest.raises(NotFound):
        store.get(KEY)


def _unfinished(store: S3Store) -> list[object]:
    assert store._client is not None
    said = store._client.list_multipart_uploads(Bucket=store.address.bucket)
    return [each for each in said.get("Uploads", []) if store.address.prefix in each["Key"]]


# ── reading back ─────────────────────────────────────────────────────────────────────────────────


def test_what_may_not_be_read_back_is_believed_by_its_name_alone(through, caplog) -> None:
    """Under a content-addressed key, and with a warning; under any other it is Denied."""
    named = blob_key("log", hashlib.sha256(b"1").hexdigest(), "txt.gz")
    through(straight).put_new(named, b"1")
    through(straight).put_new(KEY, b"1")
    store = through(Refuses("GET", 403, "AccessDenied"))

    with caplog.at_level(logging.WARNING):
        assert not store.put_new(named, b"1")
    with pytest.raises(Denied):
        store.put_new(KEY, b"1")

    said = [each.message for each in caplog.records if each.name == "farm.store.s3"]
    assert [f"{named} is there and may not be read back: its name is believed"] == said


def test_what_is_gone_when_it_is_read_back_is_put_again(through) -> None:
    """Somebody else's retention took it in between."""
    through(straight).put_new(KEY, b"1")

    def vanishing(request: Request, forward: Forward) -> Answer:
        if request.method == "GET":
            forward(request._replace(method="DELETE"))
        return forward(request)

    assert through(vanishing).put_new(KEY, b"2")

    assert b"2" == through(straight).get(KEY)


def test_a_file_is_compared_by_what_its_writer_said_of_it(through, tmp_path: Path) -> None:
    """Big files are not fetched to see that they are there."""
    source = tmp_path / "source"
    source.write_bytes(b"x" * (17 * MIB))
    through(straight).put_new(KEY, source)
    store = through(Refuses("GET", 500, "InternalError"), attempts=1)

    assert not store.put_new(KEY, source)
    source.write_bytes(b"y" * (17 * MIB))
    with pytest.raises(Conflict):
        store.put_new(KEY, source)
