"""The profiles of a store, one by one: search, find by any of their names, show, read one value."""

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from farm import identity, schema
from farm.catalog import rows, winners
from farm.catalog.rows import Row, Unreadable
from farm.effort import duration_s
from farm.errors import NoResult, Refused, did_you_mean
from farm.report import words
from farm.report.table import Column, Datum, Table
from farm.schema import Failure, Latency, Memory, Profile, Quality, Throughput
from farm.store import Store, card_key
from farm.submit import manifests, read_manifest
from farm.sweep import label_text

# Names of figures that every command knows, and where a profile holds them.
METRICS: Final[Mapping[str, str]] = {
    "latency.p50": "latency.p50_ms",
    "latency.p90": "latency.p90_ms",
    "latency.p95": "latency.p95_ms",
    "latency.p99": "latency.p99_ms",
    "latency.mean": "latency.mean_ms",
    "throughput": "throughput.throughput_items_per_s",
    "memory.host": "memory.cpu_rss_peak_bytes",
    "noise": "latency.proc_cv",
}
_DOCUMENTS: Final = ("job", "card", "log", "samples")
_KEYS: Final[Mapping[str, Callable[[Profile], str]]] = {
    "model": lambda p: p.job.workload.model.name,
    "precision": lambda p: p.job.workload.precision,
    "batch": lambda p: str(p.job.workload.batch),
    "backend": lambda p: p.job.workload.backend,
    "status": lambda p: p.status,
    "validity": lambda p: p.quality.validity if isinstance(p.quality, Quality) else "",
    "run": lambda p: p.run_id,
    "node": lambda p: p.execution.node,
    "system_class": lambda p: p.system_class,
}


class Listed(NamedTuple):
    rows: list[Row]
    unreadable: list[Unreadable]


class Value(NamedTuple):
    """One value of a profile: as bare text, as plain data, and why it is null if it is."""

    text: str
    data: object
    reason: str

    def document(self) -> dict[str, object]:
        return {"value": self.data, "reason": self.reason}


def listed(
    store: Store,
    wheres: Sequence[str],
    *,
    since: str | None,
    all_attempts: bool,
    now: datetime,
) -> Listed:
    """Return the profiles that match, newest first; losers of an attempt only if asked for.

    wheres: `KEY=VALUE`, all of which must hold; any key that is none of ours is a tag.
    Raises Refused for a word that is no such pair or no duration.
    """
    wanted = [_pair(each) for each in wheres]
    earliest = now - _span(since) if since is not None else None
    found = rows.read(store)
    chosen = found.rows if all_attempts else [each.row for each in winners.winners(found.rows)]
    kept = [
        row
        for row in chosen
        if all(_field(row.profile, key) == value for key, value in wanted)
        and (earliest is None or _taken(row.profile) >= earliest)
    ]
    kept.sort(key=lambda row: (_taken(row.profile), row.profile_id), reverse=True)
    return Listed(kept, found.unreadable)


def find(store: Store, wanted: str) -> Row:
    """Return the profile of an id, its unique beginning, `RUN/LABEL`, or a job id (its winner).

    Raises Refused if several match, NoResult if none does.
    """
    run, slash, label = wanted.partition("/")
    if slash:
        return _of_label(store, run, label)
    if not re.fullmatch(r"[0-9a-f]{6,64}", wanted):
        raise Refused(
            f"{wanted!r} is no profile",
            why="a profile is an id or at least 6 digits of one, RUN/LABEL, or a job id",
            hint="`farm profiles list` shows them",
        )
    found = rows.read(store).rows
    jobs = [row for row in found if row.profile.job_id.startswith(wanted)]
    if jobs and len({row.profile.job_id for row in jobs}) == 1 and len(wanted) >= 32:
        return min(jobs, key=winners.order)
    ids = {row.profile_id: row for row in found}
    if not any(each.startswith(wanted) for each in ids) and jobs:
        identity.match(wanted, [row.profile.job_id for row in jobs], thing="job")
        return min(jobs, key=winners.order)
    return ids[identity.match(wanted, ids, thing="profile")]


