"""What the traces of many profiles say, one document a line."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from farm import schema
from farm.errors import Bad
from farm.export.matching import Export, artifacts, matching
from farm.schema import Profile
from farm.store import Store, profile_key

if TYPE_CHECKING:
    from farm.catalog.query import Catalog


def analyses(
    store: Store, catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None
) -> Export:
    """Return the analysis of the trace of every profile that kept one, newest first, one a line.

    One at a time is made: a trace may be large. While the pieces are read, raises Corrupt for what
    is not as it was put, NoResult for a trace that is not kept any more, Bad for what is none.
    """
    from farm.profiles import traces

    asked = ("received", "job_id", "profile_id", "started_at", "artifacts")
    found = matching(catalog, where, asked, since=since)
    chosen = [row for row in found.rows if traces.KIND in artifacts(row[-1])]

    def lines() -> Iterator[bytes]:
        for row in chosen:
            day, job_id, profile_id = map(str, row[:3])
            data = store.get(profile_key(day, job_id, profile_id), sha256=profile_id)
            profile = schema.decode(data, Profile)
            try:
                made = traces.opened(store, profile, name=profile_id)
            except Bad as error:
                what = f"profile {profile_id}: {error.what}"
                raise Bad(what, why=error.why, hint=error.hint) from error
            yield schema.encode(made.analysis) + b"\n"

    return Export(len(chosen), lines(), len(found.rows) - len(chosen))
