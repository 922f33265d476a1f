"""Which profiles match, and which one is meant: by id, by run and label, by job."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from farm import identity
from farm.catalog import rows, winners
from farm.catalog.rows import Row, Unreadable
from farm.effort import duration_s
from farm.errors import Bad, NoResult, Refused, did_you_mean
from farm.finding import of_label
from farm.report import cells, words
from farm.runs import find_run, moment
from farm.schema import Profile, Quality
from farm.store import Store, profile_ids

_SHORTEST: Final = 6  # digits of an id; fewer are as likely a slip as a reference

# What a profile may be searched by, in words as they stand in a sweep.
KEYS: Final[Mapping[str, Callable[[Profile], str]]] = {
    "model": lambda p: p.job.workload.model.name,
    "precision": lambda p: p.job.workload.precision,
    "batch": lambda p: str(p.job.workload.batch),
    "device": lambda p: p.job.selector.value or p.job.selector.kind,
    "backend": lambda p: p.job.workload.backend,
    "status": lambda p: p.status,
    "validity": lambda p: p.quality.validity if isinstance(p.quality, Quality) else "",
    "run": lambda p: p.run_id,
    "node": lambda p: p.execution.node,
    "system_class": lambda p: p.system_class,
}


class Listed(NamedTuple):
    rows: list[Row]
    unreadable: list[Unreadable]


def listed(
    store: Store,
    wheres: Sequence[str],
    *,
    since: str | None,
    all_attempts: bool,
    now: datetime,
) -> Listed:
    """Return the profiles that match, newest first; losers of an attempt only if asked for.

    wheres: `KEY=VALUE`, all of which must hold; any key that is none of ours is a tag.
    Raises Refused for a word that is no such pair or no duration, and for a key that is neither
    ours nor a tag of any profile.
    """
    wanted = [_pair(each) for each in wheres]
    began = earliest(since, now) if since is not None else None
    found = rows.read(store)
    if found.rows:
        _check_keys([key for key, _ in wanted], found.rows)
    chosen = found.rows if all_attempts else _answers(found.rows)
    kept = [
        row
        for row in chosen
        if all(_field(row.profile, key) == value for key, value in wanted)
        and (began is None or _taken(row.profile) >= began)
    ]
    kept.sort(key=lambda row: (_taken(row.profile), row.profile_id), reverse=True)
    return Listed(kept, found.unreadable)


def _answers(held: Sequence[Row]) -> list[Row]:
    """Return the winners, without attempts that nobody misses: the job has an answer since."""
    best = [each.row for each in winners.winners(held)]
    answered = {
        (row.profile.job_id, row.profile.repeat_set)
        for row in best
        if winners.rank(row.profile) != winners.WITHOUT_ANSWER
    }
    return [
        row
        for row in best
        if winners.rank(row.profile) != winners.WITHOUT_ANSWER
        or (row.profile.job_id, row.profile.repeat_set) not in answered
    ]


def find(store: Store, wanted: str) -> Row:
    """Return the profile of an id, its unique beginning, `RUN/LABEL`, or a job id (its winner).

    Raises Refused if several match, NoResult if none does.
    """
    run, slash, label = wanted.partition("/")
    if slash:
        return _of_label(store, run, label)
    if not re.fullmatch(rf"[0-9a-f]{{{_SHORTEST},64}}", wanted):
        raise Refused(
            f"{wanted!r} is no profile",
            why=f"a profile is an id or at least {_SHORTEST} digits of one, RUN/LABEL, or a job id",
            hint="`farm profiles list` shows them",
        )
    found = rows.read(store)
    by_id: dict[str, Row | Unreadable] = {}
    for row in sorted(found.rows, key=winners.order, reverse=True):
        by_id |= {row.profile_id: row, row.profile.job_id: row}
    for each in found.unreadable:
        by_id.setdefault((profile_ids(each.key) or ("", each.key))[1], each)
    one = by_id[identity.match(wanted, by_id, thing="profile")]
    if isinstance(one, Unreadable):
        raise Bad(f"profile {wanted} cannot be read", why=f"{one.key}: {one.reason}")
    return one


def _of_label(store: Store, run: str, label: str) -> Row:
    named = of_label(find_run(store, run), label)
    expected = named.manifest
    best = winners.of_run(rows.read(store, job_ids={named.job_id}).rows, expected)
    answers = cells.scope(expected, best).by_job
    if named.job_id not in answers:
        hint = f"farm resume {expected.run_id}"
        raise NoResult(f"{named.label} of run {expected.run_id} has no profile yet", hint=hint)
    return answers[named.job_id][0].row


def _pair(word: str) -> tuple[str, str]:
    key, sign, value = word.partition("=")
    if not (key and sign):
        raise Refused(f"{word!r} is not KEY=VALUE", why=f"keys: {', '.join(KEYS)}, or a tag")
    return key, value


def _check_keys(keys: Sequence[str], found: Sequence[Row]) -> None:
    """Refuse a key that no profile can match: it is a slip, and "nothing matches" would hide it."""
    tags = dict.fromkeys(tag for each in found for tag in each.profile.execution.tags)
    known = [*KEYS, *tags]
    for key in keys:
        if key not in known:
            raise Refused(
                f"no profile has a {key!r}",
                why=f"known: {', '.join(KEYS)}; tags: {words.listed(list(tags)) or 'none'}",
                hint=did_you_mean(key, known),
            )


def _field(profile: Profile, key: str) -> str | None:
    return KEYS[key](profile) if key in KEYS else profile.execution.tags.get(key)


def earliest(word: str, now: datetime) -> datetime:
    """Return the moment that `--since 7d` means; raises Refused for a word that is no duration."""
    seconds = duration_s(word)
    if seconds is None:
        raise Refused(f"--since {word!r} is no duration", why="write 90s, 10m, 12h or 7d")
    try:
        return now - timedelta(seconds=seconds)
    except OverflowError:  # before the year 1: since ever
        return datetime.min.replace(tzinfo=UTC)


def _taken(profile: Profile) -> datetime:
    return moment(profile.execution.started_at)
