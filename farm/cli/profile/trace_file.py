"""What the file of a trace holds, in words: its kernels, its steps, and what was mended in it."""

from typing import Final

from farm.report import words
from farm.trace.analysis.record import Analysis

# What became of the steps that the file marks and the window does not count.
_LEFT: Final = {
    "gpu_period": ": the first opens the window",
    "one_step": "",
    "cpu_step": ": not the first",
}


def held(found: Analysis) -> list[str]:
    """Return what is said of the whole file, in the window or not."""
    counts, quality = found.counts, found.quality
    parts = [f"{words.whole(counts['kernels'])} kernels"] if counts.get("kernels") else []
    if (orphans := counts.get("orphans")) and found.attribution == "launch":
        parts.append(f"{words.whole(orphans)} of them orphans, launched before it began")
    if steps := counts.get("steps"):
        parts.append(f"{words.count(steps, 'step')}{_measured(found, steps)}")
    parts += [f"repaired {name} {words.whole(n)}" for name, n in quality.repaired.items()]
    parts += [f"dropped {name} {words.whole(n)}" for name, n in quality.dropped.items()]
    return parts


def _measured(found: Analysis, steps: int) -> str:
    """Return how many of the steps were measured, where the window counts fewer of them."""
    left, measured = _LEFT.get(str(found.metrics.get("step_ms_source"))), found.window.real_steps
    if left is None or measured >= steps:
        return ""
    return f", {words.whole(measured)} measured{left}"
