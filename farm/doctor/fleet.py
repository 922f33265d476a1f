"""Who uses a broker: somebody who ticks, nodes that live, and whether they are of this farm."""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from farm import __version__
from farm.doctor.findings import About, Finding
from farm.doctor.surroundings import Witness
from farm.report import words
from farm.settings import Settings
from farm.store import place

if TYPE_CHECKING:
    from farm.ledger import Node

_FARM: Final = About("farm")
_START: Final = "farm-worker start  # on each machine that measures"


def look(ledger: Witness, settings: Settings) -> Iterator[Finding]:
    """Yield who ticks and which nodes live, and where they are of another farm than this one.

    What a node does not tell, because it is older, is not held against it.
    """
    leader = ledger.leader()
    if leader:
        yield _FARM.ok("scheduler", leader)
    else:
        said = "nobody ticks: a job of a lost node is never given to another"
        yield _FARM.warn("scheduler", said, cure="farm scheduler")
    nodes = ledger.nodes()
    yield _nodes(nodes)
    yield from _versions(nodes)
    yield from _stores(nodes, place(settings.store.value))
    yield from _spools(nodes)


def _nodes(nodes: "Sequence[Node]") -> Finding:
    if not nodes:
        return _FARM.warn("nodes", "no node serves this broker: jobs wait", cure=_START)
    slots = sum(len(each.slots) for each in nodes)
    leaving = [each.name for each in nodes if each.state == "draining"]
    if len(leaving) == len(nodes):
        said = f"every node is leaving: {words.listed(leaving)}"
        return _FARM.warn("nodes", said, cure=_START)
    count = f"{words.count(len(nodes), 'node')}, {words.count(slots, 'slot')}"
    return _FARM.ok("nodes", count + (f"; leaving: {words.listed(leaving)}" if leaving else ""))


def _versions(nodes: "Sequence[Node]") -> Iterator[Finding]:
    other = _differing(nodes, "version", __version__)
    if other:
        cure = f"pip install 'profiling-farm[worker]=={__version__}'  # there, then start it again"
        yield _FARM.warn("versions", f"this is {__version__}; {_told(other)}", cure=cure)
    elif nodes:
        yield _FARM.ok("versions", f"every node that tells is {__version__}")


def _stores(nodes: "Sequence[Node]", mine: str) -> Iterator[Finding]:
    other = _differing(nodes, "store", mine)
    if other:
        said = f"here it is {mine}; {_told(other)}: what they measure is not seen here"
        there = shlex.quote(next(iter(other.values())))
        cure = f"export FARM_STORE={there}  # or the same for the nodes"
        yield _FARM.fail("stores", said, cure=cure)
    elif nodes:
        yield _FARM.ok("stores", f"every node that tells writes to {mine}")


def _spools(nodes: "Sequence[Node]") -> Iterator[Finding]:
    """Yield what keeps measured profiles on their nodes."""
    for each in nodes:
        held = each.spool
        waits = f"{words.count(held.profiles, 'profile')} on {each.name}"
        if held.trouble:
            told = f"{waits}, the oldest for {words.span(held.age_s)}: {held.trouble}"
            cure = "farm doctor  # there: it looks at the store as that node does"
            yield _FARM.warn(
                "spool", told + ("; it takes no job" if held.is_full else ""), cure=cure
            )
        elif held.is_full:
            told = f"{waits}: its disk or its spool is full, and it takes no job"
            yield _FARM.fail("spool", told, cure="df -h  # there; FARM_SPOOL names another disk")
        elif held.aside:
            told = f"{words.count(held.aside, 'profile')} on {each.name} cannot be stored"
            yield _FARM.fail("spool", told, cure="farm doctor  # there")
    if nodes and not any(each.spool.trouble or each.spool.is_full for each in nodes):
        waiting = sum(each.spool.profiles for each in nodes)
        yield _FARM.ok("spool", f"{words.count(waiting, 'profile')} on the way to the store")


def _differing(nodes: "Sequence[Node]", field: str, mine: str) -> dict[str, str]:
    """Return what the nodes say that say something else, by node."""
    return {
        each.name: told
        for each in nodes
        for slot in each.slots
        if (told := str(getattr(slot, field))) not in ("", mine)
    }


def _told(other: dict[str, str]) -> str:
    return words.listed([f"{node}: {told}" for node, told in other.items()])
