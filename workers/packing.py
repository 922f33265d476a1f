"""A finished attempt packed for the spool: artefacts, card, profile, and the page of it all."""

import gzip
from pathlib import Path

from msgspec import structs

from farm import identity, schema
from farm.schema import Artifact, Profile, SystemCard
from farm.store import blob_key, card_key, profile_key
from workers.folders import (
    CAPTURED,
    LAYER_TABLE,
    LAYERS,
    merged_log,
    merged_samples,
    merged_telemetry,
    output,
    trace,
)
from workers.spool import Goods, Parcel, goods


def pack(
    profile: Profile,
    folder: Path,
    *,
    card: SystemCard,
    entry: str,
    fence: str,
    effort: str,
    today: str,
) -> tuple[Parcel, list[bytes]]:
    """Return the page of a parcel and the bytes of its goods, in the order of sending.

    folder: of the attempt. An infra profile is evidence and no answer, so no entry waits for it.
    """
    made = artifacts(folder)
    named = {
        kind: Artifact(
            key=each.key, sha256=each.sha256, bytes=each.bytes, media_type=each.media_type
        )
        for kind, each, _ in made
    }
    told, data = schema.encode(card), schema.encode(structs.replace(profile, artifacts=named))
    page = Parcel(
        entry=entry if profile.status != "infra" else "",
        run=profile.run_id,
        fence=fence,
        effort=effort,
        end="FAILED" if profile.status == "failed" else "DONE",
        cause=cause(profile),
        job_id=profile.job_id,
        goods=[
            *(each for _, each, _ in made),
            goods(card_key(identity.content_id(told)), told, file="card.json"),
            goods("", data, file="profile.json"),
        ],
        sent_as=profile_key(today, profile.job_id, identity.content_id(data)),
    )
    return page, [*(each for _, _, each in made), told, data]


def cause(profile: Profile) -> str:
    """Return why an entry with this profile ends, as the ledger keeps it."""
    failure = profile.failure
    return failure.kind if isinstance(failure, schema.Failure) else "ok"


def artifacts(folder: Path) -> list[tuple[str, Goods, bytes]]:
    """Return kind, place and bytes of what an attempt left: samples, output, layer table, trace.

    Each is compressed, and lies in the store under the digest of what is stored.
    """
    log = merged_log(folder)
    found = [
        ("samples", merged_samples(folder), "npz", "application/x-npz"),
        ("telemetry", merged_telemetry(folder), "npz", "application/x-npz"),
        ("log", gzip.compress(log, mtime=0) if log else b"", "txt.gz", "application/gzip"),
    ]
    if (folder / LAYERS).exists():
        table = (folder / LAYER_TABLE).read_bytes()
        found += [
            ("layers", (folder / LAYERS).read_bytes(), "csv", "text/csv"),
            ("layer_table", table, "json", "application/json"),
        ]
    if (traced := trace(folder)) is not None:
        packed = gzip.compress(traced.read_bytes(), compresslevel=6, mtime=0)
        found.append(("trace", packed, "json.gz", "application/gzip"))
    if (folder / CAPTURED).exists():
        data = (folder / CAPTURED).read_bytes()
        found.append(("captured", data, "json", "application/json"))
    if (kept := output(folder)) is not None:
        found.append(("output", kept.read_bytes(), "npz", "application/x-npz"))
    made = []
    for kind, data, ending, media in found:
        if data:
            key = blob_key(kind, identity.content_id(data), ending)
            made.append((kind, goods(key, data, file=f"{kind}.{ending}", media_type=media), data))
    return made
