"""A run as the ledger tells it: a snapshot and what followed say what a fresh snapshot would."""

import random
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
import redis

from farm.console import JobLine, RunState
from farm.errors import Unreachable
from farm.ledger import ENDS, Claim, Held, Ledger, Spool
from farm.schema import Job, Labelled
from farm.store import profile_key
from farm.watching import WORDS, Watch
from tests.farm import make
from tests.farm.ledger.moves import OWNER, claim, entry, let_pass, slot

pytestmark = pytest.mark.redis

JOBS = [make.job(batch=each) for each in (1, 2, 3)]
OTHER = "r-other"


@pytest.fixture
def ledger(redis_url: str) -> Iterator[Ledger]:
    made = Ledger(redis_url, ttl_s=2.0)
    made.setup()
    yield made
    made.close()


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    yield client
    client.close()


class Farm:
    """A ledger and a store, and what submitters and slot workers do to them."""

    def __init__(self, ledger: Ledger, store) -> None:
        self.ledger, self.store = ledger, store
        self.jobs = {each.job_id: each for each in JOBS}

    def submit(self, *jobs: Job, run=make.RUN, again=False) -> list[str]:
        self.jobs |= {each.job_id: each for each in jobs}
        wanted = [entry(each.job_id, again=again) for each in jobs or JOBS]
        return self.ledger.submit(run, wanted)

    def end(self, state="DONE", *, cause="ok", put=True, **made) -> str:
        """Claim the next entry and end it with a profile of this kind; return its key."""
        held = claim(self.ledger)
        failed = {"status": "failed", "failure": made.pop("failure", make.fault(cause))}
        given = made | (failed if state == "FAILED" else {})
        profile = make.profile(
            self.jobs[held.key.partition(".")[0]], fence=int(held.fence), **given
        )
        place = profile_key("2026-11-30", profile.job_id, make.row(profile).profile_id)
        if put:
            make.put(self.store, profile)
        self.ledger.finish(held, state=state, cause=cause, profile_key=place)
        return held.key

    def watch(self, *jobs: Job, run=make.RUN, began=0.0, **more) -> Watch:
        expected = make.manifest(jobs or JOBS, run_id=run, **more)
        return Watch(expected, ledger=self.ledger, store=self.store, began=began)


@pytest.fixture
def farm(ledger, store) -> Farm:
    return Farm(ledger, store)


def look(watch: Watch, *, now=0.0, slots=1) -> RunState:
    watch.catch_up()
    return watch.state(now, slots=slots)


def line(watch: Watch, job: Job = JOBS[0]) -> JobLine:
    return watch.moved(f"{job.job_id}.base").line


# ── a snapshot and what followed ─────────────────────────────────────────────────────────────────


RUNS = ("r-0", "r-1", "r-2")
NAMES = [f"e{number}" for number in range(6)]
WANTED = [Labelled(job_id=each, labels={}) for each in NAMES]


def test_a_snapshot_and_what_followed_equal_a_fresh_snapshot(ledger, server, store, seed):
    """Whatever runs that share entries do, and however seldom one looks."""
    play = Play(ledger, server, random.Random(seed))
    watches = {run: watching(run, ledger, store) for run in RUNS}

    for _ in range(300):
        play.step()
        for run, watch in watches.items():
            if play.rng.random() < 0.2:
                changed = watch.catch_up()
                check(watch, run, ledger, store)
                assert set(changed) <= set(ledger.keys(run))


def test_what_waits_for_the_store_is_neither_running_nor_queued(farm):
    """It keeps the device that measured it, and what holds it up is said."""
    farm.submit()
    watch = farm.watch()
    held = claim(farm.ledger)
    watch.catch_up()
    farm.ledger.finish(held, state="UPLOADING", cause="ok", owner="laptop/spool")
    spool = Spool(profiles=1, trouble="the store is not there")
    farm.ledger.node("laptop", state="up", slots=[make.slot()], spool=spool)

    state = look(watch)

    assert (0, 1, len(JOBS) - 1) == (state.running, state.uploading, state.queued)
    assert ("measured profiles wait on node laptop: the store is not there",) == state.notes
    line = watch.moved(held.key).line
    assert ("uploading", "n1", "cpu:0") == (line.state, line.node, line.device)
    fresh = farm.watch().moved(held.key).line
    assert ("n1", "") == (fresh.node, fresh.device)


