"""What waits and for whom nobody cares: said below every table of runs and nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farm import answers
    from farm.console import Console
    from farm.reaching import Farm


def unserved_of(farm: "Farm | None") -> dict[str, int]:
    """Return the entries that wait in queues which no live slot hears."""
    if farm is None:
        return {}
    heard: set[str] = {queue for slot in farm.slots() for queue in slot.classes}
    return {queue: many for queue, many in farm.ledger.ready().items() if queue not in heard}


def warn_of(
    console: "Console", unserved: dict[str, int], spools: "Sequence[answers.Spool]"
) -> None:
    """Say what no device takes, and what does not get into the store."""
    from farm import fleet, queues

    for line in (*queues.unserved_lines(unserved), *fleet.spool_lines(spools)):
        console.warn(line)
