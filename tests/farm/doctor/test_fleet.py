"""Who serves a broker: nobody, somebody who leaves, or somebody of another farm."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from farm import __version__
from farm.doctor import Finding, fleet
from farm.ledger import Node, Spool
from tests.farm.doctor.sound import Told, loaded, node, one


def _look(folder: Path, nodes: Sequence[Node], *, leader: str = "host/1") -> list[Finding]:
    return list(fleet.look(Told(nodes, leader), loaded(folder)))


def test_a_farm_that_is_served_is_ok(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    nodes = [node("a", store=store, version=__version__), node("b", state="draining")]

    found = _look(tmp_path, nodes)

    assert ["ok"] * 5 == [each.state for each in found]
    assert "2 nodes, 2 slots; leaving: b" == one(found, "nodes").said


def test_where_nobody_ticks_a_scheduler_is_to_be_started(tmp_path: Path) -> None:
    found = one(_look(tmp_path, [node("a")], leader=""), "scheduler")

    assert ("warn", "farm scheduler") == (found.state, found.cure)


@pytest.mark.parametrize("nodes", [[], [node("a", state="draining")]], ids=["none", "leaving"])
def test_where_no_node_takes_work_one_is_to_be_started(tmp_path: Path, nodes: list[Node]) -> None:
    found = one(_look(tmp_path, nodes), "nodes")

    assert "warn" == found.state
    assert found.cure.startswith("farm-worker start")


def test_a_node_of_another_version_is_a_warning(tmp_path: Path) -> None:
    found = one(_look(tmp_path, [node("a", version="0.0.9"), node("b")]), "versions")

    assert "warn" == found.state
    assert f"this is {__version__}; a: 0.0.9" == found.said
    assert f"pip install 'profiling-farm[worker]=={__version__}'" in found.cure


def test_a_node_that_writes_elsewhere_fails(tmp_path: Path) -> None:
    """What it measures is never seen here, so a run here would never end."""
    nodes = [node("a", store="/mnt/other store"), node("b", store=str(tmp_path / "store"))]

    found = one(_look(tmp_path, nodes), "stores")

    assert "fail" == found.state
    assert f"here it is {tmp_path / 'store'}; a: /mnt/other store" in found.said
    assert found.cure.startswith("export FARM_STORE='/mnt/other store'")


def test_two_spellings_of_one_store_are_one(tmp_path: Path) -> None:
    nodes = [node("a", store=str(tmp_path / "store"))]
    told = list(fleet.look(Told(nodes), loaded(tmp_path, FARM_STORE=f"{tmp_path}/x/../store/")))

    assert "ok" == one(told, "stores").state


def test_what_a_node_does_not_tell_is_not_held_against_it(tmp_path: Path) -> None:
    found = _look(tmp_path, [node("a")])

    assert ["ok", "ok"] == [each.state for each in found if each.name in ("versions", "stores")]


@pytest.mark.parametrize(
    ("spool", "state", "said"),
    [
        (Spool(profiles=2), "ok", "2 profiles on the way to the store"),
        (
            Spool(profiles=2, age_s=90, trouble="the store is not there"),
            "warn",
            "2 profiles on a, the oldest for 1m30s: the store is not there",
        ),
        (Spool(is_full=True), "fail", "its disk or its spool is full, and it takes no job"),
        (Spool(aside=1), "fail", "1 profile on a cannot be stored"),
    ],
)
def test_what_keeps_profiles_from_the_store_is_told(
    tmp_path: Path, spool: Spool, state: str, said: str
) -> None:
    (found, *_) = [
        each for each in _look(tmp_path, [replace(node("a"), spool=spool)]) if each.name == "spool"
    ]

    assert (state, True) == (found.state, said in found.said)
    assert (state == "ok") == (found.cure == "")
