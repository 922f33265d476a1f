"""A run followed to its end: what is counted, what is withdrawn, and what is shown meanwhile."""

from collections.abc import Callable, Iterator

import pytest

from farm import schema
from farm.errors import TimedOut
from farm.following import follow
from farm.ledger import Claim, Held, Ledger
from farm.local import Here, _Agents
from farm.store import job_key
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

        follow(
            Here(self.ledger, App(), _Agents(Agent), [make.slot()] if slots is None else slots),
            self.expected,
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
