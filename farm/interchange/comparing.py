"""Two callable JSONs side by side: a ratio always, and what it is worth."""

from typing import Final, Literal

import msgspec

from farm.interchange.document import CallableProfile
from farm.stats.unpaired import log_moments, moments, two_se, welch_log

Verdict = Literal["inconclusive", "incomparable"]
Leaning = Literal["worse", "better", "same", "none"]

_SINGLE: Final = "a single run cannot support the call"
_UNPAIRED: Final = "the sides were not measured as pairs"


class Comparison(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="farm.callable_comparison/v1",
):
    """Head against base, by the median latency.

    ratio: head / base, with its 95 % interval where both sides have two runs or more. reasons: why
    they cannot be compared, or why there is no verdict. difference_ms, two_se_ms: means of process
    medians apart, and twice their combined standard error, deviations with ddof 1; false_alarm:
    how often equal sides of these sizes exceed it. A null has its reason in null_reasons.
    """

    base: str
    head: str
    verdict: Verdict
    reasons: list[str]
    leaning: Leaning
    base_p50_ms: float
    head_p50_ms: float
    base_runs: int
    head_runs: int
    ratio: float
    ratio_lo: float | None
    ratio_hi: float | None
    difference_ms: float
    two_se_ms: float | None
    exceeds: bool | None
    false_alarm: float | None
    rule: str
    null_reasons: dict[str, str]


def compare_callables(base: CallableProfile, head: CallableProfile) -> Comparison:
    """Return how head stands to base; neither was measured as a pair, so there is no verdict.

    Different inputs, CUDA visibility, protocol or device, and a side that is invalid, make them
    incomparable: the ratio is given all the same (S1.20, S1.42, S4.86–S4.89).
    """
    before, after = base.latency_detail.process_p50_ms, head.latency_detail.process_p50_ms
    apart = _apart(base, head)
    rule = two_se(moments(before), moments(after))
    lean = welch_log(log_moments(before), log_moments(after))
    single = min(len(before), len(after)) < 2
    fields = {
        "ratio_lo": lean.lo,
        "ratio_hi": lean.hi,
        "two_se_ms": rule.bound,
        "exceeds": rule.exceeds,
        "false_alarm": rule.false_alarm,
    }
    return Comparison(
        base=base.model_callable,
        head=head.model_callable,
        verdict="incomparable" if apart else "inconclusive",
        reasons=apart or [_SINGLE if single else _UNPAIRED],
        leaning="none" if apart else lean.leaning,
        base_p50_ms=base.latency.p50_ms,
        head_p50_ms=head.latency.p50_ms,
        base_runs=len(before),
        head_runs=len(after),
        ratio=head.latency.p50_ms / base.latency.p50_ms,
        difference_ms=rule.difference,
        rule=_words(rule.difference, rule.bound, rule.exceeds, rule.false_alarm),
        null_reasons={name: "single_repeat" for name, value in fields.items() if value is None},
        **fields,  # type: ignore[arg-type]
    )


def _words(
    difference: float, bound: float | None, exceeds: bool | None, false_alarm: float | None
) -> str:
    """Return the rule of the seeds with its numbers, in one sentence."""
    if bound is None or false_alarm is None:
        return _SINGLE
    sign = ">" if exceeds else "≤"
    return (
        f"|{difference:+.4g}| ms {sign} 2 SE = {bound:.4g} ms; "
        f"equal sides exceed it in {100 * false_alarm:.1f} % of comparisons"
    )


def _apart(base: CallableProfile, head: CallableProfile) -> list[str]:
    """Return what makes the two incomparable, each as one phrase."""
    found = []
    if base.inputs_sha256 is None or head.inputs_sha256 is None:
        if base.inputs != head.inputs:
            found.append("different inputs")
    elif base.inputs_sha256 != head.inputs_sha256:
        found.append("different inputs, by their SHA-256")
    pairs = {
        "devices": (_kind(base.device), _kind(head.device)),
        "visible CUDA devices": (
            base.provenance.visible_devices,
            head.provenance.visible_devices,
        ),
        "warm-up": (base.warmup_calls, head.warmup_calls),
        "numbers of timed calls": (_calls(base), _calls(head)),
        "units": (base.unit, head.unit),
    }
    found += [f"different {what}: {a} and {b}" for what, (a, b) in pairs.items() if a != b]
    for side, document in (("base", base), ("head", head)):
        if document.latency_detail.validity == "invalid":
            found.append(f"{side} is invalid: {', '.join(document.flags)}")
    return found


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _calls(document: CallableProfile) -> int:
    """Return the timed calls of one process: more processes are more effort, no other protocol."""
    return document.latency_detail.n // max(1, len(document.latency_detail.process_p50_ms))
