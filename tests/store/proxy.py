"""A proxy on the loopback that does to requests and answers what a network or a store may do."""

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_conditional(self) -> bool:
        return "if-none-match" in map(str.lower, self.headers)


class Answer(NamedTuple):
    """Its headers are sent as they stand, so that they may lie."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Forward = Callable[[Request], Answer]
# None: the connection is closed and nothing said.
Bend = Callable[[Request, Forward], Answer | None]


@contextmanager
def between(target: str, bend: Bend) -> Iterator[str]:
    """Yield the address of a proxy for the server at `target`."""
    at = urlsplit(target).netloc

    def forward(request: Request) -> Answer:
        wire = http.client.HTTPConnection(at, timeout=60)
        try:
            # As it was signed, so with the proxy's own Host.
            sent = {k: v for k, v in request.headers.items() if k.lower() != "expect"}
            wire.request(request.method, request.path, request.body, sent)
            found = wire.getresponse()
            headers = {
                k: v
                for k, v in found.getheaders()
                if k.lower() not in ("transfer-encoding", "connection")
            }
            body = found.read()
            if request.method != "HEAD":
                headers["Content-Length"] = str(len(body))
            return Answer(found.status, headers, body)
        finally:
            wire.close()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            request = Request(
                self.command, self.path, dict(self.headers.items()), self.rfile.read(size)
            )
            answer = bend(request, forward)
            self.close_connection = True
            if answer is None:
                return
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(status: int, code: str) -> Answer:
    """An error as S3 says it."""
    body = f"<Error><Code>{code}</Code><Message>the proxy says so</Message></Error>".encode()
    return Answer(
        status, {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body
    )


def straight(request: Request, forward: Forward) -> Answer:
    return forward(request)


class Refuses:
    """Says so to the first `count` requests of a method, then lets everything pass."""

    def __init__(self, method: str, status: int, code: str, *, count: int = 1 << 30) -> None:
        self.method, self.answer, self.left = method, refusal(status, code), count
        self.seen = 0

    def __call__(self, request: Request, forward: Forward) -> Answer:
        if request.method == self.method:
            self.seen += 1
            if self.left > 0:
                self.left -= 1
                return self.answer
        return forward(request)
