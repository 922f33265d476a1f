"""From an assignment to a step: the file, its session, its precision, its inputs."""

from importlib.util import find_spec
from pathlib import Path

from farm import graphs
from farm.errors import FarmError
from farm.graphs import Graph
from farm.schema import PRECISIONS, Capture, Workload
from workers.backends import Clock, Loaded, LoadFailed
from workers.backends.onnx import session
from workers.backends.onnx.feeding import feed
from workers.backends.onnx.session import Settings
from workers.backends.onnx.step import OnnxStep
from workers.backends.usual import check_usual
from workers.record import Assignment


def load(assignment: Assignment, *, clock: Clock) -> Loaded:
    """Return the step of an ONNX file, and the loading times.

    import_s covers the runtime; load_s reading the file, optimising the graph, making its inputs.
    Raises LoadFailed: `environment` without the runtime, `unsupported` for an operator, an opset or
    a provider that is not there, `precision_mismatch` where the graph holds another precision.
    """
    began = clock()
    workload, protocol = assignment.job.workload, assignment.job.protocol
    _check_asked(assignment)
    session.runtime()
    session.check_provider(workload.backend_options)
    imported = clock()

    path = _find(workload, assignment.bundle)
    graph = _read(path)
    _check_precision(graph, workload)
    flush = protocol.denormals == "flush"
    settings = Settings(path=path, threads=assignment.threads, flush=flush)
    opened = session.opened(settings)
    done = "flush" if session.flushes() else "not_supported"
    step = OnnxStep(
        opened,
        settings,
        graph,
        feed(graph.inputs, workload, npz=assignment.npz),
        batch=workload.batch,
        resolved={"provider": session.PROVEN, "denormals": done if flush else "as_is"},
        unused=_unused(assignment),
    )
    return Loaded(step=step, import_s=(imported - began) / 1e9, load_s=(clock() - imported) / 1e9)


def _unused(assignment: Assignment) -> tuple[str, ...]:
    """Return what a capture says in vain: a graph has one stage, and may fix the side of images."""
    capture = assignment.capture
    sized = isinstance(capture, Capture) and capture.imgsz
    return ("conf", "iou", "max_det") if sized else ("conf", "iou", "max_det", "imgsz")


def _check_asked(assignment: Assignment) -> None:
    if assignment.accelerator:
        what = f"the onnx backend computes on a CPU, not on {assignment.accelerator}"
        raise LoadFailed("unsupported", what)
    check_usual(assignment.job.protocol, backend="onnx")


def _find(workload: Workload, bundle: str) -> Path:
    """Return the file: in the bundle, else in an installed package, which is not imported."""
    ref = workload.model.ref
    if not graphs.is_graph(ref):
        raise LoadFailed(
            "unsupported",
            f"the onnx backend runs .onnx files, not {ref!r}",
            "export the model with torch.onnx.export, and name the file",
        )
    if bundle:
        root = Path(bundle).resolve()
        path = (root / ref).resolve()
        if not path.is_relative_to(root) or not path.is_file():
            raise LoadFailed("model_error", f"the bundle has no file {ref!r}")
        return path
    package = ref.partition("/")[0]
    spec = find_spec(package) if package.isidentifier() else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder).parent / ref
        if path.is_file():
            return path
    hint = f"install {package!r} in the environment of the worker"
    raise LoadFailed("environment", f"no installed package has {ref!r}", hint)


def _read(path: Path) -> Graph:
    try:
        return graphs.read(path)
    except FarmError as error:
        raise LoadFailed("model_error", f"{error.what}: {error.why}", error.hint) from error


def _check_precision(graph: Graph, workload: Workload) -> None:
    """Hold what was declared against what most of the parameters are; nothing here is cast."""
    found, declared = graphs.precision(graph), workload.precision
    if declared in ("unspecified", found) or found == "unspecified":
        return
    word = found if found in PRECISIONS else "unspecified"
    raise LoadFailed(
        "precision_mismatch",
        f"declared {declared}, observed {found}",
        f"a graph is run as it is: declare `precision: {word}`",
    )
