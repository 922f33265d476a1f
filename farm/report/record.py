"""The report of a run as one frozen record; every form of it is made from this and nothing else.

Figures carry the names that they have in a profile. A cell without a measurement has none of
them; a figure that could not be had is `null`, with its reason in `null_reasons`.
"""

from collections import Counter
from typing import Literal, NamedTuple, get_args

from msgspec import UNSET, UnsetType

from farm.report import words
from farm.schema import ANSWERS, Effort, Failure, Stability, Stored, Validity

State = Literal["ok", "invalid", "failed", "pruned", "skipped", "missing"]


class Figures(Stored, frozen=True, kw_only=True):
    """What was measured in a cell, and how far it can be trusted.

    p50_half_ms: the larger side of the interval of p50. repeats: usable ones, of repeats_wanted.
    samples: pooled over repeats. flags: names, as in `measurement.md` §8.
    """

    p50_ms: float
    p50_lo_ms: float | None
    p50_hi_ms: float | None
    p50_half_ms: float | None
    p50_reliable: bool
    p90_ms: float
    p90_lo_ms: float | None
    p90_hi_ms: float | None
    p90_reliable: bool
    p99_ms: float
    p99_lo_ms: float | None
    p99_hi_ms: float | None
    p99_reliable: bool
    throughput_items_per_s: float | None
    throughput_lo: float | None
    throughput_hi: float | None
    cpu_rss_peak_bytes: int | None
    proc_cv: float | None
    n: int
    n_eff: int
    of_blocks: int
    repeats: int
    repeats_wanted: int
    item: str
    validity: Validity
    stability: Stability
    flags: list[str]
    neighbours: list[str]


class Origin(Stored, frozen=True, kw_only=True):
    """Where an answer came from: the profile, what it was taken on, and how to come back to it.

    run_id: the run that measured it. reused: it was there before this run began.
    """

    profile_id: str
    cell_id: str
    protocol_id: str
    system_id: str
    system_class: str
    run_id: str
    node: str
    slot: str
    device: str
    taken_at: str
    attempts: int
    reused: bool
    age_s: int | UnsetType = UNSET


class Cell(Stored, frozen=True, kw_only=True):
    """One thing that the run was asked for, and what became of it.

    title: the words that tell it from the other cells. place: the same among the cells of its
    model, "" where there is one. reason: why it is not good, in words. command: to look further.
    """

    state: State
    title: str
    place: str
    labels: dict[str, str]
    reason: str = ""
    command: str = ""
    job_id: str | UnsetType = UNSET
    figures: Figures | UnsetType = UNSET
    failure: Failure | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET

    @property
    def model(self) -> str:
        return self.labels.get("model", "")

    @property
    def mode(self) -> str:
        """What the model did, such as `train`; "" where every cell of the run did the same."""
        return self.labels.get("mode", "")

    @property
    def work(self) -> tuple[str, str]:
        """Model and mode: cells that differ in one of them did other work, and never compete."""
        return self.model, self.mode

    @property
    def is_answer(self) -> bool:
        """Whether it failed in a way that answers the question, such as out of memory."""
        return isinstance(self.failure, Failure) and self.failure.kind in ANSWERS


class Axis(Stored, frozen=True, kw_only=True):
    """One thing that was varied, or held; its values in the order asked."""

    name: str
    values: list[str]


class Answer(Stored, frozen=True, kw_only=True):
    """Which cell of a model in one mode is best, and how surely.

    cell, rivals: positions among the cells; the rivals are those whose interval overlaps.
    value, unit, between: as it is shown, the interval or "". surely: `clear` no interval overlaps,
    `doubted` none does but the cell itself is in doubt, `close` some do, `unknown` an interval is
    not there, `alone` nothing to compare with.
    """

    model: str
    metric: Literal["latency", "throughput"]
    cell: int
    rivals: list[int]
    surely: Literal["clear", "doubted", "close", "unknown", "alone"]
    value: str
    unit: str
    between: str
    certainty: str


class Doubt(Stored, frozen=True, kw_only=True):
    """One thing to distrust, and the cells that it touches."""

    name: str
    effect: Literal["invalid", "degraded"]
    words: str
    cells: list[int]
    because: list[str]


class System(Stored, frozen=True, kw_only=True):
    """One machine as it was: what its card says, in words; an unknown fact is absent."""

    system_id: str
    system_class: str
    cells: int
    facts: dict[str, str]


class Damage(Stored, frozen=True, kw_only=True):
    """A document that could not be read."""

    key: str
    reason: str


class Report(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.report/v1"):
    """A run: what was asked, what was found, and how far to trust it.

    counts: cells by state, each state named. shared: facts that all systems have in common.
    method: how it was measured, in sentences. left_out: what this report does not hold, and why.
    """

    run_id: str
    name: str
    submitted_at: str
    submitted_by: str
    written_at: str
    source: str
    source_sha256: str
    farm_version: str
    tags: dict[str, str]
    effort: Effort
    complete: bool
    simulated: bool
    expected: int
    counts: dict[str, int]
    axes: list[Axis]
    answers: list[Answer]
    doubts: list[Doubt]
    unreadable: list[Damage]
    cells: list[Cell]
    systems: list[System]
    shared: list[str]
    method: list[str]
    left_out: list[str]
    null_reasons: dict[str, str]


class Count(NamedTuple):
    """How many cells ended alike: as a state, or as an answer such as out of memory."""

    state: State | Literal["answer"]
    text: str
    number: int


def tally(report: Report) -> list[Count]:
    """Return what became of the cells, in the order of the states; answers are no failures."""
    answers = Counter(
        words.failure(each.failure.kind)
        for each in report.cells
        if each.state == "failed" and each.is_answer and isinstance(each.failure, Failure)
    )
    counted: list[Count] = []
    for state in get_args(State):
        number = report.counts.get(state, 0)
        if state == "failed":
            number -= answers.total()
        counted += [Count(state, state, number)] if number else []
        if state == "failed":
            counted += [Count("answer", text, many) for text, many in sorted(answers.items())]
    return counted


def bad(report: Report) -> list[Cell]:
    """Return the cells that make a command end with 1 (rule 11 of the decisions).

    Answers are not among them, nor a time-out of a model that never came to an end; a cell that
    our own trouble left without a profile is.
    """
    ended = {each.model for each in report.cells if each.state in ("ok", "invalid")}
    return [
        each
        for each in report.cells
        if isinstance(each.failure, Failure)
        and not each.is_answer
        and each.state != "pruned"
        and (each.failure.kind != "timeout" or each.model in ended)
    ]
