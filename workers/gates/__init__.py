"""Whether a device and its host are fit to measure: looked at before a repeat and after it.

A verdict is `ok`, `unknown`, `degraded`, `defer` or `quarantine`, in rising order; what does not
apply is `skipped`, and what cannot be read is never `ok`. Rules: `node.md` §8.
"""

from farm.gates import Gate, gates
from workers.gates.judging import after, before, static, worst
from workers.gates.record import (
    Baseline,
    Finding,
    HostState,
    Phase,
    Unfit,
    Verdict,
    forbids,
    is_doubt,
    worst_fault,
)

__all__ = [
    "Baseline",
    "Finding",
    "Gate",
    "HostState",
    "Phase",
    "Unfit",
    "Verdict",
    "after",
    "before",
    "forbids",
    "gates",
    "is_doubt",
    "static",
    "worst",
    "worst_fault",
]
