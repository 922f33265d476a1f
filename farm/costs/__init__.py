"""What a model costs: from one profile and the peaks of devices to figures and sentences.

Three kinds of evidence stay apart: what the model needs, what that would mean for hardware, and
what was measured. Nothing here prints.
"""

from farm.costs.report import report

__all__ = ["report"]
