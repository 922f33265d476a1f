"""Who else used the leased cores during a window: the processes that a busy machine should name."""

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from workers.host.tree import Usage

_NAMED_SHARE: Final = 0.05  # of one core; a neighbour below it explains nothing
_NAMED_COUNT: Final = 3


def neighbours(
    before: Mapping[int, Usage],
    after: Mapping[int, Usage],
    *,
    cpus: Collection[int],
    seconds: float,
    own: Collection[int] | None = None,
    ticks_per_s: int = os.sysconf("SC_CLK_TCK"),
) -> list[str]:
    """Return the busiest foreign processes that may run on the CPUs, busiest first, at most three.

    before, after: `Host.processes` at both ends of the window of so many seconds. own: our
    processes, by default this one; they do not count, nor their descendants, nor the groups and
    sessions that these lead. A process is named from 5 % of a core on, as in
    `python (pid 123), 97 % of a core`.
    """
    ours = _family((os.getpid(),) if own is None else own, {**before, **after})
    shares = []
    for pid, usage in after.items():
        # An affinity that cannot be read is no proof of innocence.
        elsewhere = usage.cpus is not None and set(cpus).isdisjoint(usage.cpus)
        if pid in ours or elsewhere or seconds <= 0.0:
            continue
        old = before.get(pid)
        # The same number with another start is another process: all its time lies in the window.
        known = old.ticks if old is not None and old.started == usage.started else 0
        shares.append(((usage.ticks - known) / ticks_per_s / seconds, pid))
    busy = sorted((each for each in shares if each[0] >= _NAMED_SHARE), reverse=True)
    return [
        f"{after[pid].command} (pid {pid}), {100 * share:.0f} % of a core"
        for share, pid in busy[:_NAMED_COUNT]
    ]


def _family(own: Iterable[int], processes: Mapping[int, Usage]) -> set[int]:
    family = set(own)
    size = -1
    while size != len(family):
        size = len(family)
        family |= {
            pid
            for pid, usage in processes.items()
            if not family.isdisjoint((usage.parent, usage.group, usage.session))
        }
    return family
