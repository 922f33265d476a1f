"""From an assignment to a step: settings, import, build, cast, inputs, in this order."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from farm.errors import did_you_mean
from farm.schema import Capture, Data, Mode, Protocol, Tensor, Workload
from workers.backends import Clock, Loaded, LoadFailed
from workers.backends.inputs import Array, arrays
from workers.backends.torch import (
    calling,
    feeding,
    iteration,
    pipeline,
    placing,
    pools,
    precision,
    usercode,
)
from workers.backends.torch.step import TorchStep
from workers.record import Assignment

if TYPE_CHECKING:
    import torch

_OPTIONS = ("arrays",)
_HOW = "a factory that accepts `precision` casts itself; or declare `precision: unspecified`"


def load(assignment: Assignment, *, clock: Clock) -> Loaded:
    """Return the step, ready to run under the protocol's gradient mode, and the loading times.

    import_s covers the framework and the model's code; load_s building, casting and inputs.
    Pools, denormals and the path are this process's from then on; closing the step leaves the mode.
    """
    began = clock()
    workload, protocol = assignment.job.workload, assignment.job.protocol
    place = placing.place(assignment)
    feeding.check(protocol, on_gpu=place.accelerator is not None)
    wanted = _wanted(workload, assignment.bundle)
    resolved = {"arrays": wanted, "denormals": _denormals(wanted, assignment.threads, protocol)}
    pools.prepare_numpy(assignment.threads)
    loading = _loading(assignment)  # before the user's code, which may bring names of ours
    named = usercode.fetch(workload.model.ref, bundle=assignment.bundle)
    imported = clock()

    given = arrays(workload.inputs, batch=_drawn(assignment), npz=assignment.npz)
    made, inputs = _build(
        named,
        workload,
        given=given,
        resolved=resolved,
        device=place.device,
        held=_held(assignment, place.device),
    )
    torch_too = resolved["arrays"] == "torch"
    if torch_too:
        resolved["denormals"] = _prepare(assignment.threads, protocol)
    pools.check(assignment.threads, torch_too=torch_too)
    run, found, prepare = iteration.of(
        made, inputs, assignment, place=place, clock=clock, resolved=resolved, loading=loading
    )
    step = TorchStep(
        made,
        inputs,
        run=run,
        pipeline=found,
        prepare=prepare,
        declared=workload.precision,
        batch=workload.batch,
        resolved={**resolved, "kind": made.kind, **place.told},
        state=_gradients(protocol, workload.mode) if torch_too else ExitStack(),
        accelerator=place.accelerator,
    )
    return Loaded(step=step, import_s=(imported - began) / 1e9, load_s=(clock() - imported) / 1e9)


def _loading(assignment: Assignment) -> pipeline.Loading | None:
    """Return what loads the data of a captured training; it brings torch along."""
    if assignment.capture is UNSET or assignment.capture.data is UNSET:
        return None
    from workers.backends.torch import loading

    return loading


def _drawn(assignment: Assignment) -> int:
    """Return how many items to draw: one where a capture runs on its data alone.

    Whole batches of images that nothing looks at would take gigabytes.
    """
    capture = assignment.capture
    if isinstance(capture, Capture) and isinstance(capture.data, Data):
        has_data = capture.imgsz > 0 or capture.data.kind == "callable"
    else:
        has_data = isinstance(capture, Capture) and bool(capture.images)
    return 1 if has_data else assignment.job.workload.batch


def _held(assignment: Assignment, device: str) -> str:
    """Return where inputs wait: on the device, but for a captured training, which moves them."""
    captured = assignment.capture is not UNSET and assignment.job.workload.mode == "train"
    return "cpu" if captured else device


def _wanted(workload: Workload, bundle: str) -> usercode.Arrays:
    options = workload.backend_options
    for name in options:
        if name not in _OPTIONS:
            hint = did_you_mean(name, list(_OPTIONS))
            raise LoadFailed("model_error", f"the torch backend has no option {name!r}", hint)
    asked = options.get("arrays", "auto")
    if asked == "torch":
        return "torch"
    if asked == "numpy":
        return "numpy"
    if asked != "auto":
        raise LoadFailed("model_error", f"arrays: {asked!r} is none of auto, numpy, torch")
    return usercode.works_on(workload.model.ref, bundle=bundle)


def _denormals(wanted: str, threads: int, protocol: Protocol) -> str:
    """Return what became of denormals, which nothing flushes without torch."""
    if wanted == "torch":
        return _prepare(threads, protocol)
    return "not_supported" if protocol.denormals == "flush" else "as_is"


def _prepare(threads: int, protocol: Protocol) -> str:
    return pools.prepare_torch(threads, flush=protocol.denormals == "flush")


def _build(
    named: object,
    workload: Workload,
    *,
    given: Mapping[str, Array],
    resolved: dict[str, str],
    device: str,
    held: str,
) -> tuple[calling.Made, Mapping[str, object]]:
    """Return what is called and its inputs; `resolved` learns if tensors are needed after all.

    device: of the model; held: of the inputs.
    """
    tensors = None
    if resolved["arrays"] == "torch":
        tensors = _tensors(given, workload.inputs.spec, held)
    inputs: Mapping[str, object] = given if tensors is None else tensors
    offer = {
        "device": device,
        "precision": workload.precision,
        "batch": workload.batch,
        "inputs": inputs,
    }
    made = calling.make(named, workload.model.kind, offer=offer, inputs=inputs)
    if not calling.is_module(made.target):
        if workload.precision not in ("unspecified", "fp32") and not made.casts:
            raise LoadFailed("unsupported", f"a step cannot be cast to {workload.precision}", _HOW)
        return made, inputs
    if tensors is None:
        resolved["arrays"] = "torch"
        tensors = _tensors(given, workload.inputs.spec, held)
    return _cast(made, tensors, declared=workload.precision, device=device)


def _cast(
    made: calling.Made, inputs: "Mapping[str, torch.Tensor]", *, declared: str, device: str
) -> "tuple[calling.Made, Mapping[str, torch.Tensor]]":
    module = made.target
    assert calling.is_module(module), "only a module comes here"
    module = module.eval().to(device)
    if not made.casts:
        module = precision.cast_module(module, declared)
    cast = calling.Made(target=module, kind=made.kind, casts=made.casts)
    return cast, precision.cast_inputs(inputs, declared)


def _tensors(
    given: Mapping[str, Array], spec: Mapping[str, Tensor], device: str
) -> "dict[str, torch.Tensor]":
    import torch

    tensors = {name: torch.from_numpy(np.array(each)).to(device) for name, each in given.items()}
    for name, tensor in spec.items():
        if tensor.dtype == "bfloat16":
            tensors[name] = tensors[name].to(torch.bfloat16)
    return tensors


def _gradients(protocol: Protocol, mode: Mode) -> ExitStack:
    """Enter the asked mode for good: inside the timed loop it would cost every iteration.

    A training has gradients, whatever the protocol says of an inference.
    """
    import torch

    stack = ExitStack()
    if mode == "train":
        return stack
    if protocol.grad == "inference":
        stack.enter_context(torch.inference_mode())
    elif protocol.grad == "no_grad":
        stack.enter_context(torch.no_grad())
    return stack
