"""From what a run expected and what the store holds to one cell for each expected job."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import UNSET

from farm import schema
from farm.catalog import winners
from farm.catalog.winners import Winner
from farm.report import words
from farm.report.figures import figures, reasons_of
from farm.report.record import Axis, Cell, Figures, Origin, State

_SHOWN_ID: Final = 12
_FIRST: Final = ("model", "precision", "batch", "device")


class Scope(NamedTuple):
    """The winners that may answer a run, by job: what it measured or reused comes first.

    simulated: all that was found came from simulated devices. dropped: simulated ones left out
    because real ones are there.
    """

    by_job: dict[str, list[Winner]]
    simulated: bool
    dropped: int


def scope(manifest: schema.Manifest, found: Iterable[Winner]) -> Scope:
    """Return the winners that belong to the run, each job's best first.

    Its own profiles and those it reused belong to it. Where a job has neither, a profile of its
    repeat set counts that another run took since this one began, under a system that this run used
    if it used any: the two runs shared the job, and what came of it. One from before would have
    been reused if it were an answer; and a report does not change when a later run measures the
    same jobs under a newer driver.
    """
    expected = {each.job_id for each in manifest.jobs}
    reused = {each.profile_id for each in manifest.reused}
    ours = [each for each in found if each.row.profile.job_id in expected]
    real = [each for each in ours if not each.row.profile.execution.simulated]
    simulated = bool(ours) and not real
    kept = ours if simulated else real
    own = [each for each in kept if _is_own(each, manifest, reused)]
    systems = {each.row.profile.system_id for each in own}
    by_job = _grouped(own)
    shared = [
        each
        for each in kept
        if each.row.profile.job_id not in by_job and _is_shared(each, manifest, systems)
    ]
    return Scope(by_job | _grouped(shared), simulated, 0 if simulated else len(ours) - len(real))


def cells(
    manifest: schema.Manifest, by_job: Mapping[str, Sequence[Winner]], *, now: datetime
) -> tuple[list[Cell], dict[str, str]]:
    """Return a cell per expected job, then per skipped one, and the reasons of their nulls.

    The reasons are keyed by the path that they have in a report.
    """
    reused = {each.profile_id for each in manifest.reused}
    named = names([*manifest.jobs, *manifest.skipped])
    made: list[Cell] = []
    reasons: dict[str, str] = {}
    for job, name in zip(manifest.jobs, named, strict=False):
        found = by_job.get(job.job_id)
        if found:
            cell, nulls = _answered(
                job,
                found[0],
                name=name,
                reused=reused,
                wanted=manifest.effort.repeats,
                now=now,
            )
            reasons |= {f"cells.{len(made)}.figures.{field}": why for field, why in nulls.items()}
        else:
            cell = _missing(job, name=name, run_id=manifest.run_id)
        made.append(cell)
    for each, name in zip(manifest.skipped, named[len(manifest.jobs) :], strict=True):
        made.append(
            Cell(
                state="skipped",
                title=name.title,
                place=name.place,
                labels=each.labels,
                reason=each.reason,
            )
        )
    return made, reasons


def axes(labelled: Sequence[schema.Labelled | schema.Skipped]) -> list[Axis]:
    """Return every label with its values in the order of their first appearance."""
    values: dict[str, dict[str, None]] = {}
    for each in labelled:
        for name, value in each.labels.items():
            values.setdefault(name, {})[value] = None
    order = sorted(values, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    return [Axis(name=name, values=list(values[name])) for name in order]


class Name(NamedTuple):
    """What a job is called: over all, and among the jobs of its model."""

    title: str
    place: str


def names(labelled: Sequence[schema.Labelled | schema.Skipped]) -> list[Name]:
    """Return words for each job: its model, then what varies, as in `vit_tiny fp16 b8`.

    Two jobs that the labels do not tell apart get a number.
    """
    varied = [each.name for each in axes(labelled) if len(each.values) > 1 and each.name != "model"]
    seen: dict[tuple[str, str], int] = {}
    made = []
    for each in labelled:
        model = each.labels.get("model", "job")
        place = " ".join(short(name, each.labels[name]) for name in varied if name in each.labels)
        seen[model, place] = seen.get((model, place), 0) + 1
        if seen[model, place] > 1:
            place = f"{place} #{seen[model, place]}".strip()
        made.append(Name(f"{model} {place}".strip(), place))
    return made


def short(axis: str, value: str) -> str:
    """Return a value as it reads beside others: a batch of 8 is `b8`."""
    return f"b{value}" if axis == "batch" else value


def _is_own(winner: Winner, manifest: schema.Manifest, reused: set[str]) -> bool:
    return winner.row.profile.run_id == manifest.run_id or winner.row.profile_id in reused


def _is_shared(winner: Winner, manifest: schema.Manifest, systems: set[str]) -> bool:
    profile = winner.row.profile
    if profile.repeat_set != manifest.repeat_set:
        return False
    if winners.rank(profile) == winners.WITHOUT_ANSWER:
        return False
    if profile.execution.finished_at < manifest.submitted_at:
        return False
    return profile.system_id in systems if systems else True


def _grouped(found: Iterable[Winner]) -> dict[str, list[Winner]]:
    groups: dict[str, list[Winner]] = {}
    for each in sorted(found, key=lambda winner: winners.order(winner.row)):
        groups.setdefault(each.row.profile.job_id, []).append(each)
    return groups


def _answered(
    job: schema.Labelled,
    winner: Winner,
    *,
    name: Name,
    reused: set[str],
    wanted: int,
    now: datetime,
) -> tuple[Cell, dict[str, str]]:
    profile = winner.row.profile
    known = profile.failure if isinstance(profile.failure, schema.Failure) else UNSET
    origin = _origin(winner, reused=winner.row.profile_id in reused, now=now)
    look = f"farm profiles show {winner.row.profile_id[:_SHOWN_ID]}"
    measured = figures(profile, wanted=wanted)
    cell = Cell(
        state=_state(profile, measured),
        title=name.title,
        place=name.place,
        labels=job.labels,
        reason=_why(profile, measured),
        command=look,
        job_id=job.job_id,
        figures=UNSET if measured is None else measured,
        failure=known,
        origin=origin,
    )
    return cell, {} if measured is None else reasons_of(profile, measured)


def _missing(job: schema.Labelled, *, name: Name, run_id: str) -> Cell:
    return Cell(
        state="missing",
        title=name.title,
        place=name.place,
        labels=job.labels,
        reason="no profile yet",
        command=f"farm resume {run_id}",
        job_id=job.job_id,
    )


def _origin(winner: Winner, *, reused: bool, now: datetime) -> Origin:
    profile = winner.row.profile
    done = profile.execution
    age = _age_s(done.finished_at, now)
    return Origin(
        profile_id=winner.row.profile_id,
        cell_id=profile.cell_id,
        protocol_id=profile.protocol_id,
        system_id=profile.system_id,
        system_class=profile.system_class,
        run_id=profile.run_id,
        node=done.node,
        slot=done.device.slot,
        device=done.device.name,
        taken_at=done.finished_at,
        attempts=winner.attempts,
        reused=reused,
        age_s=UNSET if age is None else age,
    )


def _state(profile: schema.Profile, measured: Figures | None) -> State:
    if profile.status == "failed":
        return "failed"
    if profile.status == "pruned":
        return "pruned"
    if measured is None:  # our own trouble, or somebody's cancel: it is still to be measured
        return "missing"
    return "invalid" if measured.validity == "invalid" else "ok"


def _why(profile: schema.Profile, measured: Figures | None) -> str:
    if measured is not None:
        spoiled = [each for each in measured.flags if each in schema.INVALIDATING]
        unjudged = "nothing judged it" if measured.validity == "invalid" else ""
        return "; ".join(words.flag(each) for each in spoiled) or unjudged
    if not isinstance(profile.failure, schema.Failure):
        return "the profile holds no latency" if profile.status == "ok" else profile.status
    message = " ".join(profile.failure.message.split())
    cause = words.failure(profile.failure.kind)
    if profile.status == "infra":
        return f"{cause}: {message}" if message else cause
    return message or cause


def _age_s(then: str, now: datetime) -> int | None:
    try:
        return max(0, round((now - datetime.fromisoformat(then)).total_seconds()))
    except (ValueError, TypeError):
        return None
