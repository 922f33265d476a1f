"""Which queue a job waits in, and what is said of a queue that nobody hears."""

import msgspec
import pytest

from farm.queues import job_class, takeable, takers, unserved, unserved_lines
from farm.schema import Selector
from tests.farm import make

HERE, GONE = make.job(), make.job(device="h300")


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("any", "", "any"),
        ("class", "h100", "hw.h100"),
        ("node", "gpu-1", "node.gpu-1"),
        ("device", "gpu-1/2", "dev.gpu-1.2"),
    ],
)
def test_a_selector_names_a_queue(kind, value, name):
    """`queue.md` §3."""
    job = msgspec.structs.replace(make.job(), selector=Selector(kind=kind, value=value))

    assert name == job_class(job)


def test_takers_are_the_systems_of_the_slots_that_hear_the_queue():
    """Two slots of one system are one taker; a slot of another queue is none."""
    slots = [
        make.slot(),
        make.slot(node="desk"),
        make.slot(make.OTHER_SYSTEM, classes=["hw.h300", "any"]),
    ]

    assert {make.SYSTEM} == takers(HERE, slots)
    assert {make.OTHER_SYSTEM} == takers(GONE, slots)
    assert {make.SYSTEM, make.OTHER_SYSTEM} == takers(make.job(device="any"), slots)


def test_takeable_leaves_out_what_would_wait_for_ever():
    """A run may be resumed on a machine that lacks one of its devices."""
    assert [HERE] == takeable([HERE, GONE], [make.slot()])
    assert [] == takeable([HERE], [])


def test_unserved_counts_the_jobs_of_each_queue_that_nobody_hears():
    jobs = [HERE, GONE, make.job(batch=8, device="h300"), make.job(device="a100")]

    assert {"hw.a100": 1, "hw.h300": 2} == unserved(jobs, [make.slot()])
    assert {} == unserved([HERE], [make.slot()])


def test_an_unserved_queue_is_said_with_how_much_waits_in_it():
    assert [
        "no live device for hw.a100: 1 job waits until a node offers one",
        "no live device for hw.h300: 2 jobs wait until a node offers one",
    ] == unserved_lines({"hw.a100": 1, "hw.h300": 2})
    assert [] == unserved_lines({})
