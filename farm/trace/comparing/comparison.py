"""Two analyses as one document; they were not measured in turns, so it only leans."""

from typing import Final, NamedTuple

from msgspec import UNSET, UnsetType, structs, to_builtins

from farm.schema import null_paths
from farm.trace.analysis.record import Analysis
from farm.trace.comparing import figures, guarding, kernels
from farm.trace.comparing.figures import PER_ITEM, figure
from farm.trace.comparing.leaning import batches, headline, leaning, points_apart
from farm.trace.comparing.record import Lean, Leaning, Row, Side, TraceComparison
from farm.trace.comparing.rows import rows

UNPAIRED: Final = "unpaired"


class Named(NamedTuple):
    """An analysis by the name that a person gave it."""

    name: str
    analysis: Analysis


def compare(before: Named, after: Named) -> TraceComparison:
    """Return how the second stands to the first, row by row, with the reason of every null.

    There is no verdict but `inconclusive` and `incomparable`; source: `traces.md` §9.
    """
    one, other = before.analysis, after.analysis
    apart, differs = guarding.apart(one, other), guarding.differing(one, other)
    lean: Lean | UnsetType = UNSET
    towards: Leaning = "none"
    if (lead := headline(one, other)) is not None:
        lean, towards = leaning(lead, one, other)
    found = TraceComparison(
        before=_side(before),
        after=_side(after),
        verdict="incomparable" if apart else "inconclusive",
        reasons=apart or [UNPAIRED],
        leaning="none" if apart or points_apart(one, other) else towards,
        differs=differs,
        unknown=guarding.unknown(one, other),
        confounded=len(differs) > 1,
        warnings=_warnings(one, other, [each.key for each in differs]),
        rows=_led(rows(one, other, comparable=not apart), one, other),
        categories=kernels.by_category(one, other),
        kernels=kernels.by_name(one, other),
        null_reasons={},
        headline=UNSET if lead is None else lead.name,
        lean=lean,
    )
    paths = null_paths(to_builtins(found))
    reasons = {each: _reason(each, found, one, other) for each in paths}
    return structs.replace(found, null_reasons=reasons)


def _side(named: Named) -> Side:
    found = named.analysis
    return Side(
        name=named.name,
        model=found.model,
        mode=found.mode,
        batch=figures.batch(found),
        step="plain" if guarding.is_plain(found) else "instrumented",
        trials=figures.count(found),
        bound=found.bound,
        bound_why=found.bound_why,
        flags=found.quality.flags,
        repeats=_repeats(found),
    )


def _repeats(found: Analysis) -> int | UnsetType:
    """Return the repeats inside a profile that does not tell one from the other."""
    told = found.config.get("repeats")
    apart = found.spread is not UNSET or isinstance(told, bool)
    return UNSET if apart or not isinstance(told, int) or told < 2 else told


def _led(made: list[Row], before: Analysis, after: Analysis) -> list[Row]:
    """Return the rows; where the batches differ, what is per item leads."""
    if batches(before, after) is None:
        return made
    return sorted(made, key=lambda row: row.metric != PER_ITEM.name)


def _warnings(before: Analysis, after: Analysis, differs: list[str]) -> list[str]:
    found = []
    if len(differs) > 1:
        named = [guarding.NAMES.get(each, each) for each in differs]
        keys = f"{', '.join(named[:-1])} and {named[-1]}"
        found.append(f"{keys} differ at once: no change can be put down to one of them")
    if (sizes := batches(before, after)) is not None:
        one, other = sizes
        found.append(f"the batch is {one} before and {other} after: compare per item")
    if points_apart(before, after):
        found.append(
            "step and throughput point apart: steps come in bursts, whose waiting no median has; "
            "the throughput counts all of it"
        )
    for side, each in (("before", before), ("after", after)):
        if each.memory_pressure:
            found.append(f"{side} ran under memory pressure: no time is that of the work itself")
        if "no_steps" in each.quality.flags:
            found.append(f"{side} has no step marked: its step is all that was recorded")
    return found


def _reason(path: str, found: TraceComparison, before: Analysis, after: Analysis) -> str:
    """Return why there is a null at this path."""
    part, *inner = path.split(".")
    if part in ("before", "after"):
        return "not_probed"
    if part == "lean":
        nowhere = found.lean is not UNSET and found.lean.ratio is None
        return "not_applicable: a trial is 0" if nowhere else "single_repeat"
    zero = "not_applicable: before is 0"
    if part == "categories":
        return zero
    at, *name = inner
    if part == "kernels":
        cut = found.kernels[int(at)].change_ms is None
        return "not_supported: the list of a side is cut" if cut else zero
    row = found.rows[int(at)]
    if name[0] == "rule":
        return "single_repeat"
    if name[0] in ("before", "after"):
        side = before if name[0] == "before" else after
        known = {each.name: each for each in figures.metrics(before, after)}
        return figure(side, known[row.metric]).why
    return zero if row.change is not None else "not_applicable: one side is not known"
