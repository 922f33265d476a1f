"""The trace that a profile of a store keeps, and what it says together with the profile."""

import tempfile
from pathlib import Path
from typing import Final

from farm import schema
from farm.catalog import rows, winners
from farm.catalog.rows import Row
from farm.errors import FarmError, NoResult, did_you_mean
from farm.profiles.search import find
from farm.report import words
from farm.schema import Captured, Profile, SystemCard
from farm.store import NotFound, Store, card_key
from farm.trace import captured, opening
from farm.trace.analysis.known import Known
from farm.trace.analysis.record import Setting
from farm.trace.files import Address
from farm.trace.opening import Opened

KIND: Final = "trace"  # of the artefact
_CAPTURED: Final = "captured"
_ASK: Final = "`measure.trace: true` in a sweep keeps one"


def traced(store: Store, wanted: str) -> Row:
    """Return the profile of an id, its unique beginning, `RUN/LABEL` or a job id, with a trace.

    Of a job it is the one that wins among those with a trace. Raises Refused if several match,
    NoResult, with the nearest, if none does, or if what matches kept no trace.
    """
    try:
        row = find(store, wanted)
    except NoResult as error:
        if error.hint:
            raise
        raise NoResult(error.what, why=error.why, hint=_nearest(store, wanted)) from error
    if KIND in row.profile.artifacts:
        return row
    if row.profile.job_id.startswith(wanted):
        held = rows.read(store, job_ids={row.profile.job_id}).rows
        with_trace = [each for each in held if KIND in each.profile.artifacts]
        if with_trace:
            return min(with_trace, key=winners.order)
    raise without(row.profile, row.profile_id)


def without(profile: Profile, profile_id: str) -> FarmError:
    """Return the error for a profile that kept no trace, with its reason."""
    reason = profile.null_reasons.get(KIND, "not_requested")
    code, _, detail = reason.partition(": ")
    why = "it was taken without `measure.trace: true`"
    if code != "not_requested":
        why = detail or words.reason(code)
    what = f"profile {profile_id[:12]} has no trace"
    return NoResult(what, why=why, hint=_ASK if code == "not_requested" else "")


def opened(store: Store, profile: Profile, *, name: str) -> Opened:
    """Return the analysis of the trace that a profile keeps; name: what it is called in there.

    What its clean passes measured stands in place of what the profiler slowed down. Raises NoResult
    if the store does not have the trace any more, Corrupt if it is not as it was put, Bad if it
    cannot be analysed.
    """
    beside = _beside(store, profile)
    known = None if beside is None else captured.known(profile, beside)
    kept = profile.artifacts[KIND]
    found = fetched(store, kept.key, sha256=kept.sha256, name=name, known=known)
    card = _card(store, profile.card_id)
    if beside is None:
        return found
    asked: dict[str, Setting] = {"repeats": len(profile.repeats)}
    analysis = captured.dressed(found.analysis, profile, beside, card=card, asked=asked)
    return found._replace(analysis=analysis)


def fetched(
    store: Store, key: str, *, sha256: str | None, name: str, known: Known | None = None
) -> Opened:
    """Return the analysis of an object of a store; raises as `opened` does.

    sha256: what it must be. It is read from a file of its own, which is gone afterwards: a trace
    may be larger than memory.
    """
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        path = Path(folder) / "trace"
        try:
            store.get(key, to=path, sha256=sha256)
        except NotFound as error:
            why = "a store may keep traces for a while only"
            raise NoResult(f"the trace {key} is not there", why=why) from error
        found = opening.read(Address(path, None), name=name, known=known)
    if isinstance(found, Opened):
        return found
    raise opening.lacking(found, "the events of a trace")


def _beside(store: Store, profile: Profile) -> Captured | None:
    kept = profile.artifacts.get(_CAPTURED)
    if kept is None:
        return None
    return schema.decode(store.get(kept.key, sha256=kept.sha256), Captured)


def _card(store: Store, card_id: str) -> SystemCard | None:
    if not card_id:
        return None
    try:
        return schema.decode(store.get(card_key(card_id), sha256=card_id), SystemCard)
    except NotFound:
        return None


def _nearest(store: Store, wanted: str) -> str:
    """Return a hint that names the nearest id, as much of it as was written."""
    ids = {name for row in rows.read(store).rows for name in (row.profile_id, row.profile.job_id)}
    near = did_you_mean(wanted, sorted({each[: len(wanted)] for each in ids}))
    return near or "`farm profiles list` shows what is there"
