"""Files that others wrote: malformed ones, and traces of real machines, with what is known of them.

Nothing of them is kept here.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from farm.errors import Bad
from farm.trace.reading import columns, reader
from tests.farm.trace.reading.told import opened, told

SHARED: Final = Path(__file__).parents[5] / "shared/data/traces"
CHUNKS: Final = (1, 7, 64, 1000, reader.CHUNK, 64 << 20)
LAUNCHES: Final = ("runtime", "driver")


def known(what: str) -> dict[str, Any]:
    """Return what is known of some files, by their name; skips where they are not here."""
    if not SHARED.is_dir():
        pytest.skip("the shared data are not here")
    return dict(json.loads((SHARED / "expected.json").read_text("utf-8"))[what])


@pytest.mark.parametrize("chunk", CHUNKS)
def test_malformed_files_are_read_as_far_as_they_go(chunk: int) -> None:
    """`counted` names counters that must be raised; where it is empty, there must be none."""
    files = known("malformed")["files"]
    assert {each.name for each in (SHARED / "malformed").iterdir()} == set(files)

    for name, meant in files.items():
        path = SHARED / "malformed" / name
        if meant["exit"]:
            with pytest.raises(Bad) as caught:
                opened(path, chunk=chunk)
            assert meant["exit"] == caught.value.exit_code, name
            continue
        found = told(opened(path, chunk=chunk))
        kinds = Counter(each.kind for each in found.rows)
        assert meant["kernels"] == kinds["kernel"], name
        assert meant["launches"] == sum(kinds[each] for each in LAUNCHES), name
        assert meant.get("cpu_ops", 0) == kinds["op"], name
        counted = set(found.repaired | found.dropped)
        assert set(meant["counted"]) <= counted, name
        assert meant["counted"] or not counted, name


def test_a_malformed_file_says_the_same_for_every_chunk() -> None:
    for name, meant in known("malformed")["files"].items():
        if not meant["exit"]:
            path = SHARED / "malformed" / name
            first, *others = (told(opened(path, chunk=chunk)) for chunk in CHUNKS)
            assert [first] * len(others) == others, name


def test_real_traces_hold_the_work_that_is_known_and_no_fault() -> None:
    """In order of time on each stream, with a lane and a name for every span."""
    for name, meant in known("traces").items():
        found = opened(SHARED / name)

        kinds = np.bincount(found.events.kind, minlength=8).tolist()
        numbers = {key: each.get("value") for key, each in meant["numbers"].items()}
        assert (numbers["kernels"], numbers["memcpys"], numbers["memsets"]) == (
            *(kinds[columns.KERNEL], kinds[columns.MEMCPY], kinds[columns.MEMSET]),
        ), name
        assert not found.tally.dropped, name
        assert {*found.tally.repaired} <= {"non_finite", "null_name", "number_text"}, name
        assert np.all(found.events.start <= found.events.end), name
        assert len(found.names) > found.events.name.max(), name
        assert len(found.lanes) > found.events.lane.max(), name
