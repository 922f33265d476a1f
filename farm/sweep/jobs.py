"""From a checked sweep to its jobs: the product of the matrix, minus `exclude`, plus `include`."""

import itertools
from collections.abc import Iterator
from typing import Literal, cast

from msgspec import Struct

from farm import schema
from farm.models import Resolved
from farm.schema import Job, Precision
from farm.sweep import axes, inputs
from farm.sweep.inputs import Given
from farm.sweep.question import Cell, Question, inputs_of, name_of

Cells = dict[str, Cell]  # one combination: axis → its value and where that is written


class Found(Struct, frozen=True, kw_only=True):
    """One combination: its values by axis, and its job with what that needs, or why there is none.

    values: `model` by its stable name; axes that this model does not have are left out.
    """

    values: dict[str, str]
    job: Job | None = None
    reason: str = ""
    model: Resolved | None = None
    given: Given | None = None


def jobs(question: Question) -> Iterator[Found]:
    """Yield the combinations in order, the last axis of the matrix fastest, `include` at the end.

    Raises Refused for a combination that no machine could run: a precision on what cannot be cast,
    a batch that the inputs do not follow, a named axis without a value.
    """
    product = itertools.product(*question.matrix.values()) if question.matrix else []
    for cells in product:
        whole = _completed(dict(zip(question.matrix, cells, strict=True)), question)
        values = _values(whole, question)
        if not any(_matches(values, each) for each in question.excluded):
            yield _found(whole, values, question)
    for each in question.included:
        whole = _completed(each, question)
        yield _found(whole, _values(whole, question), question)


def _completed(cells: Cells, question: Question) -> Cells:
    """Return the combination with the defaults of what it leaves out, and nothing to spare."""
    place = question.top.key("matrix")
    model = question.models[str(cells["model"][0])]
    resolved = model if isinstance(model, Resolved) else None
    given = inputs_of(resolved, question.given) if resolved else question.given
    precision = "unspecified" if resolved and resolved.model.kind == "step" else "fp32"
    defaults = {"precision": precision, **axes.DEFAULTS}
    whole = cells | {
        axis: (value, place.key(axis)) for axis, value in defaults.items() if axis not in cells
    }
    has = given.axes if given else frozenset()
    return {axis: cell for axis, cell in whole.items() if axis in axes.FIXED or axis in has}


def _values(cells: Cells, question: Question) -> dict[str, str]:
    values = {axis: str(value) for axis, (value, _) in cells.items()}
    return {**values, "model": name_of(values["model"], question.models)}


def _matches(values: dict[str, str], excluded: dict[str, set[str]]) -> bool:
    return all(values.get(axis) in several for axis, several in excluded.items())


def _found(cells: Cells, values: dict[str, str], question: Question) -> Found:
    model = question.models[str(cells["model"][0])]
    if not isinstance(model, Resolved):
        return Found(values=values, reason=model.what)
    given = inputs_of(model, question.given)
    if given is None:
        raise question.top.key("inputs").refused(
            f"model {values['model']!r} needs inputs",
            hint="for example inputs: {x: {shape: [batch, 3, 224, 224]}}, or {} for none",
        )
    _check_precision(cells, model)
    _check_batch(cells, given)
    _check_named(cells, given, question)
    row = model.defaults
    job = Job(
        workload=schema.Workload(
            model=model.model,
            inputs=given.sized({k: v for k, (v, _) in cells.items() if isinstance(v, int)}),
            precision=cast("Precision", values["precision"]),  # the axis knows no other words
            batch=int(values["batch"]),
            mode="inference",
            backend=cast('Literal["torch", "fake"]', values["backend"]),  # likewise
            backend_options=question.options,
            item=question.item or (row.item if row else "item"),
        ),
        protocol=question.measuring.protocol_for(row.denormals if row else "as_is"),
        selector=axes.selector(values["device"], environment=values["environment"]),
    )
    return Found(values=values, job=job, model=model, given=given)


def _check_precision(cells: Cells, model: Resolved) -> None:
    precision, place = cells["precision"]
    if model.model.kind == "step" and precision != "unspecified":
        raise place.refused(
            f"precision {precision!r} cannot be applied to {model.model.name!r}",
            why="it is declared as kind: step, and a step is called as it is",
            hint="take `unspecified`; or let a function that accepts `precision` return the model, "
            "and declare kind: factory",
        )


def _check_batch(cells: Cells, given: Given) -> None:
    batch, place = cells["batch"]
    if not given.fits(int(batch)):
        raise place.refused(
            f"batch {batch} changes nothing",
            why="no shape of the inputs names `batch`",
            hint="write `batch` for the axis that grows: shape: [batch, 3, 224, 224]",
        )


def _check_named(cells: Cells, given: Given, question: Question) -> None:
    missing = sorted(given.axes - cells.keys() - {inputs.BATCH})
    if missing:
        raise question.top.key("matrix").refused(
            f"the axis {missing[0]!r} of the inputs has no value",
            hint=f"add it to the matrix: {missing[0]}: [128]",
        )
