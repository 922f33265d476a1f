"""Compactors and writers as processes that are killed at chosen steps.

`python -m tests.store.killing walk|chaos WORDS FOLDER …`: one process imports what is heavy, starts
no thread, and forks everything else, so that a hundred compactors cost a hundred forks.
"""

import itertools
import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas  # noqa: F401 — with the next two, what pyarrow imports at its first table
import pyarrow.acero
import pyarrow.dataset  # noqa: F401

import farm.store
from farm import schema
from farm.catalog import chain
from farm.store import Conflict, Store
from tests.farm import make
from tests.farm.catalog.taking import LONG_AGO, TODAY, YESTERDAY, compacted, rebuilt

WRITERS = COMPACTORS = 4
_LONGEST = 150  # calls before a kill


class Killing:
    """A store whose process ends at one of its calls: before it, or when it is done."""

    def __init__(self, store: Store, *, at: int, after: bool) -> None:
        self._store, self._left, self._after = store, at, after

    def put_new(self, *given: Any, **more: Any) -> bool:
        return self._call(lambda: self._store.put_new(*given, **more))

    def get(self, *given: Any, **more: Any) -> bytes:
        return self._call(lambda: self._store.get(*given, **more))

    def swap(self, *given: Any, **more: Any) -> str:
        return self._call(lambda: self._store.swap(*given, **more))

    def list(self, *given: Any, **more: Any) -> Iterator[Any]:
        return self._call(lambda: self._store.list(*given, **more))

    def _call(self, act: Callable[[], Any]) -> Any:
        self._left -= 1
        now = self._left == 0
        if now and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            return act()
        finally:
            if now:
                os.kill(os.getpid(), signal.SIGKILL)


def opened(words: str) -> Store:
    """The store that these words open, in this process."""
    names = {name: getattr(farm.store, name) for name in farm.store.__all__}
    return eval(words, names | {"Path": Path})


def profiles() -> Iterator[tuple[schema.Profile, list[str]]]:
    """Profiles and the days on which each is sent: one in 20 on two days, one in 50 long ago."""
    for fence in itertools.count():
        days = [TODAY if fence % 3 else YESTERDAY]
        if fence % 20 == 7:
            days = [YESTERDAY, TODAY]
        if fence % 50 == 11:
            days = [LONG_AGO]
        yield make.profile(fence=fence), days


def forked(act: Callable[[], object]) -> int:
    """Start a process that does this and ends; return its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        act()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def was_killed(status: int) -> bool:
    """Whether a process ended as we wanted it to; any other failure ends everything."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert os.waitstatus_to_exitcode(status) == 0, status
    return False


# ── every step ───────────────────────────────────────────────────────────────────────────────────


def walk(words: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Kill a compactor at its first call, another at its second, … until one gets through.

    Each finds two new profiles, one of them sent on two days, and a hint that names the newest.
    Yields how many profiles the catalogue held before it, after it was killed, and after the next
    one was not.
    """
    store = opened(words)
    sent = profiles()
    put = step = 0

    def run(at: int, after: bool) -> bool:
        def act() -> None:
            killing = Killing(opened(words), at=at, after=after)
            compacted(killing, folder / "cache", every_day=True)
            if not at and step % 4 == 0:
                rebuilt(killing, folder / "cache")  # few parts are quick to read

        return was_killed(os.waitpid(forked(act), 0)[1])

    for after in (False, True):
        killed, step = True, 0
        while killed:
            step += 1
            for document, _ in (next(sent), next(sent)):
                make.put(store, document, day=TODAY)
                put += 1
            make.put(store, document, day=YESTERDAY)
            before = _held(store)
            killed = run(step, after)
            then = _held(store)
            run(0, False)
            yield {
                **{"after": after, "step": step, "killed": killed, "put": put},
                **{"held": [before, then, _held(store)]},
            }


def _held(store: Store) -> int:
    found = chain.newest(store)
    assert found is None or not found.damaged
    return sum(each.rows for each in found.document.parts) if found else 0


# ── at random ────────────────────────────────────────────────────────────────────────────────────


def chaos(words: str, folder: Path, *, seed: int, count: int, kills: int) -> int:
    """Let writers and compactors run side by side, and kill them at random steps; return how often.

    Whoever was killed is started anew, and begins from the start. It ends when every writer has
    put all its profiles and every compactor has had a pass since.
    """
    rng = random.Random(seed)
    sent = list(itertools.islice(profiles(), count))
    done = folder / "done"
    killed = 0

    def start(number: int) -> int:
        at = rng.randrange(1, _LONGEST) if killed < kills else 0
        after = rng.random() < 0.5
        act = _write if number < WRITERS else _compact
        mine = sent[number::WRITERS] if number < WRITERS else done
        store = lambda: Killing(opened(words), at=at, after=after)  # noqa: E731
        return forked(lambda: act(store(), mine, folder))

    running = {start(number): number for number in range(WRITERS + COMPACTORS)}
    while running:
        pid, status = os.wait()
        number = running.pop(pid)
        if was_killed(status):
            killed += 1
            running[start(number)] = number
        if not any(each < WRITERS for each in running.values()):
            done.touch()
    last = forked(lambda: compacted(opened(words), folder / "cache", every_day=True))
    assert not was_killed(os.waitpid(last, 0)[1])
    return killed


def _write(store: Store, sent: Any, _folder: Path) -> None:
    for document, days in sent:
        for day in days:
            make.put(store, document, day=day)


def _compact(store: Store, done: Any, folder: Path) -> None:
    last = False
    while not last:
        last = done.exists()
        try:
            compacted(store, folder / "cache", writer=str(os.getpid()))
        except Conflict:  # the others were faster, ten times: so there is nothing left for it
            continue


def main(how: str, words: str, folder: str, *rest: str) -> None:
    if how == "walk":
        told = list(walk(words, Path(folder)))
    else:
        seed, count, kills = map(int, rest)
        told = [chaos(words, Path(folder), seed=seed, count=count, kills=kills)]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
