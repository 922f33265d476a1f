"""Who listens where a broker should be: told apart with a socket alone, and within seconds.

The password is sent only to what has answered PING as a Redis-protocol server does, and no answer
to it is passed on: some servers repeat what they did not understand.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from farm.doctor.surroundings import LOOK_S

Verdict = Literal[
    "answers",  # and takes us
    "nothing",  # listens there
    "host",  # is not known
    "silent",  # not a word in time
    "closed",  # without a word
    "foreign",  # another protocol
    "untrusted",  # its certificate
    "plain",  # does not speak TLS
    "busy",  # loading, or too many clients
    "protected",  # takes nobody from elsewhere
    "password",  # it wants one
    "refused",  # the credentials
]

PORT: Final = 6379
_MOST: Final = 1 << 16
_SIGNS: Final = b"+-:$*"
_MEANING: Final[dict[bytes, Verdict]] = {
    b"-NOAUTH": "password",
    b"-NOPERM": "answers",  # who it is, it knows
    b"-WRONGPASS": "refused",
    b"-DENIED": "protected",
    b"-LOADING": "busy",
    b"-BUSY": "busy",
}


class Address(NamedTuple):
    """Where a broker is, and how to be let in. repr() of it holds the password; where does not.

    host: a path, and port 0, for a socket in the file system.
    """

    host: str
    port: int
    user: str
    password: str
    tls: bool
    authority: str = ""  # the file of a certificate authority
    verify: bool = True

    @property
    def where(self) -> str:
        if not self.port:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if not self.port:
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host in ("localhost", "localhost.localdomain")


class Look(NamedTuple):
    """Who is there. said: the beginning of what something foreign said, or the system's reason.

    version: of a server that answers and tells, such as `redis 6.2.14`.
    """

    verdict: Verdict
    said: str = ""
    version: str = ""


def address(url: str) -> Address:
    """Return where the broker of a URL is, which the settings have found to be one."""
    parts = urlsplit(url)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    is_file = parts.scheme == "unix"
    return Address(
        host=parts.path if is_file else parts.hostname or "localhost",
        port=0 if is_file else parts.port or PORT,
        user=options.get("username") or unquote(parts.username or ""),
        password=options.get("password") or unquote(parts.password or ""),
        tls=parts.scheme == "rediss",
        authority=options.get("ssl_ca_certs", ""),
        verify=options.get("ssl_cert_reqs", "required") not in ("none", "CERT_NONE"),
    )


def look(
    at: Address,
    *,
    connect: Callable[[str, int], socket.socket],
    clock: Callable[[], float] = time.monotonic,
) -> Look:
    """Return who listens there; it takes no longer than a look may take."""
    deadline = clock() + LOOK_S
    try:
        wire = connect(at.host, at.port)
    except socket.gaierror as error:
        return Look("host", error.strerror or "")
    except TimeoutError:
        return Look("silent", "a firewall, or the wrong address")
    except ConnectionRefusedError:
        return Look("nothing")
    except OSError as error:
        return Look("silent", error.strerror or str(error))
    with wire:
        wire.settimeout(max(0.01, deadline - clock()))
        return _met(wire, at, deadline, clock)


def _met(wire: socket.socket, at: Address, deadline: float, clock: Callable[[], float]) -> Look:
    """Return who is at the other end, through TLS where the address asks for it."""
    try:
        if not at.tls:
            return _asked(wire, at, deadline, clock)
        with _context(at).wrap_socket(wire, server_hostname=at.host) as safe:
            return _asked(safe, at, deadline, clock)
    except ssl.SSLCertVerificationError as error:
        return Look("untrusted", error.verify_message)
    except ssl.SSLError as error:
        return Look("plain", error.reason or "")
    except TimeoutError:
        return Look("silent", "it listens and says nothing")
    except FileNotFoundError:
        return Look("untrusted", f"no file {at.authority!r}")
    except OSError:
        return Look("closed")


def _asked(wire: socket.socket, at: Address, deadline: float, clock: Callable[[], float]) -> Look:
    """Return who answers PING, takes the password, and tells its version.

    The version is asked for here because our library turns away from a server that is too old.
    """

    def ask(*words: str) -> bytes:
        parts = [each.encode() for each in words]
        sent = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        wire.sendall(b"*%d\r\n" % len(parts) + sent)
        got = b""
        while not _is_whole(got) and len(got) < _MOST:
            wire.settimeout(max(0.01, deadline - clock()))
            chunk = wire.recv(_MOST)
            if not chunk:
                break
            got += chunk
        return got

    found = _meaning(ask("PING"), good=b"+PONG")
    if found.verdict in ("answers", "password") and at.password:
        words = [at.user, at.password] if at.user else [at.password]
        is_in = _meaning(ask("AUTH", *words), good=b"+OK").verdict == "answers"
        found = Look("answers" if is_in else "refused")
    if found.verdict != "answers":
        return found
    return found._replace(version=_version(ask("INFO", "server")))


def _is_whole(got: bytes) -> bool:
    """Return whether a reply has ended: `$N` announces N bytes, any other ends with its line.

    Of another protocol the beginning is enough; it may never send a line.
    """
    if got and got[:1] not in _SIGNS:
        return True
    line, _, rest = got.partition(b"\r\n")
    if line[:1] == b"$" and line[1:].isdigit():
        return len(rest) >= int(line[1:])
    return b"\n" in got


def _version(info: bytes) -> str:
    told = dict(line.partition(":")[::2] for line in info.decode("utf-8", "replace").splitlines())
    if "valkey_version" in told:
        return f"valkey {told['valkey_version']}"
    return f"redis {told['redis_version']}" if "redis_version" in told else ""


def _meaning(got: bytes, *, good: bytes) -> Look:
    """Return what the first line of an answer means. A foreign one is quoted, others are not."""
    if not got:
        return Look("closed")
    line = got.splitlines()[0] if got.splitlines() else got
    if line[:1] not in _SIGNS or (line[:1] in b"+-" and not line[1:2].isalpha()):
        return Look("foreign", line[:40].decode("ascii", "replace"))
    if b"max number of clients" in line:
        return Look("busy", "it has as many clients as it takes")
    return Look("answers" if line == good else _MEANING.get(line.split()[0], "foreign"))


def _context(at: Address) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=at.authority or None)
    if not at.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
