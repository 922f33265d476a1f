"""Raw profiles of the inbox, read back and checked.

An object that cannot be read is named and counted, and stops nothing: one bad byte among a
thousand profiles must not hide the other 999. What can stop a reading is a store that is away.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from farm import identity, schema
from farm.errors import Bad, NoResult
from farm.store import Store, profile_ids

INBOX: Final = "inbox/v1/"


class Row(NamedTuple):
    """A profile, the id that its bytes gave it, and the key it lies under."""

    profile_id: str
    key: str
    profile: schema.Profile


class Unreadable(NamedTuple):
    """An object of the inbox that is no profile, and why."""

    key: str
    reason: str


class Rows(NamedTuple):
    """What a reading found, in the order of the keys; no profile twice."""

    rows: list[Row]
    unreadable: list[Unreadable]


def read(store: Store, *, job_ids: Collection[str] | None = None, since: str = "") -> Rows:
    """Return every profile of the inbox, or those of the given jobs, each once.

    job_ids: only these are fetched; the job is in the key, so the rest costs a listing and nothing
    else. since: a day as `2026-11-30`; folders of earlier days are passed over.
    A profile that was sent twice, on two days, is one row. Raises what the store raises when it is
    away; an object that is damaged, foreign, misnamed or gone is listed as unreadable.
    """
    wanted = None if job_ids is None else frozenset(job_ids)
    rows: dict[str, Row] = {}
    unreadable: list[Unreadable] = []
    for entry in store.list(INBOX, after=f"{INBOX}date={since}" if since else ""):
        name = profile_ids(entry.key)
        if name is None:
            unreadable.append(Unreadable(entry.key, "the name is not <job id>.<profile id>.json"))
            continue
        job_id, profile_id = name
        if profile_id in rows or (wanted is not None and job_id not in wanted):
            continue
        try:
            profile = _verified(store.get(entry.key), job_id, profile_id)
        except (Bad, NoResult) as error:
            unreadable.append(Unreadable(entry.key, str(error)))
        else:
            rows[profile_id] = Row(profile_id, entry.key, profile)
    return Rows(list(rows.values()), unreadable)


def _verified(data: bytes, job_id: str, profile_id: str) -> schema.Profile:
    found = identity.content_id(data)
    if found != profile_id:
        raise Bad("the bytes are not those of its name", why=f"their hash is {found}")
    profile = schema.decode(data, schema.Profile)
    if profile.job_id != job_id:
        raise Bad(f"the profile is of job {profile.job_id!r}", why="the key names another one")
    return profile
