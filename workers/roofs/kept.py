"""Where measured peaks are kept: one document for each system, in the node's state folder."""

from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from farm import schema
from farm.errors import Bad, NoResult
from farm.hardware import Roofs
from farm.hardware.roofs import RECIPE, better
from workers.node import default_state


def load(state: Path, system_id: str) -> Roofs | None:
    """Return what was measured for a system in this state folder, None if nothing usable was."""
    try:
        found = schema.decode(_file(state, system_id).read_bytes(), Roofs)
    except (OSError, Bad):
        return None
    return found if (found.system_id, found.recipe) == (system_id, RECIPE) else None


def known(state: Path, system_id: str) -> Roofs | None:
    """Return the roofs of a system from this node's state folder, else from the usual one.

    `farm run` has a state folder of its own in each place, and the machine is the same.
    """
    return load(state, system_id) or load(default_state(), system_id)


def keep(state: Path, new: Roofs) -> Roofs:
    """Write the better of what was known and what is new, whole or not at all, and return it.

    Raises NoResult if the folder cannot be written.
    """
    best = better(load(state, new.system_id), new)
    file = _file(state, new.system_id)
    partial = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(schema.encode(best))
        partial.rename(file)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        why = error.strerror or ""
        raise NoResult(f"cannot keep the measured peaks in {str(state)!r}", why=why) from error
    return best


def _file(state: Path, system_id: str) -> Path:
    return state / "roofs" / f"{system_id}.json"
