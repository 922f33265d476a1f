"""An event is the same whether it is decoded by its types, exactly, or field by field."""

import json
from decimal import Decimal
from math import isnan

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.trace.reading.events import Args, Event, lenient, many, one
from farm.trace.reading.tally import Tally

WORDS = st.text(max_size=8).filter(lambda word: word.isprintable())
WHOLE = st.integers(-(2**70), 2**70)
ID = WHOLE | WORDS
TIME = st.floats(-(2**52), 2**52, allow_nan=False)
ARGS = st.fixed_dictionaries(
    {},
    optional={
        "correlation": ID,
        "cid": ID,
        "device": ID,
        "stream": ID,
        "External id": ID,
        "external id": ID,
        "est. achieved occupancy %": st.floats(0, 100),
        "Bytes": WHOLE,
        "Total Allocated": WHOLE,
        "Total Reserved": WHOLE,
        "Device Type": WHOLE,
        "Device Id": WHOLE,
        "else": st.lists(WORDS, max_size=2),
    },
)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XBEiMsf")},
    optional={
        "cat": WORDS,
        "name": WORDS,
        "ts": TIME | st.integers(-(2**52), 2**52),
        "dur": TIME,
        "pid": ID,
        "tid": ID,
        "args": ARGS,
        "id": WORDS,
    },
)


def fields(event: Event) -> tuple[object, ...]:
    """Return all fields, with one that is no number as None."""
    ts = None if isnan(event.ts) else float(event.ts)
    return (event.ph, event.cat, event.name, ts, event.dur, event.pid, event.tid, event.args)


@given(EVENTS)
def test_the_decoders_agree_on_what_keeps_to_its_types(found: dict[str, object]) -> None:
    text, tally = json.dumps(found).encode(), Tally()

    quick = one(exact=False)(text)
    exact = one(exact=True)(text)
    loose = lenient(text, tally)

    assert loose is not None
    assert fields(quick) == fields(exact) == fields(loose)
    assert Tally() == tally
    for exactly in (False, True):
        assert [fields(quick)] == [
            fields(each) for each in many(exact=exactly)(memoryview(b"[" + text + b"]"))
        ]


@pytest.mark.parametrize("digits", ["1700000000000000.0005", "8796093022208.123456", "17" * 9])
def test_a_decimal_keeps_every_digit(digits: str) -> None:
    text = f'{{"ph":"X","ts":{digits}}}'.encode()

    assert Decimal(digits) == one(exact=True)(text).ts
    assert Decimal(digits) == many(exact=True)(memoryview(b"[" + text + b"]"))[0].ts
    loose = lenient(text, Tally())
    assert loose is not None
    assert Decimal(digits) == loose.ts


@pytest.mark.parametrize("ts", ['"1.5"', "null", "true", "[1]", '"sNaN"', '"Infinity"'])
@pytest.mark.parametrize("exact", [False, True])
def test_a_time_that_is_no_number_is_none_in_either_decoder(ts: str, exact: bool) -> None:
    """Else it would depend on the events before it whether a time as text is counted."""
    text = f'{{"ph":"X","ts":{ts}}}'.encode()

    with pytest.raises(msgspec.DecodeError):
        one(exact=exact)(text)
    with pytest.raises(msgspec.DecodeError):
        many(exact=exact)(memoryview(b"[" + text + b"]"))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("1e400", 1e18),
        ("-1e400", -1e18),
        ("1e99999999999999999999", 1e18),
        ("-1E+99999999999999999999", -1e18),
        ("1e-99999999999999999999", 0.0),
        ('"12.5"', 12.5),
        ('" 7 "', 7.0),
        ('"seven"', 0.0),
        ('"sNaN"', 0.0),
        ('"Infinity"', 0.0),
        ("true", 0.0),
        ("null", 0.0),
        ("[1]", 0.0),
        ("NaN", 0.0),
    ],
)
def test_a_length_is_any_number_and_an_absurd_one_stays_absurd(
    number: str, expected: float
) -> None:
    event = lenient(f'{{"ph":"X","ts":{number},"dur":{number}}}'.encode(), Tally())

    assert event is not None
    assert expected == event.dur
    assert isnan(event.ts) or expected == event.ts


@pytest.mark.parametrize(
    ("text", "repaired", "dropped"),
    [
        ('{"ph":"X","ts":"1"}', {"number_text": 1}, {}),
        ('{"ph":"X","ts":"1","dur":"2"}', {"number_text": 1}, {}),
        ('{"ph":"X","dur":"2"}', {"number_text": 1}, {}),
        ('{"ph":"X","name":null}', {"null_name": 1}, {}),
        ('{"ph":"X","ts":NaN,"dur":Infinity}', {"non_finite": 1}, {}),
        (r'{"ph":"X","name":"\ud800"}', {"utf8": 1}, {}),
        (r'{"ph":"X","args":{"correlation":"\ud800"},"tid":"\udfff"}', {"utf8": 2}, {}),
        ("{}", {}, {"no_phase": 1}),
        ('{"ph":null}', {}, {"no_phase": 1}),
        ('{"ph":7}', {}, {"no_phase": 1}),
        ("7", {}, {"unparsable": 1}),
        ('["ph"]', {}, {"unparsable": 1}),
        ("null", {}, {"unparsable": 1}),
    ],
)
def test_what_was_mended_or_dropped_is_counted(
    text: str, repaired: dict[str, int], dropped: dict[str, int]
) -> None:
    tally = Tally()

    event = lenient(text.encode(), tally)

    assert (repaired, dropped) == (tally.repaired, tally.dropped)
    assert (event is None) == bool(dropped)
    if event is not None:
        event.name.encode()


@pytest.mark.parametrize("text", ["", "{", "nan", '{"ph":"X",}', '{"ph":"a\nb"}'])
def test_what_is_no_json_is_left_to_others(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        lenient(text.encode(), Tally())


def test_fields_of_other_types_are_read_as_what_they_mean() -> None:
    args = '{"correlation":11.0,"device":true,"stream":null,"Bytes":"512","Total Allocated":1e3}'
    text = f'{{"ph":"X","cat":7,"name":8,"pid":1.0,"tid":null,"args":{args}}}'

    event = lenient(text.encode(), Tally())

    assert event is not None
    assert ("", "8", 1, 0) == (event.cat, event.name, event.pid, event.tid)
    assert Args(correlation=11, bytes=512, allocated=1000) == event.args


@pytest.mark.parametrize("args", ["[]", '"text"', "7", "null"])
def test_arguments_that_are_no_object_are_none(args: str) -> None:
    event = lenient(f'{{"ph":"X","args":{args}}}'.encode(), Tally())

    assert event is not None
    assert event.args is None
