"""The ledger beside bare calls of the same server."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

from farm import embedded
from farm.ledger import Claim, Entry, Ledger, Slot
from tests.bench.row import Row, compare

_N = 500
_SLOT = Slot(
    node="n1", slot="cpu:0", classes=["any"], device="cpu", system_id="s", system_class="c"
)


def rows() -> Iterator[Row]:
    """Yield the price of an entry's way beside as many SETs, one by one."""
    with tempfile.TemporaryDirectory() as folder, embedded.broker(Path(folder)) as server:
        ledger = Ledger(server.url)
        ledger.setup()
        client = redis.Redis.from_url(server.url)
        serial = iter(range(10**9))

        def submitted() -> float:
            entries = [
                Entry(key=f"{next(serial)}.base", class_="any", spec="{}") for _ in range(_N)
            ]
            began = time.perf_counter()
            ledger.submit("r-1", entries)
            return 1e6 * (time.perf_counter() - began) / _N

        def served() -> float:
            submitted()  # what is claimed below; its own time is the row above
            began = time.perf_counter()
            for _ in range(_N):
                held = ledger.claim(_SLOT, owner="n1/cpu:0#a")
                assert isinstance(held, Claim)
                ledger.finish(held, state="DONE", cause="ok", profile_key="p")
            return 1e6 * (time.perf_counter() - began) / _N

        def sets() -> float:
            began = time.perf_counter()
            for number in range(_N):
                client.set(f"bare:{number}", "x")
            return 1e6 * (time.perf_counter() - began) / _N

        yield compare("ledger: submit, 100 a call", "one SET", "µs", submitted, sets)
        yield compare(
            "ledger: claim and finish",
            "two SETs",
            "µs",
            served,
            lambda: 2 * sets(),
        )
        client.close()
        ledger.close()