def watching(run: str, ledger: Ledger, store) -> Watch:
    expected = make.manifest(run_id=run, jobs=WANTED)
    return Watch(expected, ledger=ledger, store=store, began=0.0)


def check(watch: Watch, run: str, ledger: Ledger, store) -> None:
    """A watch says what the ledger has of its run, entry by entry, and what a new one would."""
    records = ledger.entries(run)
    told = Counter(WORDS[each.state] for each in records)
    told["done"] += len(NAMES) - len(records)
    assert dict(+told) == {word: many for word, many in watch.counts().items() if many}
    assert all(each.state in ENDS for each in records) == watch.is_ended
    fresh = watching(run, ledger, store)
    assert fresh.counts() == watch.counts()
    assert [fresh.moved(each.key).line.state for each in records] == [
        watch.moved(each.key).line.state for each in records
    ]
    assert counted(fresh.state(0.0, slots=1)) == counted(watch.state(0.0, slots=1))


def counted(state: RunState) -> tuple[object, ...]:
    moving = state.running, state.uploading, state.queued
    return state.done, state.failed, *moving, state.cancelled, state.answers


class Play:
    """Random moves of submitters, slot workers and clocks."""

    def __init__(self, ledger: Ledger, server: redis.Redis, rng: random.Random) -> None:
        self.ledger, self.server, self.rng = ledger, server, rng
        self.hands: list[Claim] = []

    def step(self) -> None:
        moves = [self.submit, self.claim, self.claim, self.finish, self.finish, self.cancel]
        self.rng.choice([*moves, *moves, self.release, self.wait, self.trim])()

    def submit(self) -> None:
        names = self.rng.sample(NAMES, self.rng.randrange(1, 4))
        self.ledger.submit(self.rng.choice(RUNS), [entry(each, again=True) for each in names])

    def claim(self) -> None:
        found = self.ledger.claim(slot(), owner=OWNER)
        if isinstance(found, Claim):
            self.hands.append(found)

    def finish(self) -> None:
        if self.hands:
            held = self.hands.pop(self.rng.randrange(len(self.hands)))
            state, cause = self.rng.choice(
                [
                    ("DONE", "ok"),
                    ("FAILED", "timeout"),
                    ("FAILED", "oom"),
                    ("RETRY", "store"),
                    ("CANCELLED", "cancelled"),
                ]
            )
            self.ledger.finish(held, state=state, cause=cause)

    def cancel(self) -> None:
        keys = [f"{each}.base" for each in self.rng.sample(NAMES, 2)]
        self.ledger.cancel(self.rng.choice(RUNS), keys, running=self.rng.random() < 0.5)

    def release(self) -> None:
        self.ledger.release(OWNER, cause="worker_lost", counted=True)

    def wait(self) -> None:
        let_pass(self.server, self.rng.choice([1, 3, 400]))
        self.ledger.tick()

    def trim(self) -> None:
        self.server.xtrim("farm:ev", maxlen=self.rng.randrange(5), approximate=False)


def test_every_change_is_told_in_order_and_in_one_look(farm):
    """The next look at a farm at rest has nothing to tell."""
    farm.submit()
    watch = farm.watch()
    assert [] == watch.catch_up()

    first, second = farm.end(), claim(farm.ledger).key

    assert [first, first, second] == watch.catch_up()
    assert [] == watch.catch_up()


def test_what_a_look_costs_does_not_depend_on_how_long_the_run_is(farm, server):
    """Fifty jobs or five hundred: while nothing happens the same few commands are sent."""

    def commands() -> int:
        told = server.info("commandstats")
        return sum(each["calls"] for name, each in told.items() if name != "cmdstat_info")

    costs = []
    for run, many in (("r-short", 50), ("r-long", 500)):
        jobs = [make.job(f"{run}-{number}") for number in range(many)]
        farm.submit(*jobs, run=run)
        watch = farm.watch(*jobs, run=run)
        for _ in range(45):
            farm.end(put=False)
        held = [claim(farm.ledger) for _ in range(3)]
        look(watch)
        before = commands()
        state = look(watch)
        costs.append(commands() - before)
        farm.ledger.cancel(run, farm.ledger.keys(run), running=False)
        for each in held:
            farm.ledger.finish(each, state="DONE", cause="ok")
        assert (45, 3, many - 48) == (state.done, state.running, state.queued)

    assert costs[0] == costs[1]
    assert 0 < costs[0] < 20


