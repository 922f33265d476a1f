"""The step that the child measures: a bound call, and what can be told about it."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from farm.schema import WeightSpread
from workers.backends import (
    LayerAsk,
    LayerPass,
    LoadFailed,
    NotOffered,
    StageAsk,
    StepFacts,
    TraceAsk,
)
from workers.backends.torch import cost, layers, outputs, pools, precision, tracing, weights
from workers.backends.torch.calling import Made, is_module
from workers.backends.torch.compiling import TorchCompiles
from workers.backends.torch.cuda import TorchCuda
from workers.backends.torch.pipeline import Pipeline
from workers.backends.torch.stages import timed
from workers.record import CostReading, TraceReading

if TYPE_CHECKING:
    import torch

_DECLARE = "say `kind: factory` where the reference builds a model"


class TorchStep:
    """A module or function with its inputs in place.

    On a CPU a call returns finished work, so there is nothing to wait for. accelerator: the device
    that computes, and every other visible one, which a model may have put work on (S1.19). run: the
    whole of the pipeline, which says of what it is made; prepare: what comes before each call.
    """

    layer_iterations = 100

    def __init__(
        self,
        made: Made,
        inputs: Mapping[str, object],
        *,
        run: Callable[[], object],
        pipeline: Pipeline,
        prepare: Callable[[], object] | None = None,
        declared: str,
        batch: int,
        resolved: Mapping[str, str],
        state: ExitStack,
        accelerator: TorchCuda | None = None,
    ) -> None:
        self.accelerator = accelerator
        self.sync = None if accelerator is None else accelerator.synchronize
        self.compiles = TorchCompiles(made.target)
        self._target = made.target
        self._casts = made.casts
        self._run, self.prepare = run, prepare
        self._pipeline = pipeline
        self._inputs = inputs
        self._declared = declared
        self._batch = batch
        self._resolved = dict(resolved)
        self._state = state
        self._prepared = outputs.digest(outputs.leaves(inputs))
        self._output_types: set[object] | None = None
        self._output_share: float | None = None
        self._output_digest = ""

    def __call__(self) -> object:
        return self._run()

    def enter(self, phase: str) -> None:
        """All phases run the same call."""

    def facts(self) -> StepFacts:
        torch_too = self._resolved["arrays"] == "torch"
        seen = precision.observed(self._module) if torch_too else {}
        seen["inputs"] = precision.words(each.dtype for each in outputs.leaves(self._inputs))
        if self._output_types is not None:
            seen["output"] = precision.words(self._output_types)
        return StepFacts(
            precision_observed=seen,
            effective_threads=pools.effective(torch_too=torch_too),
            resolved=self._resolved,
            subnormal_share=self._subnormal_share(),
            kinds={
                "model": "module" if self._module is not None else "step",
                "arrays": self._resolved["arrays"],
            },
            output_digest=self._output_digest,
            waits_ns=tuple(feed.waits_ns) if (feed := self._pipeline.feed) else (),
            loaders=self._pipeline.loaders,
            unused=self._pipeline.unused,
            notes=tuple(self._pipeline.notes),
            pipeline=self._pipeline.kind,
        )

    def check_output(self, output: object) -> list[str]:
        """Note what the output is; for a module's, what is wrong with it is a failure.

        Flags of a callable: nonfinite_output, precision_mismatch. Raises LoadFailed if a step
        returned something that is itself to be called: then it was a factory.
        """
        if is_module(output) or callable(output):
            raise LoadFailed("model_error", "the step returned a model, not an output", _DECLARE)
        if (what := outputs.unfinished(output)) is not None:
            raise LoadFailed(
                "model_error",
                f"the step returned {what}: the work is not done when the call returns",
                "run it to its end inside the step",
            )
        found = list(outputs.leaves(output))
        self._output_types = {each.dtype for each in found}
        self._output_share = outputs.subnormal_share(found)
        self._output_digest = outputs.digest(found)
        flags = []
        if not all(outputs.is_finite(each) for each in found):
            flags.append("nonfinite_output")
        if not precision.is_declared(self._declared, self._judged_types()):
            flags.append("precision_mismatch")
        if self._module is not None and flags:
            raise self._failure(flags[0])
        return flags

    def arrays(self, output: object) -> Mapping[str, outputs.Array]:
        return outputs.named(output)

    def layers(self, asked: LayerAsk) -> LayerPass:
        self._only_forward()
        return layers.measure(self._whole_module(), self._run, asked, device=self.accelerator)

    def trace(self, asked: TraceAsk) -> TraceReading:
        feed = self._pipeline.feed
        return tracing.take(
            self._pipeline.stages,
            asked,
            accelerator=self.accelerator,
            restart=feed.restart if feed is not None else lambda: None,
        )

    def stages(self, asked: StageAsk) -> dict[str, list[int]]:
        found = timed(
            self._pipeline.stages,
            asked.iterations,
            clock=asked.clock,
            sync=self.sync,
            progress=lambda done: asked.progress("stages", done),
        )
        return {name: list(times) for name, times in found.items()}

    def weights(self) -> WeightSpread:
        found = weights.spread(self._whole_module())
        if found is None:
            raise NotOffered("not_applicable", "it has no floating-point weights")
        return WeightSpread(
            n=found.n,
            used=found.used,
            percentiles=found.percentiles,
            shares_below=found.shares_below,
        )

    def cost(self) -> CostReading:
        self._only_forward()
        module = self._whole_module()
        return cost.read(module, self._run, self._inputs, batch=self._batch)

    def inputs_mutated(self) -> bool:
        return outputs.digest(outputs.leaves(self._inputs)) != self._prepared

    def close(self) -> None:
        self._state.close()

    def _whole_module(self) -> "torch.nn.Module":
        """Return the module; a function has no layers, and nobody knows what it needs."""
        if self._module is None:
            raise NotOffered("not_applicable", "a function has no layers that could be told apart")
        return self._module

    def _only_forward(self) -> None:
        """Refuse to look into a step that is more than a forward pass: only that is told apart."""
        if [name for name, _ in self._pipeline.stages] != ["forward"]:
            raise NotOffered("not_supported", "only a forward pass is looked into")

    @property
    def _module(self) -> "torch.nn.Module | None":
        return self._target if is_module(self._target) else None

    def _judged_types(self) -> set[object]:
        """What the declaration is held against.

        A module that was cast here is judged by its parameters: its output may well be wider. One
        that casts itself may keep wide parameters under autocast, so either will do.
        """
        types: set[object] = set(self._output_types or ())
        if self._module is None:
            return types
        parameters = precision.parameter_types(self._module)
        return {*parameters, *types} if self._casts or not parameters else {*parameters}

    def _failure(self, flag: str) -> LoadFailed:
        if flag == "nonfinite_output":
            return LoadFailed("nonfinite", "the output holds NaN or infinity")
        return LoadFailed(
            "precision_mismatch",
            f"declared {self._declared}, observed {precision.words(self._judged_types())}",
        )

    def _subnormal_share(self) -> float | None:
        shares = [outputs.subnormal_share(outputs.leaves(self._inputs)), self._output_share]
        if self._module is not None:
            shares.append(outputs.subnormal_share(self._module.parameters()))
        return max((each for each in shares if each is not None), default=None)
