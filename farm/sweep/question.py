"""The words of one sweep, checked: what each axis takes, and what all of its jobs share."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Final, cast

from msgspec import UNSET, Struct

from farm import models, reading
from farm.errors import NoResult, Refused, did_you_mean
from farm.models import Kind, ModelRow, Resolved
from farm.reading import Place
from farm.sweep import axes, inputs
from farm.sweep.files import Sweep
from farm.sweep.inputs import Given
from farm.sweep.measuring import Measuring, measuring

MOST_JOBS: Final = 100_000

Cell = tuple[str | int, Place]  # a value of an axis, and where it is written
Block = tuple[dict[str, object], Place]  # `matrix`, or one entry of `exclude` or `include`


class Question(Struct, frozen=True, kw_only=True):
    """A sweep that makes sense; models: by reference, NoResult where one is not installed here.

    item: "" where the sweep leaves it to the models.
    """

    top: Place
    matrix: dict[str, list[Cell]]
    excluded: list[dict[str, set[str]]]
    included: list[dict[str, Cell]]
    models: Mapping[str, Resolved | NoResult]
    given: Given | None
    measuring: Measuring
    item: str
    options: dict[str, str | int | bool]
    tags: dict[str, str]


def question(sweep: Sweep, *, level: str, rows: Mapping[str, ModelRow] | None = None) -> Question:
    """Return the question that a sweep asks; level: the effort where it names none.

    Raises Refused, naming the place, for every word that makes no sense, and for a sweep of more
    than `MOST_JOBS` jobs. Nothing is multiplied out here.
    """
    top = Place(sweep.document)
    blocks = {key: _blocks(sweep.document.data.get(key), top.key(key)) for key in _BLOCKS}
    _check_size(blocks, top)
    given = _given(sweep, top)
    found = _models(blocks, sweep, kind=_word(top, "kind", ("auto", "factory", "step")), rows=rows)
    named = _named(found.values(), given)
    cells = {key: [_cells(each, named) for each in blocks[key]] for key in _BLOCKS}
    _word(top, "exclusive", ("none",), later=("node",))
    data = sweep.document.data
    item = data.get("item")
    return Question(
        top=top,
        matrix=cells["matrix"][0] if cells["matrix"] else {},
        excluded=[_matched(each, found) for each in cells["exclude"]],
        included=[_single(each) for each in cells["include"]],
        models=found,
        given=given,
        measuring=measuring(data.get("measure"), top.key("measure"), level=level),
        item="" if item is None else reading.text(item, top.key("item"), limit=50),
        options=_options(data.get("backend_options"), top.key("backend_options")),
        tags=_tags(data.get("tags"), top.key("tags")),
    )


def name_of(reference: str, found: Mapping[str, Resolved | NoResult]) -> str:
    """Return the stable name of a model of a sweep."""
    model = found[reference]
    return model.model.name if isinstance(model, Resolved) else reference


# ── blocks and their cells ───────────────────────────────────────────────────────────────────────

_BLOCKS: Final = ("matrix", "include", "exclude")


def _blocks(given: object, place: Place) -> list[Block]:
    """Return the mappings of a key with their places; a mapping alone is a list of one."""
    if given is None or given == []:
        return []
    if isinstance(given, list) and place.path == "matrix":
        raise place.refused("expected keys and values, got a list")
    found = [(reading.mapping(each, here), here) for each, here in reading.items(given, place)]
    for block, here in found:
        if not block and place.path != "matrix":
            raise here.refused("names no axis")
    return found


def _check_size(blocks: dict[str, list[Block]], top: Place) -> None:
    matrix = blocks["matrix"][0][0] if blocks["matrix"] else {}
    lengths = [len(each) if isinstance(each, list) else 1 for each in matrix.values()]
    count = (math.prod(lengths) if matrix else 0) + len(blocks["include"])
    if count > MOST_JOBS:
        what = f"{count:,} jobs" if count < 10**15 else "far too many jobs"
        raise top.key("matrix").refused(
            what, why=f"a sweep holds at most {MOST_JOBS:,}", hint="ask it in several sweeps"
        )
    for block, place in [*(blocks["matrix"] if matrix else []), *blocks["include"]]:
        if "model" not in block:
            known = [*axes.FIXED, "any named axis of the inputs"]
            near = next(filter(None, (did_you_mean(each, ["model"]) for each in block)), "")
            raise place.refused("no model is named", known=known, hint=near)


def _cells(block: Block, named: frozenset[str]) -> dict[str, list[Cell]]:
    given, place = block
    for axis in given:
        axes.check_name(axis, place.key(axis), named=named)
    return {
        axis: [
            (axes.value(axis, each, here), here)
            for each, here in reading.items(raw, place.key(axis))
        ]
        for axis, raw in given.items()
    }


def _matched(
    cells: dict[str, list[Cell]], found: Mapping[str, Resolved | NoResult]
) -> dict[str, set[str]]:
    """Return the texts by which an exclusion knows its jobs: models by their stable names."""
    return {
        axis: {name_of(str(each), found) if axis == "model" else str(each) for each, _ in several}
        for axis, several in cells.items()
    }


def _single(cells: dict[str, list[Cell]]) -> dict[str, Cell]:
    for several in cells.values():
        if len(several) > 1:
            place = several[1][1]
            raise place.refused("an entry of include is one job", hint="write an entry per value")
    return {axis: several[0] for axis, several in cells.items()}


# ── models and inputs ────────────────────────────────────────────────────────────────────────────


def _models(
    blocks: dict[str, list[Block]],
    sweep: Sweep,
    *,
    kind: str,
    rows: Mapping[str, ModelRow] | None,
) -> dict[str, Resolved | NoResult]:
    """Return what each reference of the sweep means, each looked up once."""
    found: dict[str, Resolved | NoResult] = {}
    for given, place in itertools.chain.from_iterable(blocks.values()):
        if "model" not in given:
            continue
        for raw, here in reading.items(given["model"], place.key("model")):
            reference = str(axes.value("model", raw, here))
            if reference in found:
                continue
            try:
                found[reference] = models.resolve(
                    reference,
                    root=sweep.root,
                    beside=sweep.beside,
                    kind=cast("Kind", kind),  # one of its words
                    rows=rows,
                )
            except NoResult as error:
                found[reference] = error
            except Refused as error:
                raise here.refused(error.what, why=error.why, hint=error.hint) from error
    return found


def inputs_of(model: Resolved, given: Given | None) -> Given | None:
    """Return the inputs that the sweep, else the model's row, specifies; None for neither."""
    if given is not None or model.defaults is None or model.defaults.inputs is UNSET:
        return given
    return Given(spec=model.defaults.inputs)


