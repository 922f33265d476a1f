"""How often torch has compiled in this process, so that no compiling hides among the samples."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

_STATE: Final = "torch._dynamo"
_MARKS: Final = ("_torchdynamo_orig_callable", "_compiled_call_impl")


class TorchCompiles:
    """Compile events since this was made; None while nothing has been compiled since.

    An event is a frame that the compiler took on, whether it came to a graph or not: that costs the
    time of an iteration either way. CUDA graphs are recorded at run time and count as well. A
    recompile is a frame taken on again, because a guard failed. The counters of torch are private
    (read as of 2.13; a version without them gives None), and those of `torch.jit` are not there.

    target: of it a compiled part is known before it runs. modules: the imported modules. Nothing is
    imported for an answer: that would cost an eager model a second and its memory.
    """

    def __init__(self, target: object, *, modules: Mapping[str, ModuleType] | None = None) -> None:
        self._modules = sys.modules if modules is None else modules
        self._declared = is_compiled(target)
        self._recordings = 0
        self._listens = False
        self._before = self._frames(), self._again()

    def events(self) -> int | None:
        """Return how many compile events there were; a look at three dictionaries."""
        self._listen()
        frames = self._frames() - self._before[0]
        if not frames and not self._recordings and not self._declared:
            return None
        return frames + self._recordings

    def recompiles(self) -> int | None:
        """Return how many of them took on a frame that had been compiled before."""
        if self.events() is None:
            return None
        return max(0, self._again() - self._before[1])

    def _frames(self) -> int:
        counters = self._part("utils", "counters")
        return int(counters["frames"]["total"]) if counters and "frames" in counters else 0

    def _again(self) -> int:
        counts = self._part("convert_frame", "FRAME_COMPILE_COUNTER")
        return sum(max(0, int(each) - 1) for each in counts.values()) if counts else 0

    def _listen(self) -> None:
        """Hear of work that the frames do not count: graphs recorded when the step runs."""
        handler = self._part("callback", "callback_handler")
        if self._listens or handler is None:
            return
        self._listens = True
        handler.register_start_callback(self._hear)

    def _hear(self, *started: Any) -> None:
        trigger = getattr(started[0], "callback_trigger", None) if started else None
        if getattr(trigger, "name", "DYNAMO") != "DYNAMO":
            self._recordings += 1

    def _part(self, module: str, name: str) -> Any:
        return getattr(self._modules.get(f"{_STATE}.{module}"), name, None)


def is_compiled(target: object) -> bool:
    """Whether a module, a module inside it, or a function went through `torch.compile`."""
    modules = getattr(target, "modules", None)
    parts = [target, *(modules() if callable(modules) else ())]
    return any(
        getattr(each, mark, None) is not None
        for each in parts
        for mark in (*_MARKS, "_orig_mod")
        if not isinstance(each, type)
    )
