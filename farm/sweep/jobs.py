"""From a checked sweep to its jobs: the product of the matrix, minus `exclude`, plus `include`."""

import itertools
from collections.abc import Iterator
from typing import Literal, cast

from msgspec import Struct

from farm import graphs, schema
from farm.errors import Refused
from farm.models import Resolved
from farm.schema import PRECISIONS, Job, Mode, Precision
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

    Raises Refused for a combination that no machine could run: a backend for other models, a
    precision on what cannot be cast, inputs that do not fit or do not follow the batch, a named
    axis without a value.
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
    backend = resolved.backend if resolved else "torch"
    defaults = {"precision": _precision(resolved), "backend": backend, **axes.DEFAULTS}
    whole = cells | {
        axis: (value, place.key(axis)) for axis, value in defaults.items() if axis not in cells
    }
    has = given.axes if given else frozenset()
    return {axis: cell for axis, cell in whole.items() if axis in axes.FIXED or axis in has}


def _precision(model: Resolved | None) -> str:
    """Return what a job declares where the sweep does not: what the model is, if it is fixed."""
    if model is None:
        return "fp32"
    if model.precision:
        return model.precision if model.precision in PRECISIONS else "unspecified"
    return "unspecified" if model.model.kind == "step" else "fp32"


def _values(cells: Cells, question: Question) -> dict[str, str]:
    values = {axis: str(value) for axis, (value, _) in cells.items()}
    return {**values, "model": name_of(values["model"], question.models)}


def _matches(values: dict[str, str], excluded: dict[str, set[str]]) -> bool:
    return all(values.get(axis) in several for axis, several in excluded.items())


def _found(cells: Cells, values: dict[str, str], question: Question) -> Found:
    model = question.models[str(cells["model"][0])]
    if not isinstance(model, Resolved):
        return Found(values=values, reason=model.what)
    _check_backend(cells, model)
    options = question.top.key("backend_options")
    axes.check_options(values["backend"], question.options, options)
    given = _given(model, question)
    _check_precision(cells, model)
    _check_mode(cells, model)
    _check_batch(cells, given, model)
    _check_graph(cells, given, model, question)
    _check_named(cells, given, question)
    row = model.defaults
    job = Job(
        workload=schema.Workload(
            model=model.model,
            inputs=given.sized({k: v for k, (v, _) in cells.items() if isinstance(v, int)}),
            precision=cast("Precision", values["precision"]),  # the axis knows no other words
            batch=int(values["batch"]),
            mode=cast("Mode", values["mode"]),  # likewise
            backend=cast('Literal["torch", "onnx", "fake"]', values["backend"]),  # likewise
            backend_options=question.options,
            item=question.item or (row.item if row else "item"),
        ),
        protocol=question.measuring.protocol_for(row.denormals if row else "as_is"),
        selector=axes.selector(values["device"], environment=values["environment"]),
    )
    return Found(values=values, job=job, model=model, given=given)


def _given(model: Resolved, question: Question) -> Given:
    given = inputs_of(model, question.given)
    if given is not None:
        return given
    place = question.top.key("inputs")
    if model.graph is None:
        raise place.refused(
            f"model {model.model.name!r} needs inputs",
            hint="for example inputs: {x: {shape: [batch, 3, 224, 224]}}, or {} for none",
        )
    try:
        return Given(spec=graphs.spec(model.graph.inputs, model=model.model.name))
    except Refused as error:
        raise place.refused(error.what, why=error.why, hint=error.hint) from error


def _check_backend(cells: Cells, model: Resolved) -> None:
    backend, place = cells["backend"]
    if backend in (model.backend, "fake"):
        return
    name = model.model.name
    if model.graph is not None:
        raise place.refused(
            f"backend {backend!r} cannot run {name!r}",
            why="an ONNX file is run by ONNX Runtime",
            hint="leave the axis out, or say onnx for this model",
        )
    raise place.refused(
        f"backend {backend!r} cannot run {name!r}",
        why="it runs ONNX files, and this is Python code",
        hint="export it with torch.onnx.export, and name the file",
    )


def _check_precision(cells: Cells, model: Resolved) -> None:
    precision, place = cells["precision"]
    if model.precision not in ("", "unspecified", precision) and precision != "unspecified":
        said = model.precision if model.precision in PRECISIONS else "unspecified"
        raise place.refused(
            f"precision {precision!r} cannot be applied to {model.model.name!r}",
            why=f"its parameters are {model.precision}, and a graph is run as it is",
            hint=f"take {said}, or leave the axis out",
        )
    if model.model.kind == "step" and precision != "unspecified":
        raise place.refused(
            f"precision {precision!r} cannot be applied to {model.model.name!r}",
            why="it is declared as kind: step, and a step is called as it is",
            hint="take `unspecified`; or let a function that accepts `precision` return the model, "
            "and declare kind: factory",
        )


def _check_mode(cells: Cells, model: Resolved) -> None:
    mode, place = cells["mode"]
    if mode != "train" or cells["backend"][0] == "fake":
        return
    what = f"{model.model.name!r} cannot be trained"
    if model.graph is not None:
        raise place.refused(what, why="an ONNX file is run as it is")
    if model.model.kind == "step":
        hint = "name what returns the module, and declare kind: factory"
        raise place.refused(what, why="it is declared as kind: step", hint=hint)


def _check_batch(cells: Cells, given: Given, model: Resolved) -> None:
    batch, place = cells["batch"]
    if given.fits(int(batch)):
        return
    if model.graph is not None:
        raise place.refused(
            f"batch {batch} changes nothing",
            why=f"the inputs of {model.model.name!r} have a fixed size",
            hint="export it with an open first axis, and call that `batch`",
        )
    raise place.refused(
        f"batch {batch} changes nothing",
        why="no shape of the inputs names `batch`",
        hint="write `batch` for the axis that grows: shape: [batch, 3, 224, 224]",
    )


def _check_graph(cells: Cells, given: Given, model: Resolved, question: Question) -> None:
    """Raise Refused for inputs that the graph does not take; another runtime need not care."""
    if model.graph is None or cells["backend"][0] == "fake":
        return
    values = {axis: value for axis, (value, _) in cells.items() if isinstance(value, int)}
    spec = given.sized(values).spec if given.axes <= {*values, inputs.BATCH} else given.spec
    name, batch = model.model.name, values["batch"]
    try:
        graphs.check(model.graph.inputs, spec, model=name, batch=batch)
    except Refused as error:
        place = question.top.key("inputs")
        raise place.refused(error.what, why=error.why, hint=error.hint) from error


def _check_named(cells: Cells, given: Given, question: Question) -> None:
    missing = sorted(given.axes - cells.keys() - {inputs.BATCH})
    if missing:
        raise question.top.key("matrix").refused(
            f"the axis {missing[0]!r} of the inputs has no value",
            hint=f"add it to the matrix: {missing[0]}: [128]",
        )
