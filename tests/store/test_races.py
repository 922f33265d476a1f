"""Many writers of one key at once: exactly one wins, whatever they share."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

from farm.errors import FarmError
from tests.store.conftest import Backend


def _race(writers: int, act: Callable[[int], object]) -> list[str]:
    """Return what the threads got, all let go at once: `True`, `False`, or the error's name."""
    gate = threading.Barrier(writers)
    got: list[str] = []

    def write(number: int) -> None:
        gate.wait()
        try:
            got.append(str(act(number)))
        except FarmError as error:
            got.append(type(error).__name__)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sorted(got)


def test_of_threads_with_different_bytes_one_wins(raced: Backend) -> None:
    """One True, the others Conflict, and the winner's bytes stay."""
    store = raced.store
    for number in range(raced.rounds):
        key = f"race/{number}.bin"
        winners: list[bytes] = []

        def put(writer: int, key: str = key, winners: list[bytes] = winners) -> bool:
            data = b"%d" % writer * 1000
            created = store.put_new(key, data)
            winners.append(data)
            return created

        assert ["Conflict"] * (raced.writers - 1) + ["True"] == _race(raced.writers, put)
        assert [store.get(key)] == winners


def test_of_threads_with_the_same_bytes_one_creates(raced: Backend) -> None:
    for number in range(raced.rounds):
        put = partial(raced.store.put_new, f"race/{number}.bin", b"same" * 1000)

        got = _race(raced.writers, lambda _, put=put: put())

        assert ["False"] * (raced.writers - 1) + ["True"] == got


def test_of_swapping_threads_one_wins_each_round(raced: Backend) -> None:
    etag: str | None = None
    for number in range(raced.rounds):
        data = [b"%d %d" % (number, writer) for writer in range(raced.writers)]
        swap = partial(raced.store.swap, "tags/x.json", expect=etag)

        got = _race(raced.writers, lambda n, data=data, swap=swap: swap(data[n]))

        assert ["Conflict"] * (raced.writers - 1) == [each for each in got if each == "Conflict"]
        [etag] = [each for each in got if each != "Conflict"]
        assert raced.store.get("tags/x.json") in data


def test_of_processes_with_different_bytes_one_wins(raced: Backend) -> None:
    """The same law across processes: they share nothing but the store."""
    code = f"""if True:
        import sys
        from pathlib import Path
        from farm.store import *
        store = {raced.words}
        sys.stdin.readline()
        for number in range({raced.rounds}):
            try:
                print(store.put_new(f"race/{{number}}.bin", sys.argv[1].encode() * 1000))
            except Conflict:
                print("Conflict")
    """
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **raced.environ},
        )
        for number in range(raced.writers)
    ]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()

    rows = [each.communicate(timeout=120)[0].decode().split() for each in writers]

    for number, got in enumerate(zip(*rows, strict=True)):
        assert ["Conflict"] * (raced.writers - 1) + ["True"] == sorted(got)
        assert b"%d" % got.index("True") * 1000 == raced.store.get(f"race/{number}.bin")
    assert [0] * raced.writers == [each.returncode for each in writers]