def table(found: Sequence[Row], *, of: int) -> Table:
    """Return profiles for a person."""
    columns = (
        Column("profile"),
        Column("job", cut=True),
        Column("state"),
        Column("p50", "ms", right=True),
        Column("throughput", "1/s", right=True),
        Column("system", cut=True),
        Column("taken"),
        Column("run"),
    )
    shown = tuple(_row(each) for each in found)
    more = of - len(shown)
    notes = (f"and {words.count(more, 'profile')} more; --limit shows them",) if more > 0 else ()
    return Table("", columns, shown, notes)


def document(row: Row) -> dict[str, object]:
    """Return one line of the list as plain data."""
    profile = row.profile
    keys = {key: of(profile) for key, of in _KEYS.items()}
    latency, throughput = profile.latency, profile.throughput
    return {
        "schema": "farm.profile_row/v1",
        "profile_id": row.profile_id,
        "job_id": profile.job_id,
        **keys,
        "batch": profile.job.workload.batch,
        "tags": profile.execution.tags,
        "taken_at": profile.execution.started_at,
        "p50_ms": latency.p50_ms if isinstance(latency, Latency) else None,
        "throughput_items_per_s": (
            throughput.throughput_items_per_s if isinstance(throughput, Throughput) else None
        ),
    }


def screen(row: Row) -> list[str | Table]:
    """Return one profile on one screen."""
    profile = row.profile
    execution = profile.execution
    heading = f"{_label(profile)}   {_state(profile)}   profile {row.profile_id[:12]}"
    shown: list[str | Table] = [heading]
    if isinstance(profile.failure, Failure):
        failure = profile.failure
        shown += [f"✗ {failure.kind} in phase {failure.phase}: {failure.message}"]
        shown += [f"  {failure.hint}"] if failure.hint else []
        shown += [f"last output:\n{failure.log_tail}"] if failure.log_tail else []
    if isinstance(profile.latency, Latency):
        shown.append(_figures(profile, profile.latency))
    if isinstance(profile.quality, Quality):
        shown += _quality(profile.quality)
    if profile.repeats:
        shown.append(_repeats(profile))
    shown += [
        f"taken    {execution.started_at} on {execution.node}, {execution.device.name} "
        f"({execution.device.slot}, cores {execution.device.cpus}, "
        f"{words.count(execution.threads, 'thread')}), farm {execution.farm_version}",
        f"job      {profile.job_id}   attempt {profile.attempt} of run {profile.run_id}",
        f"cell     {profile.cell_id}   protocol {profile.protocol_id[:12]}",
        f"system   {profile.system_class}   {profile.system_id}",
        f"kept     {', '.join(profile.artifacts) or 'no artefacts'}",
        f"again    farm profiles get {row.profile_id[:12]} job | farm-worker run -",
    ]
    return shown


def fields(row: Row) -> list[str]:
    """Return every name that `value` takes for this profile."""
    plain = msgspec.to_builtins(row.profile)
    names = [name for name, path in METRICS.items() if _has(plain, path)]
    return [*names, *_DOCUMENTS[:2], *profile_artifacts(row), *_paths(plain, "")]


def profile_artifacts(row: Row) -> list[str]:
    """Return the kinds of artefact that a profile names."""
    return sorted(row.profile.artifacts)


