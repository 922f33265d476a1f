"""A manifest and the profiles that answer it become one Report; no form of it computes anything."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, get_args

from msgspec import UnsetType

import farm
from farm import schema
from farm.catalog.rows import Unreadable
from farm.catalog.winners import Winner
from farm.report import cells as celled
from farm.report import findings, words
from farm.report.record import Cell, Damage, Figures, Report, State, System

_STATES: Final = get_args(State)


def build(
    manifest: schema.Manifest,
    winners: Iterable[Winner],
    *,
    cards: Mapping[str, schema.SystemCard],
    now: datetime,
    unreadable: Sequence[Unreadable] = (),
) -> Report:
    """Return the report of a run, with one cell for every job that it expected or skipped.

    winners: any, of any run; those of this run are chosen here. cards: by card id; a missing card
    costs the facts of its machine and nothing else. now: with a time zone; ages count from it.
    """
    scope = celled.scope(manifest, winners)
    made, reasons = celled.cells(manifest, scope.by_job, now=now)
    profiles = [found[0].row.profile for found in scope.by_job.values()]
    systems = _systems(profiles, cards)
    counts = {state: sum(each.state == state for each in made) for state in _STATES}
    return Report(
        run_id=manifest.run_id,
        name=manifest.name,
        submitted_at=manifest.submitted_at,
        submitted_by=manifest.submitted_by,
        written_at=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        source=manifest.source,
        source_sha256=manifest.source_sha256,
        farm_version=farm.__version__,
        tags=manifest.tags,
        effort=manifest.effort,
        complete=counts["missing"] == 0,
        simulated=scope.simulated,
        expected=len(made),
        counts=counts,
        axes=celled.axes([*manifest.jobs, *manifest.skipped]),
        answers=findings.answers(made),
        doubts=findings.doubts(made),
        unreadable=[Damage(key=each.key, reason=each.reason) for each in unreadable],
        cells=made,
        systems=systems,
        shared=_shared(systems),
        method=_method(manifest, profiles),
        left_out=_left_out(made, scope.dropped),
        null_reasons=reasons,
    )


def _systems(
    profiles: Sequence[schema.Profile], cards: Mapping[str, schema.SystemCard]
) -> list[System]:
    by_system: dict[str, list[schema.Profile]] = {}
    for each in profiles:
        by_system.setdefault(each.system_id, []).append(each)
    made = []
    for system_id, group in by_system.items():
        card = next((cards[each.card_id] for each in group if each.card_id in cards), None)
        facts = _facts(group) | (_card_facts(card) if card else {})
        made.append(
            System(
                system_id=system_id,
                system_class=group[0].system_class,
                cells=len(group),
                facts={name: each for name, each in facts.items() if each},
            )
        )
    return made


def _facts(group: Sequence[schema.Profile]) -> dict[str, str]:
    done = [each.execution for each in group]
    return {
        "node": words.listed(sorted({each.node for each in done})),
        "device": words.listed(sorted({each.device.name for each in done})),
        "slots": words.listed(sorted({each.device.slot for each in done})),
        "threads": words.listed(sorted({str(each.threads) for each in done})),
        "farm": words.listed(sorted({each.farm_version for each in done})),
    }


def _card_facts(card: schema.SystemCard) -> dict[str, str | None]:
    stable = card.stable
    cpu, system, frameworks = stable.cpu, stable.os, stable.frameworks
    memory = stable.memory_bytes
    return {
        "processor": cpu.model,
        "cores leased": f"{cpu.leased_cores} of {cpu.logical_cpus} logical CPUs",
        "memory": None if memory is None else words.size(memory),
        "system": ", ".join(each for each in (system.distro, system.kernel, system.libc) if each),
        "virtualization": stable.virtualization,
        "governor": cpu.governor,
        "nvidia driver": stable.drivers.nvidia,
        "python": frameworks.python,
        "torch": frameworks.torch,
        "onnxruntime": _known(frameworks.onnxruntime),
        "numpy": frameworks.numpy,
    }


def _shared(systems: Sequence[System]) -> list[str]:
    """Return the facts that all systems have in common, which need saying only once."""
    if not systems:
        return []
    first = systems[0].facts
    return [
        name
        for name, value in first.items()
        if all(each.facts.get(name) == value for each in systems)
    ]


def _method(manifest: schema.Manifest, profiles: Sequence[schema.Profile]) -> list[str]:
    effort = manifest.effort
    repeats = words.count(effort.repeats, "fresh process", "fresh processes")
    within = f"{effort.half_width_ppm / 10_000:g}"
    budget = f"{effort.budget_ms / 1000:g}"
    said = [
        f"effort {effort.level}: {repeats} per cell, each pass until its median is known within "
        f"{within} % or {budget} s have passed",
        "latency is the host clock around one synchronised iteration, nothing attached; the figure "
        "is the median over processes of each process's median, with a 95 % interval",
        "the loop is closed: an iteration starts when the last one ended",
        "throughput has a pass of its own and is no inverse of the latency",
    ]
    protocols = [each.job.protocol for each in profiles]
    if any(each.input_policy == "fixed" for each in protocols):
        said.append("one seeded input is used again and again, resident on the device")
    warmups = {str(each.warmup) for each in protocols}
    if warmups == {"auto"}:
        said.append("warm-up lasts until the times are steady, apart from the measured iterations")
    elif warmups:
        said.append(f"warm-up: {', '.join(sorted(warmups))} iterations")
    if len({each.protocol_id for each in profiles}) > 1:
        said.append("the cells were measured by different protocols: do not compare them")
    return said


def _known(value: str | UnsetType) -> str | None:
    return value if isinstance(value, str) else None


def _left_out(cells: Sequence[Cell], dropped: int) -> list[str]:
    said = []
    if dropped:
        said.append(f"{words.count(dropped, 'simulated profile')}: real ones are there")
    measured = [each for each in cells if isinstance(each.figures, Figures)]
    if len({each.labels.get("precision") for each in measured}) > 1:
        said.append("how far the output of one precision is off another: not measured")
    said.append("layers, FLOPs, roofline, energy: `farm profiles show` has those of each profile")
    said.append("traces: `farm profile summary` reads the one of each profile that has one")
    return said
