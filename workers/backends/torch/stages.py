"""An iteration as a chain of named stages: run through, marked for a profiler, or timed apart.

What a stage returns the next one gets; the first gets None. A clean pass calls the chain and
nothing else, so that a name costs it nothing.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from workers.backends import LoadFailed

Stage = tuple[str, Callable[[Any], Any]]
Mark = Callable[[str], AbstractContextManager[object]]
_END: Final = object()
_USED_UP: Final = "the function of the data returned batches that were used up before"


def chained(stages: Sequence[Stage]) -> Callable[[], object]:
    """Return a call of one iteration that runs the stages in turn and returns the last's value."""
    calls = [call for _, call in stages]
    if len(calls) == 1:
        only = calls[0]
        return lambda: only(None)

    def run() -> object:
        value = None
        for call in calls:
            value = call(value)
        return value

    return run


def marked(stages: Sequence[Stage], mark: Mark) -> Callable[[], object]:
    """Return the same call with every stage inside `mark("step/NAME")`."""
    named = [(f"step/{name}", call) for name, call in stages]

    def run() -> object:
        value = None
        for name, call in named:
            with mark(name):
                value = call(value)
        return value

    return run


def timed(
    stages: Sequence[Stage],
    iterations: int,
    *,
    clock: Callable[[], int],
    sync: Callable[[], None] | None,
    progress: Callable[[int], None] = lambda _done: None,
) -> Mapping[str, "array[int]"]:
    """Return what each stage took in each of so many iterations, in ns, synchronised at its ends.

    A stage that comes twice in an iteration is one name, whose times are added up. progress: hears
    the iterations, between them.
    """
    wait = sync or _nothing
    found = {name: array("q", bytes(8 * iterations)) for name, _ in stages}
    for at in range(iterations):
        value = None
        wait()
        before = clock()
        for name, call in stages:
            value = call(value)
            wait()
            now = clock()
            found[name][at] += now - before
            before = now
        progress(at + 1)
    return found


class Feed:
    """Batches one after the other, and how long each was waited for.

    fresh: begins one pass over the data. again: whether a pass that has ended begins anew. ended:
    the error for data that end after so many batches otherwise, since no iteration may run on a
    batch that was not there.
    """

    def __init__(
        self,
        fresh: Callable[[], Iterator[Any]],
        *,
        clock: Callable[[], int],
        again: bool,
        ended: Callable[[int], Exception],
    ) -> None:
        self._fresh, self._clock = fresh, clock
        self._again, self._ended = again, ended
        self._batches: Iterator[Any] | None = None
        self.waits_ns: array[int] = array("q")

    def __call__(self, _: object) -> Any:
        began = self._clock()
        if self._batches is None:
            self._batches = self._fresh()
        batch = next(self._batches, _END)
        if batch is _END and self._again and self.waits_ns:
            self._batches = self._fresh()
            batch = next(self._batches, _END)
            if batch is _END:
                raise LoadFailed("bad_data", _USED_UP, "let it return new ones at each call")
        if batch is _END:
            raise self._ended(len(self.waits_ns))
        self.waits_ns.append(self._clock() - began)
        return batch

    def restart(self) -> None:
        """Let the next batch be the first one of a new pass; what loads the old one ends now."""
        close = getattr(self._batches, "close", None)
        self._batches = None
        if close is not None:
            close()


def _nothing() -> None:
    """A device whose calls return finished work has nothing to wait for."""
