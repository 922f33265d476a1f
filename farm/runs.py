"""The runs of a store, found by any of their names, and the times that documents hold."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, NoReturn

from farm import identity, schema, tags
from farm.catalog import rows, winners
from farm.catalog.rows import Row
from farm.errors import Bad, NoResult, Refused, did_you_mean
from farm.report.record import Report, bad
from farm.schema import Manifest
from farm.store import NotFound, Store, manifest_key

LAST: Final = "@last"
LAST_GOOD: Final = "@last-good"
_FOLDER: Final = "runs/v1/"
_ID: Final = re.compile(r"r-[0-9a-z-]{1,100}")


class Known(NamedTuple):
    """The readable runs of a store, newest first, and by id what is wrong with the others."""

    runs: list[Manifest]
    damaged: dict[str, Bad]


def find_run(store: Store, wanted: str) -> Manifest:
    """Return the run of an id, a tag, the name of a sweep, a mark, or the beginning of an id.

    `@last` is the newest, `@last-good` the newest that is complete and in which nothing is bad or
    invalid. A name and a mark (KEY=VALUE, as `-t` gives it) mean their newest run; what a word is
    in full counts before what it begins.
    Raises NoResult if there is none, Refused if several match, Bad if it is damaged.
    """
    if _ID.fullmatch(wanted) and (exact := _exact(store, wanted)) is not None:
        return exact
    known = read(store)
    if not (known.runs or known.damaged):
        raise NoResult("no run in this store yet", hint="farm run configs/sweeps/quickstart.yaml")
    if not wanted:
        raise Refused("a run without a name", hint="`farm status` lists them")
    if wanted == LAST_GOOD:
        return _last_good(store, known.runs)
    tagged = tags.pointed(store, wanted)
    if tagged is not None:
        return _of_tag(store, wanted, tagged)
    named = [each for each in known.runs if wanted in (LAST, each.name, *_marks(each))]
    return named[0] if named else _beginning(store, known, wanted)


def read(store: Store) -> Known:
    """Return what the store knows of its runs; a damaged manifest hides no other run."""
    found, damaged = [], {}
    for entry in store.list(_FOLDER):
        run_id, _, name = entry.key.removeprefix(_FOLDER).partition("/")
        if name == "manifest.json":
            try:
                found.append(_manifest(store, run_id))
            except Bad as error:
                damaged[run_id] = error
            except NotFound:
                continue  # somebody took it away between the listing and the reading
    found.sort(key=lambda each: (each.submitted_at, each.run_id), reverse=True)
    return Known(found, damaged)


def manifests(store: Store) -> list[Manifest]:
    """Return every readable manifest of the store, newest first."""
    return read(store).runs


def stamp(at: datetime) -> str:
    """Return a time as documents hold it: UTC, in milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """Return the time that a document names, with its zone; the first one ever if it names none.

    A profile may come from another writer, and one odd word must not hide the others.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _exact(store: Store, run_id: str) -> Manifest | None:
    """Return the run of a whole id without reading those of the others."""
    try:
        return _manifest(store, run_id)
    except NotFound:
        return None


def _manifest(store: Store, run_id: str) -> Manifest:
    try:
        found = schema.decode(store.get(manifest_key(run_id)), Manifest)
    except Bad as error:
        raise Bad(f"the manifest of run {run_id} is damaged", why=str(error)) from error
    if found.run_id != run_id:
        why = f"it is of run {found.run_id!r}, and its key names another"
        raise Bad(f"the manifest of run {run_id} is damaged", why=why)
    return found


def _marks(run: Manifest) -> list[str]:
    return [f"{key}={value}" for key, value in run.tags.items()]


def _of_tag(store: Store, name: str, run_id: str) -> Manifest:
    found = _exact(store, run_id) if _ID.fullmatch(run_id) else None
    if found is None:
        hint = f"`farm tag {name} RUN` sets it anew"
        raise NoResult(f"no run {run_id!r}, which tag {name!r} names", hint=hint)
    return found


def _beginning(store: Store, known: Known, wanted: str) -> Manifest:
    """Return the one run whose id begins so, or raise with what comes nearest to the word."""
    ids = [*(each.run_id for each in known.runs), *known.damaged]
    if wanted == LAST:
        raise next(iter(known.damaged.values()))
    if not any(each.startswith(wanted) for each in ids):
        _raise_unknown(wanted, store, known, ids)
    chosen = identity.match(wanted, ids, thing="run")
    if chosen in known.damaged:
        raise known.damaged[chosen]
    return next(each for each in known.runs if each.run_id == chosen)


def _raise_unknown(wanted: str, store: Store, known: Known, ids: Iterable[str]) -> NoReturn:
    words = {name: None for each in known.runs for name in (each.name, *_marks(each))}
    near = did_you_mean(wanted, [LAST, LAST_GOOD, *tags.read(store).run_ids, *words, *ids])
    raise NoResult(f"no run {wanted!r} in this store", hint=near or "`farm status` lists them")


# ── the last good one ────────────────────────────────────────────────────────────────────────────


def _last_good(store: Store, newest_first: Sequence[Manifest]) -> Manifest:
    """Return the newest run without a flaw; no profile is read twice, nor one that only older
    runs expect."""
    from farm.report import model

    held: dict[str, list[Row]] = {}
    why = ""
    for run in newest_first:
        ids = {each.job_id for each in run.jobs}
        if lacking := ids - held.keys():
            held |= {each: [] for each in lacking}
            for row in rows.read(store, job_ids=lacking).rows:
                held[row.profile.job_id].append(row)
        best = winners.of_run((row for each in ids for row in held[each]), run)
        # Only ages count from `now`, and no flaw is one of age.
        flaw = _flaw(model.build(run, best, cards={}, now=moment(run.submitted_at)))
        if not flaw:
            return run
        why = why or f"in the newest, {run.run_id}, {flaw}"
    raise NoResult("no run of this store is good", why=why, hint="`farm report` says more")


def _flaw(report: Report) -> str:
    """Return what keeps a run from being good, "" for nothing."""
    found = {
        "missing": report.counts["missing"],
        "bad": len(bad(report)),
        "invalid": report.counts["invalid"],
    }
    return ", ".join(
        f"{count} of {report.expected} {word}" for word, count in found.items() if count
    )
