"""The devices of a farm: each once, with what it does now."""

import msgspec
import pytest
from msgspec.structs import replace

from farm import answers, fleet
from farm.ledger import Node, Record, Spool
from tests.farm import make

CPU = make.slot(store="/srv/store", version="0.2.0")
GPU = make.slot(node="gpu-1", classes=["hw.h100", "any"], slot="gpu:0", device="H100")
SECOND = make.slot(node="gpu-1", classes=["hw.h100", "any"], slot="gpu:1", device="H100")
LAPTOP = Node(name="laptop", state="up", silent_s=0.4, slots=[CPU])
RACK = Node(name="gpu-1", state="draining", silent_s=3.0, slots=[SECOND, GPU])
HELD_UP = replace(
    RACK,
    spool=Spool(
        profiles=12, bytes=40_000, age_s=200.0, trouble="the store is not there", is_full=True
    ),
)


def running(owner: str, *, run=make.RUN) -> Record:
    return Record(key=f"{make.job().job_id}.base", state="RUNNING", owner=owner, run=run)


def test_a_device_that_holds_no_entry_is_idle_with_all_that_its_agent_said():
    (found,) = fleet.devices([LAPTOP], [], [], of=None)

    assert (
        answers.Device(
            node="laptop",
            slot="cpu:0",
            device="AMD EPYC 7B13",
            state="idle",
            job="",
            run_id="",
            queues=["hw.cpu", "any"],
            store="/srv/store",
            farm_version="0.2.0",
            silent_s=0.4,
        )
        == found
    )


def test_a_device_that_measures_names_its_job_and_run():
    """The owner is the slot worker; which one of a slot's life it is matters to nobody here."""
    found = fleet.devices([LAPTOP, RACK], [running("gpu-1/gpu:1#b7")], [], of=None)

    assert [("cpu:0", "idle"), ("gpu:0", "draining"), ("gpu:1", "measuring")] == [
        (each.slot, each.state) for each in found
    ]
    assert (make.job().job_id, make.RUN) == (found[2].job, found[2].run_id)


def test_a_slot_of_another_node_by_the_same_name_is_another_device():
    (found,) = fleet.devices([LAPTOP], [running("desk/cpu:0#a")], [], of=None)

    assert "idle" == found.state


def test_one_node_alone_can_be_asked_for():
    assert ["gpu-1"] * 2 == [
        each.node for each in fleet.devices([LAPTOP, RACK], [], [], of="gpu-1")
    ]
    assert [] == fleet.devices([LAPTOP, RACK], [], [], of="desk")


def test_the_table_shows_a_row_for_each_device():
    """The job as one may ask for it, shortened; a device at rest has none."""
    found = fleet.devices([RACK], [running("gpu-1/gpu:0#a", run="r-7")], [], of=None)

    table = fleet.table(found)

    assert [
        ["gpu-1", "gpu:0", "H100", "measuring", f"r-7/{make.job().job_id[:8]}", "hw.h100 any"],
        ["gpu-1", "gpu:1", "H100", "draining", "–", "hw.h100 any"],
    ] == [[each.text for each in row] for row in table.rows]


@pytest.mark.parametrize("unserved", [{}, {"hw.a100": 2}])
def test_the_document_is_one_of_the_published_answers(unserved):
    held = fleet.spools([HELD_UP])
    document = fleet.document(fleet.devices([LAPTOP, RACK], [], [], of=None), unserved, held)

    told = msgspec.json.encode(document)

    assert (3, unserved, ["gpu-1"]) == (
        len(document.devices),
        document.unserved,
        [each.node for each in document.spools],
    )
    assert document == msgspec.json.decode(told, type=answers.Nodes, strict=True)


# ── what waits for the store ─────────────────────────────────────────────────────────────────────


def test_a_spool_that_is_held_up_says_how_much_waits_how_long_and_why():
    assert [
        "12 profiles wait on node gpu-1 for the store, the oldest for 3m20s: "
        "the store is not there",
        "node gpu-1 takes no job: its spool is full",
    ] == fleet.spool_lines(fleet.spools([LAPTOP, HELD_UP]))
    assert ["full", "full"] == [each.state for each in fleet.devices([HELD_UP], [], [], of=None)]


def test_a_spool_that_empties_as_it_fills_is_no_news():
    busy = replace(RACK, spool=Spool(profiles=1, bytes=3000, age_s=0.1))

    assert ([], 1) == (fleet.spool_lines(fleet.spools([busy])), len(fleet.spools([busy])))
    assert [] == fleet.spools([LAPTOP, RACK])


def test_what_the_store_cannot_take_is_counted():
    lame = replace(RACK, spool=Spool(aside=1))

    assert ["1 profile on node gpu-1 cannot be stored; its log says why"] == (
        fleet.spool_lines(fleet.spools([lame]))
    )


def test_what_holds_a_run_up_is_told_without_figures_that_change():
    """So that it is said once."""
    assert ["measured profiles wait on node gpu-1: the store is not there"] == (
        fleet.held_up([LAPTOP, HELD_UP])
    )