def test_events_that_were_trimmed_make_a_new_snapshot(farm, server):
    """And what is told is what has changed, not the whole run."""
    farm.submit()
    watch = farm.watch()
    done = farm.end(p50_ms=7.0)
    server.xtrim("farm:ev", maxlen=0, approximate=False)

    assert [done] == watch.catch_up()
    assert (1, 2) == (watch.counts()["done"], watch.counts()["queued"])
    assert ("done", 7.0) == (line(watch).state, line(watch).p50_ms)


def test_a_job_that_was_measured_anew_behind_trimmed_events_shows_its_new_figure(farm, server):
    """It is as done as before, so no counter tells."""
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end(p50_ms=2.5)
    look(watch)
    farm.submit(JOBS[0], again=True)
    farm.end(p50_ms=9.0)
    server.xtrim("farm:ev", maxlen=0, approximate=False)

    assert 9.0 == look(watch).lines[0].p50_ms


def test_a_ledger_that_lost_everything_leaves_nothing_to_watch(farm, server):
    """Whoever watches is told by the store then; what was lost is not called done."""
    farm.submit()
    watch = farm.watch()
    farm.end()
    look(watch)
    server.flushall()

    assert (0, ()) == (look(watch).done, look(watch).lines)
    assert not watch.is_known


class Stumbling(Ledger):
    """A ledger whose broker goes away before some answers."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.fails_in = ""

    def _stumble(self, name: str) -> None:
        if self.fails_in == name:
            self.fails_in = ""
            raise Unreachable("the broker cannot be reached")

    def entries(self, run):
        self._stumble("entries")
        return super().entries(run)

    def counts(self, run):
        self._stumble("counts")
        return super().counts(run)


def test_a_broker_that_goes_away_in_the_middle_loses_no_change(redis_url, store):
    """What was found before it went is told when it is back."""
    ledger = Stumbling(redis_url)
    farm = Farm(ledger, store)
    farm.submit()
    watch = farm.watch()
    done = farm.end()
    ledger.fails_in = "counts"

    with pytest.raises(Unreachable):
        watch.catch_up()

    assert {done} == set(watch.catch_up())
    assert [] == watch.catch_up()
    ledger.close()


def test_a_broker_that_goes_away_during_a_snapshot_does_not_end_the_run(redis_url, store):
    """What was known stands until the new snapshot is complete."""
    ledger = Stumbling(redis_url)
    farm = Farm(ledger, store)
    farm.submit()
    farm.end()
    watch = farm.watch()
    farm.submit(JOBS[0], again=True)  # what ended and moves again needs a new snapshot
    ledger.fails_in = "entries"

    with pytest.raises(Unreachable):
        watch.catch_up()

    assert (1, 2, False) == (watch.counts()["done"], watch.counts()["queued"], watch.is_ended)
    assert [f"{JOBS[0].job_id}.base"] == watch.catch_up()
    assert 3 == watch.counts()["queued"]
    ledger.close()


# ── runs that share jobs ─────────────────────────────────────────────────────────────────────────


def test_an_entry_of_another_run_does_not_show(farm):
    """Neither another job nor the same one in another repeat set."""
    farm.submit()
    watch = farm.watch()
    farm.ledger.submit(
        OTHER, [msgspec.structs.replace(entry("x"), key=f"{JOBS[0].job_id}.{OTHER}")]
    )
    farm.submit(make.job("cnn"), run=OTHER)
    farm.ledger.cancel(OTHER, farm.ledger.keys(OTHER), running=False)

    assert [] == watch.catch_up()
    assert (3, 0) == (watch.counts()["queued"], watch.counts()["cancelled"])


def test_what_two_runs_want_shows_in_both(farm):
    farm.submit()
    assert ["shared"] * 3 == farm.submit(run=OTHER)
    watches = [farm.watch(), farm.watch(run=OTHER)]

    farm.end()

    assert [1, 1] == [look(each).done for each in watches]


def test_another_run_that_lets_go_does_not_show(farm):
    """It is for that run alone."""
    farm.submit(JOBS[0])
    farm.submit(JOBS[0], run=OTHER)
    watch = farm.watch(JOBS[0])

    farm.ledger.cancel(OTHER, farm.ledger.keys(OTHER), running=False)

    assert [] == watch.catch_up()
    assert "queued" == line(watch).state


def test_a_figure_stays_when_another_run_measures_the_job_anew(farm):
    """Also for who begins to watch afterwards: it is the figure that this run got."""
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end(p50_ms=2.5)
    farm.submit(JOBS[0], run=OTHER, again=True)
    farm.end(p50_ms=9.0)

    watch.catch_up()

    late = farm.watch(JOBS[0])
    assert [2.5] * 3 == [
        line(watch).p50_ms,
        line(late).p50_ms,
        late.state(0.0, slots=1).lines[0].p50_ms,
    ]


def test_another_runs_retry_does_not_show(farm):
    """A job that ended for both is tried again by one: the other keeps what it had."""
    farm.submit(JOBS[0])
    farm.submit(JOBS[0], run=OTHER)
    watch = farm.watch(JOBS[0])
    farm.end("FAILED", cause="timeout", failure=make.fault("timeout", message="no end in 60 s"))
    assert 1 == look(watch).failed

    farm.submit(JOBS[0], run=OTHER, again=True)
    between = look(watch)
    farm.end(p50_ms=3.0)
    after = look(watch)

    assert (1, 0) == (between.failed, between.queued)
    assert (1, 0) == (after.failed, after.done)
    assert ("failed", None, "no end in 60 s") == after.lines[0][3:]


def test_a_job_that_we_let_go_of_is_cancelled_though_it_goes_on(farm):
    farm.submit(JOBS[0])
    farm.submit(JOBS[0], run=OTHER)
    watch = farm.watch(JOBS[0])

    assert ["shared"] == farm.ledger.cancel(make.RUN, farm.ledger.keys(make.RUN), running=False)
    states = [look(watch)]
    farm.end()
    states.append(look(watch))

    assert [(1, 0), (1, 0)] == [(each.cancelled, each.done) for each in states]
    assert watch.is_ended


def test_a_job_under_way_that_we_join_shows_at_once(farm):
    """Joining moves nothing, so no event tells of it."""
    farm.submit(JOBS[0])
    watch = farm.watch()
    farm.submit(JOBS[1], run=OTHER)
    claim(farm.ledger)
    claim(farm.ledger)
    assert 1 == look(watch).running

    assert ["shared"] == farm.submit(JOBS[1])

    assert 2 == look(watch).running


# ── what a state holds ───────────────────────────────────────────────────────────────────────────


def test_jobs_that_the_ledger_does_not_hold_are_done(farm):
    """They were answered before."""
    farm.submit(JOBS[2])

    state = look(farm.watch())

    assert (3, 2, 1) == (state.total, state.done, state.queued)


def test_the_counts_name_every_state(farm):
    assert {word: 0 for word in WORDS.values()} | {"done": 3} == farm.watch().counts()


def test_what_waits_for_another_try_is_queued(farm, server):
    """A back-off is no end."""
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    for _ in range(2):
        farm.ledger.finish(claim(farm.ledger), state="RETRY", cause="store")

    assert (1, 0) == (look(watch).queued, look(watch).failed)
    assert "waiting" == line(watch).state
    assert not watch.is_ended


def test_a_job_that_was_given_up_has_failed(farm, server):
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    while not watch.is_ended:
        farm.ledger.finish(claim(farm.ledger), state="RETRY", cause="worker_lost")
        let_pass(server, 400)
        farm.ledger.tick()
        watch.catch_up()

    assert 1 == look(watch).failed
    assert ("dead", "its worker was lost") == (line(watch).state, line(watch).note)


@pytest.mark.parametrize(
    ("causes", "answers", "failed"),
    [
        (["oom"], (("out of memory", 1),), 0),
        (["oom", "host_oom"], (("out of memory", 2),), 0),
        (["unsupported", "oom"], (("not supported there", 1), ("out of memory", 1)), 0),
        (["timeout"], (), 1),
        (["timeout", "oom", "model_error"], (("out of memory", 1),), 2),
    ],
)
def test_an_answer_is_no_failure(farm, causes, answers, failed):
    """What does not fit or cannot run there is what somebody wanted to know."""
    farm.submit(*JOBS[: len(causes)])
    watch = farm.watch(*JOBS[: len(causes)])
    for each in causes:
        farm.end("FAILED", cause=each)

    state = look(watch)

    assert (answers, failed, 0) == (state.answers, state.failed, state.done)
    shown = {each.state for each in state.lines}
    assert {word for word, _ in answers} | {"failed"} >= shown
    assert bool(failed) == ("failed" in shown)


# ── the time left ────────────────────────────────────────────────────────────────────────────────


def took(server: redis.Redis, *seconds: float) -> None:
    """Let the entries that ended have taken so long."""
    for job, each in zip(JOBS, seconds, strict=False):
        server.hset(
            f"farm:j:{job.job_id}.base", mapping={"started": 1000, "changed": 1000 * (1 + each)}
        )


def test_the_time_left_is_a_median_shared_by_the_slots(farm, server):
    """One job that hung for an hour does not make the rest look like hours."""
    four = make.job(batch=4), make.job(batch=8)
    farm.submit(*JOBS, *four)
    for _ in JOBS:
        farm.end()
    took(server, 2, 3600, 10)
    watch = farm.watch(*JOBS, *four)

    assert [20.0, 10.0, 20.0] == [watch.state(0.0, slots=each).left_s for each in (1, 2, 0)]


def test_what_ends_while_we_watch_counts_for_the_time_left(farm):
    """Both clocks are the server's, so an hour is not a minute."""
    farm.submit()
    watch = farm.watch()
    farm.end()

    left = look(watch).left_s

    assert left is not None
    assert 0 <= left < 60


