"""What a report says first: which cell of a model is best and how surely, and what to distrust."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from farm import schema
from farm.report import words
from farm.report.record import Answer, Cell, Doubt, Figures

Surely = Literal["clear", "doubted", "close", "unknown", "alone"]
_Work = tuple[str, str]  # model and mode


class _Contender(NamedTuple):
    """A cell in a contest: a cost to be small (latency, or throughput turned round)."""

    at: int
    value: float
    lo: float | None
    hi: float | None


def answers(cells: Sequence[Cell]) -> list[Answer]:
    """Return the lowest latency and the highest throughput of the good cells of each model.

    A training is other work than an inference, so each mode has its own. Cells that are not `ok`
    take no part. The call is `clear` if the 95 % interval of no other cell overlaps that of the
    best one, which is stricter than a test at 5 %.
    """
    works = list(dict.fromkeys(each.work for each in cells))
    return [
        answer
        for work in works
        for answer in (_latency(cells, work), _throughput(cells, work))
        if answer is not None
    ]


def doubts(cells: Sequence[Cell]) -> list[Doubt]:
    """Return what to distrust, the worst and widest first.

    A doubt is a flag that spoils or weakens a profile, repeats that are missing, or times that
    scatter; notes, such as a timer that was too coarse for single steps, are none.
    """
    found: dict[str, list[int]] = {}
    because: dict[str, dict[str, None]] = {}
    for at, cell in enumerate(cells):
        if not isinstance(cell.figures, Figures):
            continue
        for name in doubted(cell.figures):
            found.setdefault(name, []).append(at)
            if name in ("contended", "not_quiet"):
                because.setdefault(name, {}).update(dict.fromkeys(cell.figures.neighbours))
    made = [
        Doubt(
            name=name,
            effect="invalid" if name in schema.INVALIDATING else "degraded",
            words=_WORDS.get(name) or words.flag(name),
            cells=at,
            because=words.neighbours(list(because.get(name, ()))),
        )
        for name, at in found.items()
    ]
    return sorted(made, key=lambda each: (each.effect != "invalid", -len(each.cells), each.name))


_WORDS: Final = {
    "noisy": words.NOISY,
    "single_repeat": "one process only, so the spread between processes is unknown",
    "unjudged": "nothing judged it",
}


def noted(figures: Figures) -> list[str]:
    """Return in words what is noted about a cell, and what is to be doubted, the flags first."""
    names = dict.fromkeys([*figures.flags, *doubted(figures)])
    return [_WORDS.get(name) or words.flag(name, of_blocks=figures.of_blocks) for name in names]


def doubted(figures: Figures) -> list[str]:
    """Return the names of what is to be doubted about a cell, its flags first."""
    names = [
        each for each in figures.flags if each in schema.INVALIDATING or each in schema.DEGRADING
    ]
    if figures.stability == "noisy":
        names.append("noisy")
    if figures.repeats < figures.repeats_wanted and "repeats_missing" not in names:
        names.append("repeats_missing")
    if figures.p50_lo_ms is None and figures.repeats <= 1:
        names.append("single_repeat")
    if figures.validity == "invalid" and not names:
        names.append("unjudged")
    return names


def _latency(cells: Sequence[Cell], work: _Work) -> Answer | None:
    def contender(at: int, figures: Figures) -> _Contender:
        return _Contender(at, figures.p50_ms, figures.p50_lo_ms, figures.p50_hi_ms)

    best, rivals, surely = _contest(cells, work, contender)
    if best is None:
        return None
    figures = _figures(cells[best])
    better = [each for each in _disturbed(cells, work) if each[1].p50_ms < figures.p50_ms]
    half = figures.p50_half_ms
    lo, hi = figures.p50_lo_ms, figures.p50_hi_ms
    between = words.interval(lo, hi, value=figures.p50_ms, half=half)
    return Answer(
        model=work[0],
        metric="latency",
        cell=best,
        rivals=rivals,
        surely="unknown" if better else surely,
        value=words.number(figures.p50_ms, half=half),
        unit="ms",
        between="" if between == words.UNKNOWN else between,
        certainty=_certainty(cells, best, rivals, surely, better),
    )


def _throughput(cells: Sequence[Cell], work: _Work) -> Answer | None:
    def contender(at: int, figures: Figures) -> _Contender | None:
        rate, lo, hi = figures.throughput_items_per_s, figures.throughput_lo, figures.throughput_hi
        if rate is None:
            return None
        return _Contender(at, -rate, None if hi is None else -hi, None if lo is None else -lo)

    best, rivals, surely = _contest(cells, work, contender)
    if best is None:
        return None
    figures = _figures(cells[best])
    rate = figures.throughput_items_per_s or 0.0
    better = [
        each for each in _disturbed(cells, work) if (each[1].throughput_items_per_s or 0.0) > rate
    ]
    return Answer(
        model=work[0],
        metric="throughput",
        cell=best,
        rivals=rivals,
        surely="unknown" if better else surely,
        value=words.number(figures.throughput_items_per_s),
        unit=f"{figures.item}s/s",
        between=_between(figures.throughput_lo, figures.throughput_hi),
        certainty=_certainty(cells, best, rivals, surely, better),
    )


def _contest(
    cells: Sequence[Cell], work: _Work, contender: Callable[[int, Figures], _Contender | None]
) -> tuple[int | None, list[int], Surely]:
    """Return the position of the best cell, those that may be as good, and how sure that is."""
    made = [
        contender(at, cell.figures)
        for at, cell in enumerate(cells)
        if cell.work == work and cell.state == "ok" and isinstance(cell.figures, Figures)
    ]
    field = sorted((each for each in made if each is not None), key=lambda each: each.value)
    if not field:
        return None, [], "alone"
    best, *others = field
    if not others:
        return best.at, [], "alone"
    if best.hi is None:
        return best.at, [], "unknown"
    rivals = [each.at for each in others if each.lo is not None and each.lo <= best.hi]
    if rivals:
        return best.at, rivals, "close"
    if any(each.lo is None for each in others):
        return best.at, [], "unknown"
    return best.at, [], "doubted" if doubted(_figures(cells[best.at])) else "clear"


def _between(lo: float | None, hi: float | None) -> str:
    if lo is None or hi is None:
        return ""
    return words.interval(lo, hi, value=hi, half=None)


def _disturbed(cells: Sequence[Cell], work: _Work) -> list[tuple[Cell, Figures]]:
    """Return the cells of the same work that take no part because they were disturbed."""
    return [
        (each, each.figures)
        for each in cells
        if each.work == work and each.state == "invalid" and isinstance(each.figures, Figures)
    ]


def _certainty(
    cells: Sequence[Cell],
    best: int,
    rivals: list[int],
    surely: Surely,
    better: Sequence[tuple[Cell, Figures]],
) -> str:
    if better:
        named = words.listed([each.place for each, _ in better], most=2)
        return f"of the valid cells; better, but disturbed: {named}"
    if surely == "doubted":
        doubts = ", ".join(doubted(_figures(cells[best]))).replace("_", " ")
        return f"in doubt, {doubts}: no interval overlaps"
    if surely == "clear":
        return "clear: no other interval overlaps"
    if surely == "close":
        named = words.listed([cells[each].place for each in rivals], most=2)
        return f"too close to call: {named}"
    if surely == "unknown":
        return "unsure: an interval is missing"
    others = [each for at, each in enumerate(cells) if at != best and each.state == "invalid"]
    same = any(each.work == cells[best].work for each in others)
    mode = f" of mode {cells[best].mode}" if cells[best].mode else ""
    return f"the only valid cell{mode}" if same else f"the only cell{mode} measured"


def _figures(cell: Cell) -> Figures:
    assert isinstance(cell.figures, Figures)  # only measured cells are in a contest
    return cell.figures
