"""A backend that does nothing about an iteration's surroundings measures the usual ones alone."""

import pytest

from farm.schema import Protocol
from workers.backends import LoadFailed
from workers.backends.usual import check_usual


def test_the_usual_is_measured():
    check_usual(Protocol(), backend="fake")


@pytest.mark.parametrize(
    ("field", "asked", "offered"),
    [
        ("input_policy", "rotate", "fixed"),
        ("input_scope", "host_pinned", "device"),
        ("output_scope", "host", "device"),
        ("l2", "flushed", "warm"),
        ("clocks", "locked_base", "as_found"),
    ],
)
def test_a_protocol_that_would_be_ignored_is_not_measured(field, asked, offered):
    with pytest.raises(LoadFailed) as caught:
        check_usual(Protocol(**{field: asked}), backend="fake")

    assert "unsupported" == caught.value.kind
    assert f"{field}: the fake backend offers {offered!r}, not {asked!r}" == caught.value.message
