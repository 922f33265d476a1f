"""A fleet that never was: years of nights as columns, quick enough for a million profiles.

Eight classes of two machines each measure the same 480 cells every night. A machine has an effect
of its own, a night its noise, a driver change moves one class for good, a few devices throttle,
large batches do not fit, and one attempt in twenty is doubled.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from farm import identity
from farm.catalog import parts
from farm.catalog.columns import COLUMNS, flat
from tests.farm import make

FIRST: Final = date(2026, 1, 1)
MODELS: Final = [f"model_{each:02}" for each in range(20)]
PRECISIONS: Final = ["fp32", "bf16", "fp16"]
BATCHES: Final = [1, 2, 4, 8, 16, 32, 64, 128]
CLASSES: Final = [f"gpu-{each}-80g" for each in range(8)]
NODES: Final = 2  # of a class
SERIES: Final = len(MODELS) * len(PRECISIONS) * len(BATCHES) * len(CLASSES)
DRIVER_CHANGE: Final = 40  # the night from which class 3 has another driver
DOUBLED: Final = 20  # one in so many has a second attempt
_FLAGS: Final = [[], ["drifting"], ["throttled"]]
_VALIDITY: Final = ["valid", "degraded", "invalid"]
_OK, _OOM, _CRASHED, _LOST, _CANCELLED = range(5)
_STATUS: Final = ["ok", "failed", "failed", "infra", "cancelled"]
_KIND: Final = [None, "oom", "crashed", "worker_lost", None]
_BLOCKS: Final = ("latency", "throughput", "memory", "quality")


class _Drawn(NamedTuple):
    """What was drawn for each row."""

    series: np.ndarray[Any, Any]
    night: np.ndarray[Any, Any]
    node: np.ndarray[Any, Any]
    attempt: np.ndarray[Any, Any]
    ended: np.ndarray[Any, Any]
    validity: np.ndarray[Any, Any]
    p50_ms: np.ndarray[Any, Any]
    system: np.ndarray[Any, Any]


def tables(profiles: int, *, a_part: int, seed: int) -> Iterator[pa.Table]:
    """Yield that many profiles, night after night, in tables of `a_part` rows sorted as parts are.

    The same seed gives the same fleet.
    """
    for first in range(0, profiles, a_part):
        count = min(a_part, profiles - first)
        yield _table(_draw(first, count, seed), first)


def _draw(first: int, count: int, seed: int) -> _Drawn:
    rng = np.random.default_rng([seed, first])
    fixed = np.random.default_rng(seed)
    at = np.arange(first, first + count)
    doubled = at % DOUBLED == DOUBLED - 1
    slot = at - (at + 1) // DOUBLED  # a second attempt stands right behind its first
    series, night = slot % SERIES, slot // SERIES
    cell, class_ = np.divmod(series, len(CLASSES))
    rest, batch = np.divmod(cell, len(BATCHES))
    model, precision = np.divmod(rest, len(PRECISIONS))
    node = (series + night) % NODES
    machine = fixed.normal(0, 0.01, (len(CLASSES), NODES))[class_, node]
    moved = (class_ == 3) & (night >= DRIVER_CHANGE)
    cost = fixed.lognormal(0, 1, len(MODELS))[model] * np.array([1.0, 0.6, 0.55])[precision]
    size = np.array(BATCHES)[batch] ** 0.85
    level = cost * size / (1 + 0.3 * class_) * np.where(moved, 0.96, 1.0)
    p50 = level * np.exp(machine + rng.normal(0, 0.003, count))
    luck = rng.random(count)
    ended = np.select(
        [(batch == 7) & (model >= 16), luck < 0.003, luck < 0.008, luck < 0.01],
        [_OOM, _CRASHED, _LOST, _CANCELLED],
        _OK,
    )
    doubt = rng.random(count)
    validity = np.select([doubt < 0.02, doubt < 0.08], [2, 1], 0)
    return _Drawn(
        series, night, node, 1 + doubled, ended, validity, p50, class_ * 2 + moved.astype(int)
    )


def _table(drawn: _Drawn, first: int) -> pa.Table:
    count = len(drawn.series)
    template = flat(make.row())
    ok = pa.array(drawn.ended == _OK)
    made = _identity(drawn) | _ends(drawn) | _figures(drawn)
    made["profile_id"] = pa.array(
        [identity.content_id(at.to_bytes(8)) for at in range(first, first + count)]
    )
    arrays = []
    for name, kind in zip(parts.SCHEMA.names, parts.SCHEMA.types, strict=True):
        held = made.get(name)
        if held is None:
            held = pa.repeat(pa.scalar(template[name], type=kind), count)
        held = held.cast(kind)
        if name in _MEASURED:
            held = pa.compute.if_else(ok, held, pa.scalar(None, type=kind))
        arrays.append(held)
    found = pa.Table.from_arrays(arrays, schema=parts.SCHEMA)
    return found.sort_by([(each, "ascending") for each in parts.ORDER])


_MEASURED: Final = frozenset(
    each.name
    for each in COLUMNS
    if each.path.partition(".")[0] in _BLOCKS or each.name in ("import_s", "load_s", "first_ms")
)


def _identity(drawn: _Drawn) -> dict[str, pa.Array]:
    cell, class_ = np.divmod(drawn.series, len(CLASSES))
    rest, batch = np.divmod(cell, len(BATCHES))
    model, precision = np.divmod(rest, len(PRECISIONS))
    jobs = [identity.short_hash(["job", each]) for each in range(SERIES)]
    cells = [identity.short_hash(["cell", each]) for each in range(SERIES // len(CLASSES))]
    systems = [identity.short_hash(["system", each]) for each in range(2 * len(CLASSES))]
    nights, at = np.unique(drawn.night, return_inverse=True)
    days = [FIRST + timedelta(days=int(each)) for each in nights]
    sets = [f"n-{each}" for each in days]
    began = np.array([datetime(each.year, each.month, each.day, 1) for each in days], "M8[us]")
    started = began[at] + (drawn.series * 5 + drawn.attempt).astype("m8[s]")
    return {
        "job_id": _words(jobs, drawn.series),
        "cell_id": _words(cells, cell),
        "workload_id": _words(cells, cell),
        "system_id": _words(systems, drawn.system),
        "card_id": _words([each * 2 for each in systems], drawn.system),
        "system_class": _words(CLASSES, class_),
        "device": _words(CLASSES, class_),
        "device_name": _words(CLASSES, class_),
        "model": _words(MODELS, model),
        "precision": _words(PRECISIONS, precision),
        "batch": pa.array(np.array(BATCHES)[batch]),
        "node": _words([f"n{each}" for each in range(16)], class_ * NODES + drawn.node),
        "run_id": _words([f"r-{each:%Y%m%d}-010000-000000" for each in days], at),
        "repeat_set": _words(sets, at),
        "received": _words([str(each) for each in days], at),
        "attempt": pa.array(drawn.attempt),
        "fence": pa.array(drawn.attempt + 10 * drawn.night),
        "started_at": pa.array(started),
        "finished_at": pa.array(started + np.timedelta64(5, "s")),
    }


def _ends(drawn: _Drawn) -> dict[str, pa.Array]:
    return {
        "status": _words(_STATUS, drawn.ended),
        "failure_kind": _words(_KIND, drawn.ended),
        "validity": _words(_VALIDITY, drawn.validity),
        "flags": pa.array(_FLAGS, type=pa.list_(pa.string())).take(pa.array(drawn.validity)),
    }


def _figures(drawn: _Drawn) -> dict[str, pa.Array]:
    p50 = drawn.p50_ms
    batch = np.array(BATCHES)[drawn.series // len(CLASSES) % len(BATCHES)]
    rate = batch * 1000 / p50
    made = {
        "mean_ms": p50 * 1.01,
        "log_mean": np.log(p50),
        "min_ms": p50 * 0.97,
        "max_ms": p50 * 1.3,
        "clean_p50_ms": p50,
        "first_ms": p50 * 3,
        "throughput_items_per_s": rate,
        "throughput_lo": rate * 0.99,
        "throughput_hi": rate * 1.01,
    }
    for q, factor in ((50, 1.0), (90, 1.04), (95, 1.06), (99, 1.12)):
        made[f"p{q}_ms"] = p50 * factor
        made[f"p{q}_lo_ms"] = p50 * factor * 0.996
        made[f"p{q}_hi_ms"] = p50 * factor * 1.004
    return {name: pa.array(each) for name, each in made.items()} | {
        "repeats_p50_ms": pa.FixedSizeListArray.from_arrays(
            np.column_stack([p50 * 0.999, p50, p50 * 1.001]).ravel(), 3
        )
    }


def _words(known: list[str] | list[str | None], at: np.ndarray[Any, Any]) -> pa.Array:
    return pa.array(known, type=pa.string()).take(pa.array(at))
