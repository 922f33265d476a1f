"""A timed loop is not interrupted by the collector, and leaves it as it was."""

import gc

import pytest

from workers.timing import without_collector


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_off_inside_and_as_it_was_outside(enabled: bool) -> None:
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with without_collector():
            inside, frozen = gc.isenabled(), gc.get_freeze_count()
        after = gc.isenabled()
    finally:
        (gc.enable if was else gc.disable)()

    assert (False, enabled, True) == (inside, after, frozen > 0)
    assert 0 == gc.get_freeze_count()
