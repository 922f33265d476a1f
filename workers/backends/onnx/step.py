"""The step that the child measures: one run of the session, and what can be told about it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from farm import graphs
from farm.graphs import Graph, Weight
from farm.schema import WeightSpread
from workers.backends import (
    LayerAsk,
    LayerPass,
    LoadFailed,
    NotOffered,
    StageAsk,
    StepFacts,
    TraceAsk,
    numbers,
)
from workers.backends.numbers import Array
from workers.backends.onnx import cost, layers, session
from workers.backends.onnx.session import Opened, Settings
from workers.record import CostReading, TraceReading


class OnnxStep:
    """A session with its inputs in place; a call returns finished work."""

    sync = compiles = accelerator = prepare = None
    layer_iterations = layers.ITERATIONS

    def __init__(
        self,
        opened: Opened,
        settings: Settings,
        graph: Graph,
        inputs: Mapping[str, Array],
        *,
        batch: int,
        resolved: Mapping[str, str],
        unused: Sequence[str] = (),
    ) -> None:
        self._opened, self._settings, self._graph = opened, settings, graph
        self._run = opened.session.run
        self._names = [each.name for each in opened.session.get_outputs()]
        self._inputs = dict(inputs)
        self._batch = batch
        self._resolved, self._unused = dict(resolved), tuple(unused)
        self._prepared = numbers.digest(self._inputs.values())
        self._output: list[Array] | None = None
        self._output_digest = ""

    def __call__(self) -> list[object]:
        try:
            return self._run(self._names, self._inputs)
        # Entering `try` costs nothing, and the runtime's own exceptions say little to the farm.
        except Exception:
            with session.explained(self._settings.path.name):
                raise

    def enter(self, phase: str) -> None:
        """All phases run the same call."""

    def facts(self) -> StepFacts:
        parameters, _ = graphs.parameters(self._graph)
        seen = {
            "parameters": _words(each.dtype for each in parameters),
            "inputs": _words(each.dtype.name for each in self._inputs.values()),
        }
        if self._output is not None:
            seen["output"] = _words(each.dtype.name for each in self._output)
        return StepFacts(
            precision_observed=seen,
            effective_threads={
                "onnxruntime": self._opened.threads,
                "onnxruntime_interop": 1,
            },
            resolved=self._resolved,
            subnormal_share=self._subnormal_share(parameters),
            kinds={"model": "graph"},
            output_digest=self._output_digest,
            unused=self._unused,
        )

    def check_output(self, output: object) -> list[str]:
        """Note what the output is; raise LoadFailed where it is not finite: the graph is ours."""
        found = list(self.arrays(output).values())
        self._output, self._output_digest = found, numbers.digest(found)
        if not all(numbers.is_finite(each) for each in found):
            raise LoadFailed("nonfinite", "the output holds NaN or infinity")
        return []

    def arrays(self, output: object) -> Mapping[str, Array]:
        """Return the tensors of an output by their names; text, lists and maps are left out."""
        found = output if isinstance(output, list) else [output]
        return {
            name: each
            for name, each in zip(self._names, found, strict=True)
            if isinstance(each, np.ndarray) and not each.dtype.hasobject
        }

    def layers(self, asked: LayerAsk) -> LayerPass:
        return layers.measure(self, self._settings, self._graph, self._inputs, asked)

    def trace(self, asked: TraceAsk) -> TraceReading:
        raise NotOffered("not_supported", "a graph runs outside of torch's profiler")

    def stages(self, asked: StageAsk) -> dict[str, list[int]]:
        raise NotOffered("not_applicable", "a graph has one phase")

    def weights(self) -> WeightSpread:
        raise NotOffered("not_supported", "weights of a graph are not looked into")

    def cost(self) -> CostReading:
        return cost.read(self._settings, self._graph, self._names, self._inputs)

    def inputs_mutated(self) -> bool:
        return numbers.digest(self._inputs.values()) != self._prepared

    def close(self) -> None:
        """Nothing was changed; the session ends with the step."""

    def _subnormal_share(self, parameters: list[Weight]) -> float | None:
        held = (
            self._inputs.values(),
            self._output or [],
            _numbers(parameters, self._settings.path),
        )
        shares = [numbers.subnormal_share((a, a.dtype.name) for a in some) for some in held]
        return max((each for each in shares if each is not None), default=None)


def _words(dtypes: Iterator[str]) -> str:
    return "+".join(sorted({graphs.word(each) for each in dtypes})) or "none"


def _numbers(parameters: list[Weight], path: Path) -> Iterator[Array]:
    """Yield the floating parameters as they lie in their files, each read when it is looked at."""
    for each in parameters:
        if (
            each.span is None
            or each.dtype not in ("float16", "float32", "float64")
            or not each.size
        ):
            continue
        begin, end = each.span
        if end - begin == each.nbytes:
            file = path.parent / each.file if each.file else path
            yield np.memmap(file, dtype=each.dtype, mode="r", offset=begin, shape=each.dims)
