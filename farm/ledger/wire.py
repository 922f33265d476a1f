"""The connection to the server: its errors as ours, and the ears of a node."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec
import redis

from farm.errors import Unreachable

TIMEOUT_S: Final = 30.0
_EARS_TIMEOUT_S: Final = 5.0
# Nothing is ever sent on a subscription, so only this finds out that the other side has vanished.
_KEEPALIVE: Final = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
}


def connect(url: str) -> redis.Redis:
    """Return a client of this server; it connects with the first call."""
    return redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=TIMEOUT_S, health_check_interval=10
    )


@contextmanager
def reaching() -> Iterator[None]:
    """Turn the library's connection errors into ours, wherever a call stands."""
    try:
        yield
    except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise Unreachable("the broker refuses our credentials", why=str(error)) from error
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        raise Unreachable("the broker cannot be reached", why=str(error)) from error
    except (redis.exceptions.RedisError, KeyError) as error:
        if "user_script" in str(error):  # our own mistake, which must not look like an outage
            raise
        # An old server does not know our words; something else may not even speak them.
        raise Unreachable(
            "the broker does not answer as a Redis server of version 7 does", why=str(error)
        ) from error


class Ears:
    """What is said on one channel from now on; a selector can wait for it.

    Raises Unreachable when the server cannot be reached. A connection that is lost later stays
    lost: who wants to hear on asks for new ears.
    """

    def __init__(self, url: str, channel: str) -> None:
        # The older protocol, in which a message arrives as a plain answer.
        pool = redis.ConnectionPool.from_url(
            url,
            protocol=2,
            decode_responses=True,
            socket_timeout=_EARS_TIMEOUT_S,
            socket_keepalive=True,
            socket_keepalive_options=_KEEPALIVE,
        )
        self._connection: Any = pool.make_connection()
        self._lost: Unreachable | None = None
        try:
            with reaching():
                self._connection.connect()  # type: ignore[no-untyped-call]
                self._connection.send_command(  # type: ignore[no-untyped-call]
                    "SUBSCRIBE", channel
                )
                self._connection.read_response()
        except Unreachable:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor to wait on, -1 once the connection is lost or closed."""
        return -1 if self._connection is None else int(self._connection._sock.fileno())

    def heard(self) -> list[dict[str, Any]]:
        """Return what was said since the last call, [] if nothing; it waits for nothing.

        Raises Unreachable once after a lost connection; what came before that is returned first.
        """
        said: list[dict[str, Any]] = []
        try:
            with reaching():
                while self._connection is not None and self._connection.can_read(timeout=0):
                    said += _message(self._connection.read_response())
        except Unreachable as error:
            self.close()
            self._lost = error
        if self._lost is not None and not said:
            lost, self._lost = self._lost, None
            raise lost
        return said

    def close(self) -> None:
        """Hear nothing more; closing twice is fine."""
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None


def _message(answer: list[Any]) -> list[dict[str, Any]]:
    """Return the message in an answer; what is no JSON object was not said by a farm."""
    if answer[0] == "message":
        with suppress(msgspec.DecodeError):
            return [msgspec.json.decode(answer[2], type=dict[str, Any])]
    return []
