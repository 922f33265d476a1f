"""What keeps two analyses from being compared, and what else differs between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from farm import schema
from farm.trace.analysis.bounds import REFUSALS
from farm.trace.analysis.quality import Quality
from farm.trace.comparing import guarding
from tests.farm.trace.comparing.sides import made, side


def flagged(*flags: str) -> Quality:
    return Quality(flags=[*flags], repaired={}, dropped={})


def test_two_plain_steps_and_two_traces_are_comparable() -> None:
    """A trace alone tells no config, and its step had the profiler beside it."""
    assert [] == guarding.apart(side(), side())
    assert [] == guarding.apart(made(), made(0.9))


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_side_that_was_refused_a_bound_is_incomparable(refusal: str) -> None:
    refused = side(bound=refusal, bound_why="so it is")

    expected = [f"after was refused a bound: {refusal}, so it is"]
    assert expected == guarding.apart(side(), refused)
    assert guarding.apart(refused, side())[0].startswith("before was refused")


@pytest.mark.parametrize("flag", sorted(schema.INVALIDATING))
def test_an_invalid_side_is_incomparable(flag: str) -> None:
    invalid = side(quality=flagged("few_steps", flag))

    assert [f"before is invalid: {flag}"] == guarding.apart(invalid, side())


@pytest.mark.parametrize("flag", ["few_steps", "unsteady", *sorted(schema.DEGRADING)[:3]])
def test_a_doubtful_side_is_comparable(flag: str) -> None:
    assert [] == guarding.apart(side(quality=flagged(flag)), side())


def test_a_step_with_the_profiler_beside_it_is_none_without() -> None:
    expected = "a plain step, and {} one with the profiler beside it"

    assert ["before is " + expected.format("after")] == guarding.apart(side(), made())
    assert ["after is " + expected.format("before")] == guarding.apart(made(), side())


def test_other_modes_and_items_are_incomparable_where_both_tell_them() -> None:
    trained, inferred = side(mode="training"), side(mode="inference")
    images, tokens = side(config={"item": "image"}), side(config={"item": "token"})

    assert ["different modes: training and inference"] == guarding.apart(trained, inferred)
    assert ["different items: image and token"] == guarding.apart(images, tokens)
    assert [] == guarding.apart(trained, side())
    assert [] == guarding.apart(side(), tokens)


SETTINGS = st.dictionaries(
    st.sampled_from([*guarding.SETTINGS, "workers"]), st.sampled_from([1, 2, "x"])
)


@given(SETTINGS, SETTINGS)
def test_each_setting_differs_is_told_once_or_is_the_same(
    one: dict[str, object], other: dict[str, object]
) -> None:
    """What neither tells, and what is no setting, is silent."""
    before, after = (structs.replace(made(), config=each) for each in (one, other))

    differs = guarding.differing(before, after)
    unknown = guarding.unknown(before, after)

    named = {each.key for each in differs}
    assert {key for key in guarding.SETTINGS if (key in one) != (key in other)} == {*unknown}
    assert {
        key for key in guarding.SETTINGS if key in one and key in other and one[key] != other[key]
    } == named
    assert [(each.key, one[each.key], other[each.key]) for each in differs] == [
        (each.key, each.before, each.after) for each in differs
    ]
    again = guarding.differing(after, before)
    assert [(each.key, each.after, each.before) for each in again] == [
        (each.key, each.before, each.after) for each in differs
    ]


def test_a_setting_that_is_null_is_unknown() -> None:
    before, after = side(config={"driver": None}), side(config={"driver": "570.1"})

    assert (["driver"], []) == (guarding.unknown(before, after), guarding.differing(before, after))
