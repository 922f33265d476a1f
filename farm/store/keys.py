"""The keys of a store: their grammar, and where each kind of document lies.

Names of models and of people never enter a key: ids and digests do.
"""

import re
from typing import Final

from farm.errors import Refused

_SEGMENT: Final = re.compile(r"[a-z0-9][a-z0-9=_-]{0,199}")
_LAST: Final = re.compile(r"(?=.{1,200}\Z)[a-z0-9][a-z0-9=_-]*(?:\.[a-z0-9=_-]+)+")
_PROFILE: Final = re.compile(r"inbox/v1/date=[0-9-]{10}/([0-9a-f]{32})\.([0-9a-f]{64})\.json")
_DIGEST: Final = re.compile(r"(?:^|\.)([0-9a-f]{64})\.")
_TABLE: Final = "tables/profiles/v1/"

# The chain of the catalogue: each manifest is written once, and the head is a hint to the newest.
CATALOG_PREFIX: Final = f"{_TABLE}manifest/"
HEAD_KEY: Final = f"{_TABLE}head.json"


def check_key(key: str) -> str:
    """Return the key if its grammar allows it, else raise Refused.

    Segments match `[a-z0-9][a-z0-9=_-]*`; the last one alone contains dots, and always does. So no
    key is a file and a folder at once, and case never matters.
    """
    if not is_key(key):
        raise Refused(f"key {key!r} is not allowed in a store")
    return key


def job_key(job_id: str) -> str:
    return check_key(f"jobs/v1/{job_id[:2]}/{job_id}.json")


def manifest_key(run_id: str) -> str:
    return check_key(f"runs/v1/{run_id}/manifest.json")


def card_key(card_id: str) -> str:
    return check_key(f"cards/v1/{card_id}.json")


def profile_key(day: str, job_id: str, profile_id: str) -> str:
    """Return the key of a profile sent on `day` (YYYY-MM-DD, UTC)."""
    return check_key(f"inbox/v1/date={day}/{job_id}.{profile_id}.json")


def blob_key(kind: str, sha256: str, ext: str) -> str:
    return check_key(f"blobs/v1/{kind}/{sha256[:2]}/{sha256}.{ext}")


def bundle_key(sha256: str, ext: str = "tar") -> str:
    return check_key(f"bundles/v1/{sha256[:2]}/{sha256}.{ext}")


def part_key(month: str, sha256: str) -> str:
    """Return the key of a part of the catalogue with rows received in `month` (YYYY-MM, UTC)."""
    return check_key(f"{_TABLE}month={month}/{sha256}.parquet")


def catalog_key(number: int) -> str:
    """Return the key of the manifest with this number; numbers sort as their keys do."""
    return check_key(f"{CATALOG_PREFIX}{number:08}.json")


def event_key(sha256: str) -> str:
    return check_key(f"events/v1/{sha256}.json")


def tag_key(name: str) -> str:
    return check_key(f"tags/{name}.json")


def profile_ids(key: str) -> tuple[str, str] | None:
    """Return the job id and the profile id that an inbox key holds, None for any other key."""
    found = _PROFILE.fullmatch(key)
    return (found[1], found[2]) if found else None


def promised_digest(name: str) -> str | None:
    """Return the SHA-256 that the last segment of a content-addressed key holds, else None."""
    found = _DIGEST.search(name)
    return found[1] if found else None


def is_key(text: str) -> bool:
    """Return whether the grammar allows the text as a key."""
    *folders, last = text.split("/")
    return is_object(last) and all(map(is_folder, folders))


def is_folder(name: str) -> bool:
    """Return whether the name can be a segment before the last one."""
    return _SEGMENT.fullmatch(name) is not None


def is_object(name: str) -> bool:
    """Return whether the name can be the last segment; temporary and foreign files are not."""
    return _LAST.fullmatch(name) is not None
