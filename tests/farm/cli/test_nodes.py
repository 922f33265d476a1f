"""`farm nodes`: what each device does or why not, and what a person says to them."""

import json
import re
from collections.abc import Iterator

import jsonschema
import pytest
from msgspec import structs

from farm import published
from farm.ledger import Case, Claim, Ledger
from tests.farm import make

pytestmark = pytest.mark.redis

SLOTS = [
    structs.replace(make.slot(), node="n1", slot=f"gpu:{at}", classes=[f"dev.n1.{at + 3}", "any"])
    for at in range(2)
]


@pytest.fixture
def ledger(here, redis_url, monkeypatch) -> Iterator[Ledger]:
    """A farm with one node of two devices, named by the environment."""
    monkeypatch.setenv("FARM_BROKER", redis_url)
    made = Ledger(redis_url)
    made.setup()
    made.node("n1", state="up", slots=SLOTS)
    yield made
    made.close()


def rows(said):
    return [re.split(r"\s{2,}", each.strip()) for each in said.out.splitlines() if each]


def can_claim(ledger, at=0):
    return isinstance(ledger.claim(SLOTS[at], owner=f"n1/gpu:{at}#a"), Claim)


def test_devices_that_are_well_have_no_reason(farm, ledger):
    said = farm("nodes")

    assert (0, "") == (said.code, said.err)
    assert ["node", "slot", "device", "state", "job", "queues"] == rows(said)[0]
    assert ["idle", "idle"] == [each[3] for each in rows(said)[1:]]


@pytest.mark.parametrize("word", ["n1/gpu:1", "n1/4"])
def test_a_device_is_paused_by_its_slot_or_its_number(farm, ledger, word):
    said = farm("nodes", word, "--pause", "the fan is swapped")

    assert (0, "n1/gpu:1 claims nothing more; a job in hand ends\n") == (said.code, said.err)
    table = rows(said)
    assert ["n1", "gpu:0", "AMD EPYC 7B13", "idle", "–"] == table[1][:5]
    assert ["paused", "the fan is swapped"] == table[2][3:5]
    history = table[-1]
    assert ["gpu:1", "paused", "person", "the fan is swapped"] == history[1:]

    assert 0 == farm("nodes", word, "--unpause").code
    assert [] == ledger.holds()


def test_a_node_is_paused_with_all_its_devices(farm, ledger):
    farm("nodes", "n1", "--pause", "window")

    said = json.loads(farm("nodes", "n1", "--json").out)

    jsonschema.validate(said, published.json_schema("nodes"))
    assert [("paused", "window")] * 2 == [
        (each["state"], each["reason"]) for each in said["devices"]
    ]
    assert [("", "paused")] == [(each["slot"], each["kind"]) for each in said["history"]]


def test_what_a_person_takes_out_stays_out_until_a_person_clears_it(farm, ledger):
    farm("nodes", "n1/gpu:0", "--quarantine", "it smells")
    assert ["quarantine", "it smells"] == rows(farm("nodes"))[1][3:5]

    said = farm("nodes", "n1", "--clear", "cleaned")

    assert "n1/gpu:0 claims again as soon as its gates pass\n" == said.err
    assert "idle" == rows(said)[1][3]


def test_a_device_that_is_not_fit_says_why(farm, ledger):
    busy = structs.replace(SLOTS[0], trouble="device_idle: it is busy to 90 %")
    ledger.node("n1", state="up", slots=[busy, SLOTS[1]])

    assert ["unfit", "device_idle: it is busy to 90 %"] == rows(farm("nodes"))[1][3:5]


def test_more_faults_than_may_be_spared_are_one_alert_with_what_they_share(farm, ledger):
    for each in SLOTS:
        case = Case(
            node="n1",
            slot=each.slot,
            class_=each.system_class,
            severity="hard",
            cause="xid",
            job=f"{make.job().job_id}.base",
            run="r-1",
            driver="570.1",
        )
        ledger.quarantine(case, note="xid: Xid 79")

    said = farm("nodes")

    assert ["quarantine", "held"] == [each[3] for each in rows(said)[1:3]]
    assert (
        f"warning: 2 devices of {SLOTS[0].system_class} broke within a day, more than are taken "
        f"out at once: n1/gpu:1; they share cause xid, job {make.job().job_id[:12]}, run r-1, "
        "driver 570.1\n"
    ) == said.err
    assert 1 == len(json.loads(farm("nodes", "--json").out)["alerts"])


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (("--pause", "x"), 2, "no node is named"),
        (("n1", "--pause", "x", "--clear", "y"), 2, "one of --pause"),
        (("n1", "--pause", "a\nb"), 2, "the note is no line of text"),
        (("n1", "--pause", "x" * 501), 2, "the note is no line of text"),
        (("n2", "--pause", "x"), 3, "no node 'n2' on this farm"),
        (("n1/gpu:7", "--pause", "x"), 3, "no device 'gpu:7' on node 'n1'"),
        (("n1/9", "--clear", "x"), 3, "it has gpu:0 (number 3), gpu:1 (number 4)"),
        (("n1/gpu:7",), 3, "no node 'n1/gpu:7' on this farm"),
    ],
)
def test_words_that_mean_nothing_change_nothing(farm, ledger, words, code, what):
    said = farm("nodes", *words)

    assert code == said.code
    assert what in said.err
    assert [] == ledger.holds()


def test_a_node_that_is_away_can_still_be_cleared(farm, ledger):
    """What is held of it outlives it."""
    ledger.hold("n1/gpu:0", "quarantine", note="x")
    ledger.node("n1", state="gone")

    farm("nodes", "n1/gpu:0", "--clear", "scrapped")

    assert ["cleared"] == [each.kind for each in ledger.holds()]
