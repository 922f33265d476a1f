"""The runs of a store, found by any of their names, and the times that documents hold."""

from datetime import UTC, datetime

from farm import identity, schema
from farm.errors import Bad, NoResult, Refused
from farm.schema import Manifest
from farm.store import Store


def find_run(store: Store, wanted: str) -> Manifest:
    """Return the run of an id, a unique beginning of one, a name (its newest run), or @last.

    Raises NoResult if there is none, Refused if several match, Bad if it is damaged.
    """
    found, damaged = _manifests(store)
    if not (found or damaged):
        raise NoResult("no run in this store yet", hint="farm run configs/sweeps/quickstart.yaml")
    named = [each for each in found if wanted in ("@last", each.name)]
    if named:
        return named[0]
    if not wanted:
        raise Refused("a run without a name", hint="`farm status` lists them")
    by_id = {each.run_id: each for each in found}
    try:
        chosen = identity.match(wanted, [*by_id, *damaged], thing="run")
    except NoResult as error:
        raise NoResult(
            f"no run {wanted!r} in this store", hint="`farm status` lists them"
        ) from error
    if chosen in damaged:
        raise damaged[chosen]
    return by_id[chosen]


def manifests(store: Store) -> list[Manifest]:
    """Return every readable manifest of the store, newest first."""
    return _manifests(store)[0]


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


def _manifests(store: Store) -> tuple[list[Manifest], dict[str, Bad]]:
    """Return the manifests, newest first, and by run id what is wrong with the damaged ones."""
    found, damaged = [], {}
    for entry in store.list("runs/v1/"):
        run_id, _, name = entry.key.removeprefix("runs/v1/").partition("/")
        if name != "manifest.json":
            continue
        try:
            manifest = schema.decode(store.get(entry.key), Manifest)
            if manifest.run_id != run_id:
                raise Bad(
                    f"the manifest is of run {manifest.run_id!r}", why="its key names another"
                )
            found.append(manifest)
        except Bad as error:
            damaged[run_id] = Bad(f"the manifest of run {run_id} is damaged", why=str(error))
    return sorted(found, key=lambda each: (each.submitted_at, each.run_id), reverse=True), damaged