def value(store: Store, row: Row, field: str) -> Value:
    """Return one value: a metric, a dotted path, `job`, `card`, or an artefact that is text.

    Raises Refused for a name that the profile does not have, with the nearest one it has.
    """
    if field == "job":
        text = schema.encode(row.profile.job).decode()
        return Value(f"{text}\n", msgspec.json.decode(text), "")
    if field == "card":
        text = store.get(card_key(row.profile.card_id)).decode()
        return Value(f"{text}\n", msgspec.json.decode(text), "")
    if field in row.profile.artifacts:
        return _artifact(store, row, field)
    path = METRICS.get(field, field)
    found: object = msgspec.to_builtins(row.profile)
    for part in path.split("."):
        found = _inside(found, part, field, row)
    reason = row.profile.null_reasons.get(path, "")
    if isinstance(found, str):
        return Value(f"{found}\n", found, reason)
    return Value(f"{msgspec.json.encode(found).decode()}\n", found, reason)


def _artifact(store: Store, row: Row, kind: str) -> Value:
    found = row.profile.artifacts[kind]
    data = store.get(found.key, sha256=found.sha256)
    if kind == "log":
        text = gzip.decompress(data).decode(errors="replace")
        return Value(text, text, "")
    where = f"{found.key} ({words.size(found.bytes)}, {found.media_type})"
    return Value(f"{where}\n", msgspec.to_builtins(found), "")


def _inside(found: object, part: str, field: str, row: Row) -> object:
    if isinstance(found, dict) and part in found:
        return found[part]
    if isinstance(found, list) and part.isdecimal() and int(part) < len(found):
        return found[int(part)]
    raise Refused(
        f"a profile has no field {field!r}",
        why=f"it stops at {part!r}",
        hint=did_you_mean(field, fields(row)) or "`farm profiles get PROFILE` lists them",
    )


def _has(plain: object, path: str) -> bool:
    for part in path.split("."):
        if not isinstance(plain, dict) or part not in plain:
            return False
        plain = plain[part]
    return True


def _paths(plain: object, path: str) -> list[str]:
    if isinstance(plain, dict) and plain:
        items = [(str(key), each) for key, each in plain.items()]
    elif isinstance(plain, list) and plain:
        items = [(str(index), each) for index, each in enumerate(plain)]
    else:
        return [path]
    inside = f"{path}." if path else ""
    return [found for key, each in items for found in _paths(each, inside + key)]


def _of_label(store: Store, run: str, label: str) -> Row:
    found = manifests(store)
    run_id = found[0].run_id if run == "@last" and found else run
    if run != "@last":
        run_id = identity.match(run, [each.run_id for each in found], thing="run")
    expected = read_manifest(store, run_id)
    labels = {label_text(each.labels): each.job_id for each in expected.jobs}
    # A label may be written with `-` in place of `/`, as it stands in file names.
    spelled = {text.replace("/", "-"): job_id for text, job_id in labels.items()}
    job_id = labels.get(label) or spelled.get(label)
    if job_id is None:
        raise NoResult(
            f"run {run_id} has no job {label!r}",
            hint=did_you_mean(label, list(labels)) or f"`farm status {run_id}` lists its jobs",
        )
    reused = {each.job_id: each.profile_id for each in expected.reused}
    mine = rows.read(store, job_ids={job_id}).rows
    ours = [
        row for row in mine if row.profile.run_id == run_id or row.profile_id == reused.get(job_id)
    ]
    if not ours:
        raise NoResult(f"{label} of run {run_id} has no profile yet", hint=f"farm resume {run_id}")
    return min(ours, key=winners.order)


