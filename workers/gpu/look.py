"""One look at the GPUs of this machine, before anybody serves them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workers.gpu.probe import Hung, Probe
from workers.gpu.record import Board, Reading


class Seen(NamedTuple):
    """The boards, and by their uuid what a card says of each. why: what is missing.

    simulated: they stand in for the devices of this machine; fake, faults: as of `Probe`.
    """

    boards: Sequence[Board] = ()
    facts: Mapping[str, Mapping[str, Reading]] = {}
    why: str = ""
    fake: str = ""
    faults: str = ""

    @property
    def simulated(self) -> bool:
        return bool(self.fake)


def look(*, fake: str = "", faults: str = "", probe: Probe | None = None) -> Seen:
    """Return what a probe sees, which ends then; one that hangs sees nothing.

    fake, faults: as of `Probe`. Raises Refused for words that name no devices.
    """
    if fake:
        from workers.gpu.simulated import parsed

        parsed(fake)  # said here, and not by a process that ends
    with probe or Probe(fake=fake, faults=faults) as asked:
        try:
            found = asked.boards()
            facts = {board.uuid: asked.facts(board.uuid) for board in found.boards}
        except Hung as error:
            return Seen(why=f"nvml_hang: {error}", fake=fake, faults=faults)
    return Seen(found.boards, facts, found.why, fake, faults)
