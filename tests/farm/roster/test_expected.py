"""The laws of a roster file: every model once, and no word that says nothing."""

import pytest

from farm import models
from farm.errors import Refused
from farm.roster import load

MODEL = "models: [{task: depth, model: a}]"


def loaded(tmp_path, text):
    (tmp_path / "roster.yaml").write_text(text)
    return load(tmp_path / "roster.yaml", name="roster.yaml")


def test_a_model_is_known_by_its_name_unless_it_says_otherwise(tmp_path):
    found = loaded(
        tmp_path,
        "schema: farm.roster/v1\nname: depth\n"
        "models: [{task: depth, model: a}, {task: depth, model: b, identity: m:f, file: c.json}]",
    )

    a, b = found.models
    assert ("a", "a.json", "required", False) == (a.known_as, a.lies_in, a.cost, a.optional)
    assert ("m:f", "c.json") == (b.known_as, b.lies_in)


def test_every_roster_that_is_shipped_can_be_read():
    shipped = sorted((models.configs() / "rosters").glob("*.yaml"))

    assert ["depth"] == [load(each).name for each in shipped]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"name: x\n{MODEL}", "roster.yaml: expected 'farm.roster/v1': at schema"),
        (f"schema: farm.roster/v2\nname: x\n{MODEL}", "roster.yaml: expected 'farm.roster/v1'"),
        (f"schema: farm.roster/v1\n{MODEL}", "roster.yaml: expected a name, got nothing: at name"),
        ("schema: farm.roster/v1\nname: x\nmodels: []", "roster.yaml: no model is expected"),
        ("schema: farm.roster/v1\nname: x", "roster.yaml: no model is expected: at models"),
        ("schema: farm.roster/v1\nname: x\nmodels: a", "roster.yaml: expected keys and values"),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a}]",
            "roster.yaml: expected text, got nothing: at models[0].model",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, batch: many}]",
            "roster.yaml: expected a whole number, got 'many': at models[0].batch",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, cost: free}]",
            "roster.yaml: unknown cost 'free': at models[0].cost; known: required, none",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, optional: perhaps}]",
            "roster.yaml: expected true or false, got 'perhaps': at models[0].optional",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, precision: 16}]",
            "roster.yaml: expected text, got the number 16: at models[0].precision",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: ' ', model: a}]",
            "roster.yaml: expected text, got ' ': at models[0].task",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, modle: c}]",
            "roster.yaml: unknown key 'modle': at models[0].modle; known: task, model",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b}, {task: a, model: b}]",
            "roster.yaml: model 'b' of task 'a' is there twice: at models[1]",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, batch: -1}]",
            "roster.yaml: expected at least 1, got -1: at models[0].batch",
        ),
        (
            "schema: farm.roster/v1\nname: x\nmodels: [{task: a, model: b, file: x/y.json}]",
            "roster.yaml: 'x/y.json' is no name of a file: at models[0].file",
        ),
        ("[", "roster.yaml: not readable as YAML"),
    ],
)
def test_a_roster_that_makes_no_sense_is_refused(tmp_path, text, message):
    with pytest.raises(Refused) as caught:
        loaded(tmp_path, text)

    assert str(caught.value).startswith(message)


def test_a_roster_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="no file"):
        load(tmp_path / "gone.yaml")


def test_a_model_that_is_there_twice_may_have_two_names(tmp_path):
    """Two batches of one model: the hint shows how, and a roster that follows it is read."""
    row = "{task: a, model: b, batch: 1}"
    begin = "schema: farm.roster/v1\nname: x\nmodels: "

    with pytest.raises(Refused) as caught:
        loaded(tmp_path, f"{begin}[{row}, {{task: a, model: b, batch: 8}}]")

    example = caught.value.hint.partition("as in {")[2].rstrip("}")
    assert "model: b-b8, identity: b, batch: 8" == example
    found = loaded(tmp_path, f"{begin}[{row}, {{task: a, {example}}}]")
    assert ["b", "b"] == [each.known_as for each in found.models]
