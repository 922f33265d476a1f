"""The door to DuckDB: a connection that sees the files it was opened with, and nothing else.

It has no network, no other file, no extension to load and no setting to change; all that it takes
is SQL of ours, or one SELECT of a person's that `guard` has let through.
"""

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

# The compiled part of DuckDB alone: what its package wraps around it (dataframes, Spark) is not
# needed here, and takes three quarters of the 0.12 s that a question would wait for the import.
try:
    import _duckdb as duckdb
except ImportError:  # where a build has it elsewhere
    import duckdb  # type: ignore[no-redef]

from farm.catalog import guard, sql
from farm.catalog.sql import Answer, Failed
from farm.errors import Bad, FarmError, Refused, Unreachable

_THREADS: Final = 4
_MOST_VALUES: Final = 10_000_000  # of an answer to a person: each becomes an object of Python
_PAGE: Final = 200_000  # values that are fetched at a time
_OUR_TABLES: Final = (
    "SELECT lower(table_name) FROM duckdb_tables() UNION "
    "SELECT lower(view_name) FROM duckdb_views() WHERE internal"
)


def ids_since(files: Sequence[Path], day: str) -> set[str]:
    """Return the ids of the profiles in these files that were received on this day or later."""
    asked = sql.ids_since(files, day)
    with _told(), duckdb.connect(":memory:") as con:
        con.execute(f"SET threads = {_threads()}")
        return {str(each[0]) for each in con.execute(asked.text, asked.values).fetchall()}


