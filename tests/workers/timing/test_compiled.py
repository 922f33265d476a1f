"""When compiling has ended, by a compiler that is a script."""

from collections.abc import Callable

import pytest

from workers.fakes import FakeClock
from workers.timing import until_compiled


class Compiler:
    """Compiles at these iterations of the step, counted from 0."""

    def __init__(self, at: Callable[[int], bool]) -> None:
        self._at = at
        self.clock = FakeClock()
        self.calls = self._events = 0

    def step(self) -> object:
        if self._at(self.calls):
            self._events += 1
            self.clock.advance(500_000_000)
        self.clock.advance(1_000_000)
        self.calls += 1
        return None

    def events(self) -> int | None:
        return self._events

    def recompiles(self) -> int | None:
        return self._events


@pytest.mark.parametrize(
    ("at", "iterations", "recompiles", "settled"),
    [
        (lambda _i: False, 3, 0, True),
        (lambda i: i == 0, 4, 1, True),
        (lambda i: i in (1, 3), 7, 2, True),
        (lambda _i: True, 20, 20, False),
    ],
)
def test_the_phase_ends_after_three_quiet_iterations(
    at: Callable[[int], bool], iterations: int, recompiles: int, settled: bool
) -> None:
    """3 in a row without a compile event, at most 20, and it says whether that came."""
    compiler = Compiler(at)

    found = until_compiled(compiler.step, compiler, compiler.clock)

    assert (iterations, recompiles, settled) == (found.iterations, found.recompiles, found.settled)
    assert iterations == compiler.calls
    assert found.seconds == pytest.approx(0.5 * recompiles + 0.001 * iterations)


def test_each_iteration_is_waited_for() -> None:
    """An asynchronous step would compile later than it is asked about."""
    compiler = Compiler(lambda _i: False)
    waited: list[int] = []

    until_compiled(
        compiler.step, compiler, compiler.clock, sync=lambda: waited.append(compiler.calls)
    )

    assert [1, 2, 3] == waited


def test_each_iteration_is_told() -> None:
    """A compiler that takes minutes over a shape is no silent child."""
    compiler, heard = Compiler(lambda _i: False), []

    until_compiled(compiler.step, compiler, compiler.clock, progress=heard.append)

    assert [1, 2, 3] == heard
