"""Profiles as callable JSONs, one a line: the calls of one process, and what the profile knows."""

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from farm import identity, interchange, npz, schema
from farm.errors import Bad, NoResult, Refused
from farm.export.matching import Export, artifacts, in_turn, matching
from farm.interchange import CallableProfile, Origin, Process, Request
from farm.interchange.document import Array
from farm.schema import (
    Artifact,
    Cost,
    Inputs,
    Profile,
    Quality,
    Repeat,
    Stability,
    SystemCard,
    Validity,
)
from farm.store import NotFound, Store, card_key, profile_key

if TYPE_CHECKING:
    from farm.catalog.query import Catalog

_ASKED: Final = ("received", "job_id", "profile_id", "started_at", "p50_ms", "artifacts")
_SERIES: Final = "latency_ns_"
_UNTOLD: Final = ("commit", "dirty", "container_image", "host_load_1m")
_ORIGIN: Final = Origin(
    commit=None,
    dirty=None,
    container_image=None,
    host_load_1m=None,
    reasons=dict.fromkeys(_UNTOLD, "not_probed: no profile of a store tells"),
)
# From good to bad: what is unknown is no promise, and noise is known.
_VALIDITIES: Final[tuple[Validity, ...]] = ("valid", "degraded", "invalid")
_STABILITIES: Final[tuple[Stability, ...]] = ("stable", "acceptable", "unknown", "noisy")


def callables(
    store: Store, catalog: "Catalog", where: Mapping[str, str], *, since: datetime | None
) -> Export:
    """Return the callable JSON of every profile that has a latency and its samples, one a line.

    While the pieces are read, raises Corrupt or NotFound for what the store does not have as it
    was put, NoResult for samples that are not kept any more, Bad for what cannot be understood.
    """
    found = matching(catalog, where, _ASKED, since=since)
    chosen = [row for row in found.rows if row[4] is not None and "samples" in artifacts(row[5])]
    card = cache(lambda card_id: _card(store, card_id))
    lock = Lock()  # many profiles have one card, and the cache alone would let several fetch it

    def line(row: Sequence[object]) -> bytes:
        day, job_id, profile_id = map(str, row[:3])
        data = store.get(profile_key(day, job_id, profile_id), sha256=profile_id)
        profile = schema.decode(data, Profile)
        samples = _samples(store, profile.artifacts["samples"], profile_id)
        with lock:
            its_card = card(profile.card_id)
        try:
            made = document(profile, samples, card=its_card, profile_id=profile_id)
            return msgspec.json.format(interchange.encode(made), indent=-1) + b"\n"
        except (Bad, Refused) as error:
            raise Bad(f"profile {profile_id}: {error.what}", why=error.why) from error

    return Export(len(chosen), in_turn(line, chosen), len(found.rows) - len(chosen))


def document(
    profile: Profile,
    samples: Mapping[str, NDArray[np.int64]],
    *,
    card: SystemCard | None,
    profile_id: str,
) -> CallableProfile:
    """Return a profile that has a latency as a callable JSON, of the process that counts.

    samples: in ns, `latency_ns_0` of the first process and so on. The figures are of that process;
    validity, stability and flags are no better than the profile's. What belongs to a function alone
    is told as it is of a job: its cost, its batch, its inputs. Raises Bad without a sample.
    """
    process = interchange.that_counts(profile, dict(samples))
    request = _request(profile, process)
    made = interchange.of_profile(
        profile,
        [process.samples_ms],
        request,
        origin=_ORIGIN,
        card=card,
        profile_id=profile_id,
        quality=_no_better(process.quality, profile),
        is_function=False,
    )
    cost, reasons = _cost(profile)
    nulls = {path: why for path, why in made.null_reasons.items() if path != "cost"} | reasons
    batch = _batch(profile)
    if batch is not None:
        nulls.pop("system_card.batch_size", None)
        made = structs.replace(
            made, system_card=structs.replace(made.system_card, batch_size=batch)
        )
    notes = [*made.notes, *_notes(profile, process.repeat)]
    return structs.replace(made, notes=notes, cost=cost, null_reasons=nulls)


