"""Event after event through a list that arrives in pieces, whatever is wrong with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.events import one
from farm.trace.reading.tally import Tally
from farm.trace.reading.walking import Walk

ONE = one(exact=False)
A, B, C = '{"ph":"X","name":"a"}', '{"name":"b","ph":"X","args":{"x":[{},{}]}}', '{"ph":"i"}'
BAD = '{"ph":"X","name":x}'
KEYS = ',"keys":[{},{}]}'
NAMES = {A: "a", B: "b", C: "unknown"}


def walked(text: str, *, size: int = 1 << 16) -> tuple[list[str], str | None, Tally]:
    """Walk through a text that arrives in pieces; return names, what follows the list, counters.

    None in place of what follows where the list was not closed.
    """
    tally, held, names = Tally(), b"", []
    walk, left = Walk(tally), text.encode()
    while True:
        piece, left = left[:size], left[size:]
        held += piece
        found = walk.on(held, ONE, until=len(held), final=not piece)
        names += [each.name for each in (*found.typed, *found.loose)]
        held = held[found.at :]
        if found.ended:
            return sorted(names), (held + left).decode(), tally
        if not piece:
            assert b"" == held
            return sorted(names), None, tally


@given(
    st.lists(st.sampled_from([A, B, C]), max_size=5),
    st.text(" \n\r\t", max_size=3),
    st.integers(1, 30),
)
def test_whole_events_are_taken_however_they_arrive(events: list[str], gap: str, size: int) -> None:
    text = gap + f"{gap},{gap}".join(events) + f"{gap}]{KEYS}"

    names, rest, tally = walked(text, size=size)

    assert sorted(NAMES[each] for each in events) == names
    assert KEYS == rest
    assert Tally() == tally


@pytest.mark.parametrize(
    ("text", "names", "repaired", "dropped"),
    [
        (f"{A},{B}", "ab", {}, {}),  # who called it tells that no bracket came
        (f"{A},,{B}]", "ab", {"structure": 1}, {}),
        (f"{A} {B}]", "ab", {"structure": 1}, {}),
        (f",{A},]", "a", {"structure": 2}, {}),
        (f"{A}}}", "a", {"structure": 1}, {}),
        (f"{A},{BAD},{B}]", "ab", {}, {"unparsable": 1}),
        (f"{A},{BAD}]", "a", {}, {"unparsable": 1}),
        (f'{A},null,{B},7,true,"x"]', "ab", {}, {"unparsable": 4}),
        (f"{A}[{B}]", "ab", {"structure": 2}, {"unparsable": 1}),
        (f"{A},\0\0\0,{B}]", "ab", {"control": 1, "structure": 1}, {}),
        (f"{A},oops,{B}]", "ab", {"structure": 1}, {"unparsable": 1}),
        (f'{A},{{"ph":"X","name":"c"', "a", {}, {"truncated": 1}),
        (f'{A},{{"ph":"X","args":{{"x":[{B},{B}', "a", {}, {"truncated": 1}),
        (f'{A},{{"ph":"X","name":"}},{{', "a", {}, {"truncated": 1}),
        (f"{A},tru", "a", {}, {"truncated": 1}),
        # the end of one event is missing, and with it nothing of the next
        (f'{{"ph":"X","name":x,{A},{B}]', "ab", {"structure": 1}, {"unparsable": 1}),
        (f'{{"ph":"X","name":x,{B},{A}]', "ab", {"structure": 1}, {"unparsable": 1}),
        # a bracket that an event follows ends nothing
        (f"{A}}},{B}]", "ab", {"structure": 1}, {}),
        (f"{A}]{B}]", "ab", {"structure": 2}, {}),
        (f"{A}],{B}]", "ab", {"structure": 1}, {}),
        (f"{A}]}}}},{B}]", "ab", {"structure": 3}, {}),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_each_fault_costs_the_event_that_has_it(
    text: str, names: str, repaired: dict[str, int], dropped: dict[str, int], size: int
) -> None:
    found, _, tally = walked(text, size=size)

    assert (list(names), repaired, dropped) == (found, tally.repaired, tally.dropped)


@pytest.mark.parametrize("sign", [*"}]\"'[:,x7-\\ "])
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_an_event_whose_first_sign_is_lost_costs_no_other(sign: str, size: int) -> None:
    inner = '{"ph":"X","name":"c]}c","args":{"x":[1,2],"y":{}},"ts":1}'

    names, rest, _ = walked(f"{A},{sign}{inner[1:]},{B},{C}]{KEYS}", size=size)

    assert {"a", "b", "unknown"} <= set(names)
    assert KEYS == rest


@pytest.mark.parametrize("text", [f"{A}]", f"{A}]}}", f"{A}]\n}}\n{{", f'{A}],"a":[{{}},{{}}]'])
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_a_bracket_before_a_key_or_the_end_ends_the_list(text: str, size: int) -> None:
    names, rest, tally = walked(text, size=size)

    assert (["a"], text.removeprefix(f"{A}]"), Tally()) == (names, rest, tally)


def test_what_is_nested_too_deeply_costs_itself_alone() -> None:
    """Whichever of the decoders is the first to give up."""
    for depth in [*range(900, 1000), 100_000]:
        deep = '{"ph":"X","args":{"a":' + "[" * depth + "]" * depth + "}}"

        names, rest, tally = walked(f"{A},{deep},{B}]")

        assert {"a", "b"} <= set(names)
        assert "" == rest
        assert {} == tally.repaired
        assert tally.dropped["unparsable"] + len(names) == 3


def test_it_knows_if_the_next_event_may_follow() -> None:
    walk = Walk(Tally())
    assert walk.is_at_event

    for text, expected in ((A, False), (",", True), (" ,", False)):
        walk.on(text.encode(), ONE, until=len(text), final=False)
        assert expected == walk.is_at_event

    walk.past(1)
    assert walk.is_at_event


def test_it_stops_at_the_event_that_begins_where_it_was_told() -> None:
    text = f"{A},{B},{C}]"

    found = Walk(Tally()).on(text.encode(), ONE, until=len(A) + 2, final=False)

    assert ["a", "b"] == [each.name for each in found.typed]
    assert len(f"{A},{B}") == found.at


def test_a_loose_event_is_told_from_a_typed_one() -> None:
    found = Walk(Tally()).on(b'{"ph":"X","ts":"1.5"},{"ph":"X"}]', ONE, until=32, final=True)

    assert (["1.5"], 1) == ([str(each.ts) for each in found.loose], len(found.typed))
