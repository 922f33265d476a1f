"""What `farm run` brings along: a real broker and the workers of this machine, started and stopped.

A local run takes the same path as a farm: the same server, the same agent, started as programs.
"""

from farm.embedded.evidence import started
from farm.embedded.program import Agent, ask, hand, start_agent
from farm.embedded.server import Server, broker, find_server, running

__all__ = [
    "Agent",
    "Server",
    "ask",
    "broker",
    "find_server",
    "hand",
    "running",
    "start_agent",
    "started",
]