def _named(found: Iterable[Resolved | NoResult], given: Given | None) -> frozenset[str]:
    """Return the named axes that the jobs of a sweep can have."""
    resolved = (each for each in found if isinstance(each, Resolved))
    several = [given, *(inputs_of(each, given) for each in resolved)]
    return frozenset[str]().union(*(each.axes for each in several if each)) - {inputs.BATCH}


def _given(sweep: Sweep, top: Place) -> Given | None:
    block = sweep.document.data.get("inputs")
    if block is None:
        return None
    return inputs.given(block, top.key("inputs"), folders=(sweep.beside, sweep.root))


# ── what all jobs share ──────────────────────────────────────────────────────────────────────────


def _word(top: Place, key: str, known: tuple[str, ...], *, later: tuple[str, ...] = ()) -> str:
    """Return the word of a top-level key, the first known one where the sweep says nothing."""
    given = top.document.data.get(key, known[0])
    return reading.one_of(given, top.key(key), thing=key, known=known, later=later)


def _options(given: object, place: Place) -> dict[str, str | int | bool]:
    found: dict[str, str | int | bool] = {}
    for key, each in reading.mapping({} if given is None else given, place).items():
        if not isinstance(each, str | int | bool):
            what = f"expected text, a whole number, true or false, got {reading.kind_of(each)}"
            raise place.key(key).refused(what)
        whole = isinstance(each, int) and not isinstance(each, bool)
        found[key] = reading.whole(each, place.key(key), low=-(2**31)) if whole else each
    return found


def _tags(given: object, place: Place) -> dict[str, str]:
    said = reading.mapping({} if given is None else given, place)
    return {key: reading.text(each, place.key(key)) for key, each in said.items()}
