"""What stands beside a layer CSV: which run each of its blocks is (`farm.layers/v1`).

`profile_layers.csv` has `profile_layers.json`. A block is known by the digest of its text, so a
file that was edited, or that another tool wrote, says what it holds and not more than that.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from farm import schema, writing
from farm.errors import Bad, FarmError, Refused
from farm.reading import short
from farm.schema import LayerTable, Stored
from farm.trace.blocks import Block

# The least that a field can be; the published shape of the file cannot grow a bound.
_LEAST: Final[Mapping[str, int]] = {
    **{"batch": 1, "iterations": 1, "warmup_iterations": 0},
    **{"profiled_ms": 0, "clean_ms": 0, "perturbation": -1},
}
MOST: Final = 1 << 53  # of whole numbers, the last that every reader of JSON knows exactly
_AGREES: Final = 1e-6  # a ratio of the two numbers beside it, and no other


class About(Stored, frozen=True, kw_only=True):
    """Which run a block is, and how it was taken; None where the source does not tell.

    written_at: UTC. perturbation: what the instrument added to an iteration, as a ratio.
    unattributed_ms: of an iteration, in no row; absent where an earlier release wrote the file.
    """

    written_at: str
    job_id: str | None
    model: str
    batch: int | None
    precision: str | None
    device: str | None
    method: str
    clock: str | None
    warmup_iterations: int | None
    iterations: int
    profiled_ms: float | None
    clean_ms: float | None
    perturbation: float | None
    unattributed_ms: float | UnsetType | None = UNSET


class Entry(About, frozen=True, kw_only=True):
    """A block as it was written: its number from 1, where it began, and its digest."""

    number: int
    offset: int
    bytes: int
    sha256: str


class Sidecar(Stored, frozen=True, kw_only=True, tag_field="schema", tag="farm.layers/v1"):
    """The blocks of one CSV that a farm wrote, in their order; file: its name."""

    file: str
    blocks: list[Entry]
    null_reasons: dict[str, str]


def about(table: LayerTable, *, written_at: str, job_id: str, model: str, batch: int) -> About:
    """Return what is to stand beside the block of a table that was measured."""
    return About(
        written_at=written_at,
        job_id=job_id,
        model=model,
        batch=batch,
        precision=table.precision,
        device=table.device,
        method=table.method,
        clock=table.clock,
        warmup_iterations=table.warmup_iterations,
        iterations=table.iterations,
        profiled_ms=table.profiled_ms,
        clean_ms=table.clean_ms,
        perturbation=table.perturbation,
        unattributed_ms=table.unattributed_ms,
    )


def beside(csv: Path) -> Path:
    """Return where the sidecar of a CSV is; raises Refused if the two were one file, or none."""
    if not csv.name:
        raise Refused("a layer CSV without a name", hint="for example profile_layers.csv")
    try:
        csv.name.encode()
    except UnicodeEncodeError as error:
        why = "its name is no UTF-8, and the file beside it has to say it"
        raise Refused(f"{str(csv)!r} cannot be a layer CSV", why=why) from error
    path = csv.with_suffix(".json")
    if path == csv:
        raise Refused(
            f"{str(csv)!r} cannot be a layer CSV",
            why="the file beside it that says which run is which would have the same name",
            hint=f"for example {csv.with_suffix('.csv').name}",
        )
    return path


def load(csv: Path) -> Sidecar | None:
    """Return the sidecar of a CSV, None if there is none; Refused if another file has its name."""
    path = beside(csv)
    try:
        found = schema.decode(path.read_bytes(), Sidecar)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"cannot read {str(path)!r}", why=error.strerror or "") from error
    except FarmError as error:
        raise _foreign(csv, path, f"it is no farm.layers/v1: {error}") from error
    if found.file != csv.name:
        raise _foreign(csv, path, f"it belongs to {found.file!r}")
    return found


def added(csv: Path, about: About, block: Block, *, number: int, why: str = "not_probed") -> bytes:
    """Return the sidecar with one more block, for `put`; why: the reason of every null in `about`.

    Raises Bad for a run that cannot be.
    """
    before = load(csv) or Sidecar(file=csv.name, blocks=[], null_reasons={})
    entry = Entry(
        **msgspec.structs.asdict(about),
        number=number,
        offset=block.offset,
        bytes=len(block.text.encode()),
        sha256=block.sha256,
    )
    if odd := impossible(entry):
        raise Bad(f"{str(csv)!r} cannot hold this table", why=odd)
    place = f"blocks.{len(before.blocks)}"
    unknown = schema.null_paths(msgspec.to_builtins(entry), place)
    found = Sidecar(
        file=csv.name,
        blocks=[*before.blocks, entry],
        null_reasons=before.null_reasons | dict.fromkeys(unknown, why),
    )
    return msgspec.json.format(schema.encode(found), indent=2) + b"\n"


def put(csv: Path, data: bytes) -> None:
    """Write the sidecar of a CSV anew, as `added` returned it; raises Refused if it cannot be."""
    writing.write(beside(csv), [data])


def impossible(about: About) -> str:
    """Return what of this no run can have, "" if nothing is: a field and its number."""
    for name, least in _LEAST.items():
        value = getattr(about, name)
        if value is not None and not least <= value <= MOST:
            return f"{name} is {short(value)}"
    profiled, clean, told = about.profiled_ms, about.clean_ms, about.perturbation
    if told is None:
        return ""
    if profiled is None or not clean:
        return f"perturbation is {told} of no clean iteration"
    ratio = profiled / clean
    if not math.isclose(told + 1.0, ratio, rel_tol=_AGREES, abs_tol=_AGREES):
        return f"perturbation is {told}, and its iterations took {ratio:.4g} times as long"
    return ""


def known(blocks: Sequence[Block], sidecar: Sidecar | None) -> list[Entry | None]:
    """Return the entry of each block, None for one that the sidecar does not know as it is.

    Of entries with equal text the one that was written there is meant, else the first.
    """
    left: dict[str, list[Entry]] = {}
    for each in sidecar.blocks if sidecar is not None else []:
        left.setdefault(each.sha256, []).append(each)
    found: list[Entry | None] = []
    for block in blocks:
        equal = left.get(block.sha256, [])
        there = [each for each in equal if each.offset == block.offset]
        found.append(next(iter(there or equal), None))
    return found


def _foreign(csv: Path, path: Path, why: str) -> Refused:
    return Refused(
        f"{str(path)!r} stands where the blocks of {csv.name!r} are described",
        why=why,
        hint="name another CSV, or move that file away",
    )
