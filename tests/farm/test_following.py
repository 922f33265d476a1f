"""A run followed to its end, by who measures it here and by who looks on from afar."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from farm import schema
from farm.console import RunState
from farm.errors import TimedOut, Unreachable
from farm.following import follow, look_on
from farm.ledger import Claim, Held, Ledger
from farm.local import Agents, Here
from farm.queues import takeable
from farm.store import job_key
from farm.submit import missing
from tests.farm import make
from tests.farm.agents import Agent

OWNER = "laptop/cpu:0#a"


class App:
    """Takes tickets and rings nobody."""

    def send_task(self, *_: object, **__: object) -> None:
        return


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url)
    made.setup()
    yield made
    made.close()


class Farm:
    """A farm without workers: each pause of the follower is one turn of `work`."""

    def __init__(self, store, ledger: Ledger) -> None:
        self.store, self.ledger = store, ledger
        self.shown = []
        self.now = 0.0
        self.jobs = [make.job(batch=each) for each in (1, 2, 3)]
        self.expected = make.manifest(self.jobs)
        for each in self.jobs:
            store.put_new(job_key(each.job_id), schema.encode(each))

    def measure(self, **made) -> None:
        """Claim an entry if there is one, and end it with a profile."""
        claim = self.ledger.claim(make.slot(), owner=OWNER)
        if isinstance(claim, Claim):
            (job,) = (each for each in self.jobs if claim.key.startswith(each.job_id))
            document = make.profile(job, fence=int(claim.fence), **made)
            make.put(self.store, document)
            key = f"inbox/v1/date=2026-11-30/{job.job_id}.{make.row(document).profile_id}.json"
            state = "FAILED" if made.get("status") == "failed" else "DONE"
            self.ledger.finish(claim, state=state, cause="ok", profile_key=key)

    def follow(self, work: Callable[[], None], *, timeout_s=60, slots=None) -> None:
        def sleep(seconds: float) -> None:
            self.now += seconds
            work()

        slots = [make.slot()] if slots is None else slots
        follow(
            Here(self.ledger, App(), Agents(Agent), slots),
            self.expected,
            takeable(missing(self.expected, self.store, slots), slots),
            store=self.store,
            timeout_s=timeout_s,
            show=self.shown.append,
            clock=lambda: self.now,
            sleep=sleep,
        )


@pytest.fixture
def farm(store, ledger) -> Farm:
    return Farm(store, ledger)


@pytest.mark.redis
def test_a_run_is_followed_until_every_job_has_ended(farm):
    """What is shown adds up at every moment."""
    farm.follow(farm.measure)

    assert [0, 1, 2, 3] == [each.done for each in farm.shown]
    for each in farm.shown:
        assert 3 == each.total == each.done + each.running + each.queued + each.failed
    assert ("done", 10.0) == (farm.shown[-1].lines[0].state, farm.shown[-1].lines[0].p50_ms)


@pytest.mark.redis
def test_what_was_answered_before_counts_as_done(farm):
    """A resumed run begins where it stopped, not at nothing."""
    make.put(farm.store, make.profile(farm.jobs[0]), make.profile(farm.jobs[1], flags=["paging"]))

    farm.follow(farm.measure)

    assert [2, 3] == [each.done for each in farm.shown]


@pytest.mark.redis
def test_a_job_that_no_slot_takes_is_not_waited_for(farm):
    """A run may be resumed on a machine that lacks one of its devices."""
    gone = make.job(device="h300")
    farm.store.put_new(job_key(gone.job_id), schema.encode(gone))
    farm.expected = make.manifest([*farm.jobs, gone])

    farm.follow(farm.measure)

    assert 3 == len(farm.ledger.entries(make.RUN))


@pytest.mark.redis
def test_a_job_that_is_measured_again_shows_its_new_figure(farm):
    """Its profile was lost on the way to the store; the second one has another figure."""
    farm.jobs, farm.expected = farm.jobs[:1], make.manifest(farm.jobs[:1])
    turns = iter([lambda: lose(farm), lambda: farm.measure(p50_ms=12.0)])

    farm.follow(lambda: next(turns)())

    assert [None, 12.0] == [
        each.lines[0].p50_ms for each in farm.shown if each.lines and each.lines[0].state == "done"
    ]


def lose(farm: Farm) -> None:
    """End an entry whose profile never arrives."""
    claim = farm.ledger.claim(make.slot(), owner=OWNER)
    farm.ledger.finish(claim, state="DONE", cause="ok", profile_key="inbox/v1/date=x/lost.json")


@pytest.mark.redis
def test_what_is_lost_again_and_again_ends_the_run_all_the_same(farm):
    """It is sent again twice; then the run has ended with a hole, and `farm resume` fills it."""
    farm.jobs, farm.expected = farm.jobs[:1], make.manifest(farm.jobs[:1])

    farm.follow(lambda: lose(farm))

    (record,) = farm.ledger.entries(make.RUN)
    assert ("DONE", 3) == (record.state, record.attempt)


@pytest.mark.redis
def test_only_the_jobs_that_are_given_are_sent(farm):
    """Whoever follows has chosen them: what is missing, or what is worth another try."""
    farm.jobs[1:] = []

    with pytest.raises(TimedOut):
        follow(
            Here(farm.ledger, App(), Agents(Agent), [make.slot()]),
            farm.expected,
            farm.jobs,
            store=farm.store,
            timeout_s=0,
            show=farm.shown.append,
            clock=iter(range(9)).__next__,
            sleep=lambda _: None,
        )

    assert [f"{farm.jobs[0].job_id}.base"] == farm.ledger.keys(make.RUN)


@pytest.mark.redis
def test_no_scheduler_looks_after_a_run_that_is_followed_here(farm):
    farm.follow(farm.measure)

    assert [] == farm.ledger.open_runs()


@pytest.mark.redis
def test_a_time_out_withdraws_what_is_queued(farm):
    """124, and how to come back; nobody measures for a command that is gone."""
    with pytest.raises(TimedOut) as caught:
        farm.follow(lambda: None, timeout_s=3)

    assert f"`farm resume {make.RUN}`" in caught.value.hint
    assert ["CANCELLED"] * 3 == [each.state for each in farm.ledger.entries(make.RUN)]


@pytest.mark.redis
def test_an_interruption_withdraws_what_is_queued(farm):
    def press() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farm.follow(press)

    assert {"CANCELLED"} == {each.state for each in farm.ledger.entries(make.RUN)}


@pytest.mark.redis
def test_the_repeat_in_hand_is_shown_in_words(farm):
    """Beyond those asked it stands in for a disturbed one."""
    said = iter([3, 4])

    def work() -> None:
        number = next(said, None)
        if number == 3:
            farm.held = farm.ledger.claim(make.slot(), owner=OWNER)
        if number is None:
            raise KeyboardInterrupt
        progress = f'{{"repeat": {number}, "phase": "latency", "iterations": 9}}'
        held = Held(key=farm.held.key, fence=farm.held.fence, progress=progress)
        farm.ledger.beat([held])

    with pytest.raises(KeyboardInterrupt):
        farm.follow(work)

    notes = [line.note for each in farm.shown for line in each.lines]
    assert ["latency, repeat 3 of 3", "latency, repeat 4, in place of a disturbed one"] == notes
    assert {("measuring", "cpu:0", "laptop")} == {
        (line.state, line.device, line.node) for each in farm.shown for line in each.lines
    }


# ── looking on from afar ─────────────────────────────────────────────────────────────────────────


STATE = RunState(
    run_id=make.RUN,
    name="night",
    total=3,
    done=0,
    failed=0,
    running=1,
    queued=2,
    elapsed_s=1.0,
    left_s=None,
)


class Watch:
    """A watch that tells one state after the other; None: the broker is away at that look.

    Each is how many jobs of three are done. moved: the keys that it tells, look by look.
    """

    def __init__(self, *told: int | None, moved: Iterable[list[str]] = ()) -> None:
        self._told, self._moved = iter(told), iter(moved)
        self._done = 0

    def catch_up(self) -> list[str]:
        done = next(self._told, self._done)
        if done is None:
            raise Unreachable("the broker cannot be reached")
        self._done = done
        return next(self._moved, [])

    def state(self, now: float, *, slots: int) -> RunState:
        return replace(STATE, done=self._done, elapsed_s=now)

    @property
    def is_ended(self) -> bool:
        return self._done == 3


class Onlooker:
    """Somebody who looks on, with a clock that only the pauses turn."""

    def __init__(self) -> None:
        self.now = 0.0
        self.shown: list[int] = []
        self.heard: list[list[str]] = []

    def look_on(self, watch, *, is_closed=lambda: True, timeout_s=None, changed=None) -> None:
        look_on(
            watch,
            is_closed=is_closed,
            slots=1,
            interval_s=2.0,
            timeout_s=timeout_s,
            show=lambda state: self.shown.append(state.done),
            changed=changed or self.heard.append,
            patience_s=10.0,
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def onlooker() -> Onlooker:
    return Onlooker()


def test_looking_on_shows_every_look_until_the_run_has_ended(onlooker):
    onlooker.look_on(Watch(0, 1, 1, 3))

    assert ([0, 1, 1, 3], 6.0) == (onlooker.shown, onlooker.now)


def test_looking_on_ends_only_when_nothing_of_the_run_will_be_sent_again(onlooker):
    """Every job has ended, and then the scheduler finds one missing."""
    closed = iter([False, False, True])

    onlooker.look_on(Watch(3, 3, 2, 3), is_closed=lambda: next(closed))

    assert [3, 3, 2, 3] == onlooker.shown
    assert [] == list(closed)


def test_whether_a_run_is_closed_is_asked_only_once_it_has_ended(onlooker):
    """It costs a question to the broker."""
    asked = []

    onlooker.look_on(Watch(0, 1, 3), is_closed=lambda: not asked.append(onlooker.now))

    assert [4.0] == asked


def test_looking_on_survives_a_broker_that_is_away_for_a_while(onlooker):
    """Five looks of two seconds are within ten; the run goes on meanwhile, and so do we."""
    onlooker.look_on(Watch(0, *[None] * 5, 1, *[None] * 5, 3))

    assert [0, 1, 3] == onlooker.shown


def test_looking_on_ends_when_the_broker_stays_away(onlooker):
    """Longer than the patience since the last answer."""
    with pytest.raises(Unreachable):
        onlooker.look_on(Watch(0, *[None] * 9))

    assert ([0], 12.0) == (onlooker.shown, onlooker.now)


def test_a_broker_that_was_never_there_is_waited_for_as_long(onlooker):
    with pytest.raises(Unreachable):
        onlooker.look_on(Watch(*[None] * 9))

    assert 12.0 == onlooker.now


def test_looking_on_hears_what_moved_at_every_look(onlooker):
    """Also that nothing did: then it is time for a sign of life."""
    onlooker.look_on(Watch(0, 1, 3, moved=[[], ["a"], ["b", "c"]]))

    assert [[], ["a"], ["b", "c"]] == onlooker.heard


def test_what_moved_is_told_again_when_the_broker_goes_away_while_telling(onlooker):
    """A line for a program is late rather than lost."""
    heard, away = [], iter([True])

    def changed(keys: list[str]) -> None:
        if keys and next(away, False):
            raise Unreachable("the broker cannot be reached")
        heard.append(keys)

    onlooker.look_on(Watch(1, 2, 3, moved=[["a"], ["b"], ["c"]]), changed=changed)

    assert [["a", "b"], ["c"]] == heard


@pytest.mark.parametrize("told", [[0], [0, *[None] * 9]])
def test_a_time_out_ends_the_looking_on_with_124_and_not_the_run(onlooker, told):
    """Also while the broker is away."""
    with pytest.raises(TimedOut) as caught:
        onlooker.look_on(Watch(*told), timeout_s=5)

    assert (124, 6.0) == (caught.value.exit_code, onlooker.now)
    assert ("it goes on without us", "`farm watch` comes back to it") == (
        caught.value.why,
        caught.value.hint,
    )


def test_a_run_that_ended_in_time_is_no_time_out(onlooker):
    onlooker.look_on(Watch(3), timeout_s=0)

    assert [3] == onlooker.shown
