"""Measured peaks of this machine: ordinary jobs in ordinary children, under the ordinary lease.

One job for each number format multiplies matrices of four sizes in turn, one for each working set
streams through arrays of that size. The quickest run of each kind counts, and only of repeats that
nobody disturbed. What was found is kept by system in the node's state folder: the best value over
all tries.
"""

from workers.roofs.kept import keep, known, load
from workers.roofs.measuring import lines, measure

__all__ = ["keep", "known", "lines", "load", "measure"]
