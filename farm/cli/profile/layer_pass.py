"""A layer pass from asking for it to its block in the CSV."""

import shlex
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from farm import once
from farm.cli.profile import layer_job
from farm.cli.profile.calling import check_output
from farm.cli.profile.layer_job import Words
from farm.errors import Bad, FarmError, NoResult
from farm.schema import Latency, LayerTable, Profile, Quality
from farm.trace import blocks, files, layers, sidecar
from farm.trace.documents import LayersTaken
from farm.writing import write

if TYPE_CHECKING:
    from farm.once import Measured

    Measure = Callable[..., Measured]

Say = Callable[[str], None]

WARNING: Final = (
    "a layer profiler slows every layer down and holds them apart: never profile in production"
)


def taken(
    words: Words,
    *,
    root: Path,
    level: str,
    has_gpu: bool,
    measure: "Measure",
    say: Say,
    warn: Say,
) -> LayersTaken:
    """Return the layer pass of a model, its table appended to the CSV.

    measure: as `once.measure`. level: the effort of a latency. say, warn: hear how it goes, and
    the warning that comes with every layer profiler. What may be refused before anything is
    measured is refused then. Raises Bad if the model fails, NoResult if its device is not here, its
    layers cannot be told apart, or there is no output to write; nothing is appended then.
    """
    files.check(words.csv)
    if words.output is not None:
        model = Path(words.model.rpartition(":")[0] or words.model)
        given = [Path(words.given)] if words.given is not None else []
        check_output(words.output, force=words.force, keeps=[model, *given])
    tries = layer_job.devices(words.device, has_gpu=has_gpu)
    for device in tries:
        with TemporaryDirectory(prefix="farm-layers-") as name:
            folder = Path(name)
            job = layer_job.wanted(words, root=root, folder=folder, device=device, level=level)
            asked = layer_job.asked(job, words, folder=folder, device=device)
            if device == tries[0]:
                warn(WARNING)
            try:
                measured = measure(asked, say=say)
            except NoResult as error:
                if device == tries[-1]:
                    raise
                say(f"{error.what}; the CPU is taken")
                continue
            layer_job.check_taken(measured.profile, words)
            return _kept(once.whole(measured), words)
    raise AssertionError("a device is always tried")


def next_step(found: LayersTaken, words: Words) -> str:
    """Return the command that says more: against the block before, else with another precision."""
    if found.block > 1 and _is_of(found.model, words.csv, found.block - 1):
        sides = [f"{found.file}#{number}" for number in (found.block - 1, found.block)]
        return shlex.join(["farm", "profile", "compare", *sides])
    again = ["farm", "profile", "layers", words.model]
    again += ["--input", words.given] if words.given is not None else []
    for flag, value in (("batch", words.batch), ("device", words.device)):
        again += [f"--{flag}", str(value)] if value is not None else []
    csv = str(words.csv)
    again += ["--profile-output", csv] if csv != "profile_layers.csv" else []
    precision = "bf16" if words.precision == "fp32" and words.benchmark else words.precision
    again += ["--precision", precision] if precision != "fp32" else []
    return shlex.join([*again, "--benchmark"])


def _kept(measured: "Measured", words: Words) -> LayersTaken:
    profile, table = measured.profile, measured.layers
    if table is None:
        raise _missing(profile)
    if words.output is not None:  # before the table, to which nobody can add nothing
        write(words.output, [_output(measured)])
    known = sidecar.about(
        table,
        written_at=profile.execution.finished_at,
        job_id=profile.job_id,
        model=profile.job.workload.model.name,
        batch=profile.job.workload.batch,
    )
    number = files.append(words.csv, blocks.rows_of(table), known)
    return _document(profile, table, words, number)


def _output(measured: "Measured") -> bytes:
    """Return what the model returned; raises NoResult with the reason where it was not kept."""
    try:
        return (measured.folder / "output.npz").read_bytes()
    except FileNotFoundError as error:
        raise NoResult(
            f"no output of {measured.profile.job.workload.model.name!r} to write",
            why="; ".join(measured.profile.warnings),
            hint="without --output the layer table alone is taken",
        ) from error


def _document(profile: Profile, table: LayerTable, words: Words, number: int) -> LayersTaken:
    from msgspec import structs

    reasons = {f"table.{path}": why for path, why in table.null_reasons.items()}
    latency = profile.latency if words.benchmark else UNSET
    if isinstance(latency, Latency):
        told = profile.null_reasons.items()
        reasons |= {path: why for path, why in told if path.startswith("latency.")}
    cost = None if table.perturbation is None else layers.overhead(table.perturbation)
    if cost is None:
        reasons |= dict.fromkeys(("overhead_factor", "overhead"), "not_probed")
    return LayersTaken(
        file=str(words.csv),
        block=number,
        job_id=profile.job_id,
        model=profile.job.workload.model.name,
        batch=profile.job.workload.batch,
        overhead_factor=cost.factor if cost else None,
        overhead=cost.word if cost else None,
        flags=profile.quality.flags if isinstance(profile.quality, Quality) else [],
        table=structs.replace(table, null_reasons={}),
        latency=latency,
        output=str(words.output) if words.output is not None else UNSET,
        null_reasons=reasons,
    )


def _missing(profile: Profile) -> FarmError:
    """Return why there is no table: the model broke under the instrument, or has no layers."""
    code, _, detail = profile.null_reasons.get("layers", "not_probed").partition(": ")
    kind = Bad if code in ("phase_failed", "timed_out", "error") else NoResult
    what = f"no layer table of {profile.job.workload.model.name!r}"
    why = f"{code}: {detail}" if detail else code
    return kind(what, why=why, hint=layer_job.instead(detail))


def _is_of(model: str, csv: Path, number: int) -> bool:
    try:
        before = files.read(files.Address(csv, number)).about
    except FarmError:
        return False
    return before is not None and before.model == model
