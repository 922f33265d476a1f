"""One job of work at the limit: matrix products in a format, or streams through a working set."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import numpy as np

from farm.hardware import Product, Stream
from farm.schema import (
    INVALIDATING,
    Asked,
    Effort,
    Failure,
    Inputs,
    Job,
    Model,
    Order,
    Precision,
    Profile,
    Protocol,
    Quality,
    Selector,
    Tensor,
    Workload,
)
from workers import folders
from workers.gates import Unfit
from workers.roofs.caches import MEMORY_SET, MIB
from workers.station import Station

_SIZES: Final = (256, 512, 768, 1024)
# Of a format that the CPU emulates, which takes it 10 to 100 times as long.
_EMULATED_SIZES: Final = (96, 128, 192, 256)
_NATIVE: Final[Mapping[str, frozenset[str]]] = {
    "bf16": frozenset({"avx512_bf16", "amx_bf16", "bf16"}),
    "fp16": frozenset({"avx512_fp16", "amx_fp16", "asimdhp"}),
}
_WARM: Final = 1  # iteration; the first runs of a kind warm it, and only the quickest counts
_RUNS: Final = 6  # of each kind, at least; what is short runs more often
_NATIVE_RUNS: Final = 20
_MOST_RUNS: Final = 200
_MOVED: Final = (12, 4, 8)  # bytes for each element: triad, sum, dot product
_ELEMENT: Final = 12  # bytes of an element in the three arrays together
_CODES: Final = {"unsupported": "not_supported", "environment": "library_missing"}


@dataclass(frozen=True)
class _Best:
    """The quickest valid run of each kind, ns in the order of the turns; or a reason for none."""

    ns: tuple[float, ...] = ()
    reason: str = ""


def product(
    station: Station, word: Precision, *, cores: int, stop: int, at: str
) -> tuple[Product | None, str]:
    """Return the best matrix product in a format, else the reason why there is none."""
    isa = station.card.stable.cpu.isa
    native = isa is None or word not in _NATIVE or bool(_NATIVE[word] & set(isa))
    # more cores need more work to be busy for as long
    wider = 1 if cores < 8 else 2 if cores < 64 else 4
    sizes = [wider * each for each in (_SIZES if native else _EMULATED_SIZES)]
    pairs = {
        f"{name}{size}": Tensor(shape=(size, size)) for size in sizes for name in ("a", "b")
    }  # fmt: skip
    runs = _NATIVE_RUNS if native else _RUNS
    job = _job("products", inputs=pairs, precision=word, batch=runs, iterations=runs * len(sizes))
    best = _run(station, job, kinds=len(sizes), turn=runs, stop=stop)
    if not best.ns:
        return None, best.reason
    if sorted(best.ns) != list(best.ns):
        return None, "error: larger products took less time than smaller ones"
    rates = [2 * size**3 / (ns / 1e9) for size, ns in zip(sizes, best.ns, strict=True)]
    highest = max(rates)
    return (
        Product(
            flops_per_s=highest,
            size=sizes[rates.index(highest)],
            sizes=sizes,
            runs=runs,
            taken_at=at,
        ),
        "",
    )


def stream(station: Station, size: int, *, stop: int, at: str) -> tuple[Stream | None, str]:
    """Return the best passes through a working set of so many bytes, else the reason for none."""
    if size < MIB:
        return None, "not_probed: too little memory is free"
    elements = size // _ELEMENT
    runs = min(_MOST_RUNS, max(_RUNS, MEMORY_SET // size))
    job = _job("streams", inputs={}, batch=elements, iterations=runs * len(_MOVED))
    best = _run(station, job, kinds=len(_MOVED), turn=1, stop=stop)
    if not best.ns:
        return None, best.reason
    triad, *reads = (
        moved * elements / (ns / 1e9) for moved, ns in zip(_MOVED, best.ns, strict=True)
    )
    return (
        Stream(
            working_set_bytes=elements * _ELEMENT,
            triad_bytes_per_s=triad,
            read_bytes_per_s=max(reads),
            runs=runs,
            taken_at=at,
        ),
        "",
    )


def _job(
    factory: str,
    *,
    inputs: dict[str, Tensor],
    batch: int,
    iterations: int,
    precision: Precision = "fp32",
) -> Job:
    code = Path(__file__).parents[1] / "models" / "roofs.py"
    return Job(
        workload=Workload(
            model=Model(
                name=f"roofs_{factory}",
                ref=f"workers.models.roofs:{factory}",
                source="zoo",
                digest=sha256(code.read_bytes()).hexdigest(),
                kind="factory",
            ),
            inputs=Inputs(spec=inputs),
            precision=precision,
            batch=batch,
            backend_options={"arrays": "torch"},
        ),
        protocol=Protocol(warmup=_WARM, iterations=iterations),
        selector=Selector(kind="any"),
    )


def _run(station: Station, job: Job, *, kinds: int, turn: int, stop: int) -> _Best:
    """Measure a job whose kinds take turns of so many iterations; return the quickest of each."""
    effort = Effort(level="quick", repeats=1, timeout_s=120, layers=False, flops=False)
    with tempfile.TemporaryDirectory(prefix="farm-roofs-") as folder:
        asked = Asked(job=job, effort=effort, folder=folder, passes=("latency",))
        try:
            profile = station.measure(
                Order(job=job, effort=effort, repeat_set="base", label="roofs"),
                run_id="roofs",
                attempt=1,
                fence=0,
                queue_s=None,
                folder=Path(folder) / "work",
                stop_fd=stop,
                on_progress=lambda _repeat, _phase, _iterations: None,
                by_hand=asked,
            )
        except Unfit as error:  # nothing can be measured on it, whatever is tried
            return _Best(reason=f"error: {error}"[:300])
        if isinstance(profile.failure, Failure):
            failed = profile.failure
            code = _CODES.get(failed.kind, "error")
            return _Best(reason=f"{code}: {failed.kind}: {failed.message}"[:300])
        return _valid(profile, Path(folder) / "work", kinds=kinds, turn=turn)


def _valid(profile: Profile, folder: Path, *, kinds: int, turn: int) -> _Best:
    best: list[list[float]] = []
    for repeat in profile.repeats:
        found = folders.read(folder / folders.repeat(repeat.index))
        if found is None or not INVALIDATING.isdisjoint(repeat.flags):
            continue
        record, arrays, _ = found
        if record.of_blocks != 1:
            return _Best(reason="below_resolution: a run is shorter than the clock can tell")
        samples = np.asarray(arrays["latency_ns"])
        began = record.warmup.iterations if record.warmup else 0
        of_kind = (began + np.arange(len(samples))) // turn % kinds
        best.append([float(samples[of_kind == kind].min()) for kind in range(kinds)])
    if not best:
        return _Best(reason=f"not_probed: the peaks were disturbed: {_disturbance(profile)}")
    return _Best(ns=tuple(min(each) for each in zip(*best, strict=True)))


def _disturbance(profile: Profile) -> str:
    """Return who used the cores meanwhile, three at most, else what makes the repeats invalid."""
    busy = profile.quality.neighbours if isinstance(profile.quality, Quality) else []
    flags = sorted(INVALIDATING & {flag for each in profile.repeats for flag in each.flags})
    names = list(dict.fromkeys(each.partition(",")[0] for each in busy))
    return ", ".join(names[:3] or flags)
