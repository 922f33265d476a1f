"""What this node and its devices are known by, kept in its state folder for good."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from farm import identity


def node_id(
    state: Path,
    *,
    environment: Mapping[str, str] = os.environ,
    random: Callable[[], str] = lambda: secrets.token_hex(16),
) -> str:
    """Return the id of this node, 32 hex digits, made at the first call and kept in the folder.

    A machine without a lasting folder sets FARM_NODE_ID; its hash is the id.
    """
    given = environment.get("FARM_NODE_ID", "")
    return identity.short_hash(given) if given else _kept(state, "node_id", random)


def salt(state: Path) -> str:
    """Return the secret that this node hashes its devices with, made at the first call."""
    return _kept(state, "salt", lambda: secrets.token_hex(16))


def _kept(state: Path, name: str, random: Callable[[], str]) -> str:
    """Return what the file of that name holds; made, it is everybody's from then on."""
    file = state / name
    state.mkdir(parents=True, exist_ok=True)
    fresh = state / f".{name}.{secrets.token_hex(4)}"
    if not file.exists():
        fresh.write_text(random() + "\n")
        try:
            os.link(fresh, file)  # unlike a rename it never replaces the id of another starter
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return file.read_text().strip()


def numbers(state: Path, keys: Sequence[str]) -> dict[str, int]:
    """Return the number of each device in queues: given once, and never to another.

    A device keeps its number when others come and go, or a reboot shuffles them: jobs for one
    device of a node are addressed by it. A file that is damaged is begun anew.
    """
    state.mkdir(parents=True, exist_ok=True)
    file = state / "slots.json"
    with (state / "slots.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _read(file)
        fresh = [key for key in keys if key not in known]
        for key in fresh:
            known[key] = max(known.values(), default=-1) + 1
        if fresh:
            partial = state / f".slots.json.{secrets.token_hex(4)}"
            partial.write_text(json.dumps(known), "utf-8")
            partial.rename(file)
    return {key: known[key] for key in keys}


def _read(file: Path) -> dict[str, int]:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    items = found.items() if isinstance(found, dict) else ()
    return {str(key): each for key, each in items if type(each) is int}
