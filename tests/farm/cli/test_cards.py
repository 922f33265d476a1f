"""Two system cards side by side: named in every way, and what their differences mean."""

import json

import jsonschema
import pytest
from msgspec import structs

from farm import identity, published, schema
from tests.farm import make

OTHER = "7" * 32


@pytest.fixture
def ids(shelf):
    """A profile of a node under one card, and one of another node under a newer torch."""
    old, new = make.card(), make.card(OTHER, torch="2.14.0")
    new = structs.replace(new, null_reasons={**new.null_reasons})
    cards = [identity.content_id(schema.encode(each)) for each in (old, new)]
    profiles = [
        structs.replace(make.profile(), card_id=cards[0]),
        structs.replace(make.profile(make.job(batch=8), system_id=OTHER), card_id=cards[1]),
    ]
    far = structs.replace(profiles[1].execution, node="desk")
    profiles[1] = structs.replace(profiles[1], execution=far)
    stored = make.put(shelf, old, new, *profiles)
    return {"cards": cards, "profiles": stored[2:], "nodes": [profiles[0].execution.node, "desk"]}


@pytest.mark.parametrize("kind", ["cards", "profiles", "nodes"])
def test_cards_are_named_by_themselves_by_a_profile_or_by_a_node(farm, ids, kind):
    said = farm("cards", "diff", *ids[kind])

    assert (0, "") == (said.code, said.err)
    assert "frameworks.torch" in said.out
    assert "2.13.0" in said.out
    assert "2.14.0" in said.out
    assert "two systems of one class, epyc-7b13-2c: the later one is measured again" in said.out


def test_a_card_that_a_machine_printed_is_one_too(farm, ids, here):
    (here / "mine.json").write_bytes(schema.encode(make.card(OTHER, torch="2.14.0")))

    same = farm("cards", "diff", "mine.json", "desk")

    assert "the cards say the same" in same.out
    assert 1 == len(same.out.splitlines())


def test_with_json_it_is_one_document(farm, ids):
    said = json.loads(farm("cards", "diff", *ids["cards"], "--json").out)

    jsonschema.validate(said, published.json_schema("cards_diff"))
    assert [("stable.frameworks.torch", "2.13.0", "2.14.0", True)] == [
        tuple(each.values()) for each in said["differences"]
    ]
    assert [make.SYSTEM, OTHER] == said["systems"]


def test_a_null_is_told_with_its_reason_and_the_node_makes_no_other_system(farm, here):
    one = make.card()
    blind = structs.replace(one.stable.cpu, model=None)
    two = structs.replace(
        one,
        stable=structs.replace(one.stable, cpu=blind),
        node=structs.replace(one.node, labels={"rack": "7"}),
        null_reasons={**one.null_reasons, "stable.cpu.model": "not_supported"},
    )
    for name, card in (("a.json", one), ("b.json", two)):
        (here / name).write_bytes(schema.encode(card))

    said = json.loads(farm("cards", "diff", "a.json", "b.json", "--json").out)["differences"]

    told = {each["path"]: (each["a"], each["b"], each["changes_system"]) for each in said}
    assert {
        "stable.cpu.model": ("AMD EPYC 7B13", "– (not_supported)", True),
        "node.labels.rack": ("–", "7", False),
    } == told


@pytest.mark.parametrize(
    ("word", "code", "what"),
    [
        ("nobody", 3, "no card of 'nobody' in the store"),
        ("0" * 64, 3, "no card of"),
        ("bad.json", 1, "'bad.json' is no system card"),
        ("r-1/mlp", 3, "no run"),
        ("lost", 3, "the card of lost is not in the store"),
    ],
)
def test_a_word_that_names_no_card_says_what_would(farm, ids, shelf, here, word, code, what):
    (here / "bad.json").write_text("{}")
    lost = make.profile(make.job(batch=16))
    make.put(shelf, structs.replace(lost, execution=structs.replace(lost.execution, node="lost")))

    said = farm("cards", "diff", word, "desk")

    assert code == said.code
    assert what in said.err
