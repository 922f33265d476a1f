"""One job by hand: read it, measure it on a station, say what it is worth."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from farm.effort import EFFORTS, repeat_words
from farm.errors import FarmError, NoVerdict, Refused
from farm.schema import ANSWERS, Failure, Job, Order, Profile, Quality, decode
from farm.store import Store, open_store
from workers.station import Station


def order(data: bytes, *, name: str, effort: str) -> Order:
    """Return the job document as an order with this effort; raises Refused if it is none."""
    try:
        asked = decode(data, Job)
    except FarmError as error:
        raise Refused(f"{name!r} is not a job", why=str(error)) from error
    return Order(job=asked, effort=EFFORTS[effort], repeat_set="base", label="")


def store_of(url: str) -> Store | None:
    """Return the store that holds the job's files, None for a folder that is not there."""
    return open_store(url) if "://" in url or Path(url).is_dir() else None


def measure(station: Station, asked: Order, *, say: Callable[[str], None]) -> Profile:
    """Measure the job in a folder that is gone afterwards; say: hears each phase once."""
    stop_r, stop_w = os.pipe()
    last = ""

    def show(repeat: int, phase: str, _iterations: int) -> None:
        nonlocal last
        line = f"{repeat_words(repeat, asked.effort.repeats)}: {phase}"
        if line != last:
            last = line
            say(line)

    try:
        with tempfile.TemporaryDirectory(prefix="farm-run-") as folder:
            return station.measure(
                asked,
                run_id="by-hand",
                attempt=1,
                fence=0,
                queue_s=None,
                folder=Path(folder),
                stop_fd=stop_r,
                on_progress=show,
            )
    finally:
        os.close(stop_r)
        os.close(stop_w)


def judge(profile: Profile, *, degraded: bool) -> int:
    """Return the exit code of a profile: 1 for a failure that is no answer, such as a crash.

    degraded: whether a doubtful profile is no verdict; raises NoVerdict for it then.
    """
    failure, quality = profile.failure, profile.quality
    if isinstance(failure, Failure):
        return 0 if failure.kind in ANSWERS else 1
    if isinstance(quality, Quality) and degraded and quality.validity != "valid":
        raise NoVerdict(f"the profile is {quality.validity}", why=", ".join(quality.flags))
    return 0
