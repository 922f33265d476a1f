"""Events by column."""

import numpy as np

from farm.trace.reading.columns import Events


def test_the_same_rows_are_chosen_in_every_column() -> None:
    """Each column holds other numbers, so that none can stand for another."""
    found = Events._make(np.arange(4) + 10 * at for at in range(len(Events._fields)))

    by_mask = found.where(np.array([True, False, False, True]))
    by_index = found.where(np.array([3, 0]))

    assert [[10 * at, 10 * at + 3] for at in range(8)] == [each.tolist() for each in by_mask]
    assert [[10 * at + 3, 10 * at] for at in range(8)] == [each.tolist() for each in by_index]
