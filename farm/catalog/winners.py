"""Which profile counts where several attempts left one, and which jobs need no measuring.

Pure functions over rows. The order in which profiles arrived never matters: a spool that empties
a week late, a rebuilt catalogue and a fresh listing give the same winners.
"""

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from farm import schema
from farm.catalog.rows import Row

# Answers that hold for as long as the job and the system do. Out of host memory is none of them:
# the limit that it ran into is effort, or was what the machine had free.
_LASTING: Final = schema.ANSWERS - {"host_oom"}


# How good an end is (`store-and-reports.md` §4.2).
GOOD, INVALID, WITHOUT_FIGURE, WITHOUT_ANSWER = range(4)


class Winner(NamedTuple):
    """The profile that counts for a job, a system and a repeat set; attempts: how many it beat,
    itself included."""

    row: Row
    attempts: int


def rank(profile: schema.Profile) -> int:
    """Return how good an end this is: GOOD best, WITHOUT_ANSWER worst.

    Stability does not rank: to take the calmer of two tries would be a bias.
    """
    if profile.status == "ok":
        return INVALID if _validity(profile) == "invalid" else GOOD
    return WITHOUT_FIGURE if profile.status in ("failed", "pruned") else WITHOUT_ANSWER


def order(row: Row) -> tuple[int, int, str]:
    """Return the key by which the winner comes first: rank, newest fence, smallest id."""
    return rank(row.profile), -row.profile.fence, row.profile_id


def winners(rows: Iterable[Row]) -> list[Winner]:
    """Return one winner per job, system and repeat set, sorted by these three.

    The same profile given twice counts once.
    """
    groups: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        key = (row.profile.job_id, row.profile.system_id, row.profile.repeat_set)
        groups.setdefault(key, {})[row.profile_id] = row
    return [
        Winner(min(groups[key].values(), key=order), len(groups[key])) for key in sorted(groups)
    ]


def of_run(rows: Iterable[Row], expected: schema.Manifest) -> list[Winner]:
    """Return the winners as one run sees them, whatever later runs do.

    Where it has an answer of its own for a job, or reused one, no profile of another run takes its
    place, be it better: what a run said once it says for ever.
    """
    wanted = {each.job_id for each in expected.jobs}
    reused = {each.profile_id for each in expected.reused}
    held = [row for row in rows if row.profile.job_id in wanted]
    own = [row for row in held if _is_of(row, expected.run_id, reused)]
    settled = {row.profile.job_id for row in own if rank(row.profile) < WITHOUT_ANSWER}
    others = [
        row
        for row in held
        if row.profile.job_id not in settled and not _is_of(row, expected.run_id, reused)
    ]
    return winners([*own, *others])


def measured(
    rows: Iterable[Row],
    *,
    system_ids: Collection[str],
    repeats: int,
    repeat_set: str | None = None,
) -> dict[str, Row]:
    """Return the jobs that need no measuring under one of these systems, each with its answer.

    A job counts when a profile taken under such a system is good with enough usable repeats, or
    says what a person can act on: it does not fit the device, it cannot run there, a smaller batch
    failed.
    repeats: how many are wanted. repeat_set: count this one alone; None counts any.
    """
    best: dict[str, Row] = {}
    for row in rows:
        profile = row.profile
        if profile.system_id not in system_ids or not _answers(profile, repeats):
            continue
        if repeat_set is not None and profile.repeat_set != repeat_set:
            continue
        held = best.get(profile.job_id)
        if held is None or order(row) < order(held):
            best[profile.job_id] = row
    return best


def usable(profile: schema.Profile) -> int:
    """Return how many repeats carry no flag that makes them invalid."""
    return sum(schema.INVALIDATING.isdisjoint(each.flags) for each in profile.repeats)


def _is_of(row: Row, run_id: str, reused: Collection[str]) -> bool:
    return row.profile.run_id == run_id or row.profile_id in reused


def _answers(profile: schema.Profile, repeats: int) -> bool:
    if profile.status == "ok":
        return rank(profile) == GOOD and usable(profile) >= repeats
    if profile.status == "failed":
        failure = profile.failure
        return isinstance(failure, schema.Failure) and failure.kind in _LASTING
    return profile.status == "pruned"


def _validity(profile: schema.Profile) -> schema.Validity:
    quality = profile.quality
    # A good end without a judgement is not trusted: an unknown check never counts as passed.
    return quality.validity if isinstance(quality, schema.Quality) else "invalid"
