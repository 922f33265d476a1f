"""One job by hand: read it, measure it on a station, say what it is worth."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from farm.effort import EFFORTS, repeat_words
from farm.errors import Bad, FarmError, NoResult, NoVerdict, Refused
from farm.schema import (
    ANSWERS,
    Asked,
    Failure,
    Job,
    LayerTable,
    Order,
    Profile,
    Quality,
    decode,
    encode,
)
from farm.store import Store, open_store
from farm.trace import blocks, files, sidecar
from farm.writing import write
from workers.folders import (
    CAPTURED,
    LAYER_TABLE,
    LAYERS,
    merged_log,
    merged_samples,
    output,
    trace,
)
from workers.gates import Unfit
from workers.record import OUTPUT, TRACE
from workers.station import Station


def order(data: bytes, *, name: str, effort: str) -> Order:
    """Return the job document as an order with this effort; raises Refused if it is none."""
    try:
        asked = decode(data, Job)
    except FarmError as error:
        raise Refused(f"{name!r} is not a job", why=str(error)) from error
    return Order(job=asked, effort=EFFORTS[effort], repeat_set="base", label="")


def asked(data: bytes, *, name: str) -> Asked:
    """Return what a document asks for; raises Refused if it is none."""
    try:
        return decode(data, Asked)
    except FarmError as error:
        raise Refused(f"{name!r} asks for nothing", why=str(error)) from error


def store_of(url: str) -> Store | None:
    """Return the store that holds the job's files, None for a folder that is not there."""
    return open_store(url) if "://" in url or Path(url).is_dir() else None


def measure(station: Station, asked: Order, *, say: Callable[[str], None], folder: Path) -> Profile:
    """Measure the job in this folder; say: hears each phase once."""
    return _measure(station, asked, None, say=say, folder=folder)


def once(station: Station, asked: Asked, *, say: Callable[[str], None]) -> Profile:
    """Measure what was asked by hand, and leave beside it what its children left, in its folder.

    There are then card.json, samples.npz, output.log, and as far as they were asked for
    layer_table.json and layers.csv, trace.json and captured.json, and output.npz. Raises NoResult
    if the device that was asked for is not here.
    """
    folder = Path(asked.folder)
    order = Order(job=asked.job, effort=asked.effort, repeat_set="base", label="", tags=asked.tags)
    work = folder / "work"
    profile = _measure(station, order, asked, say=say, folder=work)
    failure = profile.failure
    if isinstance(failure, Failure) and failure.kind == "no_device":
        raise NoResult(failure.message, hint=failure.hint)
    write(folder / "card.json", [encode(station.card)])
    write(folder / "output.log", [merged_log(work)])
    write(folder / "samples.npz", [merged_samples(work)])
    if (traced := trace(work)) is not None:
        traced.rename(folder / TRACE)
    for name in (LAYERS, LAYER_TABLE, CAPTURED):
        if (work / name).exists():
            (work / name).rename(folder / name)
    if asked.output and (kept := output(work)) is not None:
        kept.rename(folder / OUTPUT)
    shutil.rmtree(work)
    return profile


def append_layers(work: Path, profile: Profile, path: Path) -> None:
    """Append the layer table that lies in the folder of an attempt to a CSV.

    Raises Bad with the reason if there is none, Refused if it cannot be written.
    """
    if not (work / LAYER_TABLE).exists():
        raise Bad("no layer table", why=profile.null_reasons.get("layers", "the job failed"))
    table = decode((work / LAYER_TABLE).read_bytes(), LayerTable)
    job = profile.job
    about = sidecar.about(
        table,
        written_at=profile.execution.finished_at,
        job_id=job.job_id,
        model=job.workload.model.name,
        batch=job.workload.batch,
    )
    files.append(path, blocks.rows_of(table), about)


def _measure(
    station: Station,
    order: Order,
    asked: Asked | None,
    *,
    say: Callable[[str], None],
    folder: Path,
) -> Profile:
    stop_r, stop_w = os.pipe()
    last = ""

    def show(repeat: int, phase: str, _iterations: int) -> None:
        nonlocal last
        line = f"{repeat_words(repeat, order.effort.repeats)}: {phase}"
        if line != last:
            last = line
            say(line)

    try:
        return station.measure(
            order,
            run_id="by-hand",
            attempt=1,
            fence=0,
            queue_s=None,
            folder=folder,
            stop_fd=stop_r,
            on_progress=show,
            by_hand=asked,
        )
    except Unfit as error:
        raise NoResult("the device is not fit to be measured on", why=str(error)) from error
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
