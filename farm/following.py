"""A run followed to its end by the command that measures it here: enqueued, shown, checked."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from farm import broker
from farm.console import RunState
from farm.errors import TimedOut, Unreachable
from farm.local import Here
from farm.scheduler import check_end
from farm.schema import Job, Manifest
from farm.store import Store
from farm.submit import enqueue
from farm.watching import Watch

POLL_S: Final = 0.5


def follow(
    here: Here,
    expected: Manifest,
    jobs: Sequence[Job],
    *,
    store: Store,
    timeout_s: float | None,
    show: Callable[[RunState], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Enqueue these jobs of a run and wait until they have ended, showing how it goes.

    Raises TimedOut when the time is up; whatever raises, what is still queued is withdrawn.
    """
    began = clock()
    enqueue(expected, jobs, here.ledger, here=True)
    broker.send_tickets(here.app, here.ledger.tick().tickets)
    watch = Watch(expected, ledger=here.ledger, store=store, began=began)
    resubmitted = 0
    try:
        while True:
            here.agents.look_after()
            watch.catch_up()
            show(watch.state(clock(), slots=len(here.slots)))
            if watch.is_ended:
                again = check_end(
                    expected,
                    store=store,
                    ledger=here.ledger,
                    slots=here.slots,
                    resubmitted=resubmitted,
                    here=True,
                )
                if not again:
                    return
                resubmitted += 1
                continue
            if timeout_s is not None and clock() - began > timeout_s:
                raise TimedOut(
                    f"run {expected.run_id} is not done, and its time is up",
                    hint=f"`farm resume {expected.run_id}` measures what is missing",
                )
            sleep(POLL_S)
    finally:
        with suppress(Unreachable):  # without a broker there is nothing left to withdraw from
            here.ledger.withdraw(expected.run_id)


def look_on(
    watch: Watch,
    *,
    is_closed: Callable[[], bool],
    slots: int,
    interval_s: float,
    timeout_s: float | None,
    show: Callable[[RunState], None],
    changed: Callable[[list[str]], None],
    patience_s: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show a run that a farm measures until it has ended; the run goes on whatever happens here.

    is_closed: asked once every job has ended, whether nothing of it will be tried again. changed:
    hears the keys of the jobs that moved. patience_s: how long a broker may be away. Raises
    TimedOut when the time is up, Unreachable if the broker stays away.
    """
    began = heard = clock()
    moved: list[str] = []
    while True:
        try:
            moved += watch.catch_up()
            state = watch.state(clock(), slots=slots)
            changed(moved)
            moved = []
            show(state)
            if watch.is_ended and is_closed():
                return
            heard = clock()
        except Unreachable:
            if clock() - heard > patience_s:
                raise
        if timeout_s is not None and clock() - began > timeout_s:
            raise TimedOut(
                f"the run is not done after {timeout_s:.0f} s",
                why="it goes on without us",
                hint="`farm watch` comes back to it",
            )
        sleep(interval_s)