class Engine:
    """The views over some files and some rows, each of these as JSON.

    folder: where a folder of its own may be made: for the rows, and for when memory runs short.
    memory: so much DuckDB may take, in its words. Raises Failed if a file cannot be read,
    Unreachable if nothing can be written in the folder.
    """

    def __init__(
        self,
        files: Sequence[Path],
        tail: Sequence[bytes],
        *,
        folder: Path,
        memory: str = sql.MEMORY,
    ) -> None:
        self._own = folder / f".farm-{os.getpid()}-{secrets.token_hex(6)}"
        self._con = duckdb.connect(":memory:")
        self._files = list(files)
        self._made: set[str] = set()
        try:
            self._own.mkdir(parents=True)
            with _told():
                for each in sql.settings(threads=_threads(), memory=memory, spill=self._own):
                    self._con.execute(each)
                self._read(files, tail)
                for each in sql.lock(files):
                    self._con.execute(each)
        except OSError as error:
            self.close()
            why = error.strerror or ""
            raise Unreachable(f"cannot write in {str(folder)!r}", why=why) from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._con.close()
        shutil.rmtree(self._own, ignore_errors=True)

    def cells(self, where: Mapping[str, str]) -> Answer:
        """Return the row of each cell, system class and protocol (`sql.chosen`); raises Failed.

        Once they are chosen only the parts that hold them are read.
        """
        chosen = sql.chosen(where)

        def work() -> Answer:
            with _told():
                self._con.execute(chosen.text, chosen.values)
                asked = sql.cells(self._parts(sql.CHOSEN_PARTS))
                return self._answer(self._con.execute(asked.text, asked.values).fetchall())

        return self._ended(work, None)

    def winners(self, where: Mapping[str, str], columns: Sequence[str]) -> Answer:
        """Return columns of the winners that match, newest first; raises Failed."""
        asked = sql.winners(where, columns)

        def work() -> Answer:
            with _told():
                self._need({"winners"})
                return self._answer(self._con.execute(asked.text, asked.values).fetchall())

        return self._ended(work, None)

    def query(self, text: str, *, deadline_s: float, most: int = _MOST_VALUES) -> Answer:
        """Return the answer to a SELECT of a person's. most: so many values it may have.

        Raises Refused for anything else, for what cannot be understood, and past the deadline; Bad
        if memory does not suffice; Failed where nothing is wrong with the words.
        """

        def work() -> Answer:
            views = self._views_of(text)
            with _told(views):
                self._need(views)
                self._con.execute(text)
                return self._answer(self._pages(most))

        if len(text) > guard.LONGEST:
            raise Refused(f"the query is longer than {guard.LONGEST:,} signs")
        return self._ended(work, deadline_s)

    def _views_of(self, text: str) -> frozenset[str]:
        with _told(frozenset()):
            tree = self._con.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()
            taken = self._con.execute(_OUR_TABLES).fetchall()
        return guard.views_of(str(tree[0][0]), taken=frozenset(str(each[0]) for each in taken))

    def _read(self, files: Sequence[Path], tail: Sequence[bytes]) -> None:
        # by way of JSON: to import pyarrow for an Arrow table costs more than all of this
        lines = self._own / "tail.json"
        lines.write_bytes(b"\n".join(tail))
        for each in sql.raw(files, tail=lines if tail else None):
            self._con.execute(each)
        lines.unlink()
        for each in sql.BRIEF:
            self._con.execute(each)
        for each in sql.ranked(self._parts(sql.TIED_PARTS)):
            self._con.execute(each)
        (copies,) = self._con.execute(sql.COPIES).fetchall()[0]
        self._views = sql.views(copies=copies > 0)

    def _parts(self, asked: str) -> dict[int, Path]:
        """Return the files that hold what a statement gives the numbers of."""
        numbers = [int(each[0]) for each in self._con.execute(asked).fetchall()]
        return {each: self._files[each] for each in numbers}

    def _need(self, views: set[str] | frozenset[str]) -> None:
        """Make views that are asked for: each costs a look at every file."""
        wanted = views | {"winners"} if "nights" in views else views
        for name in sql.VIEWS:
            if name in wanted and name not in self._made:
                self._con.execute(self._views[name])
                self._made.add(name)

    def _pages(self, most: int) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        width = len(self._con.description or "1")
        while page := self._con.fetchmany(max(1, _PAGE // width)):
            found += page
            if len(found) * width > most:
                raise Refused(
                    f"the answer has more than {most:,} values",
                    hint="name the columns that you want, or add a LIMIT",
                )
        return found

    def _answer(self, rows: list[tuple[object, ...]]) -> Answer:
        described = self._con.description or []
        times = [at for at, each in enumerate(described) if _is_time(str(each[1]))]
        for index, row in enumerate(rows if times else []):
            held = list(row)
            for at in times:
                held[at] = _utc(held[at])
            rows[index] = tuple(held)
        return Answer(tuple(str(each[0]) for each in described), rows)

    def _ended(self, work: Callable[[], Answer], seconds: float | None) -> Answer:
        """Return what the work returns; a deadline and Ctrl-C end it, whatever it is at.

        It runs beside: DuckDB looks for a signal now and then, and in some loops never.
        """
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            try:
                return running.result(seconds)
            except TimeoutError as error:
                if running.done():
                    raise
                raise Refused(
                    f"the query took longer than {seconds:g} s",
                    hint="select less: add a WHERE, or fewer joins",
                ) from error
            finally:
                while not running.done():
                    self._con.interrupt()
                    wait([running], 0.05)


@contextmanager
def _told(views: frozenset[str] | None = None) -> Iterator[None]:
    """Raise what DuckDB raises as errors of ours. views: those of a person's query, or None."""
    try:
        yield
    except duckdb.Error as error:
        raise _explained(error, views) from error
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # its word for Ctrl-C in the main thread
            raise KeyboardInterrupt from error
        raise
    except (OverflowError, TypeError, ValueError) as error:  # an interval of a million years
        raise Refused(
            "the answer has a value that Python has no type for",
            why=str(error),
            hint="cast it: CAST(… AS VARCHAR)",
        ) from error


def _explained(error: duckdb.Error, views: frozenset[str] | None) -> FarmError:
    """Return what to say. views: those that a person's query reads; None if it was ours."""
    said = str(error).partition("\n")[0]
    said = re.sub(r"^([A-Za-z]+ )+Error: ", "", said)
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "" if views is None else "select less, or fewer columns"
        return Bad("the query needs more memory than it may take", why=said, hint=hint)
    if views is None:
        return Failed("the catalogue cannot be read", why=said)
    if isinstance(error, _WORDS):
        name = re.search(r'column (?:named )?"([^"]+)"', said)
        hint = guard.column_hint(name[1], views) if name else ""
        return Refused("the query cannot be understood", why=said, hint=hint)
    return Failed("the query cannot be answered", why=said)


# What is wrong with the words, whatever the data is.
_WORDS: Final = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.NotImplementedException,
    duckdb.ParserException,
    duckdb.SyntaxException,
)


def _is_time(kind: str) -> bool:
    return "TIMESTAMP" in kind.upper() or "DATETIME" in kind.upper()


def _utc(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _threads() -> int:
    return min(_THREADS, os.cpu_count() or 1)
