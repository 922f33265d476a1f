"""What a roster is held against: callable JSONs and farm profiles, as they were written.

They are read as plain data and not as records: a check must see a NaN, a text or a `true` that
stands in place of a number, and say so.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from farm.catalog import rows, winners
from farm.errors import Refused, did_you_mean
from farm.interchange import is_callable
from farm.store import Store

# Where a profile of ours, and where a callable JSON holds what the table shows.
_IN_PROFILE: Final[Mapping[str, str]] = {
    "device": "execution.device.slot",
    "precision": "job.workload.precision",
    "batch": "job.workload.batch",
    "unit": "job.workload.item",
    "n": "latency.n",
    "memory_mib": "memory.cpu_rss_peak_lifetime_bytes",
    "validity": "quality.validity",
}
_IN_CALLABLE: Final[Mapping[str, str]] = {
    "device": "device",
    "precision": "system_card.precision",
    "batch": "system_card.batch_size",
    "unit": "unit",
    "n": "measured_calls",
    "memory_mib": "memory.cpu_process_lifetime_peak_mb",
    "validity": "latency_detail.validity",
}


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
        path = "model_callable" if self.is_callable else "job.workload.model.name"
        return _text(at(self.plain, path))

    @property
    def failed(self) -> str:
        """Why there is nothing to show of it; "" where it was measured.

        A profile that did not end well has failed, whatever figures are in it.
        """
        status, cause = at(self.plain, "status"), _text(at(self.plain, "failure.kind"))
        if not self.is_callable and (status != "ok" or cause):
            ended = "failed" if status == "ok" else _text(status) or "has no status"
            return f"{ended}: {cause}" if cause else ended
        return "" if isinstance(at(self.plain, "latency"), dict) else "has no latency"

    @property
    def said(self) -> dict[str, Any]:
        """What it says for the columns of the table, by column, as it was written."""
        paths = _IN_CALLABLE if self.is_callable else _IN_PROFILE
        return {name: at(self.plain, path) for name, path in paths.items()}

    @property
    def began(self) -> str:
        """When its measurement began, in UTC; "" where it does not say."""
        path = "provenance.started_at" if self.is_callable else "execution.started_at"
        return _text(at(self.plain, path))


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
    """Return every profile that counts in the store, good or not; an attempt that lost does not."""
    found = [each.row for each in winners.winners(rows.read(store).rows)]
    return [Report(row.profile_id[:12], msgspec.to_builtins(row.profile)) for row in found]


def at(plain: object, path: str) -> Any:
    """Return what stands at a path of plain data; None where nothing does."""
    for key in path.split("."):
        plain = plain.get(key) if isinstance(plain, dict) else None
    return plain


_NONE = "is no profile"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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
