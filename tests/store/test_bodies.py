"""Objects on their way here: cut short, changed, or handed out whole."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.store import Corrupt, NotFound, Unreachable
from tests.store.proxy import Answer, Forward, Request, straight
from tests.store.servers import Server

pytestmark = pytest.mark.s3

KEY = "a/b.json"
MIB = 1 << 20


class Spoils:
    """Changes the body of the first `count` objects that are fetched."""

    def __init__(self, how: Callable[[bytes], bytes], *, count: int = 1 << 30) -> None:
        self.how, self.left, self.seen = how, count, 0

    def __call__(self, request: Request, forward: Forward) -> Answer:
        answer = forward(request)
        if request.method == "GET" and "list-type" not in request.path:
            self.seen += 1
            if self.left > 0:
                self.left -= 1
                return answer._replace(body=self.how(answer.body))
        return answer


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _flipped(body: bytes) -> bytes:
    return bytes([body[0] ^ 1]) + body[1:]


@pytest.mark.parametrize("to_file", [False, True])
def test_a_body_that_is_cut_once_is_fetched_again(through, tmp_path: Path, to_file: bool) -> None:
    through(straight).put_new(KEY, b"whole" * 1000)
    spoils = Spoils(_half, count=1)
    out = tmp_path / "out"

    found = through(spoils).get(KEY, to=out if to_file else None)

    assert b"whole" * 1000 == (out.read_bytes() if to_file else found)
    assert 2 == spoils.seen


@pytest.mark.parametrize("to_file", [False, True])
def test_a_body_that_is_always_cut_is_unreachable(through, tmp_path: Path, to_file: bool) -> None:
    through(straight).put_new(KEY, b"whole" * 1000)
    spoils = Spoils(_half)

    with pytest.raises(Unreachable, match="cut short"):
        through(spoils).get(KEY, to=tmp_path / "out" if to_file else None)

    assert 3 == spoils.seen
    assert [] == list(tmp_path.iterdir())


def test_a_flipped_byte_is_fetched_once_more_and_then_corrupt(through, tmp_path: Path) -> None:
    through(straight).put_new(KEY, b"whole")
    digest = hashlib.sha256(b"whole").hexdigest()
    once, always = Spoils(_flipped, count=1), Spoils(_flipped)

    assert b"whole" == through(once).get(KEY, sha256=digest)
    with pytest.raises(Corrupt):
        through(always).get(KEY, to=tmp_path / "out", sha256=digest)

    assert (2, 2) == (once.seen, always.seen)
    assert [] == list(tmp_path.iterdir())


def test_a_cut_body_is_not_taken_for_other_bytes(through) -> None:
    """A read-back that breaks off says nothing about what is there."""
    through(straight).put_new(KEY, b"whole" * 1000)

    with pytest.raises(Unreachable):
        through(Spoils(_half)).put_new(KEY, b"whole" * 1000)


@pytest.mark.parametrize("size", [5, 17 * MIB])
def test_bytes_that_change_on_their_way_are_refused_by_the_server(
    through, seaweedfs: Server, size: int
) -> None:
    """The checksum that goes with every PUT is held against what arrived."""
    left = [1 << 30]

    def spoiling(request: Request, forward: Forward) -> Answer:
        if request.method == "PUT" and left[0] > 0:
            left[0] -= 1
            request = request._replace(body=_flipped(request.body))
        return forward(request)

    store = through(spoiling, server=seaweedfs)

    with pytest.raises(Unreachable):
        store.put_new(KEY, b"w" * size)
    with pytest.raises(NotFound):
        store.get(KEY)
    left[0] = 1
    assert store.put_new(KEY, b"w" * size)

    assert b"w" * size == store.get(KEY)
