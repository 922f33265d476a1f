"""What a command is about to ask: the jobs of all its sweeps, each once, and their files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from farm import identity, reading
from farm.archive import Files
from farm.errors import Refused
from farm.models import ModelRow
from farm.schema import Effort, Job, Skipped
from farm.sweep import axes
from farm.sweep.files import Sweep
from farm.sweep.jobs import Found, jobs
from farm.sweep.question import Question, question


class Planned(Struct, frozen=True, kw_only=True):
    """A job, and the words that a person knows it by: `label_text(labels)`."""

    job: Job
    labels: dict[str, str]


class Plan(Struct, frozen=True, kw_only=True):
    """The jobs of one run in their order, each once.

    skipped: what cannot be asked from here, and why. bundles: digest → files of the code that
    travels. npz: digest → file of input arrays, or its bytes.
    """

    name: str
    source: str
    source_sha256: str
    jobs: list[Planned]
    skipped: list[Skipped]
    effort: Effort
    bundles: dict[str, Files]
    npz: dict[str, Path | bytes]
    tags: dict[str, str]


def expand(
    sweeps: Sequence[Sweep],
    *,
    effort: str = "standard",
    rows: Mapping[str, ModelRow] | None = None,
) -> Plan:
    """Return the plan of the sweeps as one run; effort: the level where a sweep names none.

    Names are joined with `+`, of equal jobs the first stays. Raises Refused for words that make
    no sense, for sweeps that ask for different efforts, and if no job is left.
    """
    questions = [question(each, level=effort, rows=rows) for each in sweeps]
    _check_efforts(questions)
    found = _once([each for asked in questions for each in jobs(asked)])
    if not found:
        asked = any(each.matrix for each in questions)
        why = "exclude takes the whole matrix" if asked else "neither matrix nor include names one"
        raise questions[0].top.refused("no job is left", why=why)
    _check_names(found)
    shown = _shown([each.values for each in found])
    return Plan(
        name="+".join(dict.fromkeys(_name(each) for each in questions)),
        source="+".join(each.top.document.name for each in questions),
        source_sha256=_digest(questions),
        jobs=[
            Planned(job=each.job, labels=_labels(each.values, shown)) for each in found if each.job
        ],
        skipped=[
            Skipped(labels=_labels(each.values, shown), reason=each.reason)
            for each in found
            if not each.job
        ],
        effort=questions[0].measuring.effort,
        bundles={
            each.model.model.digest: each.model.files
            for each in found
            if each.model and each.model.model.bundled
        },
        npz={
            each.given.digest: each.given.source
            for each in found
            if each.given and each.given.source
        },
        tags={key: value for each in questions for key, value in each.tags.items()},
    )


def _once(found: Iterable[Found]) -> list[Found]:
    """Return each job once, and what has none once per combination."""
    first: dict[object, Found] = {}
    for each in found:
        key = each.job.job_id if each.job else tuple(sorted(each.values.items()))
        first.setdefault(key, each)
    return list(first.values())


def _check_efforts(questions: Sequence[Question]) -> None:
    one, *others = questions
    for other in others:
        pairs = zip(
            msgspec.structs.asdict(one.measuring.effort).items(),
            msgspec.structs.asdict(other.measuring.effort).values(),
            strict=True,
        )
        if apart := [
            f"{key} {mine} and {theirs}" for (key, mine), theirs in pairs if mine != theirs
        ]:
            raise other.top.key("measure").refused(
                f"asks for another effort than {one.top.document.name}",
                why=", ".join(apart),
                hint="run them one by one",
            )


def _check_names(found: Iterable[Found]) -> None:
    """Refuse two models of one name: reports and histories know them by nothing else."""
    digests: dict[str, str] = {}
    for each in found:
        if each.model:
            model = each.model.model
            if digests.setdefault(model.name, model.digest) != model.digest:
                raise Refused(
                    f"two models are called {model.name!r}",
                    why="they hold different code, and a report knows them by name",
                    hint="rename one, or run from a folder that holds both",
                )


def _shown(found: list[dict[str, str]]) -> list[str]:
    """Return the axes of a label: the usual ones, and whichever takes more than one value."""
    taken: dict[str, set[str]] = {}
    for values in found:
        for axis, value in values.items():
            taken.setdefault(axis, set()).add(value)
    others = [axis for axis in taken if axis not in axes.LABELLED and len(taken[axis]) > 1]
    return [*axes.LABELLED, *others]


def _labels(values: dict[str, str], shown: list[str]) -> dict[str, str]:
    return {axis: values[axis] for axis in shown if axis in values}


def _name(asked: Question) -> str:
    data = asked.top.document.data
    if data.get("name") is None:
        return Path(asked.top.document.name).stem
    return reading.text(data["name"], asked.top.key("name"), limit=100)


def _digest(questions: Sequence[Question]) -> str:
    """Return the SHA-256 of the one file, or of all files and of what flags set over them."""
    documents = [each.top.document for each in questions]
    if len(documents) == 1 and not documents[0].flags:
        return documents[0].sha256
    parts = [[each.sha256, list(each.flags.values())] for each in documents]
    return identity.content_id(identity.canonical(parts))
