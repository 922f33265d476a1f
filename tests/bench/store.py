"""The local store beside plain files."""

import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from farm.store import LocalStore
from tests.bench.row import Row, compare

_N = 200
_DATA = bytes(3000)


def rows() -> Iterator[Row]:
    """Yield the price of a put beside write, fsync and rename, and of a listing beside os.walk."""
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder) / "store")
        plain = Path(folder) / "plain"
        plain.mkdir()
        serial = itertools.count()

        def put() -> float:
            began = time.perf_counter()
            for _ in range(_N):
                store.put_new(f"inbox/v1/date=2026-11-30/{next(serial):064x}.a.json", _DATA)
            return 1e6 * (time.perf_counter() - began) / _N

        def written() -> float:
            began = time.perf_counter()
            for _ in range(_N):
                partial = plain / f".{next(serial)}"
                with partial.open("wb") as out:
                    out.write(_DATA)
                    out.flush()
                    os.fsync(out.fileno())
                partial.rename(plain / f"{next(serial)}.json")
            return 1e6 * (time.perf_counter() - began) / _N

        def listed() -> float:
            began = time.perf_counter()
            count = sum(1 for _ in store.list())
            return 1e6 * (time.perf_counter() - began) / count

        def walked() -> float:
            began = time.perf_counter()
            found = [
                os.stat(os.path.join(at, name)).st_size
                for at, _, names in os.walk(store.root)
                for name in names
            ]
            return 1e6 * (time.perf_counter() - began) / len(found)

        yield compare("store: put_new of 3 kB", "write, fsync, rename", "µs", put, written)
        yield compare("store: list, per key", "os.walk and stat", "µs", listed, walked)
