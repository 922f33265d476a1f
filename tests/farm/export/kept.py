"""Profiles in a store with what they left beside them, for tests of what is made of both."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from farm import export, identity, schema
from farm.catalog.query import open_catalog
from farm.store import Store, blob_key
from tests.farm import make


def artifact(store: Store, kind: str, data: bytes, ending: str) -> schema.Artifact:
    """Put the bytes where an attempt would, and say where."""
    digest = identity.content_id(data)
    key = blob_key(kind, digest, ending)
    store.put_new(key, data)
    return schema.Artifact(
        key=key, sha256=digest, bytes=len(data), media_type="application/octet-stream"
    )


def samples(*series: Any) -> bytes:
    """The arrays of so many processes, each in ns."""
    out = io.BytesIO()
    named = {f"latency_ns_{at}": np.asarray(each, np.int64) for at, each in enumerate(series)}
    np.savez_compressed(out, label_bits_0=np.zeros(1, np.uint8), **named)
    return out.getvalue()


def put(
    store: Store,
    profile: schema.Profile,
    *,
    table: schema.LayerTable | None = None,
    arrays: bytes = b"",
    day: str = "2026-11-30",
) -> str:
    """Store a profile and its artefacts; return its id."""
    made = {}
    if table is not None:
        made["layer_table"] = artifact(store, "layer_table", schema.encode(table), "json")
    if arrays:
        made["samples"] = artifact(store, "samples", arrays, "npz")
    (profile_id,) = make.put(store, msgspec.structs.replace(profile, artifacts=made), day=day)
    return profile_id


def exported(
    store: Store, cache: Path, kind: str, form: str = "json", **where: str
) -> tuple[bytes, export.Export]:
    """The bytes of an export, and what it says of them."""
    with open_catalog(store, cache=cache) as catalog:
        made = export.export(
            store, catalog, kind=kind, form=form, where=where, since=None, metric="latency.p50"
        )
        return b"".join(made.pieces), made


def lines(data: bytes) -> list[Mapping[str, Any]]:
    return [msgspec.json.decode(each) for each in data.splitlines()]
