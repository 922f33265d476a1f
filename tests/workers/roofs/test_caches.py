"""How large a stream must be, given what the last-level caches hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.roofs.caches import MIB, working_sets


@pytest.mark.parametrize(
    ("cache", "free", "expected"),
    [
        (8 * MIB, None, ([1 * MIB, 4 * MIB, 32 * MIB], 256 * MIB)),
        (480 * MIB, 16 << 30, ([1 * MIB, 4 * MIB, 32 * MIB], 1920 * MIB)),
        (480 * MIB, 2 << 30, ([1 * MIB, 4 * MIB, 32 * MIB], 512 * MIB)),
        (None, None, ([1 * MIB, 4 * MIB, 32 * MIB], 1024 * MIB)),
        (8 * MIB, 64 * MIB, ([1 * MIB, 4 * MIB], 16 * MIB)),
    ],
)
def test_memory_is_four_times_the_caches_where_it_is_free(
    cache: int | None, free: int | None, expected: tuple[list[int], int]
) -> None:
    assert expected == working_sets(cache, cores=1, free_bytes=free)


@given(
    st.one_of(st.none(), st.integers(1, 1 << 34)),
    st.integers(1, 256),
    st.one_of(st.none(), st.integers(0, 1 << 42)),
)
def test_sets_ascend_and_leave_most_of_the_memory_alone(
    cache: int | None, cores: int, free: int | None
) -> None:
    sets, memory = working_sets(cache, cores=cores, free_bytes=free)

    assert sorted(sets) == sets
    assert all(2 * each <= memory for each in sets)
    if free is not None:
        assert memory <= free / 4
    if free is None or free >= 4 << 40:
        assert memory >= 4 * (cache or 0)
