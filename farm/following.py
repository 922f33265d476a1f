"""A run followed to its end: enqueued, shown as it goes, checked against the store when it ends."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from statistics import median
from typing import Final

from farm import broker, schema
from farm.console import JobLine, RunState
from farm.effort import repeat_words
from farm.errors import FarmError, TimedOut, Unreachable
from farm.ledger import ENDS, Record
from farm.local import Here
from farm.planning import seconds
from farm.scheduler import check_end
from farm.schema import Latency, Manifest, Profile
from farm.store import Store, StoreError
from farm.submit import enqueue, missing, takeable
from farm.sweep import label_text

POLL_S: Final = 0.5
_WORDS: Final = {"RUNNING": "measuring", "DEAD": "failed"}


def follow(
    here: Here,
    expected: Manifest,
    *,
    store: Store,
    timeout_s: float | None,
    show: Callable[[RunState], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Enqueue what is missing and wait until the run has ended, showing how it goes.

    Raises TimedOut when the time is up; whatever raises, what is still queued is withdrawn.
    """
    began = clock()
    lacking = takeable(missing(expected, store, here.slots), here.slots)
    view = _View(expected, store, began, before=len(expected.jobs) - len(lacking))
    resubmitted = 0
    enqueue(expected, lacking, here.ledger)
    broker.send_tickets(here.app, here.ledger.tick().tickets)
    try:
        while True:
            here.agents.look_after()
            records = here.ledger.entries(expected.run_id)
            show(view.state(records, clock(), slots=len(here.slots)))
            if all(each.state in ENDS for each in records):
                again = check_end(
                    expected,
                    store=store,
                    ledger=here.ledger,
                    slots=here.slots,
                    resubmitted=resubmitted,
                    now=datetime.now(UTC),
                )
                if not again:
                    return
                resubmitted += 1
            if timeout_s is not None and clock() - began > timeout_s:
                raise TimedOut(
                    f"run {expected.run_id} is not done after {timeout_s:.0f} s",
                    hint=f"`farm resume {expected.run_id}` measures what is missing",
                )
            sleep(POLL_S)
    finally:
        with suppress(Unreachable):  # without a broker there is nothing left to withdraw from
            here.ledger.withdraw(expected.run_id)


class _View:
    """Turns records into what a person sees; remembers figures of cells that ended.

    before: jobs that are not waited for, because they were answered earlier or nothing takes them.
    """

    def __init__(self, expected: Manifest, store: Store, began: float, *, before: int) -> None:
        self._expected = expected
        self._store = store
        self._began = began
        self._before = before
        self._labels = {each.job_id: label_text(each.labels) for each in expected.jobs}
        self._ended: dict[tuple[str, str], tuple[float | None, str]] = {}
        self._seconds: list[float] = []

    def state(self, records: list[Record], now: float, *, slots: int) -> RunState:
        """Return the run as it stands; the time left is a guess from the cells that ended."""
        lines = [self._line(each) for each in records if each.state not in ("READY", "BACKOFF")]
        of = {name: sum(each.state == name for each in records) for name in ("RUNNING", "DONE")}
        failed = sum(each.state in ("FAILED", "DEAD") for each in records)
        open_ = [each for each in records if each.state not in ENDS]
        left = None
        if self._seconds:
            left = median(self._seconds) * len(open_) / max(1, slots)
        return RunState(
            run_id=self._expected.run_id,
            name=self._expected.name,
            total=len(self._expected.jobs),
            done=of["DONE"] + self._before,
            failed=failed,
            running=of["RUNNING"],
            queued=len(open_) - of["RUNNING"],
            elapsed_s=now - self._began,
            left_s=left,
            lines=tuple(lines),
        )

    def _line(self, record: Record) -> JobLine:
        job_id = record.key.partition(".")[0]
        p50, note = None, ""
        if record.state in ENDS:
            p50, note = self._figure(record)
        elif record.progress:
            said = json.loads(record.progress)
            wanted = self._expected.effort.repeats
            note = f"{said['phase']}, {repeat_words(said['repeat'], wanted)}"
        return JobLine(
            node=record.node,
            device=record.owner.partition("/")[2].partition("#")[0],
            label=self._labels.get(job_id, job_id),
            state=_WORDS.get(record.state, record.state.lower()),
            p50_ms=p50,
            note=note,
        )

    def _figure(self, record: Record) -> tuple[float | None, str]:
        ended = record.key, record.profile_key  # a job that is measured again ends twice
        if ended not in self._ended:
            self._ended[ended] = self._read_figure(record)
        return self._ended[ended]

    def _read_figure(self, record: Record) -> tuple[float | None, str]:
        if not record.profile_key:
            return None, record.cause
        try:
            profile = schema.decode(self._store.get(record.profile_key), Profile)
        except (StoreError, FarmError) as error:
            return None, f"unreadable: {error}"
        self._seconds.append(seconds(profile))
        if isinstance(profile.latency, Latency):
            quality = profile.quality
            doubts = quality.flags if isinstance(quality, schema.Quality) else []
            return profile.latency.p50_ms, ", ".join(doubts)
        return None, record.cause