def test_there_is_no_time_left_to_tell_before_the_first_end_and_after_the_last(farm):
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    before = look(watch).left_s
    farm.end()

    assert (None, None) == (before, look(watch).left_s)


def test_the_elapsed_time_is_that_since_the_submission(farm):
    farm.submit()

    assert 12.5 == farm.watch(began=-10.0).state(2.5, slots=1).elapsed_s


# ── the jobs on the screen ───────────────────────────────────────────────────────────────────────


def test_a_job_that_ended_shows_where_it_was_and_its_figure(farm):
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end(p50_ms=2.5, flags=["drifting"])
    watch.catch_up()

    moved = watch.moved(f"{JOBS[0].job_id}.base")

    assert (JOBS[0].job_id, "mlp/fp32/b1/cpu") == (moved.job_id, moved.label)
    assert (
        JobLine(
            node="n1",
            device="cpu:0",
            label="mlp/fp32/b1/cpu",
            state="done",
            p50_ms=2.5,
            note="the times drifted by more than 2 %",
        )
        == moved.line
    )


def test_a_resubmitted_job_shows_its_new_figure(farm):
    """And nothing of the old one while it is queued again."""
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end(p50_ms=2.5)
    shown = [look(watch).lines]
    farm.submit(JOBS[0], again=True)
    shown.append(look(watch).lines)
    farm.end(p50_ms=9.0)
    shown.append(look(watch).lines)

    assert [[2.5], [], [9.0]] == [[each.p50_ms for each in lines] for lines in shown]


