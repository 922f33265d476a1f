"""Iterations of two kinds take turns, in blocks that a budget makes smaller."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.timing import in_turns


class Turns:
    """Iterations that take so long on a clock that nothing else moves; noted by their kind."""

    def __init__(self, each_ns: int) -> None:
        self.now, self.each_ns, self.told = 0, each_ns, []
        self.ran: list[tuple[str, int]] = []

    def go(self, iterations: int, *, typical_ns: float = 0.0, budget_ns: int | None = None) -> int:
        return in_turns(
            lambda size: self._ran("clean", size),
            lambda size: self._ran("instrumented", size),
            iterations=iterations,
            typical_ns=typical_ns,
            budget_ns=budget_ns,
            clock=lambda: self.now,
            progress=self.told.append,
        )

    def _ran(self, kind: str, size: int) -> None:
        self.now += size * self.each_ns
        self.ran.append((kind, size))

    def sizes(self, kind: str) -> list[int]:
        return [size for each, size in self.ran if each == kind]


@given(st.integers(1, 500))
def test_all_iterations_run_in_ten_even_blocks(iterations: int) -> None:
    """Clean ones first; fewer than ten iterations are as many blocks."""
    turns = Turns(1)

    blocks = turns.go(iterations)

    sizes = turns.sizes("instrumented")
    assert min(10, iterations) == blocks == len(sizes)
    assert sizes == turns.sizes("clean")
    assert ["clean", "instrumented"] * blocks == [kind for kind, _ in turns.ran]
    assert iterations == sum(sizes) == turns.told[-1]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 300), st.integers(1, 50), st.integers(1, 20_000))
def test_a_budget_is_exceeded_by_a_tenth_or_by_a_pair_at_most(
    iterations: int, each_ns: int, budget_ns: int
) -> None:
    """One pair runs however slow it is."""
    turns = Turns(each_ns)

    turns.go(iterations, typical_ns=each_ns, budget_ns=budget_ns)

    assert turns.now <= budget_ns + max(0.1 * budget_ns, 2 * each_ns)
    assert turns.now >= budget_ns or iterations == turns.told[-1]
    assert turns.told


@pytest.mark.parametrize(("budget_ns", "blocks"), [(None, 10), (100, 5), (40, 2), (41, 3)])
def test_no_block_begins_once_the_budget_is_spent(budget_ns: int | None, blocks: int) -> None:
    """Twenty iterations of 5 ns in ten blocks of two, where nobody knows what one takes."""
    assert blocks == Turns(5).go(20, budget_ns=budget_ns)
