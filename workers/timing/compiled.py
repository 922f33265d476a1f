"""When a step is compiled for good: iterate until the compiler has been quiet for a while."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

_QUIET: Final = 3
_CAP: Final = 20


class Compiles(Protocol):
    """Counters of a compiler; None where nothing is compiled."""

    def events(self) -> int | None: ...
    def recompiles(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class CompilePhase:
    """How the compile phase went. settled: whether the compiler was quiet at its end."""

    seconds: float
    iterations: int
    recompiles: int | None
    settled: bool


def until_compiled(
    step: Callable[[], object],
    compiles: Compiles,
    clock: Callable[[], int],
    *,
    sync: Callable[[], None] | None = None,
    progress: Callable[[int], None] = lambda _done: None,
) -> CompilePhase:
    """Iterate until 3 iterations in a row passed without a compile event, at most 20.

    recompiles: those of this phase, so that what the first call compiled is none. progress: hears
    the iterations.
    """
    seen, counted = compiles.events(), compiles.recompiles()
    began, quiet, done = clock(), 0, 0
    while quiet < _QUIET and done < _CAP:
        step()
        if sync is not None:
            sync()
        done += 1
        now = compiles.events()
        quiet = quiet + 1 if now == seen else 0
        seen = now
        progress(done)
    again = compiles.recompiles()
    return CompilePhase(
        seconds=(clock() - began) / 1e9,
        iterations=done,
        recompiles=None if again is None or counted is None else again - counted,
        settled=quiet >= _QUIET,
    )
