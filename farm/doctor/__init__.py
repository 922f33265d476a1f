"""`farm doctor`: what keeps a farm from working, or its numbers from being right, and the cure.

Each check answers in one line, within seconds, whatever it meets: a check that cannot be made says
why, and one that hangs or breaks is a finding itself. Nothing is changed but what `storage.look`
names, and no secret is repeated.
"""

import queue
import threading
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from farm.doctor import brokers, folders, install, machine, nvidia, shadows, storage
from farm.doctor.findings import About, Finding, blocks, cures, document, exit_code
from farm.doctor.surroundings import Surroundings
from farm.errors import FarmError
from farm.settings import Settings

__all__ = ["Finding", "Surroundings", "blocks", "cures", "document", "examine", "exit_code"]


def examine(settings: Settings | FarmError, around: Surroundings) -> list[Finding]:
    """Return what every check found, in the order of a start: installation first, nodes last.

    settings: as loaded, or the error that loading them raised; what hangs on them is skipped then.
    """
    known = settings if isinstance(settings, Settings) else None
    slow: dict[str, float] = {}
    measures = known is None or not known.broker.value
    rooms: list[tuple[str, Iterator[Finding]]] = [
        ("python", install.look(around, measures=measures)),
        ("python", shadows.look(around)),
        ("settings", folders.settings(settings)),
        ("machine", machine.look(around)),
        ("nvidia", nvidia.look(around)),
    ]
    if known is None:
        why = "the settings cannot be read"
        rooms += [(each, iter([About(each).skipped("all", why)])) for each in ("state", "store")]
        rooms.append(("broker", iter([About("broker").skipped("all", why)])))
    else:
        state = Path(known.state.value).expanduser().absolute()
        broker = brokers.named if known.broker.value else brokers.own
        rooms += [
            ("state", folders.state(state, around)),
            ("store", storage.look(known.store.value, around)),
            ("broker", broker(known, around)),
        ]
        slow["store"] = storage.patience_s(known.store.value, around.patience_s)
    return [
        each
        for subject, room in rooms
        for each in _in_time(About(subject), room, slow.get(subject, around.patience_s))
    ]


def _in_time(about: About, room: Iterable[Finding], patience_s: float) -> Iterator[Finding]:
    """Yield the findings of a room until one needs too long, or breaks.

    A thread makes them: a dead file system or driver lets go of nobody who waits for it.
    """
    told: queue.SimpleQueue[Finding | BaseException | None] = queue.SimpleQueue()

    def tell() -> None:
        try:
            for each in room:
                told.put(each)
            told.put(None)
        # A module in place of a library, a file where a driver should be: anything may come.
        except BaseException as error:
            told.put(error)

    threading.Thread(target=tell, daemon=True, name=f"doctor-{about.subject}").start()
    while True:
        try:
            found = told.get(timeout=patience_s)
        except queue.Empty:
            said = f"the next check of it has not answered within {patience_s:.0f} s"
            yield about.fail(
                "time", said, cure="dmesg | tail  # a disk, a driver or a name server that hangs"
            )
            return
        if isinstance(found, BaseException):
            yield about.fail("check", _broken(found), cure="report it: farm doctor --json")
            return
        if found is None:
            return
        yield found


def _broken(error: BaseException) -> str:
    """Return what broke and where; its message is left out, for it may hold a secret."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"a check broke: {type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
