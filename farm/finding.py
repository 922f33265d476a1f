"""Jobs found by the names that people give them: RUN/LABEL, or an id."""

import re
from typing import Final, NamedTuple

from farm import identity
from farm.errors import NoResult, Refused, did_you_mean
from farm.report import words
from farm.runs import find_run, manifests
from farm.schema import Manifest
from farm.store import Store
from farm.sweep import label_text

_SHORTEST: Final = 6  # digits of an id; fewer are as likely a slip as a reference


class Named(NamedTuple):
    """A job of a run; key: its entry in the ledger."""

    manifest: Manifest
    job_id: str
    label: str

    @property
    def key(self) -> str:
        return f"{self.job_id}.{self.manifest.repeat_set}"


def find_job(store: Store, wanted: str) -> Named:
    """Return the job of RUN/LABEL, or of a job id or its unique beginning in its newest run.

    Raises NoResult if there is none, Refused if several match or the words cannot name one.
    """
    run, slash, label = wanted.partition("/")
    if slash:
        return of_label(find_run(store, run), label)
    if not re.fullmatch(rf"[0-9a-f]{{{_SHORTEST},64}}", wanted):
        raise Refused(
            f"{wanted!r} is no job",
            why=f"a job is RUN/LABEL, or an id or at least {_SHORTEST} digits of one",
            hint="`farm status RUN` lists the jobs of a run",
        )
    newest: dict[str, Named] = {}
    for manifest in manifests(store):
        for each in manifest.jobs:
            newest.setdefault(each.job_id, Named(manifest, each.job_id, label_text(each.labels)))
    return newest[identity.match(wanted, newest, thing="job")]


def of_label(expected: Manifest, label: str) -> Named:
    """Return the job of a run that has this label; raises NoResult with the nearest, Refused if
    the label fits several."""
    every = [Named(expected, each.job_id, label_text(each.labels)) for each in expected.jobs]
    # A label may be written with `-` in place of `/`, as it stands in file names.
    found = [each for each in every if each.label == label] or [
        each for each in every if each.label.replace("/", "-") == label
    ]
    if not found:
        raise NoResult(
            f"run {expected.run_id} has no job {label!r}",
            hint=did_you_mean(
                f"{expected.run_id}/{label}", [f"{expected.run_id}/{e.label}" for e in every]
            )
            or f"`farm status {expected.run_id}` lists its jobs",
        )
    if len(found) > 1:
        raise Refused(
            f"{label!r} is ambiguous in run {expected.run_id}",
            why=f"{len(found)} jobs match: {words.listed([each.job_id for each in found])}",
            hint="name one by its id",
        )
    return found[0]