def test_a_failure_says_in_one_line_what_happened(farm):
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end("FAILED", cause="crashed", failure=make.fault("crashed", message="signal 11\n  core"))

    (shown,) = look(watch).lines

    assert ("failed", "signal 11 core") == (shown.state, shown.note)


def test_a_profile_that_is_gone_is_said_and_stops_nothing(farm):
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    farm.end(put=False)

    (shown,) = look(watch).lines

    assert ("done", None) == (shown.state, shown.p50_ms)
    assert shown.note.startswith("unreadable: ")


def test_a_running_job_shows_its_phase_and_a_queued_one_none(farm):
    """Also one that is tried again: its old progress is none."""
    farm.submit(JOBS[0])
    watch = farm.watch(JOBS[0])
    held = claim(farm.ledger)
    told = '{"repeat": 2, "phase": "latency", "iterations": 9}'
    farm.ledger.beat([Held(key=held.key, fence=held.fence, progress=told)])
    (running,) = look(watch).lines

    farm.ledger.finish(held, state="RETRY", cause="released", counted=False)
    again = look(watch)

    assert ("measuring", "n1", "cpu:0", "latency, repeat 2 of 3") == (
        running.state,
        running.node,
        running.device,
        running.note,
    )
    assert ((), "queued", "") == (again.lines, line(watch).state, line(watch).note)


def test_the_lines_are_the_jobs_under_way_then_the_last_that_ended(farm):
    """As many as a screen may hold; what ended long ago is in the report."""
    jobs = [make.job(batch=each) for each in range(1, 61)]
    farm.submit(*jobs)
    watch = farm.watch(*jobs)
    ended = [farm.end(put=False) for _ in range(50)]
    held = claim(farm.ledger)

    lines = look(watch).lines

    labels = {f"{each.job_id}.base": f"mlp/fp32/b{each.workload.batch}/cpu" for each in jobs}
    assert [labels[each] for each in (held.key, *reversed(ended[-40:]))] == [
        each.label for each in lines
    ]
