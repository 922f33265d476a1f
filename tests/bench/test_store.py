"""What a local store and the embedded broker cost; printed, not judged."""

import time
from collections.abc import Callable
from pathlib import Path

from farm.embedded import broker
from farm.store import LocalStore


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _row(what: str, value: float, unit: str) -> None:
    print(f"\n{what:<60}{value:>12,.1f} {unit}", end="")


def _fill(store: LocalStore, count: int) -> None:
    for number in range(count):
        store.put_new(f"inbox/v1/d{number % 50}/{number:064x}.x.json", bytes(3000))


def test_the_price_of_put_and_list(tmp_path: Path) -> None:
    quick, safe = LocalStore(tmp_path / "a", fsync=False), LocalStore(tmp_path / "b")

    _row(
        "local store: put_new of 3 kB, no fsync", 5000 / _seconds(lambda: _fill(quick, 5000)), "/s"
    )
    _row("local store: put_new of 3 kB", 200 / _seconds(lambda: _fill(safe, 200)), "/s")
    _row("local store: listed", 5000 / _seconds(lambda: list(quick.list())), "keys/s")


def test_the_price_of_a_broker(tmp_path: Path) -> None:
    def use() -> None:
        with broker(tmp_path):
            pass

    _row("embedded broker: start and stop, first time", 1e3 * _seconds(use), "ms")
    _row("embedded broker: start and stop, with its data", 1e3 * _seconds(use), "ms")
    with broker(tmp_path):
        _row("embedded broker: a second user comes and goes", 1e3 * _seconds(use), "ms")
