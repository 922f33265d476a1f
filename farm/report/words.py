"""How numbers, doubts and causes are put into words; every form of a report uses these.

Nothing is looked up or computed here beyond rounding. It imports nothing heavy, because the
console uses it for the first line that a person sees.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final

UNKNOWN: Final = "–"
NOISY: Final = "the times scatter widely"  # which is a stability, and no flag
_NEIGHBOUR: Final = re.compile(
    r"(?P<program>.+) \(pid (?P<pid>\d{1,9})\), (?P<share>\d{1,9}) % of a core", re.DOTALL
)

FLAGS: Final = {
    "allocator_growth": "memory still grew while it was measured",
    "bimodal": "the times fall into two groups",
    "canary_moved": "the machine itself was off that night",
    "clock_blip": "one sample of a slowed clock",
    "clock_idle": "the clock idled for a part of the pass",
    "clock_low": "the clock ran far below its base",
    "clock_unstable": "the clock moved by more than 3 %",
    "left_its_cores": "the model left the cores that it was pinned to",
    "pass_failed": "the model failed in a pass after the latency was taken",
    "too_many_threads": "the model ran more threads than it was given cores",
    "contended": "other work ran on its cores",
    "own_loaders": "its loader processes and its step shared the cores",
    "contention_unknown": "nothing tells whether other work ran on its cores",
    "denormals": "the numbers are partly subnormal, which some chips compute slowly",
    "busy_siblings": "other slices of its GPU share its memory",
    "clock_unknown": "nothing tells whether its clock was as high as it should be",
    "device_fault": "its device reported a fault meanwhile",
    "drifting": "the times drifted by more than 2 %",
    "duty_25pct": "power was sampled a quarter of the time",
    "enqueue_bound": "the host could not keep the device busy",
    "foreign_gpu_process": "another process used the device",
    "gates_off": "nobody looked whether the machine was quiet",
    "inputs_mutated": "the model changed its inputs",
    "nonfinite_output": "the output holds values that are not finite",
    "not_quiet": "the machine was not quiet when it began",
    "on_battery": "the machine ran on battery",
    "paging": "the machine read memory back from disk meanwhile",
    "power_capped": "the power limit held the clock down",
    "precision_mismatch": "it ran in another precision than asked",
    "precision_not_met": "it stopped before the median was as narrow as asked",
    "processes_disagree": "the repeats disagree by more than 5 %",
    "recompiling": "the model compiled again while it was measured",
    "repeats_missing": "fewer usable repeats than asked",
    "sharing_unknown": "nothing tells whether another process used the device",
    "suspect_device": "its device should be out of the fleet, which cannot spare it",
    "suspended": "the machine slept meanwhile",
    "throttle_unknown": "nothing tells whether the device throttled",
    "throttled": "the device throttled",
    "timer_limited": "the clock itself takes over 1 % of so short a step",
    "warmup_not_converged": "warm-up ended before the times were steady",
}
FAILURES: Final = {
    "crashed": "crashed",
    "device_lost": "the device was lost",
    "environment": "its environment could not be used",
    "host_oom": "out of memory",
    "identity_mismatch": "it saw another device than the one leased",
    "model_error": "the model raised an error",
    "nonfinite": "the output is not finite",
    "oom": "out of memory",
    "poisoned": "it left its device unusable",
    "precision_mismatch": "it ran in another precision than asked",
    "store": "the store failed",
    "timeout": "timed out",
    "unsupported": "not supported there",
    "worker_lost": "its worker was lost",
}
REASONS: Final = {
    "below_resolution": "too few independent samples for an interval",
    "no_permission": "this user may not read it",
    "not_applicable": "does not apply here",
    "not_requested": "nobody asked for it",
    "not_supported": "this machine does not offer it",
    "phase_failed": "the pass failed",
    "processes_disagree": "the repeats disagree too much for an interval",
    "single_repeat": "one repeat gives no interval",
    "single_sample": "one sample gives no spread",
    "timed_out": "the pass timed out",
}
STATES: Final = {
    "ok": "✓ ok",
    "degraded": "! degraded",
    "invalid": "✗ invalid",
    "failed": "✗ failed",
    "pruned": "○ pruned",
    "skipped": "○ skipped",
    "missing": "? missing",
}


def flag(name: str, *, of_blocks: int | None = None) -> str:
    """Return the doubt in words; a flag that a newer farm wrote stays its own name.

    of_blocks: how many steps a sample stands for, where it is known: it settles what became of
    steps that are short for the clock. A preset that counts calls times each alone.
    """
    said = FLAGS.get(name, name.replace("_", " "))
    if name != "timer_limited" or of_blocks is None:
        return said
    how = "each was timed alone" if of_blocks == 1 else f"{of_blocks} were timed together"
    return f"{said}, and {how}"


def failure(kind: str) -> str:
    """Return the cause of a failure in words."""
    return FAILURES.get(kind, kind.replace("_", " "))


def reason(text: str) -> str:
    """Return why a number is not there, from `code` or `code: detail`."""
    code, _, detail = text.partition(": ")
    words = REASONS.get(code, code.replace("_", " "))
    return f"{words} ({detail})" if detail else words


def number(value: float | None, *, half: float | None = None) -> str:
    """Return the number with four digits, or more where `half`, its uncertainty, needs them."""
    return UNKNOWN if value is None else f"{value:.{_decimals(value, half)}f}"


def interval(lo: float | None, hi: float | None, *, value: float, half: float | None) -> str:
    """Return `[lo, hi]` with the decimals of the value that it surrounds."""
    if lo is None or hi is None:
        return UNKNOWN
    places = _decimals(value, half)
    return f"[{lo:.{places}f}, {hi:.{places}f}]"


def plus_minus(value: float | None, half: float | None, *, reliable: bool) -> str:
    """Return `11.42 ±0.05`; without an interval `11.42~`."""
    if value is None:
        return UNKNOWN
    if half is None:
        return marked(number(value), reliable=reliable)
    places = _decimals(value, half)
    return marked(f"{value:.{places}f} ±{half:.{places}f}", reliable=reliable)


def marked(text: str, *, reliable: bool) -> str:
    """Return the text with the mark of an unreliable number, if it is one."""
    return text if reliable or text == UNKNOWN else f"{text}~"


def percent(ratio: float | None) -> str:
    """Return a ratio of 0–1 as a percentage with a sensible number of digits."""
    if ratio is None:
        return UNKNOWN
    value = 100 * ratio
    return (
        f"{value:.0f}"
        if abs(value) >= 10
        else f"{value:.1f}"
        if abs(value) >= 1
        else f"{value:.2f}"
    )


def share(part: float | None) -> str:
    """Return a part of a whole in percent: however it is rounded, only all is 100 and none is 0."""
    if part is None:
        return UNKNOWN
    if not 0 < part < 1:
        return f"{100 * part:.0f}"
    return f"{min(99.9, max(0.1, round(100 * part, 1))):g}"


def whole(value: float | None) -> str:
    """Return a count with commas; of what is no whole number one digit more."""
    if value is None:
        return UNKNOWN
    return f"{int(value):,}" if value % 1 == 0 else f"{value:,.1f}"


def mebibytes(count: float | None) -> str:
    return UNKNOWN if count is None else number(count / 2**20)


def size(count: int) -> str:
    """Return a number of bytes in GiB or MiB, whichever reads better."""
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"


def span(seconds: float) -> str:
    """Return a length of time with its two leading units: `48s`, `4m12s`, `3h05m`, `12d`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d"


