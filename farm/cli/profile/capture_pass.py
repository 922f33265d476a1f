"""A capture from asking for it to its files: trials one after the other, each a fresh process."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from farm import once, schema
from farm.cli.profile import capture_job
from farm.cli.profile.capture_job import Wanted
from farm.cli.profile.capture_project import (
    PROFILE,
    TRACE,
    Project,
    Say,
    clear,
    drop,
    held,
    project,
    put,
)
from farm.cli.profile.capture_words import Words
from farm.errors import NoResult, Refused
from farm.report.words import flag
from farm.schema import INVALIDATING, Captured, Failure, Profile, Quality
from farm.trace import captured, trials
from farm.trace.analysis.record import Analysis
from farm.trace.reading import reader
from farm.trace.trials import notes_of

if TYPE_CHECKING:
    from farm.once import Measured

    Measure = Callable[..., Measured]

_SCRATCH: Final = "farm-capture-"
# Failures that say that there is no profile, and not that a model or its data broke.
_SLIPS: Final = frozenset({"bad_data", "experimental"})  # of the request
_NO_PROFILE: Final = frozenset({"window_not_filled"})


class Taken(NamedTuple):
    """What a capture came to. file: the document to read on; found: what is in it."""

    file: Path
    found: Analysis


def taken(
    words: Words,
    *,
    root: Path,
    measure: "Measure",
    say: Say,
    warn: Say,
    has_gpu: bool | None = None,
) -> Taken:
    """Return the profile of a capture, written into its folder of the project.

    measure: as `once.measure`. say, warn: hear how it goes, and what is not as it was asked.
    has_gpu: as of `capture_job.wanted`. What may be refused before anything is measured is refused
    then. Files that are there are replaced whole. Raises Bad if model or data fail, NoResult where
    the device is not here or the data do not fill the window; nothing of that trial is written
    then, and no document of all.
    """
    wanted = capture_job.wanted(words, root=root, has_gpu=has_gpu)
    here = project(words.project, words.kind, repeat=words.repeat)
    with held(here):
        if words.batch == -1:
            words = words._replace(batch=_fitted(wanted, measure=measure, say=say))
            wanted = capture_job.wanted(words, root=root, has_gpu=has_gpu)
        for note in wanted.notes:
            warn(note)
        found = _trials(wanted, here, measure=measure, say=say)
        _warn(found, words, warn, said=wanted.notes)
        if words.repeat == 1:
            return Taken(here.folders[0] / PROFILE, found[0])
        clear(here, say)
        whole = trials.together(found, files=[str(each / PROFILE) for each in here.folders])
        put(here.whole, [schema.encode(whole)], say)
        return Taken(here.whole, whole)


def _trials(wanted: Wanted, here: Project, *, measure: "Measure", say: Say) -> list[Analysis]:
    several = len(here.folders) > 1
    if several:
        drop(here.whole, say)  # it tells of trials that are replaced one by one
    found = []
    for number, folder in enumerate(here.folders, start=1):
        if several:
            say(f"trial {number} of {len(here.folders)}")
        found.append(_trial(wanted, folder, measure=measure, say=say))
    return found


def _fitted(wanted: Wanted, *, measure: "Measure", say: Say) -> int:
    """Return the batch that fits the device, found in a process of its own."""
    with TemporaryDirectory(prefix=_SCRATCH) as name:
        measured = measure(capture_job.fitting(wanted, folder=Path(name)), say=say)
        _check(measured.profile)
        batch = int(once.whole(measured).profile.execution.resolved["fitted_batch"])
    say(f"a batch of {batch} fits")
    return batch


def _trial(wanted: Wanted, folder: Path, *, measure: "Measure", say: Say) -> Analysis:
    """Measure once and write the files of this trial."""
    with ExitStack() as scratch:
        whole = _measured(wanted, scratch, measure=measure, say=say)
        trace = whole.folder / "trace.json"
        beside = _beside(wanted, whole, traced=trace.exists())
        found = _analysis(wanted, whole, beside, trace, shown=str(folder / TRACE))
        if trace.exists():
            with trace.open("rb") as file:
                put(folder / TRACE, iter(lambda: file.read(1 << 20), b""), say)
        else:
            drop(folder / TRACE, say)
    try:
        put(folder / PROFILE, [schema.encode(found)], say)
    except Refused:  # the one that is there would stand beside the trace of another capture
        drop(folder / PROFILE, say)
        raise
    return found


def _beside(wanted: Wanted, measured: "Measured", *, traced: bool) -> Captured:
    """Return what was found beside the trace, with what was known before, and whether it failed."""
    found = schema.decode((measured.folder / "captured.json").read_bytes(), Captured)
    notes = [*wanted.notes, *found.notes]
    if wanted.capture.trace and not traced:
        why = measured.profile.null_reasons.get("trace", "the worker left none")
        notes.append(f"no trace was kept: {why}")
    unused = list(dict.fromkeys([*wanted.unused, *found.unused]))
    return structs.replace(found, notes=notes, unused=unused)


def _measured(wanted: Wanted, scratch: ExitStack, *, measure: "Measure", say: Say) -> "Measured":
    """Measure, and once more where something else disturbed it: a busy machine calms down.

    scratch: holds the folder of each.
    """
    for tried in (1, 2):
        name = scratch.enter_context(TemporaryDirectory(prefix=_SCRATCH))
        measured = measure(capture_job.asked(wanted, folder=Path(name)), say=say)
        _check(measured.profile)
        quality = once.whole(measured).profile.quality
        if not isinstance(quality, Quality) or quality.validity != "invalid":
            break
        if tried == 1:
            why = [flag(each) for each in quality.flags if each in INVALIDATING]
            say(f"{', '.join(why)}: it is taken once more")
    return measured


def _analysis(
    wanted: Wanted, measured: "Measured", beside: Captured, trace: Path, *, shown: str
) -> Analysis:
    read = None
    if trace.exists():
        with trace.open("rb") as file:
            read = reader.of(file)
    asked = dict(wanted.config)
    if "source" in asked and asked["source"] is None:
        asked["source"] = "sample" if beside.pipeline == "detection" else "drawn"
    return captured.analysis(
        read,
        measured.profile,
        beside,
        card=measured.card,
        asked=asked,
        name=shown,
    )


def _check(profile: Profile) -> None:
    """Raise what a failure of our own making stands for; `once.whole` judges the others."""
    failure = profile.failure
    if not isinstance(failure, Failure):
        return
    if failure.kind in _NO_PROFILE:
        raise NoResult(failure.message, why="no profile was written", hint=failure.hint)
    if failure.kind in _SLIPS:
        raise Refused(failure.message, hint=failure.hint)


def _warn(trials: list[Analysis], words: Words, warn: Say, *, said: Iterable[str]) -> None:
    """Tell which options had no use, as far as somebody gave them, and what else is to be known.

    said: what was told before.
    """
    unused = trials[-1].config.get("unused")
    idle = [each for each in unused if each in words.given] if isinstance(unused, list) else []
    if idle:
        named = ", ".join(f"--{each.replace('_', '-')}" for each in idle)
        warn(f"no use for {named} here")
    for each in notes_of(trials):
        if each not in said:
            warn(each)
