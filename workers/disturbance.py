"""Who else was there: scheduler evidence at both ends of a pass becomes shares and flags.

Involuntary switches separate nothing and are not judged; an unknown reading never counts as quiet
(`measurement.md` §8).
"""

from collections.abc import Mapping, Sequence

from workers.record import Edge

WAIT_LIMIT, STEAL_LIMIT, PSI_LIMIT = 0.02, 0.005, 0.02


def of_pass(
    edges: tuple[Edge, Edge] | None, *, loaders: int = 0, neighbours: Sequence[str] = ()
) -> tuple[dict[str, float | None], list[str]]:
    """Return the shares of waiting, stolen and pressured time over the pass, and their flags.

    loaders: processes of its own that load data on the same cores. Waiting may be for these then,
    and is contention only where neighbours used the cores too.
    """
    shares: dict[str, float | None] = dict.fromkeys(("wait_share", "steal_share", "psi_share"))
    if edges is None:
        return shares, ["contention_unknown"]
    a, b = edges
    run, wait = _grown(a.run_ns, b.run_ns), _grown(a.wait_ns, b.wait_ns)
    if run is not None and wait is not None and run + wait > 0:
        shares["wait_share"] = wait / (run + wait)
    stolen, ticks = _grown(a.steal_ticks, b.steal_ticks), _grown(a.total_ticks, b.total_ticks)
    if stolen is not None and ticks:
        # One tick is the counter's rounding: at half a second it alone would be 2 % of a core.
        shares["steal_share"] = stolen / ticks if stolen > 1 else 0.0
    pressed = _grown(a.psi_some_us, b.psi_some_us)
    if pressed is not None and b.at_ns > a.at_ns:
        shares["psi_share"] = 1000 * pressed / (b.at_ns - a.at_ns)
    return shares, _doubts(a, b, shares, alone=loaders == 0 or bool(neighbours))


def _doubts(a: Edge, b: Edge, shares: Mapping[str, float | None], *, alone: bool) -> list[str]:
    wait, steal, psi = shares["wait_share"], shares["steal_share"], shares["psi_share"]
    waited = wait > WAIT_LIMIT if wait is not None else (psi or 0.0) > PSI_LIMIT
    taken = steal is not None and steal > STEAL_LIMIT
    flags = []
    if taken or (_grown(a.nr_throttled, b.nr_throttled) or 0) > 0 or (waited and alone):
        flags.append("contended")
    elif waited:
        flags.append("own_loaders")
    if wait is None and psi is None:
        flags.append("contention_unknown")
    if _grown(a.heat_throttles, b.heat_throttles):
        flags.append("throttled")
    if _grown(a.major_faults, b.major_faults):
        flags.append("paging")
    asleep = _grown(a.suspended_ns, b.suspended_ns)
    if asleep is not None and asleep > 1_000_000:
        flags.append("suspended")
    return flags


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
