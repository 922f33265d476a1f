"""The object store: the truth of a farm, write-once, behind five methods.

Correctness rests on the digests in the keys; the refusal to overwrite is the second guard.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from farm.errors import Refused
from farm.store.contract import (
    Conflict,
    Corrupt,
    Denied,
    Entry,
    NotFound,
    Store,
    StoreError,
    Unreachable,
    Unsupported,
)
from farm.store.keys import (
    blob_key,
    bundle_key,
    card_key,
    check_key,
    job_key,
    manifest_key,
    profile_ids,
    profile_key,
    tag_key,
)
from farm.store.local import LocalStore

__all__ = [
    "Conflict",
    "Corrupt",
    "Denied",
    "Entry",
    "LocalStore",
    "NotFound",
    "Store",
    "StoreError",
    "Unreachable",
    "Unsupported",
    "blob_key",
    "bundle_key",
    "card_key",
    "check_key",
    "job_key",
    "manifest_key",
    "open_store",
    "place",
    "profile_ids",
    "profile_key",
    "tag_key",
]


def open_store(url: str | Path) -> Store:
    """Return the store of a path or `file://` URL; nothing is created or read yet.

    Raises Refused for any other scheme.
    """
    text = str(url)
    scheme = text.split("://")[0] if "://" in text else ""
    if not scheme:
        return LocalStore(Path(text))
    if scheme == "s3":
        raise Refused(
            f"store {text!r}: this version keeps local stores only",
            why="S3 comes with a later version",
            hint="name a folder: --store DIR, or FARM_STORE=DIR",
        )
    parts = urlsplit(text)
    if scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        raise Refused(f"store {text!r} is neither a folder nor file:///FOLDER")
    return LocalStore(Path(unquote(parts.path)))


def place(url: str) -> str:
    """Return where a store lies, for others to read: an absolute folder, or a URL without password.

    Two spellings of one folder have one place, links apart; nothing is looked up.
    """
    if "://" not in url:
        return os.path.abspath(os.path.expanduser(url))
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return os.path.abspath(unquote(parts.path))
    user, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=user.partition(":")[0] + at + host).geturl()
