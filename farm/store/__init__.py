"""The object store: the truth of a farm, write-once, behind five methods.

Correctness rests on the digests in the keys; the refusal to overwrite is the second guard.
"""

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from farm import address
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
    check_there,
)
from farm.store.keys import (
    CATALOG_PREFIX,
    HEAD_KEY,
    blob_key,
    bundle_key,
    card_key,
    catalog_key,
    check_key,
    event_key,
    job_key,
    manifest_key,
    part_key,
    profile_ids,
    profile_key,
    tag_key,
)
from farm.store.local import LocalStore

__all__ = [
    "CATALOG_PREFIX",
    "HEAD_KEY",
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
    "catalog_key",
    "check_key",
    "check_there",
    "event_key",
    "job_key",
    "manifest_key",
    "open_store",
    "part_key",
    "place",
    "profile_ids",
    "profile_key",
    "tag_key",
]


def open_store(url: str | Path, *, hasty: bool = False) -> Store:
    """Return the store of a path, a `file://` or an `s3://` URL; nothing is asked or made yet.

    hasty: for who would rather know soon that a server is away than wait for it. Raises Refused for
    any other scheme, and for an address that is none.
    """
    text = str(url)
    scheme = text.split("://")[0] if "://" in text else ""
    if not scheme:
        return LocalStore(Path(text))
    if scheme == "s3":
        from farm.store import wire
        from farm.store.s3 import S3Store

        return S3Store(address.parse(text), patience=wire.HASTY if hasty else wire.USUAL)
    folder = _folder(text)
    if not folder:
        raise Refused(
            f"store {place(text)!r} is neither a folder nor file:///FOLDER nor s3://BUCKET"
        )
    return LocalStore(Path(folder))


def place(url: str) -> str:
    """Return where a store lies, for others to read: an absolute folder, or a URL without password.

    Two spellings of one folder or bucket have one place, links apart; nothing is looked up.
    `open_store` opens it.
    """
    if "://" not in url:
        return os.path.abspath(os.path.expanduser(url))
    if folder := _folder(url):
        return os.path.abspath(folder)
    scheme, sign, rest = url.partition("://")
    if scheme == "s3":
        with suppress(Refused):
            return address.parse(url).url
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    return scheme + sign + user.partition(":")[0] + at + host + slash + path


def _folder(url: str) -> str:
    """Return the folder that a `file://` URL names, "" for any other and for what names none."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that is not closed
        return ""
    path = unquote(parts.path)
    here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return path if here and "\0" not in path else ""
