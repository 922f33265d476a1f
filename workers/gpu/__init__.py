"""GPUs and their slices, as the one process sees them that loads the driver's library.

A call into a driver can hang in the kernel, so nobody else loads it: the probe, `python -m
workers.gpu.sensors`, answers questions over a pipe, and who asks it has a deadline.
"""

from workers.gpu.look import Seen, look
from workers.gpu.probe import Hung, Probe
from workers.gpu.record import Board, Process, Reading, State

__all__ = ["Board", "Hung", "Probe", "Process", "Reading", "Seen", "State", "look"]
