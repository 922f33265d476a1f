"""The settings of a command, each with where it comes from.

Flags beat the environment (`FARM_STORE` and so on), that beats `farm.toml` (nearest upwards), that
beats `[tool.farm]` in `pyproject.toml`, that beats `~/.config/farm/farm.toml`, that the defaults.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from farm import address
from farm.effort import LEVELS
from farm.errors import Refused, did_you_mean

# broker "" is the embedded one, endpoint_url "" the S3 of AWS.
DEFAULTS: Final[Mapping[str, str]] = {
    "store": ".farm/store",
    "endpoint_url": "",
    "path_style": "auto",
    "sse": "none",
    "broker": "",
    "state": ".farm",
    "effort": "standard",
}

READ: Final = "read"

_BROKERS: Final = ("redis", "rediss", "unix")
_OPTIONS: Final = frozenset(
    (
        *("db", "username", "password", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"),
        *("ssl_cert_reqs", "ssl_check_hostname"),
    )
)
_NAME_BYTES: Final = 255
_PATHS: Final = ("store", "state")
_MAY_BE_EMPTY: Final = ("broker", "endpoint_url")
_OF_STORE: Final = ("endpoint_url", "path_style", "sse")  # what an s3 URL may say of its store
_AWS_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_TABLE: Final = ("tool", "farm")  # where our settings stand in a pyproject.toml
# Up to the last @: a password may hold what it should not, and hiding too much hurts nobody.
_SECRET: Final = re.compile(r"(?<=://)([^/@:]*:).*(?=@)", re.DOTALL)
_QUERY: Final = re.compile(r"(://[^?]*\?).+", re.DOTALL)  # where a password may stand as well
_LONGEST: Final = 60  # of a bad value, as a message quotes it


class Setting(Struct, frozen=True):
    """A value and its origin: a flag, a variable, a file, or `default`."""

    value: str
    origin: str


class Settings(Struct, frozen=True, kw_only=True):
    """What holds. The value of `store` on S3 names it wholly, with the three settings below it."""

    store: Setting
    endpoint_url: Setting
    path_style: Setting
    sse: Setting
    broker: Setting
    state: Setting
    effort: Setting


class File(NamedTuple):
    """A file that may hold settings: how its values are told to come from it, and whether it does.

    state: READ, or why it is not. table: the keys of the table that holds them.
    """

    path: Path
    origin: str
    state: str
    table: tuple[str, ...] = ()


def load(
    flags: Mapping[str, str | None], *, env: Mapping[str, str], cwd: Path, home: Path
) -> Settings:
    """Return the effective settings.

    flags: by key, None for one that was not given; `config` names a file that is read in place of
    the nearest ones. Paths in a file start at the file. Raises Refused for an unknown key or an
    unusable value, naming the origin, and for a password in a flag.
    """
    found = {key: Setting(value, "default") for key, value in DEFAULTS.items()}
    for file in reversed(files(flags.get("config"), env=env, cwd=cwd, home=home)):
        if file.state == READ:
            table = _settings_of(file).items()
            found |= {key: _from_file(key, each, file, home) for key, each in table}
    for key in DEFAULTS:
        variable = f"FARM_{key.upper()}"
        if env.get(variable):  # an empty variable is one that is not set
            found[key] = _checked(key, env[variable], variable)
        flag = flags.get(key)
        if flag is not None:
            found[key] = _checked(key, flag, f"--{key}")
            if shown(flag) != flag:
                hint = f"set {variable}, or `{key}` in farm.toml"
                raise Refused(f"--{key}: a flag takes no password", hint=hint)
    return Settings(**_folded(found, env))


def files(config: str | None, *, env: Mapping[str, str], cwd: Path, home: Path) -> tuple[File, ...]:
    """Return the files of settings, the strongest first, with the places of those not there.

    config: as in `load`. Nothing is said of what they hold. Raises Refused if a named file is not
    there, or if a pyproject.toml on the way cannot be read.
    """
    personal = home / ".config" / "farm" / "farm.toml"
    named = config or env.get("FARM_CONFIG")
    if named:
        path = cwd / named
        if not os.path.isfile(path):
            raise Refused(
                f"no file {named!r}", why=f"named by {'--config' if config else 'FARM_CONFIG'}"
            )
        origin = f"--config {config}" if config else str(path)
        return File(path, origin, READ), _place(personal)
    folders = [cwd, *cwd.parents]
    near = next((each for each in folders if os.path.isfile(each / "farm.toml")), cwd)
    return _place(near / "farm.toml"), _of_project(folders), _place(personal)


def shown(value: str) -> str:
    """Return the value as it may be printed: the password of a URL is hidden."""
    hidden = _SECRET.sub(r"\1***", value)
    if value.startswith(address.SCHEME):
        return address.shown(hidden)
    return _QUERY.sub(r"\1***", hidden)


def _folded(found: Mapping[str, Setting], env: Mapping[str, str]) -> dict[str, Setting]:
    """Return the settings with one string for a store on S3, and what that string says beside it.

    What the URL itself says of its store beats the settings, and those beat the variables of AWS.
    """
    store = found["store"]
    if not store.value.startswith(address.SCHEME):
        return dict(found)
    named = dict(found)
    if not named["endpoint_url"].value:
        for name in _AWS_ENDPOINTS:
            if env.get(name):
                named["endpoint_url"] = _checked("endpoint_url", env[name], name)
                break
    given = address.parse(store.value)
    for key in _OF_STORE:
        if getattr(given, key) != DEFAULTS[key]:
            named[key] = Setting(getattr(given, key), store.origin)
    whole = address.Address(**asdict(given) | {key: named[key].value for key in _OF_STORE})
    return {**named, "store": Setting(whole.url, store.origin)}


def _place(path: Path) -> File:
    return File(path, str(path), READ if os.path.isfile(path) else "not there")


def _of_project(folders: Sequence[Path]) -> File:
    """Return the nearest pyproject.toml that has a table for us."""
    there = [path for each in folders if os.path.isfile(path := each / "pyproject.toml")]
    for path in there:
        tools = _read(path).get("tool")
        if isinstance(tools, dict) and "farm" in tools:
            return File(path, str(path), READ, _TABLE)
    path = there[0] if there else folders[0] / "pyproject.toml"
    return File(path, str(path), "without [tool.farm]" if there else "not there", _TABLE)


def _settings_of(file: File) -> dict[str, object]:
    found: object = _read(file.path)
    for key in file.table:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    if not isinstance(found, dict):
        name = ".".join(file.table)
        raise Refused(f"{file.origin}: {name} is {_brief(found)}", why="expected a table")
    known = list(DEFAULTS)
    for key in found:
        if key not in known:
            why = f"known: {', '.join(known)}"
            at_top = f"without [{key}], keys stand at the top" if key in _TABLE else ""
            raise Refused(
                f"{file.origin}: unknown setting {key!r}",
                why=why,
                hint=did_you_mean(key, known) or at_top,
            )
    return found


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
        raise Refused(f"{path}: not readable as TOML", why=why) from error
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
        raise Refused(f"{path}: not readable as TOML", why=str(error)) from error
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error


def _from_file(key: str, value: object, file: File, home: Path) -> Setting:
    if not isinstance(value, str):
        raise Refused(f"{file.origin}: {key} is {_brief(value)}", why="expected text in quotes")
    if key in _PATHS and "://" not in value and value:
        inside = home / value[2:] if value.startswith("~/") else file.path.parent / value
        value = str(inside)
    return _checked(key, value, file.origin)


def _checked(key: str, value: str, origin: str) -> Setting:
    if not value.isprintable() or (not value and key not in _MAY_BE_EMPTY):
        raise Refused(f"{origin}: {key} is {_brief(value)}", why="expected printable text")
    if key in _PATHS and max(map(len, os.fsencode(value).split(b"/"))) > _NAME_BYTES:
        raise Refused(f"{origin}: {key} is {_brief(value)}", why="a name in it is too long")
    if value and key in _OF_STORE:
        _told_from(origin, lambda: address.check(key, value))
    if key == "store" and value.startswith(address.SCHEME):
        _told_from(origin, lambda: address.parse(value))
    if key == "effort" and value not in LEVELS:
        why = f"known: {', '.join(LEVELS)}"
        hint = did_you_mean(value, list(LEVELS))
        raise Refused(f"{origin}: unknown effort {_brief(value)}", why=why, hint=hint)
    if key == "broker" and value:
        _check_broker(value, origin)
    return Setting(value, origin)


def _told_from(origin: str, check: Callable[[], object]) -> None:
    try:
        check()
    except Refused as error:
        what = f"{origin}: {error.what}"
        raise Refused(what, why=error.why, hint=error.hint) from error


def _check_broker(value: str, origin: str) -> None:
    """Raise Refused unless the value is the address of a Redis-protocol server."""
    try:
        parts = urlsplit(value)
        where = parts.path if parts.scheme == "unix" else parts.netloc
        fits = parts.scheme in _BROKERS and bool(where)
        _ = parts.port  # raises where it is no number, or too large
        options = parse_qs(parts.query, strict_parsing=bool(parts.query))
        fits = fits and options.keys() <= _OPTIONS and options.get("db", ["0"])[0].isdecimal()
    except ValueError:
        fits = False
    if not fits:
        raise Refused(
            f"{origin}: broker is no address of a Redis server",  # what it is may be a password
            why="write redis://HOST:PORT/0, rediss://HOST:PORT/0 or unix:///SOCKET; in a password "
            "write / as %2F and @ as %40",
            hint="leave it empty for the farm of this machine: `farm up`",
        )


def _brief(value: object) -> str:
    """Return a value as a message quotes it: short, and without its password."""
    text = shown(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
