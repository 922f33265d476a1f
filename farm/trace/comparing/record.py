"""`farm.trace_compare/v1`: how a step after a change stands to one before it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from farm.schema import Stored
from farm.trace.analysis.record import Setting

Verdict = Literal["inconclusive", "incomparable"]
Leaning = Literal["worse", "better", "same", "none"]
Listed = Literal["both", "before", "after"]


class Side(Stored, frozen=True, kw_only=True):
    """One analysis. step: whether its step was taken by itself, or with the profiler beside it.

    trials: how many processes it was put together from. flags: what is to be doubted about it.
    repeats: of a profile that several went into, and whose single times it does not tell.
    """

    name: str
    model: str | None
    mode: str | None
    batch: int | None
    step: Literal["plain", "instrumented"]
    trials: int
    bound: str
    bound_why: str
    flags: list[str]
    repeats: int | UnsetType = UNSET


class Differs(Stored, frozen=True, kw_only=True):
    """A setting that is not the same on both sides."""

    key: str
    before: Setting
    after: Setting


class Rule(Stored, frozen=True, kw_only=True):
    """The rule of the seeds: |difference| of means against twice the combined standard error.

    before_n, after_n: trials; std: their sample standard deviation (ddof 1). false_alarm: how often
    equal sides of these sizes exceed two_se. words: all of that, or that a single run cannot
    support the call, whose numbers are None.
    """

    before_n: int
    after_n: int
    before_std: float | None
    after_std: float | None
    two_se: float | None
    exceeds: bool | None
    false_alarm: float | None
    words: str


class Row(Stored, frozen=True, kw_only=True):
    """A metric; of several trials it is the mean. change: after − before. ratio: after / before.

    better: which way is better; a share such as gpu_util has no such way. call: where the change
    goes, `none` where nothing supports it: counts compare exactly, all else needs the rule.
    rule: absent of a count, and where a side does not tell the metric.
    """

    metric: str
    unit: str
    better: Literal["larger", "smaller", "neither"]
    exact: bool
    before: float | None
    after: float | None
    change: float | None
    ratio: float | None
    call: Leaning
    rule: Rule | UnsetType = UNSET


class Lean(Stored, frozen=True, kw_only=True):
    """Welch's comparison of the logarithms of the trials of one metric.

    ratio: of geometric means, after / before, with its 95 % interval; p: two-sided; df: by Welch
    and Satterthwaite. A side of one trial has a ratio and no more.
    """

    metric: str
    ratio: float | None
    ratio_lo: float | None
    ratio_hi: float | None
    p: float | None
    df: float | None


class CategoryChange(Stored, frozen=True, kw_only=True):
    """Kernel time of a category, ms per step; 0 where none of its kernels ran."""

    name: str
    before_ms: float
    after_ms: float
    change_ms: float
    ratio: float | None


class KernelChange(Stored, frozen=True, kw_only=True):
    """Kernels whose names are the same but for their digits, per step.

    kernel: the name with a `#` for each run of digits; names: how many it stands for. listed: by
    which side. The other has 0, or None where its list was cut, so that nobody knows.
    """

    kernel: str
    names: int
    category: str
    listed: Listed
    before_ms: float | None
    after_ms: float | None
    change_ms: float | None
    ratio: float | None
    before_count: float | None
    after_count: float | None
    change_count: float | None


class TraceComparison(
    Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.trace_compare/v1"
):
    """After against before. Neither was measured in turns with the other, so no verdict follows.

    verdict: `incomparable` for the reasons, else `inconclusive`. leaning: where `lean` points.
    differs: settings that are not the same; unknown: those that only one side tells. confounded:
    more than one differs, so that no change can be put down to one of them. warnings: what to know
    before reading on. rows: the first one leads. headline: the metric whose rule and `lean` are to
    be read first; both are absent where no time is known of both sides. categories, kernels: the
    largest change first; empty where a side has no kernel, and of several trials those of one.
    """

    before: Side
    after: Side
    verdict: Verdict
    reasons: list[str]
    leaning: Leaning
    differs: list[Differs]
    unknown: list[str]
    confounded: bool
    warnings: list[str]
    rows: list[Row]
    categories: list[CategoryChange]
    kernels: list[KernelChange]
    null_reasons: dict[str, str]
    headline: str | UnsetType = UNSET
    lean: Lean | UnsetType = UNSET
