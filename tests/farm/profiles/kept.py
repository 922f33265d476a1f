"""Profiles of a store that kept a trace."""

import gzip

import msgspec

from farm import identity
from farm.schema import Artifact, Profile
from farm.store import Store, blob_key
from tests.farm.trace import g8


def with_trace(store: Store, profile: Profile, data: bytes | None = None) -> Profile:
    """Return the profile with a trace as its artefact, which the store holds then."""
    known = g8.text(g8.events(), deviceProperties=[g8.DEVICE])
    packed = gzip.compress(known, mtime=0) if data is None else data
    digest = identity.content_id(packed)
    key = blob_key("trace", digest, "json.gz")
    store.put_new(key, packed)
    kept = Artifact(key=key, sha256=digest, bytes=len(packed), media_type="application/gzip")
    return msgspec.structs.replace(profile, artifacts={**profile.artifacts, "trace": kept})