def count(number: int, one: str, many: str = "") -> str:
    """Return `1 cell`, `3 cells`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(words: list[str], *, most: int = 4) -> str:
    """Return the words with commas; beyond `most` only how many more there are."""
    shown = words[:most] if len(words) > most + 1 else words
    rest = len(words) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def neighbours(seen: Sequence[str]) -> list[str]:
    """Return what ran beside a measurement, the busiest first; a program seen often is one line."""
    programs: dict[str, dict[str, int]] = {}
    others = []
    for each in dict.fromkeys(seen):
        found = _NEIGHBOUR.fullmatch(each)
        if found is None:  # another writer's words
            others.append(each)
            continue
        pids = programs.setdefault(found["program"], {})
        pids[found["pid"]] = max(int(found["share"]), pids.get(found["pid"], 0))
    busiest = sorted(programs.items(), key=lambda each: (-max(each[1].values()), each[0]))
    return [_program(name, pids) for name, pids in busiest] + others


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text with everything that could steer a terminal spelled out.

    Control, format (direction marks among them), surrogate and private characters become `\\xNN`
    or `\\uNNNN`; with `lines`, line breaks and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if _harmless(each) or (lines and each in "\n\t") else _spelled(each) for each in text
    )


def _program(name: str, pids: Mapping[str, int]) -> str:
    most = max(pids.values())
    if len(pids) == 1:
        return f"{name} (pid {next(iter(pids))}), {most} % of a core"
    return f"{name} ({len(pids)} processes), up to {most} % of a core"


def _harmless(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _decimals(value: float, half: float | None) -> int:
    """Return how many decimals show four digits of the value, and one of its uncertainty."""
    needed = 3 - _magnitude(value)
    if half:
        needed = min(max(needed, -_magnitude(half)), needed + 2)
    return min(max(needed, 0), 9)


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
