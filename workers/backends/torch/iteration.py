"""What one iteration of an assignment runs: a call on its inputs, a training step, a pipeline."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import UNSET, structs

from farm.schema import Capture, Data, Protocol
from workers.backends import Clock, LoadFailed, explain
from workers.backends.torch import calling, feeding, fitting, pipeline, placing, stages, training
from workers.record import Assignment

_TRIED = 2  # steps at a batch: the second has the moments of the optimiser
_MODULE = "name a module, or what returns one"


def of(
    made: calling.Made,
    inputs: Mapping[str, object],
    assignment: Assignment,
    *,
    place: placing.Place,
    clock: Clock,
    resolved: dict[str, str],
    loading: pipeline.Loading | None,
) -> tuple[Callable[[], object], pipeline.Pipeline, Callable[[], object] | None]:
    """Return the call of an iteration, what it is made of, and what prepares each one.

    resolved: learns the batch that fits, where that is asked for. Raises LoadFailed for a function
    where a module is needed, and for a training whose protocol moves or changes its inputs.
    """
    workload, capture = assignment.job.workload, assignment.capture
    if capture is UNSET and workload.mode == "inference":
        fed = feeding.feed(made.target, inputs, assignment.job.protocol, place)
        only = pipeline.Pipeline(stages=[("forward", lambda _: fed.run())])
        return fed.run, only, fed.prepare
    module = made.target
    if not calling.is_module(module):
        what = "a function has nothing to train" if workload.mode == "train" else "it is a function"
        raise LoadFailed("unsupported", what, _MODULE)
    if workload.mode == "train":
        _check_protocol(assignment.job.protocol)
    if not isinstance(capture, Capture):
        batch = training.sample(module, inputs, batch=workload.batch)
        notes: list[str] = []
        learn = training.learning(
            module, batch, autocast="", device=place.device, stand_in=True, notes=notes
        )
        found = pipeline.Pipeline(stages=learn, notes=notes)
    elif workload.mode == "train":
        assert loading is not None, "a captured training has data"
        training_of = partial(
            pipeline.of_training,
            module,
            inputs,
            loading=loading,
            device=place.device,
            clock=clock,
            again=bool(assignment.instruments),
            stand_in=workload.model.source == "zoo" or capture.experimental,
        )
        if capture.fit:
            resolved["fitted_batch"] = str(_fitted(training_of, capture, place))
        found = training_of(capture, batch=workload.batch)
    else:
        found = pipeline.of_inference(
            module, inputs, capture, batch=workload.batch, device=place.device
        )
    return stages.chained(found.stages), found, None


def _check_protocol(asked: Protocol) -> None:
    """Refuse what is said of inputs and caches: a training step is run on what lies in place."""
    usual = Protocol()
    for name in ("input_policy", "input_scope", "output_scope", "l2"):
        word = getattr(asked, name)
        if word != getattr(usual, name):
            raise LoadFailed("unsupported", f"{name}: {word!r} is not done for a training")


def _fitted(
    training_of: Callable[..., pipeline.Pipeline], capture: Capture, place: placing.Place
) -> int:
    """Return the batch that fits this GPU; its steps run here, on data without loader processes.

    It is no larger than the data allow: one pass over them has to fill the window.
    """
    device = place.accelerator
    if device is None:
        raise LoadFailed("unsupported", "a batch is fitted to the memory of a GPU")
    alone = structs.replace(capture, workers=0, warmup=0, steps=0)
    items = capture.data.count if isinstance(capture.data, Data) else None
    most, wanted = fitting.MOST, capture.warmup + capture.steps
    if items is not None:
        if items < wanted:
            raise pipeline.unfilled(items, capture, batch=1)
        most = min(most, items // wanted)

    def peak_at(batch: int) -> int | None:
        run = stages.chained(training_of(alone, batch=batch).stages)
        device.reset_peaks()
        try:
            for _ in range(_TRIED):
                run()
            device.synchronize()
        except RuntimeError as error:
            if explain(error).kind != "oom":
                raise
            return None
        peaks = [each.allocated_peak_bytes for each in device.peaks()]
        return max((each for each in peaks if each is not None), default=None)

    return fitting.fitted(peak_at, int(place.told["cuda_memory_bytes"]), most=most)
