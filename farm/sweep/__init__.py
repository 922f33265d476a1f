"""Sweeps: a named question in YAML, and the jobs that answer it, in a stable order."""

from farm.sweep.axes import label_text
from farm.sweep.files import Sweep, load
from farm.sweep.plan import Plan, Planned, expand

__all__ = [
    "Plan",
    "Planned",
    "Sweep",
    "expand",
    "label_text",
    "load",
]
