"""Where code came from and beside what it ran: its commit, the container, the load of the host."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

# What a program printed, None if it could not be run or did not end with 0.
Run = Callable[[Sequence[str], Path], str | None]

_NO_REPOSITORY: Final = "not_applicable: the code lies in no git repository, or git is not here"
_UNNAMED: Final = "not_supported: the container does not tell its image; FARM_IMAGE names it"
_MARKS: Final = ("run/.containerenv", ".dockerenv")


class Origin(Struct, frozen=True, kw_only=True):
    """reasons: why one of the others is null, by its name."""

    commit: str | None
    dirty: bool | None
    container_image: str | None
    host_load_1m: float | None
    reasons: dict[str, str]


def origin(
    files: Sequence[Path],
    *,
    run: Run,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    load: Callable[[], tuple[float, float, float]] = os.getloadavg,
) -> Origin:
    """Return where the files of a model come from, and the load of the host as it is now.

    files: one or more, in one repository if in any. Only whether they differ from their commit
    counts, an untracked one included; what else is changed there does not. Source: S1.52.
    """
    commit, dirty = _commit(files, run)
    image, why_no_image = _image(root, environment)
    found = {
        "commit": (commit, _NO_REPOSITORY),
        "dirty": (dirty, _NO_REPOSITORY),
        "container_image": (image, why_no_image),
    }
    reasons = {name: why for name, (value, why) in found.items() if value is None}
    busy: float | None
    try:
        busy = round(load()[0], 2)
    except OSError:
        busy, reasons["host_load_1m"] = None, "not_supported"
    return Origin(
        commit=commit, dirty=dirty, container_image=image, host_load_1m=busy, reasons=reasons
    )


def _commit(files: Sequence[Path], run: Run) -> tuple[str | None, bool | None]:
    folder = files[0].parent
    said = run(("git", "rev-parse", "HEAD"), folder)
    commit = (said or "").strip()
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
        return None, None
    names = [str(each) for each in files]
    changed = run(("git", "status", "--porcelain", "--ignored", "-uall", "--", *names), folder)
    return commit, None if changed is None else bool(changed.strip())


def _image(root: Path, environment: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the image of the container that this is, and why it is not known."""
    if named := environment.get("FARM_IMAGE"):
        return named, ""
    marked = any((root / each).exists() for each in _MARKS)
    if not marked and "KUBERNETES_SERVICE_HOST" not in environment:
        return None, "not_applicable: no container"
    try:
        text = (root / _MARKS[0]).read_text(errors="replace")
    except OSError:
        text = ""
    found = re.search(r'^image="([^"]+)"', text, re.MULTILINE)
    return (found[1], "") if found else (None, _UNNAMED)
