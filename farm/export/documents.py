"""Profiles as they are stored, byte by byte."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from farm.export.matching import Export, in_turn, matching
from farm.store import Store, profile_key

if TYPE_CHECKING:
    from farm.catalog.query import Catalog


def documents(
    store: Store, catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None
) -> Export:
    """Return the stored bytes of every profile that counts, newest first, verified, one a line."""
    asked = ("received", "job_id", "profile_id", "started_at")
    found = matching(catalog, where, asked, since=since)

    def fetch(row: Sequence[object]) -> bytes:
        day, job_id, profile_id = map(str, row[:3])
        return store.get(profile_key(day, job_id, profile_id), sha256=profile_id) + b"\n"

    return Export(len(found.rows), in_turn(fetch, found.rows))