def _figures(profile: Profile, latency: Latency) -> Table:
    lines: list[tuple[Datum, ...]] = []
    for q in (50, 90, 95, 99):
        value = getattr(latency, f"p{q}_ms")
        lo, hi = getattr(latency, f"p{q}_lo_ms"), getattr(latency, f"p{q}_hi_ms")
        why = profile.null_reasons.get(f"latency.p{q}_lo_ms", "")
        between = words.interval(lo, hi, value=value, half=None) if lo is not None else "–"
        mark = "" if getattr(latency, f"p{q}_reliable") else " ~"
        lines.append(
            (
                Datum(f"latency p{q}"),
                Datum(words.number(value) + mark),
                Datum("ms"),
                Datum(between),
                Datum(words.reason(why) if why else ""),
            )
        )
    if isinstance(profile.throughput, Throughput):
        rate = profile.throughput.throughput_items_per_s
        item = profile.job.workload.item
        why = profile.null_reasons.get("throughput.throughput_items_per_s", "")
        lines.append(_line("throughput", words.number(rate), f"{item}s/s", why))
    if isinstance(profile.memory, Memory):
        peak = profile.memory.cpu_rss_peak_bytes
        why = profile.null_reasons.get("memory.cpu_rss_peak_bytes", "")
        lines.append(_line("host memory peak", words.mebibytes(peak), "MiB", why))
    columns = (
        Column("figure"),
        Column("value", right=True),
        Column("unit"),
        Column("95 % interval"),
        Column("why not", cut=True),
    )
    return Table("", columns, tuple(lines))


def _line(name: str, value: str, unit: str, why: str) -> tuple[Datum, ...]:
    return (Datum(name), Datum(value), Datum(unit), Datum("–"), Datum(why))


def _repeats(profile: Profile) -> Table:
    columns = (
        Column("repeat", right=True),
        Column("p50", "ms", right=True),
        Column("n", right=True),
        Column("warm-up"),
        Column("wait", right=True),
        Column("doubts", cut=True),
    )
    lines = tuple(
        (
            Datum(str(each.index)),
            Datum(words.number(each.p50_ms)),
            Datum(str(each.n)),
            Datum(f"{each.warmup_iterations} in {each.warmup_s:.1f} s, {each.warmup_stop}"),
            Datum(words.percent(each.wait_share)),
            Datum(", ".join(words.flag(flag) for flag in each.flags)),
        )
        for each in profile.repeats
    )
    return Table("", columns, lines)


def _quality(quality: Quality) -> list[str | Table]:
    doubts = ", ".join(words.flag(each) for each in quality.flags) or "no doubt"
    said: list[str | Table] = [f"quality  {quality.validity}, {quality.stability}: {doubts}"]
    said += [f"beside   {each}" for each in quality.neighbours]
    return said


def _row(row: Row) -> tuple[Datum, ...]:
    profile = row.profile
    latency, throughput = profile.latency, profile.throughput
    p50 = latency.p50_ms if isinstance(latency, Latency) else None
    rate = throughput.throughput_items_per_s if isinstance(throughput, Throughput) else None
    return (
        Datum(row.profile_id[:12]),
        Datum(_label(profile)),
        Datum(_state(profile)),
        Datum(words.number(p50)),
        Datum(words.number(rate)),
        Datum(profile.system_class),
        Datum(profile.execution.started_at[:16].replace("T", " ")),
        Datum(profile.run_id),
    )


def _label(profile: Profile) -> str:
    workload, selector = profile.job.workload, profile.job.selector
    labels = {
        "model": workload.model.name,
        "precision": workload.precision,
        "batch": str(workload.batch),
        "device": selector.value or selector.kind,
    }
    return label_text(labels)


def _state(profile: Profile) -> str:
    if isinstance(profile.failure, Failure):
        return profile.failure.kind
    return profile.quality.validity if isinstance(profile.quality, Quality) else profile.status


def _pair(word: str) -> tuple[str, str]:
    key, sign, value = word.partition("=")
    if not (key and sign):
        raise Refused(f"{word!r} is not KEY=VALUE", why=f"keys: {', '.join(_KEYS)}, or a tag")
    return key, value


def _field(profile: Profile, key: str) -> str | None:
    return _KEYS[key](profile) if key in _KEYS else profile.execution.tags.get(key)


def _span(word: str) -> timedelta:
    seconds = duration_s(word)
    if seconds is None:
        raise Refused(f"--since {word!r} is no duration", why="write 90s, 10m, 12h or 7d")
    return timedelta(seconds=seconds)


def _taken(profile: Profile) -> datetime:
    return datetime.fromisoformat(profile.execution.started_at)
