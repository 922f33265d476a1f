"""Layers of other tools: their numbers, every null with its reason, and nothing of a GPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import schema
from farm.errors import FarmError, Refused
from farm.trace import blocks
from farm.trace.files import Address
from farm.trace.importing import choosing, layered
from farm.trace.importing.names import NAMES
from farm.trace.importing.record import LayerProfile
from tests.farm.graphs.test_profile import run
from tests.farm.trace.analysis.expected import ABSENT, DATA, is_near, listed

NODES = (("conv", "Conv", 60), ("relu", "Relu", 5), ("relu", "Relu", 15))
TENSORRT: list[dict[str, Any]] = [
    {"count": 10},
    {"name": "a + b", "timeMs": 30, "averageMs": 3, "medianMs": 2.5, "percentage": 1},
    {"name": "{ForeignNode[c]}||d", "timeMs": 10, "averageMs": 1},
]
CSV = blocks.HEADER + "\nfc,60.0,1.5000,1.0000,0.1000,15.0000\nrelu,40.0,1.0000,,,10.0000\n"


def there(found: LayerProfile) -> LayerProfile:
    """Return it; it can be written and read again."""
    assert found == schema.decode(schema.encode(found), LayerProfile)
    return found


def onnxruntime(*factors: int) -> LayerProfile:
    events = [{"cat": "Session", "name": "session_initialization", "ts": 1, "dur": 2500}]
    for at, factor in enumerate(factors):
        events += run(10_000 * at, *((name, op, took * factor) for name, op, took in NODES))
    data = "[\n" + ",\n".join(json.dumps(each) for each in events) + "\n]"
    return there(layered.onnxruntime(data.encode(), Address(Path("p.json"), None)))


def tensorrt(told: list[dict[str, Any]]) -> LayerProfile:
    return there(layered.tensorrt(json.dumps(told).encode(), Address(Path("t.json"), None)))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("onnxruntime_profile.json", layered.onnxruntime),
        ("tensorrt_profile.json", layered.tensorrt),
        ("tensorrt_profile_old.json", layered.tensorrt),
    ],
)
def test_a_real_profile_gives_the_numbers_that_it_should(
    name: str, read: Callable[[bytes, Address], LayerProfile]
) -> None:
    path = DATA / "import" / name
    if not path.is_file():
        pytest.skip(ABSENT)
    expected = listed()["import"][name]

    found = there(read(path.read_bytes(), Address(path, None)))

    told = {
        **found.metrics,
        "n_steps": found.metrics["iterations"],
        "count": found.metrics["iterations"],
        "median_ms_known": all(each.median_ms is not None for each in found.rows),
        "std_dev_known": all(each.std_ms is not None for each in found.rows),
    }
    tables = {
        "layer_ms": {each.layer: each.ms_per_step for each in found.rows},
        "ops": {each.op: each.ms_per_step for each in found.ops},
    }
    for key in expected.keys() - {"kind", *tables}:
        assert is_near(told[key], expected[key], 5e-6), key  # of five digits
    for key in tables.keys() & expected.keys():
        assert pytest.approx(expected[key]) == tables[key]


def test_a_run_is_the_step_and_the_first_of_three_is_dropped() -> None:
    """Its coverage is what of a run its nodes are."""
    found = onnxruntime(9, 1, 3).metrics

    assert (3, 2, 3, 2.5) == (
        *(found["runs"], found["iterations"], found["layers"], found["session_init_ms"]),
    )
    assert (0.16, pytest.approx(found["layer_sum_ms"] / found["step_ms_mean"])) == (
        *(pytest.approx(found["layer_sum_ms"]), found["coverage"]),
    )
    assert 2 == onnxruntime(9, 1).metrics["iterations"]


def test_layers_are_added_up_by_kind_of_work() -> None:
    found = onnxruntime(1, 1)

    assert [("Conv", 1, 75.0), ("Relu", 2, 25.0)] == [
        (each.op, each.layers, each.pct) for each in found.ops
    ]
    assert [each.op for each in found.ops[:1]] == [
        each.op for each in choosing.ops(found, top=1).rows
    ]


def test_names_stay_and_shares_are_computed_anew() -> None:
    found = tensorrt(TENSORRT)

    assert [("a + b", 75.0, 2.5), ("{ForeignNode[c]}||d", 25.0, None)] == [
        (each.layer, each.pct, each.median_ms) for each in found.rows
    ]
    assert ([], 10, 4.0) == (
        *(found.ops, found.metrics["iterations"], found.metrics["layer_sum_ms"]),
    )


def test_rows_of_a_csv_are_as_they_are_printed() -> None:
    found = there(layered.layer_csv(CSV.encode(), Address(Path("l.csv"), None)))

    assert ("l.csv#1", "layer CSV", None) == (
        *(found.trace, found.tool, found.metrics["iterations"]),
    )
    assert [("fc", 1.5, 60.0, 0.1), ("relu", 1.0, 40.0, None)] == [
        (each.layer, each.ms_per_step, each.pct, each.std_ms) for each in found.rows
    ]


@pytest.mark.seed("S4.55")
def test_nothing_is_said_of_a_gpu() -> None:
    """A name of `get` is no mistake; it is null, and why."""
    for found in (tensorrt(TENSORRT), onnxruntime(1, 1, 1)):
        assert {*NAMES} <= found.metrics.keys()
        assert found.metrics["gpu_util"] is None
        assert found.null_reasons["metrics.gpu_util"].startswith("not_supported: a layer profile")
    assert tensorrt(TENSORRT).null_reasons["metrics.step_ms"].startswith("not_supported: the file")


def test_layers_are_chosen_by_pattern_and_order_with_the_reasons_of_their_nulls() -> None:
    found = tensorrt(TENSORRT)

    chosen = choosing.layers(found, pattern="Foreign")
    first = choosing.layers(found, order="name", top=1)

    assert (1, ["{ForeignNode[c]}||d"]) == (chosen.of, [each.layer for each in chosen.rows])
    assert (2, ["a + b"]) == (first.of, [each.layer for each in first.rows])
    for each in (chosen, first):
        schema.encode(each)
    with pytest.raises(Refused):
        choosing.layers(found, pattern="[")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.text(max_size=4), inside),
    max_leaves=4,
)


@settings(max_examples=100)
@given(st.integers(0, 2), st.sampled_from(["count", "name", "timeMs", "averageMs"]), JSON)
def test_no_value_of_a_profile_makes_anything_but_a_message(at: int, key: str, value: Any) -> None:
    odd = [each | ({key: value} if at == number else {}) for number, each in enumerate(TENSORRT)]

    try:
        found = tensorrt(odd)
    except FarmError:
        return
    schema.encode(choosing.layers(found))
