"""What a roster is held against: callable JSONs and farm profiles, as they were written.

They are read as plain data and not as records: a check must see a NaN, a text or a `true` that
stands in place of a number, and say so.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from farm.catalog import rows, winners
from farm.errors import Refused, did_you_mean
from farm.interchange import is_callable
from farm.schema import Profile
from farm.store import Store


class Report(NamedTuple):
    """One profile. where: its file, or its id in the store. trouble: why it is none, else ""."""

    where: str
    plain: Mapping[str, Any]
    trouble: str = ""

    @property
    def is_callable(self) -> bool:
        return is_callable(self.plain)

    @property
    def identity(self) -> str:
        """What it is of, as a roster names it; "" where it does not say."""
        found = self.plain.get("model_callable") if self.is_callable else _name(self.plain)
        return found if isinstance(found, str) else ""


def in_files(paths: Sequence[Path]) -> list[Report]:
    """Return the profiles in these files and, sorted, in these folders.

    A file that is named and holds none is a report with its trouble, and so is any in a folder
    that cannot be read; other JSON in a folder is passed over. Raises Refused for a path that is
    not there.
    """
    found = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*.json") if each.is_file())
            reports = [_read(each) for each in inside]
            found += [each for each in reports if each.trouble != _NONE]
        elif os.path.isfile(path):
            found.append(_read(path))
        else:
            near = sorted(each.name for each in path.parent.glob("*"))
            hint = did_you_mean(path.name, near)
            raise Refused(f"no file or folder {str(path)!r}", hint=hint)
    return found


def in_store(store: Store) -> list[Report]:
    """Return the newest profile that counts of every cell in the store, good or not."""
    newest: dict[tuple[str, str], rows.Row] = {}
    for each in winners.winners(rows.read(store).rows):
        profile = each.row.profile
        key = (profile.cell_id, profile.protocol_id)
        held = newest.get(key)
        if held is None or _began(held.profile) < _began(profile):
            newest[key] = each.row
    return [
        Report(row.profile_id[:12], msgspec.to_builtins(row.profile)) for row in newest.values()
    ]


_NONE = "is no profile"


def _read(path: Path) -> Report:
    try:
        # Python's own reader takes NaN and Infinity, so that they can be named.
        plain = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return Report(str(path), {}, f"cannot be read: {str(error).splitlines()[0][:200]}")
    if not isinstance(plain, dict):
        return Report(str(path), {}, _NONE)
    known = is_callable(plain) or plain.get("schema") == "farm.profile/v1"
    return Report(str(path), plain, "" if known else _NONE)


def _name(plain: Mapping[str, Any]) -> object:
    found: object = plain
    for key in ("job", "workload", "model", "name"):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _began(profile: Profile) -> str:
    return profile.execution.started_at
