"""SIGKILL before every step of a put, of a swap and of a parcel: nothing half, nothing lost."""

from pathlib import Path

import pytest

from farm.store import LocalStore, NotFound
from tests.store.steps import died
from tests.workers.test_spool import PROFILE, page
from workers.spool import Spool

MOST = 60


def walked(code: str, after: object) -> int:
    """Kill the code at each of its steps, look after each at what it left; return how many."""
    for step in range(1, MOST):
        ended = not died(code, step)
        after(step, ended)  # type: ignore[operator]
        if ended:
            return step - 1
    pytest.fail("the walk never came to an end")


def test_a_put_is_there_whole_or_not_at_all_and_is_completed_by_the_next(tmp_path: Path) -> None:
    """A leftover of the killed one is in nobody's way and in no listing."""
    store = LocalStore(tmp_path / "store")
    code = f"""
from pathlib import Path
from farm.store import LocalStore
store = LocalStore(Path({str(store.root)!r}))
begin()
store.put_new(f"a/{{sys.argv[1]}}.bin", b"whole" * 1000)
"""

    def after(step: int, ended: bool) -> None:
        key = f"a/{step}.bin"
        listed = [each.size for each in store.list(key)]
        assert listed in ([], [5000]) if not ended else [5000] == listed
        assert store.put_new(key, b"whole" * 1000) == (not listed)
        assert b"whole" * 1000 == store.get(key)

    assert walked(code, after) >= 4


def test_a_swap_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    code = f"""
from pathlib import Path
from farm.store import LocalStore
store = LocalStore(Path({str(store.root)!r}))
before = [each.etag for each in store.list("tags/x.json")]
begin()
store.swap("tags/x.json", sys.argv[1].encode(), expect=before[0] if before else None)
"""
    last = b""

    def after(step: int, ended: bool) -> None:
        nonlocal last
        try:
            found = store.get("tags/x.json")
        except NotFound:
            found = b""
        assert found in ((str(step).encode(),) if ended else (last, str(step).encode()))
        last = found

    assert walked(code, after) >= 4


def test_a_parcel_is_in_the_spool_whole_or_not_at_all(tmp_path: Path) -> None:
    """What was left half has no name that a reader takes, and is swept later."""
    spool = Spool(tmp_path, place="x")
    code = f"""
from pathlib import Path
from tests.workers.test_spool import PROFILE, page
from workers.spool import Spool
spool = Spool(Path({str(tmp_path)!r}), place="x")
begin()
spool.write(page(), [b"log", PROFILE])
"""
    seen: set[str] = set()

    def after(step: int, ended: bool) -> None:
        new = set(spool.names()) - seen
        seen.update(new)
        assert len(new) == 1 if ended else len(new) <= 1
        for name in new:
            parcel = spool.read(name).parcel
            assert page() == parcel
            assert [b"log", PROFILE] == [spool.path(name, e).read_bytes() for e in parcel.goods]

    assert walked(code, after) >= 6
    spool.sweep(age_s=-60)
    assert sorted([*seen, "store.txt"]) == sorted(each.name for each in tmp_path.glob("*/*"))