def _no_better(quality: Quality, profile: Profile) -> Quality:
    """Return the quality of a process with every doubt of its profile, whose verdict stands."""
    whole = profile.quality
    if not isinstance(whole, Quality):
        return quality
    return structs.replace(
        quality,
        flags=sorted({*quality.flags, *whole.flags}),
        validity=max(quality.validity, whole.validity, key=_VALIDITIES.index),
        stability=max(quality.stability, whole.stability, key=_STABILITIES.index),
    )


def _request(profile: Profile, process: Process) -> Request:
    workload, execution = profile.job.workload, profile.execution
    on_gpu = "cuda_device" in execution.resolved or execution.device.kind != "cpu"
    digest = workload.inputs.digest
    return Request(
        model=workload.model.ref,
        inputs=_shapes(workload.inputs, workload.batch),
        inputs_sha256=digest
        if isinstance(digest, str)
        else _drawn(workload.inputs, workload.batch),
        device="cuda" if on_gpu else "cpu",
        unit=workload.item,
        precision=workload.precision,
        warmup=process.repeat.warmup_iterations,
        repeats=len(process.samples_ms),
        tags=execution.tags,
        visible=execution.resolved.get("cuda_visible_devices"),
    )


def _shapes(inputs: Inputs, batch: int) -> dict[str, Array]:
    return {
        name: Array(
            shape=[batch if isinstance(each, str) else each for each in tensor.shape],
            dtype=tensor.dtype,
        )
        for name, tensor in inputs.spec.items()
    }


def _drawn(inputs: Inputs, batch: int) -> str:
    """Return what tells generated inputs apart: the digest of specification, seed and batch."""
    plain = {"inputs": msgspec.to_builtins(inputs), "batch": batch}
    return identity.content_id(identity.canonical(plain))


def _batch(profile: Profile) -> int | None:
    """Return the batch where the inputs have such an axis; None leaves it to a tag."""
    workload = profile.job.workload
    axes = {axis for each in workload.inputs.spec.values() for axis in each.shape}
    return workload.batch if "batch" in axes else None


def _cost(profile: Profile) -> tuple[Cost | None, dict[str, str]]:
    told = profile.null_reasons
    if not isinstance(profile.cost, Cost):
        return None, {"cost": told.get("cost", "not_requested")}
    return profile.cost, {path: why for path, why in told.items() if path.startswith("cost.")}


def _notes(profile: Profile, repeat: Repeat) -> list[str]:
    """Return what there is to say of a stored job beside what holds for every file."""
    notes = ["inputs_sha256 is of specification, seed and batch: the inputs were drawn"]
    if isinstance(profile.job.workload.inputs.digest, str):
        notes = ["inputs_sha256 is that of the NPZ that held them"]
    if len(profile.repeats) > 1:
        which = f"of repeat {repeat.index} alone, counted from 0"
        notes.append(
            f"{which}; the figures of the profile are of all that count, and its doubts stand here"
        )
    return notes


# ── from the store ───────────────────────────────────────────────────────────────────────────────


def _samples(store: Store, kept: Artifact, profile_id: str) -> dict[str, NDArray[np.int64]]:
    try:
        data = store.get(kept.key, sha256=kept.sha256)
    except NotFound as error:
        raise _gone(error, profile_id) from error
    try:
        arrays = npz.read(io.BytesIO(data), called=repr(kept.key))
    except Refused as error:
        raise Bad(f"{kept.key} holds no arrays", why=str(error)) from error
    return {name: each for name, each in arrays.items() if name.startswith(_SERIES)}


def _gone(error: NotFound, profile_id: str) -> NoResult:
    from farm.catalog.audit import KEPT_DAYS

    days = KEPT_DAYS["samples"]
    return NoResult(
        f"the samples of profile {profile_id[:12]} are not there",
        why=f"{error.key}; a store may keep them for {days} days only",
        hint=f"leave older ones out: --since {days}d",
    )


def _card(store: Store, card_id: str) -> SystemCard | None:
    """Return a card; None where there is none: the document tells why its fields are null."""
    if not card_id:
        return None
    try:
        return schema.decode(store.get(card_key(card_id), sha256=card_id), SystemCard)
    except NotFound:
        return None
