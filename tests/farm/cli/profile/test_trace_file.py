"""What is said of a whole file: its steps are counted once, and those of the window beside them."""

import pytest

from farm.cli.profile import trace_file
from tests.farm.trace import captures, g8
from tests.farm.trace.captures import Taken


def test_steps_that_are_not_measured_are_told_apart() -> None:
    """The first of several opens the window; what only a host did leaves it out."""
    assert "4 steps, 3 measured: the first opens the window" in trace_file.held(
        g8.analysis(g8.events(steps=4))
    )
    assert "4 steps, 3 measured: not the first" in trace_file.held(
        g8.analysis(captures.host(steps=4))
    )


@pytest.mark.parametrize("steps", [1, 3])
def test_no_step_is_missed_where_all_count_or_plain_ones_were_measured(steps: int) -> None:
    """The steps of a capture are not those of its trace."""
    captured = captures.analysis(Taken(events=g8.events(steps=steps), on_gpu=True))
    single = g8.analysis(g8.events(steps=1))

    assert f"{steps} step{'s' if steps > 1 else ''}" in trace_file.held(captured)
    assert "1 step" in trace_file.held(single)
