"""Profiles copied into a folder, as they stand in the store, for whoever works on without it."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from farm.catalog.rows import Row
from farm.errors import Bad, NoResult, Refused, did_you_mean
from farm.profiles.showing import label
from farm.profiles.values import ARTIFACTS
from farm.store import Store

_LONGEST: Final = 100  # of the words in a name: the rest of it must fit into 255 bytes
_SHOWN_ID: Final = 12


class Pulled(NamedTuple):
    """How many files were written, how many were there, and which objects are damaged or gone."""

    profiles: int
    artifacts: int
    kept: int
    damaged: list[Bad | NoResult]


def pull(
    store: Store, found: Sequence[Row], folder: Path, *, kinds: Collection[str], force: bool
) -> Pulled:
    """Copy profiles into the folder, one file each, and the artefacts of these kinds beside them.

    Each file is written whole, so what an interrupt leaves is completed by the same call again.
    A file that is there is kept, unless `force`. A damaged object stops none of the others.
    Raises Refused for a kind that none of the profiles has and no farm knows, and for a folder that
    cannot be made.
    """
    _check_kinds(kinds, found)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot write {str(folder)!r}", why=error.strerror or "") from error
    wrote = {"profile": 0, "artifact": 0}
    kept, damaged = 0, []
    for row in found:
        for what, key, sha256, name in _objects(row, kinds):
            path = folder / name
            if path.exists() and not force:
                kept += 1
                continue
            try:
                store.get(key, to=path, sha256=sha256)
                wrote[what] += 1
            except (Bad, NoResult) as error:
                damaged.append(error)
    return Pulled(wrote["profile"], wrote["artifact"], kept, damaged)


def _objects(row: Row, kinds: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield what, key, digest and name of the profile's document and of its artefacts."""
    # A label holds names of models, which may hold anything; the id tells equal ones apart.
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", label(row.profile)).strip("-.")[:_LONGEST]
    stem = f"{words}-{row.profile_id[:_SHOWN_ID]}" if words else row.profile_id[:_SHOWN_ID]
    yield "profile", row.key, row.profile_id, f"{stem}.json"
    for kind, artifact in sorted(row.profile.artifacts.items()):
        if kind in kinds:
            ending = artifact.key.rpartition("/")[2].partition(".")[2]
            safe = re.sub(r"[^a-z0-9_-]+", "-", kind)
            yield "artifact", artifact.key, artifact.sha256, f"{stem}.{safe}.{ending}"


def _check_kinds(kinds: Collection[str], found: Sequence[Row]) -> None:
    known = sorted({*ARTIFACTS, *(kind for each in found for kind in each.profile.artifacts)})
    for kind in kinds:
        if kind not in known:
            raise Refused(
                f"unknown kind of artefact {kind!r}",
                why=f"known: {', '.join(known)}",
                hint=did_you_mean(kind, known),
            )
