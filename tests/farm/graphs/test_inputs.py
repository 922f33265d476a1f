"""The laws of what a graph is called with: what it says itself, and what fits it."""

import pytest

from farm import graphs
from farm.errors import Refused
from farm.graphs import Port
from farm.schema import Tensor


def _port(*shape: int | str | None, name: str = "x", dtype: str = "float32") -> Port:
    return Port(name=name, dtype=dtype, shape=shape)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((1, 3, 224, 224), (1, 3, 224, 224)),
        (("batch", 64), ("batch", 64)),
        (("N", 64), ("batch", 64)),
        (("batch_size", "seq"), ("batch", "seq")),
        ((None, 64), ("batch", 64)),
        (("unk__12", 64), ("batch", 64)),
        (("p2o.DynamicDimension.0", 3), ("batch", 3)),
        (("s0", 3), ("batch", 3)),
        (("x_dynamic_axes_1", 3), ("batch", 3)),
        (("seq", "batch", 8), ("seq", "batch", 8)),
        (("seq", 8), ("seq", 8)),
        ((2, "batch", 128), (2, "batch", 128)),
        ((), ()),
    ],
)
def test_a_graph_says_its_inputs(
    shape: tuple[int | str | None, ...], said: tuple[int | str, ...]
) -> None:
    """Lengths stay, a batch is one by any name, an open first axis is one, others keep theirs."""
    assert {"x": Tensor(shape=said)} == graphs.spec([_port(*shape)], model="m")


@pytest.mark.parametrize(
    ("port", "what", "hint"),
    [
        (
            _port(None, 3, None, "?"),
            "has an axis of any length without a name: [?, 3, ?, ?]",
            "x: {shape: [batch, 3, LENGTH, LENGTH]}",
        ),
        (
            _port(None, "batch"),
            "has an axis of any length without a name: [?, batch]",
            "x: {shape: [LENGTH, batch]}",
        ),
        (
            _port("batch", "mode"),
            "has an axis of any length without a name: [batch, mode]",
            "x: {shape: [batch, LENGTH]}",
        ),
        (
            _port("batch", "seq", dtype="int64"),
            "is int64, and the graph does not say which numbers it takes",
            "x: {shape: [batch, seq], dtype: int64, high: N}",
        ),
        (
            _port(4, dtype="uint16"),
            "is uint16, which cannot be made here",
            "x: {shape: [4], dtype: uint16}",
        ),
        (
            Port(name="a b", dtype="float32", shape=None),
            "has no shape in the graph",
            '"a b": {shape: [batch, …]}',
        ),
        (Port(name="x", dtype="", shape=None), "is no tensor", ""),
    ],
)
def test_what_a_graph_leaves_open_is_asked_for(port: Port, what: str, hint: str) -> None:
    """The message names the input and the model, and writes out what to complete."""
    with pytest.raises(Refused) as caught:
        graphs.spec([_port(4, name="other"), port], model="net.onnx")

    assert f"input {port.name!r} of net.onnx {what}" == caught.value.what
    assert caught.value.hint.startswith("say it: inputs: {other: {shape: [4]}, ")
    assert hint in caught.value.hint


def test_half_numbers_and_bytes_need_no_word() -> None:
    found = graphs.spec(
        [_port(2, name="h", dtype="float16"), _port(2, name="b", dtype="uint8")], model="m"
    )

    assert ["float16", "uint8"] == [each.dtype for each in found.values()]


PORTS = [_port("batch", 64), _port(2, "batch", 8, name="state"), _port(name="rate", dtype="int64")]
GOOD = {
    "x": Tensor(shape=("batch", 64)),
    "state": Tensor(shape=(2, "batch", 8)),
    "rate": Tensor(shape=(), dtype="int64", high=2),
}


def test_inputs_go_by_name_and_in_any_order() -> None:
    given = dict(reversed(GOOD.items()))

    found = graphs.check(PORTS, given, model="m", batch=4)

    assert {"x": "x", "state": "state", "rate": "rate"} == found


@pytest.mark.seed("S0.2")
def test_inputs_of_unknown_names_go_by_their_order() -> None:
    """Where no name is known and their number is right."""
    given = dict(zip("abc", GOOD.values(), strict=True))

    found = graphs.check(PORTS, given, model="m", batch=4)

    assert {"x": "a", "state": "b", "rate": "c"} == found


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"stat": GOOD["state"], "state": None}, "m takes no input 'stat'"),
        ({"state": None}, "m needs an input 'state'"),
        ({"more": GOOD["x"]}, "m takes no input 'more'"),
        (
            {"x": Tensor(shape=("batch", 65))},
            "input 'x' of m cannot have the shape [batch, 65] at batch 4",
        ),
        ({"x": Tensor(shape=(64,))}, "input 'x' of m has 2 axes, not 1"),
        (
            {"state": Tensor(shape=("batch", "batch", 8))},
            "input 'state' of m cannot have the shape [batch, batch, 8] at batch 4",
        ),
        ({"rate": Tensor(shape=(), dtype="int32")}, "input 'rate' of m is int64, not int32"),
        ({"rate": Tensor(shape=())}, "input 'rate' of m is int64, not float32"),
        ({"x": Tensor(shape=("batch", 64), dtype="int8")}, "input 'x' of m is float32, not int8"),
    ],
)
def test_an_input_that_does_not_fit_is_named(changed: dict[str, Tensor | None], what: str) -> None:
    given = {name: each for name, each in {**GOOD, **changed}.items() if each is not None}

    with pytest.raises(Refused) as caught:
        graphs.check(PORTS, given, model="m", batch=4)

    assert what == caught.value.what


def test_floats_fit_whatever_their_width() -> None:
    """They are cast; and an axis that the graph leaves open takes any length."""
    ports = [_port("batch", "seq", dtype="float16")]

    found = graphs.check(ports, {"x": Tensor(shape=(3, 5))}, model="m", batch=1)

    assert {"x": "x"} == found


def test_a_likely_name_is_offered() -> None:
    with pytest.raises(Refused) as caught:
        graphs.check(PORTS, {**GOOD, "stat": GOOD["x"]}, model="m", batch=1)

    assert ("it takes x, state, rate", "did you mean `state`?") == (
        caught.value.why,
        caught.value.hint,
    )
