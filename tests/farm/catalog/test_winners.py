"""One profile counts for each job, system and repeat set, whatever the order of arrival."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.catalog import winners
from tests.farm import make

RANKED = [
    {"status": "ok"},
    {"status": "ok", "flags": ["drifting"]},
    {"status": "ok", "flags": ["contended"]},
    {"status": "failed"},
    {"status": "pruned"},
    {"status": "infra"},
    {"status": "cancelled"},
]


def ids(found: list[winners.Winner]) -> list[str]:
    return [each.row.profile_id for each in found]


@pytest.mark.parametrize(("made", "rank"), list(zip(RANKED, [0, 0, 1, 2, 2, 3, 3], strict=True)))
def test_rank_follows_the_end_of_the_attempt(made, rank):
    """Good 0, invalid 1, an answer about the job 2, our own trouble 3."""
    assert rank == winners.rank(make.profile(**made))


def test_the_better_end_wins_whatever_came_later():
    """A late failure does not push a good measurement out."""
    good = make.row(make.profile(fence=1))
    late = make.row(make.profile(status="failed", fence=9, attempt=9))

    assert [good.profile_id] == ids(winners.winners([late, good]))


def test_of_equal_ends_the_newest_fence_wins():
    """The newest holder of the lease is the one whose word counts."""
    old, new = make.row(make.profile(fence=1)), make.row(make.profile(fence=2, p50_ms=99.0))

    assert [new.profile_id] == ids(winners.winners([new, old]))


def test_stability_does_not_rank():
    """To take the calmer of two tries would be a bias."""
    calm = make.row(make.profile(fence=1, stability="stable"))
    noisy = make.row(make.profile(fence=2, stability="noisy"))

    assert [noisy.profile_id] == ids(winners.winners([calm, noisy]))


def test_of_one_fence_the_smallest_id_wins():
    """A tie needs a rule that everybody reaches alone."""
    tied = [make.row(make.profile(fence=1, p50_ms=value)) for value in (10.0, 11.0)]

    assert [min(each.profile_id for each in tied)] == ids(winners.winners(tied))


def test_systems_and_repeat_sets_have_winners_of_their_own():
    """Another driver, or another night, is another measurement."""
    rows = [
        make.row(make.profile(fence=1)),
        make.row(make.profile(fence=2, system_id=make.OTHER_SYSTEM)),
        make.row(make.profile(fence=3, repeat_set="n-2026-11-30")),
    ]

    assert {each.profile_id for each in rows} == set(ids(winners.winners(rows)))


def test_attempts_count_profiles_and_not_copies():
    """A row seen twice is one attempt."""
    first, second = make.row(make.profile(fence=1)), make.row(make.profile(fence=2))

    assert [2] == [each.attempts for each in winners.winners([first, second, first])]


profiles = st.builds(
    lambda made, fence, batch, system: make.row(
        make.profile(make.job(batch=batch), fence=fence, system_id=system, **made)
    ),
    st.sampled_from(RANKED),
    st.integers(1, 4),
    st.sampled_from([1, 8]),
    st.sampled_from([make.SYSTEM, make.OTHER_SYSTEM]),
)


@given(
    st.lists(profiles, max_size=12).flatmap(
        lambda rows: st.tuples(st.just(rows), st.permutations(rows))
    )
)
def test_the_order_of_arrival_never_matters(pair):
    """Any order, any copies: the same winners, and the same attempts."""
    rows, shuffled = pair

    assert winners.winners(rows) == winners.winners(shuffled + rows)


@given(st.lists(profiles, max_size=12), profiles)
def test_a_late_profile_changes_nothing_unless_it_ranks_better(rows, late):
    """A profile of an older lease moves the winner only by a better end."""
    before = {_key(each): each.row for each in winners.winners(rows)}

    after = {_key(each): each.row for each in winners.winners([*rows, late])}

    held = before.get(_key_of(late))
    if held is not None and winners.order(held) <= winners.order(late):
        assert before == after


# ── measured ─────────────────────────────────────────────────────────────────────────────────────


def answered(*made, repeats=3, repeat_set=None) -> int:
    rows = [make.row(each) for each in made]
    return len(
        winners.measured(rows, system_ids={make.SYSTEM}, repeats=repeats, repeat_set=repeat_set)
    )


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ({}, 1),
        ({"flags": ["drifting"]}, 1),
        ({"flags": ["contended"]}, 0),
        ({"repeats": 5}, 1),
        ({"repeats": 2}, 0),
        ({"repeat_flags": [["throttled"]]}, 0),
        ({"repeats": 4, "repeat_flags": [["throttled"]]}, 1),
        ({"system_id": make.OTHER_SYSTEM}, 0),
        ({"status": "pruned"}, 1),
        ({"status": "pruned", "system_id": make.OTHER_SYSTEM}, 0),
        ({"status": "infra"}, 0),
        ({"status": "cancelled"}, 0),
        ({"status": "failed", "failure": make.fault("oom")}, 1),
        ({"status": "failed", "failure": make.fault("unsupported")}, 1),
        ({"status": "failed", "failure": make.fault("host_oom")}, 0),
        ({"status": "failed", "failure": make.fault("crashed")}, 0),
        ({"status": "failed", "failure": make.fault("timeout")}, 0),
        ({"status": "failed", "failure": make.fault("oom"), "system_id": make.OTHER_SYSTEM}, 0),
    ],
)
def test_measured_is_what_needs_no_second_run_here(made, count):
    """Good with enough usable repeats, or an answer, under a system that is live."""
    assert count == answered(make.profile(**made))


def test_measured_gives_the_profile_that_answers_best():
    """Whoever reuses a job can say by which profile."""
    oom = make.row(make.profile(status="failed", fence=5))
    good = make.row(make.profile(fence=2))

    found = winners.measured([oom, good], system_ids={make.SYSTEM}, repeats=3)

    assert {good.profile.job_id: good} == found


def test_measured_can_ask_for_one_repeat_set():
    """A forced run, or a night, is not answered by an earlier one."""
    assert 1 == answered(make.profile(), repeat_set="base")
    assert 0 == answered(make.profile(), repeat_set="n-2026-11-30")


def _key(winner: winners.Winner) -> tuple[str, str, str]:
    return _key_of(winner.row)


def _key_of(row) -> tuple[str, str, str]:
    return row.profile.job_id, row.profile.system_id, row.profile.repeat_set


def test_a_run_keeps_its_own_answers_whatever_later_runs_find():
    """What a report said once it says for ever: worse than a later one, or older."""
    disturbed = make.row(make.profile(flags=["contended"], run_id="r-1", fence=1))
    better = make.row(make.profile(run_id="r-2", fence=2))
    first = make.manifest([make.job()], run_id="r-1")

    assert [disturbed] == [each.row for each in winners.of_run([better, disturbed], first)]
    assert [better] == [each.row for each in winners.winners([better, disturbed])]


def test_a_run_keeps_what_it_reused():
    reused = make.row(make.profile(run_id="r-0", fence=1))
    newer = make.row(make.profile(run_id="r-2", fence=2))
    link = schema.Reused(
        job_id=make.job().job_id,
        profile_id=reused.profile_id,
        system_id=make.SYSTEM,
        taken_at=make.STARTED,
        environment="",
    )
    run = make.manifest([make.job()], run_id="r-1", reused=[link])

    assert [reused] == [each.row for each in winners.of_run([newer, reused], run)]


def test_a_run_without_an_answer_of_its_own_takes_that_of_another():
    """It was cancelled, or its worker was lost; somebody else measured the job since."""
    lost = make.row(make.profile(status="infra", failure=make.fault("worker_lost"), run_id="r-1"))
    good = make.row(make.profile(run_id="r-2", fence=2))
    run = make.manifest([make.job()], run_id="r-1")

    assert good in [each.row for each in winners.of_run([lost, good], run)]


def test_attempts_are_those_of_the_run():
    rows = [make.row(make.profile(run_id=f"r-{at}", fence=at)) for at in (1, 2, 3)]

    (found,) = winners.of_run(rows, make.manifest([make.job()], run_id="r-2"))

    assert (rows[1], 1) == (found.row, found.attempts)
