"""Questions to the catalogue: every profile of the store, as of one moment.

A question sees the parts of one manifest and the profiles that are in none yet, so an answer is
right seconds after a profile landed, also where nothing was ever compacted.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farm.catalog import cache as parts_cache
from farm.catalog import chain, snapshot
from farm.catalog.rows import Unreadable
from farm.catalog.sql import Answer, Failed
from farm.errors import Refused
from farm.store import Store

if TYPE_CHECKING:
    from farm.catalog.engine import Engine

TAIL: Final = 5_000
DEADLINE_S: Final = 60.0
_SHORT: Final = (
    *("profile_id", "job_id", "model", "precision", "batch", "device", "status", "validity"),
    *("p50_ms", "throughput_items_per_s", "system_class", "node", "started_at", "run_id"),
    "attempts",
)


def open_catalog(store: Store, *, cache: Path, tail: int = TAIL) -> "Catalog":
    """Return the catalogue as it stands, ready for questions.

    cache: the folder of parts (`cache.default_folder`). tail: so many profiles that are in no part
    are read, the newest ones. Raises what the store raises when it is away.
    """
    return Catalog(store, cache=cache, tail=tail)


class Catalog:
    """The profiles of a store, pinned. Close it, or use it as a context.

    number: of the manifest, 0 if there is none. left_out: how many profiles are in no part and were
    not read. unreadable: objects that are no profiles. missing: how many profiles the parts held
    that cannot be had any more: an answer is not the whole truth then. warnings: what was damaged
    and made good.
    """

    def __init__(self, store: Store, *, cache: Path, tail: int) -> None:
        self._store, self._limit = store, tail
        self._cache = cache.expanduser().absolute()
        if odd := sorted(set("*?[") & set(str(self._cache))):
            raise Refused(
                f"the cache {str(self._cache)!r} has {odd[0]!r} in its name",
                why="DuckDB takes that for a pattern",
                hint="name another folder: XDG_CACHE_HOME",
            )
        self._pinned = chain.newest(store)
        self.number = self._pinned.document.number if self._pinned else 0
        self.left_out = 0
        self.unreadable: list[Unreadable] = []
        self.missing = 0
        self.warnings: list[str] = []
        self._files: list[Path] = []
        self._engine = self._opened()

    def __enter__(self) -> "Catalog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._engine.close()

    def cells(self, where: Mapping[str, str] | None = None) -> Answer:
        """Return one row for each cell, system class and protocol (`sql.CELL_COLUMNS`).

        Each is of the newest repeat set in scope: its winner, with median, interval and the rest
        that an overview shows. where: keys of `sql.WHERE`, all of which must hold for a winner.
        Raises Refused for any other key, with the nearest one.
        """
        return self._asked(lambda engine: engine.cells(where or {}))

    def winners(
        self, where: Mapping[str, str] | None = None, *, columns: Sequence[str] = _SHORT
    ) -> Answer:
        """Return the profile that counts of each job, system and repeat set, newest first.

        columns: of `sql.WINNER_COLUMNS`. Raises Refused for any other, and as `cells`.
        """
        return self._asked(lambda engine: engine.winners(where or {}, columns))

    def query(self, text: str, *, deadline_s: float = DEADLINE_S) -> Answer:
        """Return the answer to one SELECT over the views `winners`, `profiles` and `nights`.

        Nothing else can be read, no file, no setting, and nothing written. Raises Refused for a
        query that asks for more, cannot be understood or takes longer than the deadline; Bad if
        memory does not suffice.
        """
        try:
            return self._asked(lambda engine: engine.query(text, deadline_s=deadline_s))
        except Failed as error:  # no file is damaged, so it is the words
            raise Refused(error.what, why=error.why) from error

    def _asked(self, ask: Callable[["Engine"], Answer]) -> Answer:
        """Return an answer; if a file was damaged since it was verified, ask once more."""
        try:
            return ask(self._engine)
        except Failed:
            if not self._mended():
                raise
        return ask(self._engine)

    def _mended(self) -> bool:
        """Return whether a file was damaged since it was verified, and the catalogue read anew."""
        if all(parts_cache.intact(each) for each in self._files):
            return False
        self._engine.close()
        self._engine = self._look()
        return True

    def _opened(self) -> "Engine":
        """Look, and once more if a file was lost since it was verified a moment ago."""
        try:
            return self._look()
        except Failed:
            if all(parts_cache.intact(each) for each in self._files):
                raise
        return self._look()

    def _look(self) -> "Engine":
        """Read what was pinned; the files are fetched and verified while DuckDB is imported."""
        pinned = self._pinned
        held = pinned.document.parts if pinned else []
        with ThreadPoolExecutor(1) as pool:
            fetching = pool.submit(snapshot.fetched, self._store, held, cache=self._cache)
            from farm.catalog.engine import Engine, ids_since

            got = fetching.result()
        parts = snapshot.Parts({}, [], 0, [])
        if pinned is not None:
            parts = snapshot.parts(self._store, pinned, got, cache=self._cache, ids_since=ids_since)
        self._files = list(parts.files)
        tail = snapshot.tail(self._store, pinned, parts, limit=self._limit, ids_since=ids_since)
        self.left_out = tail.left_out
        named = {each.key: each for each in (*parts.unreadable, *tail.unreadable)}
        self.unreadable = list(named.values())
        self.missing = parts.missing
        self.warnings = parts.warnings
        return Engine(self._files, tail.lines, folder=self._cache)
