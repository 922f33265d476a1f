"""The settings of a command, each with where it comes from.

Flags beat the environment (`FARM_STORE` and so on), that beats `farm.toml` (nearest upwards), that
beats `[tool.farm]` in `pyproject.toml`, that beats `~/.config/farm/farm.toml`, that the defaults.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from farm.effort import LEVELS
from farm.errors import Refused, did_you_mean

# broker "" is the embedded one.
DEFAULTS: Final[Mapping[str, str]] = {
    "store": ".farm/store",
    "broker": "",
    "state": ".farm",
    "effort": "standard",
}

_PATHS: Final = ("store", "state")
_SECRET: Final = re.compile(r"(?<=://)([^/@\s]*:)[^/@\s]*(?=@)")


class Setting(Struct, frozen=True):
    """A value and its origin: a flag, a variable, a file, or `default`."""

    value: str
    origin: str


class Settings(Struct, frozen=True, kw_only=True):
    store: Setting
    broker: Setting
    state: Setting
    effort: Setting


def load(
    flags: Mapping[str, str | None], *, env: Mapping[str, str], cwd: Path, home: Path
) -> Settings:
    """Return the effective settings.

    flags: by key, None for one that was not given; `config` names a file that is read in place of
    the nearest ones. Paths in a file start at the file. Raises Refused for an unknown key or an
    unusable value, naming the origin, and for a password in a flag.
    """
    found = {key: Setting(value, "default") for key, value in DEFAULTS.items()}
    for path, table in reversed(list(_tables(flags.get("config"), env=env, cwd=cwd, home=home))):
        found |= {key: _from_file(key, each, path, home) for key, each in table.items()}
    for key in DEFAULTS:
        variable = f"FARM_{key.upper()}"
        if env.get(variable):  # an empty variable is one that is not set
            found[key] = _checked(key, env[variable], variable)
        flag = flags.get(key)
        if flag is not None:
            if shown(flag) != flag:
                hint = f"set {variable}, or `{key}` in farm.toml"
                raise Refused(f"--{key}: a flag takes no password", hint=hint)
            found[key] = _checked(key, flag, f"--{key}")
    return Settings(**found)


def shown(value: str) -> str:
    """Return the value as it may be printed: the password of a URL is hidden."""
    return _SECRET.sub(r"\1***", value)


def _tables(
    config: str | None, *, env: Mapping[str, str], cwd: Path, home: Path
) -> Iterator[tuple[Path, dict[str, object]]]:
    """Yield the tables of settings with their files, the strongest first."""
    named = config or env.get("FARM_CONFIG")
    if named:
        path = cwd / named
        if not os.path.isfile(path):
            raise Refused(f"no file {named!r}", why="--config" if config else "FARM_CONFIG")
        yield path, _read(path)
    else:
        folders = [cwd, *cwd.parents]
        near = next(
            (each / "farm.toml" for each in folders if os.path.isfile(each / "farm.toml")), None
        )
        if near:
            yield near, _read(near)
        yield from _of_project(folders)
    personal = home / ".config" / "farm" / "farm.toml"
    if os.path.isfile(personal):
        yield personal, _read(personal)


def _of_project(folders: list[Path]) -> Iterator[tuple[Path, dict[str, object]]]:
    for path in (each / "pyproject.toml" for each in folders):
        if os.path.isfile(path):
            tools = _read(path, checked=False).get("tool", {})
            table = tools.get("farm") if isinstance(tools, dict) else None
            if isinstance(table, dict):
                yield path, _known(table, path)
                return


def _read(path: Path, *, checked: bool = True) -> dict[str, object]:
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{path}: not readable as TOML", why=str(error)) from error
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    return _known(table, path) if checked else table


def _known(table: dict[str, object], path: Path) -> dict[str, object]:
    for key in table:
        if key not in DEFAULTS:
            known = list(DEFAULTS)
            why = f"known: {', '.join(known)}"
            raise Refused(
                f"{path}: unknown setting {key!r}", why=why, hint=did_you_mean(key, known)
            )
    return table


def _from_file(key: str, value: object, path: Path, home: Path) -> Setting:
    if not isinstance(value, str):
        raise Refused(f"{path}: {key} is {value!r}", why="expected text in quotes")
    if key in _PATHS and "://" not in value and value:
        inside = home / value[2:] if value.startswith("~/") else path.parent / value
        value = str(inside)
    return _checked(key, value, str(path))


def _checked(key: str, value: str, origin: str) -> Setting:
    if not value.isprintable() or (not value and key != "broker"):
        raise Refused(f"{origin}: {key} is {shown(value)!r}", why="expected printable text")
    if key == "effort" and value not in LEVELS:
        why = f"known: {', '.join(LEVELS)}"
        hint = did_you_mean(value, list(LEVELS))
        raise Refused(f"{origin}: unknown effort {value!r}", why=why, hint=hint)
    return Setting(value, origin)
