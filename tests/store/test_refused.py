"""Stores that are no store for us, and addresses where none is: each is refused in words."""

import socket
from contextlib import closing

import pytest

from farm.store import Denied, Store, Unreachable, Unsupported
from farm.store.s3 import S3Store
from tests.store.proxy import Answer, Forward, Request, straight
from tests.store.servers import Identity, Server

pytestmark = pytest.mark.s3

KEY = "a/b.json"


def _ignoring(request: Request, forward: Forward) -> Answer:
    """As rclone's server does: the condition is not looked at."""
    kept = {k: v for k, v in request.headers.items() if k.lower() != "if-none-match"}
    return forward(request._replace(headers=kept))


def _shuffled(request: Request, forward: Forward) -> Answer:
    answer = forward(request)
    if "list-type=2" not in request.path:
        return answer
    head, *entries = answer.body.split(b"<Contents>")
    tail = b"</Contents>" + entries[-1].partition(b"</Contents>")[2]
    bodies = [each.partition(b"</Contents>")[0] for each in entries]
    body = head + b"".join(b"<Contents>" + each + b"</Contents>" for each in reversed(bodies))
    body += tail.removeprefix(b"</Contents>")
    return answer._replace(body=body, headers={**answer.headers, "Content-Length": str(len(body))})


def test_a_store_that_ignores_the_condition_is_refused(through) -> None:
    """And by then it has lost nothing: it is asked on a key of its own."""
    through(straight).put_new("meta/layout.json", b'{"layout": 2}\n')

    with pytest.raises(Unsupported, match="the store overwrites what is there") as caught:
        through(_ignoring).probe()

    assert 2 == caught.value.exit_code
    assert b'{"layout": 2}\n' == through(straight).get("meta/layout.json")


def test_a_store_that_lists_in_no_order_is_refused(through) -> None:
    for key in ("a/1.json", "a/2.json", "a/3.json"):
        through(straight).put_new(key, b"")

    with pytest.raises(Unsupported, match="ascending order"):
        list(through(_shuffled).list())


def test_a_folder_that_begins_its_neighbours_name_is_refused_where_it_is_out_of_order(
    through, seaweedfs: Server
) -> None:
    """SeaweedFS sorts by folders; the farm has no such keys, and nothing is listed wrong."""
    store: Store = through(straight, server=seaweedfs)
    store.put_new("a/b/0.json", b"")
    store.put_new("a/b-c/0.json", b"")

    with pytest.raises(Unsupported, match="ascending order"):
        list(store.list())


def test_a_store_of_another_layout_is_refused(through) -> None:
    store = through(straight)
    store.put_new("meta/layout.json", b'{"layout": 2}\n')

    with pytest.raises(Unsupported, match='"layout": 2'):
        store.probe()


# ── nobody there, or nobody we know ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "who",
    [Identity("test-anyone", "wrong"), Identity("nobody", "wrong")],
    ids=["secret", "user"],
)
def test_wrong_credentials_are_denied(seaweedfs: Server, who: Identity) -> None:
    store = S3Store(seaweedfs.address(), client=seaweedfs.client(who))

    for act in (store.probe, lambda: store.get(KEY), lambda: list(store.list())):
        with pytest.raises(Denied) as caught:
            act()
        assert 4 == caught.value.exit_code
        assert "AWS_ACCESS_KEY_ID" in caught.value.hint
        assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("kind", ["moto_server", "seaweedfs"])
def test_a_bucket_that_is_not_there_is_no_missing_key(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """Who reads must not take a wrong address for an empty store, nor find it worth no retry."""
    server: Server = request.getfixturevalue(kind)
    store = S3Store(server.address(bucket="elsewhere"), client=server.client())

    for act in (lambda: store.get(KEY), lambda: list(store.list())):
        with pytest.raises(Unreachable, match="there is no bucket 'elsewhere'"):
            act()
    with pytest.raises((Unreachable, Denied)) as caught:  # SeaweedFS: who may not make it
        store.probe()

    assert 4 == caught.value.exit_code
    assert "bucket" in str(caught.value) + caught.value.hint


def test_an_endpoint_where_nobody_listens_is_unreachable() -> None:
    with closing(socket.socket()) as held:  # bound, and not listening
        held.bind(("127.0.0.1", 0))
        server = Server(f"http://127.0.0.1:{held.getsockname()[1]}")
        store = S3Store(server.address(), client=server.client(attempts=1))

        with pytest.raises(Unreachable, match="cannot be reached") as caught:
            store.probe()

    assert 4 == caught.value.exit_code
    assert server.endpoint in str(caught.value)
    assert "endpoint_url" in caught.value.hint


def test_something_else_that_listens_there_is_unreachable(through) -> None:
    """A page in place of an answer is neither an empty store nor a kept object."""
    page = b"<html><body>hello</body></html>"
    headers = {"Content-Type": "text/html", "Content-Length": str(len(page))}
    for status in (200, 404):
        store = through(lambda *_, status=status: Answer(status, headers, page), attempts=1)

        for act in (
            lambda store=store: list(store.list()),
            lambda store=store: store.get(KEY),
            lambda store=store: store.put_new(KEY, b"1"),
            lambda store=store: store.swap(KEY, b"1", expect=None),
        ):
            with pytest.raises(Unreachable, match="does not answer as S3 does"):
                act()


@pytest.mark.usefixtures("no_credentials")
def test_without_credentials_nobody_is_asked(moto_server: Server) -> None:
    store = S3Store(moto_server.address())

    with pytest.raises(Denied, match="no credentials for the store") as caught:
        store.probe()

    assert 4 == caught.value.exit_code
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint


@pytest.mark.usefixtures("no_credentials")
def test_a_profile_that_is_not_there_is_said_so(
    moto_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    address = moto_server._replace(endpoint="http://127.0.0.1:1").address()  # no client has it yet

    with pytest.raises(Denied, match="nobodys"):
        S3Store(address).probe()
