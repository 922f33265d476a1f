"""Which jobs of a run are worth another try, by why they failed."""

from typing import Final

from farm import schema
from farm.catalog import rows, winners
from farm.report import cells
from farm.schema import Failure, Job, Manifest, Profile
from farm.store import Store, job_key

# What a busy or broken machine may cause, and another attempt may not meet. A model that raises, or
# does not fit, does so again.
MAY_PASS: Final = frozenset(
    (
        *("crashed", "device_lost", "environment", "host_oom", "identity_mismatch", "poisoned"),
        *("store", "timeout", "worker_lost"),
    )
)


def worth_it(expected: Manifest, store: Store, *, every: bool) -> list[Job]:
    """Return the jobs of a run that were given up, disturbed, or failed by a cause that may pass.

    every: all that failed. A job without any profile is none of these: it is missing.
    """
    wanted = {each.job_id for each in expected.jobs}
    best = winners.of_run(rows.read(store, job_ids=wanted).rows, expected)
    answers = cells.scope(expected, best).by_job
    chosen = []
    for each in expected.jobs:
        found = answers.get(each.job_id, ())
        if found and _is_worth_it(found[0].row.profile, every=every):
            chosen.append(schema.decode(store.get(job_key(each.job_id)), Job))
    return chosen


def _is_worth_it(profile: Profile, *, every: bool) -> bool:
    if profile.status == "infra" or winners.rank(profile) == winners.INVALID:
        return True  # a neighbour may be gone by now
    failure = profile.failure
    if profile.status != "failed" or not isinstance(failure, Failure):
        return False
    return every or failure.kind in MAY_PASS
