"""The laws of reading: ours comes back as it was, the other tool's without guesses."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.errors import Bad, FarmError, Refused
from farm.interchange import compare_callables, encode, read
from farm.interchange.foreign import of_bytes
from tests.farm.interchange import calls


def foreign(**changes):
    return json.dumps(calls.FOREIGN | changes).encode()


def edited(path, value):
    """A file of ours in which somebody wrote another value."""
    plain = json.loads(encode(calls.document()))
    block, _, field = path.rpartition(".")
    (plain[block] if block else plain)[field] = value
    return json.dumps(plain).encode()


def test_what_we_write_we_read(tmp_path):
    written = calls.document([1.0, 2.0, 3.0], warmup=0, tags={"a": "b"})
    (tmp_path / "a.json").write_bytes(encode(written))

    assert written == read(tmp_path / "a.json")


def test_a_file_of_the_other_tool_is_read_with_figures_of_our_own():
    """Its nearest-rank median of 10 and 20 ms was 10."""
    found = of_bytes(foreign(), name="a.json")

    assert (15.0, 19.5, 2, [10.0, 20.0]) == (
        found.latency.p50_ms,
        round(found.latency.p95_ms, 9),
        found.measured_calls,
        found.latency_samples_ms,
    )
    assert "one input" == found.notes[0]
    assert "predict:predict" == found.model_callable
    assert encode(found)


def test_what_the_other_tool_writes_for_unknown_is_null():
    system = of_bytes(foreign(), name="a.json").system_card

    unknown = {name for name in system.__struct_fields__ if getattr(system, name) is None}
    assert {
        *("gpu_name", "gpu_memory_gb", "gpu_count", "cpu_name", "cuda_version"),
        *("input_resolution", "driver_version"),
    } == unknown


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a callable JSON"),
        (b'{"schema": "farm.profile/v1"}', "not a callable JSON"),
        (b'{"schema": "farm.callable/v1"}', "not a valid farm.callable/v1"),
        (foreign(latency_samples_ms=[]), "no sample"),
        (foreign(latency_samples_ms=[1.0, -1.0]), "a sample of -1 ms is no time of a call"),
        (foreign(latency_samples_ms=[0.0, 1.0]), "a sample of 0 ms is no time of a call"),
        (foreign(latency_samples_ms=[1e308] * 2), "a sample of 1e+308 ms is no time of a call"),
        (foreign(latency_samples_ms=[1.0, 1e-320]), "a sample of 9.99989e-321 ms is no time"),
        (foreign(measured_calls=7), "its measured_calls is 7, and its samples are 2"),
        (foreign(measured_calls=0), "its measured_calls is 0, and its samples are 2"),
        (foreign(measured_calls=10**30), "its measured_calls is 1000000000000000000000000000000,"),
        (foreign(measured_calls=None), "not a callable JSON"),
        (foreign(measured_calls=True, latency_samples_ms=[1.0]), "not a callable JSON"),
        (foreign(warmup_calls=-1), "its warmup_calls are -1"),
        (foreign(latency_samples_ms=[1.0, True]), "not a callable JSON"),
        (foreign(latency_samples_ms=["1.0"]), "not a callable JSON"),
        (foreign(latency_samples_ms=None), "not a callable JSON"),
        (foreign(warmup_calls="10"), "not a callable JSON"),
        (foreign(system_card={"ram_gb": "16"}), "not a callable JSON"),
        (foreign(system_card={"gpu_name": "x", "gpu_count": True}), "not a callable JSON"),
        (foreign(latency_samples_ms=[1.0]).replace(b"[1.0]", b"[NaN]"), "not JSON"),
        (foreign(latency_samples_ms=[1.0]).replace(b"[1.0]", b"[1e999]"), ""),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_name(data, what):
    with pytest.raises(Bad) as caught:
        of_bytes(data, name="a.json")

    assert caught.value.what.startswith(f"a.json: {what}")


@pytest.mark.parametrize("field", ["p50_ms", "p95_ms", "p99_ms", "mean_ms"])
@pytest.mark.parametrize("value", [0.0, -1.0, 1e-300, 1e300])
def test_a_time_of_ours_that_its_samples_do_not_give_is_refused(field, value):
    """An edited figure beside honest samples would compare, and aggregate, as a measured one."""
    plain = json.loads(encode(calls.document()))
    plain["latency"][field] = value

    with pytest.raises(Bad) as caught:
        of_bytes(json.dumps(plain).encode(), name="a.json")

    assert caught.value.what.startswith(f"a.json: its {field} is {value}, and its samples give ")


@pytest.mark.parametrize("value", [0, 1, 4, -3, 10**30])
@pytest.mark.parametrize("path", ["measured_calls", "latency_detail.n"])
def test_a_number_of_calls_of_ours_that_its_samples_are_not_is_refused(path, value):
    """`compare` divides by it, and a table shows it beside the figures."""
    with pytest.raises(Bad) as caught:
        of_bytes(edited(path, value), name="a.json")

    assert f"a.json: its {path} is {value}, and its samples are 3" == caught.value.what


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("latency_detail.min_ms", 0.5, "its latency_detail.min_ms is 0.5, and its samples give 1"),
        ("latency_detail.max_ms", 2.0, "its latency_detail.max_ms is 2.0, and its samples give 3"),
        ("latency_detail.p90_ms", 9.0, "its latency_detail.p90_ms is 9.0, and its samples give "),
        ("latency_detail.process_p50_ms", [2.0] * 4, "it names more processes than samples"),
        ("latency_detail.of_blocks", 0, "each of its samples stands for 0 calls"),
        ("warmup_calls", -1, "its warmup_calls are -1"),
        ("latency_samples_ms", [1e308] * 3, "a sample of 1e+308 ms is no time of a call"),
        ("latency_samples_ms", [], "no sample"),
    ],
)
def test_a_detail_of_ours_that_cannot_be_is_refused(path, value, what):
    with pytest.raises(Bad) as caught:
        of_bytes(edited(path, value), name="a.json")

    assert caught.value.what.startswith(f"a.json: {what}")


def test_whatever_the_shortest_and_the_longest_calls_are_they_compare():
    """No ratio and no sum of what is read overflows."""
    short, long = (
        of_bytes(foreign(latency_samples_ms=[each] * 2), name="a.json") for each in (1e-12, 1e12)
    )

    for pair in ((short, long), (long, short)):
        assert encode(pair[0])
        assert schema.encode(compare_callables(*pair))


def test_a_file_without_a_number_of_calls_is_read():
    plain = {name: value for name, value in calls.FOREIGN.items() if name != "measured_calls"}

    assert 2 == of_bytes(json.dumps(plain).encode(), name="a.json").measured_calls


def test_a_median_moved_together_with_that_of_its_process_is_refused():
    plain = json.loads(encode(calls.document()))
    plain["latency"]["p50_ms"] = 9e9
    plain["latency_detail"]["process_p50_ms"] = [9e9]

    with pytest.raises(Bad, match="outside its samples"):
        of_bytes(json.dumps(plain).encode(), name="a.json")


def test_a_file_that_is_not_there_is_a_bad_request(tmp_path):
    with pytest.raises(Refused, match="cannot read"):
        read(tmp_path / "gone.json")
    with pytest.raises(Refused, match="cannot read"):
        read(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(calls.FOREIGN)), JSON, max_size=3))
def test_whatever_stands_in_a_file_it_is_read_or_refused(changes):
    """Never another error, and what is read can be written."""
    try:
        found = of_bytes(msgspec.json.encode(calls.FOREIGN | changes), name="a.json")
    except FarmError:
        return

    assert found == of_bytes(encode(found), name="a.json")
