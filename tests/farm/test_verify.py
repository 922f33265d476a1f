"""A stored job held against what one expects: each check passes, fails, or says why it cannot."""

import io

import msgspec
import numpy as np
import pytest

from farm import identity, schema, verify
from farm.errors import Bad, Refused
from farm.schema import Artifact, Hotspot, Layers
from farm.store import blob_key
from tests.farm import make


def npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def stored(store, *, output=None, table=None, **more):
    """A row whose artefacts lie in the store."""
    document, kept = make.profile(**more), {}
    if output is not None:
        kept["output"] = (output, "npz")
    if table is not None:
        kept["layer_table"] = (schema.encode(table), "json")
        layers = Layers(
            method=table.method,
            clock=table.clock,
            warmup_iterations=table.warmup_iterations,
            iterations=table.iterations,
            rows=len(table.rows),
            hotspots=[Hotspot(layer="first", type="Linear", share_pct=50.0)],
            unattributed_ms=table.unattributed_ms,
            profiled_ms=table.profiled_ms,
            clean_ms=table.clean_ms,
            perturbation=table.perturbation,
        )
        document = msgspec.structs.replace(document, layers=layers)
    artifacts = {}
    for kind, (data, ending) in kept.items():
        digest = identity.content_id(data)
        key = blob_key(kind, digest, ending)
        store.put_new(key, data, media_type="application/octet-stream")
        artifacts[kind] = Artifact(key=key, sha256=digest, bytes=len(data), media_type="x")
    return make.row(msgspec.structs.replace(document, artifacts=artifacts))


def verified(store, row, **more) -> verify.Verified:
    found = verify.verify(store, row, label="mlp/fp32/b1/cpu", **more)
    assert schema.decode(schema.encode(found), verify.Verified) == found
    return found


def detail_of(found: verify.Verified, name: str) -> str:
    return next(each.detail for each in found.checks if each.name == name)


def with_digests(row, *digests):
    """The row with a repeat for each digest of an output."""
    first = row.profile.repeats[0]
    repeats = [msgspec.structs.replace(first, output_digest=each) for each in digests]
    return row._replace(profile=msgspec.structs.replace(row.profile, repeats=repeats))


def said(found: verify.Verified) -> dict[str, str]:
    return {each.name: each.status for each in found.checks}


@pytest.mark.seed("S0.29", "S0.35")
def test_the_captured_table_is_read_back_beside_accuracy_and_latency(store, tmp_path):
    """Nothing runs: the store alone answers, and the passes stay apart."""
    y = np.ones((2, 3), np.float32)
    (tmp_path / "ref.npz").write_bytes(npz(output_0=y))
    row = stored(store, output=npz(output_0=y), table=make.layer_table("first", "second"))

    found = verified(store, row, reference=tmp_path / "ref.npz", max_p50_ms=20)

    assert found.status == "PASS"
    assert ["first", "second"] == [each.layer for each in found.layers.rows]
    assert {"outcome", "repeatable", "accuracy", "latency", "layers"} == set(said(found))
    assert {"PASS"} == set(said(found).values())
    assert 10.0 == found.p50_ms


def test_what_was_not_asked_for_is_unknown_and_never_passed(store):
    found = verified(store, stored(store))

    assert {"accuracy", "latency", "layers"} == {
        name for name, status in said(found).items() if status == "UNKNOWN"
    }
    assert ("PASS", None) == (found.status, found.layers)


@pytest.mark.parametrize(
    "more",
    [
        {"flags": ["contended"]},
        {"status": "failed", "failure": make.fault("model_error")},
        {"status": "failed", "failure": make.fault("timeout")},
        {"status": "infra", "failure": make.fault("worker_lost")},
    ],
    ids=["contended", "model_error", "timeout", "worker_lost"],
)
def test_a_job_that_is_not_to_be_believed_fails(store, more):
    found = verified(store, stored(store, **more), max_p50_ms=1)

    assert ("FAIL", "FAIL", 1) == (found.status, said(found)["outcome"], verify.ending(found))


@pytest.mark.parametrize(
    "more",
    [
        *({"status": "failed", "failure": make.fault(kind)} for kind in sorted(schema.ANSWERS)),
        {"status": "pruned", "failure": make.fault("larger_batch")},
        {"status": "cancelled", "failure": make.fault("cancelled")},
    ],
    ids=[*sorted(schema.ANSWERS), "pruned", "cancelled"],
)
def test_an_answer_is_no_failure_and_nothing_to_judge(store, more):
    """Also where an earlier pass left a table that is sound."""
    row = stored(store, table=make.layer_table("first", "second"), **more)

    found, asked = verified(store, row), verified(store, row, max_p50_ms=5)

    assert ("PASS", "UNKNOWN") == (said(found)["layers"], said(found)["outcome"])
    assert ("UNKNOWN", 3) == (found.status, verify.ending(found))
    assert ("UNKNOWN", 5) == (asked.status, verify.ending(asked))


def test_a_profile_that_says_nothing_of_its_quality_is_not_believed(store):
    row = stored(store)
    row = row._replace(profile=msgspec.structs.replace(row.profile, quality=msgspec.UNSET))

    found = verified(store, row)

    assert ("UNKNOWN", 3) == (found.status, verify.ending(found))
    assert "it is ok, and says nothing of its quality" == detail_of(found, "outcome")


def test_what_was_asked_for_and_cannot_be_told_leaves_the_whole_unknown(store, tmp_path):
    """However well the rest is: nobody may take for checked what was not."""
    y = np.ones((2, 3), np.float32)
    (tmp_path / "ref.npz").write_bytes(npz(output_0=y))
    large = stored(store, table=make.layer_table("first", "second"))  # its output was not kept
    empty = large._replace(
        profile=msgspec.structs.replace(large.profile, latency=msgspec.UNSET),
    )

    no_output = verified(store, large, reference=tmp_path / "ref.npz", max_p50_ms=20)
    no_latency = verified(store, empty, max_p50_ms=20)

    assert ("UNKNOWN", "PASS") == (said(no_output)["accuracy"], said(no_output)["latency"])
    assert ("UNKNOWN", 5) == (no_output.status, verify.ending(no_output))
    assert ("UNKNOWN", 5) == (no_latency.status, verify.ending(no_latency))
    assert {"outcome", "latency"} == {each.name for each in no_latency.checks if each.asked}
    assert ("PASS", 0) == (verified(store, large).status, verify.ending(verified(store, large)))


def test_a_failure_outweighs_what_cannot_be_told(store, tmp_path):
    (tmp_path / "ref.npz").write_bytes(npz(output_0=np.ones(3)))

    found = verified(store, stored(store), reference=tmp_path / "ref.npz", max_p50_ms=9)

    assert ("UNKNOWN", "FAIL") == (said(found)["accuracy"], said(found)["latency"])
    assert ("FAIL", 1) == (found.status, verify.ending(found))


def test_a_latency_over_the_limit_fails_and_an_invalid_one_says_nothing(store):
    slow = verified(store, stored(store), max_p50_ms=9)
    doubtful = verified(store, stored(store, flags=["contended"]), max_p50_ms=9)

    edge = verified(store, stored(store), max_p50_ms=10.0)

    assert "FAIL" == said(slow)["latency"]
    assert ("PASS", "within 10 ms") == (said(edge)["latency"], detail_of(edge, "latency")[-12:])
    assert "UNKNOWN" == said(doubtful)["latency"]


@pytest.mark.parametrize(
    ("reference", "status"),
    [
        ({"output_0": np.full((2, 3), 1.00001, np.float32)}, "PASS"),
        ({"output_0": np.full((2, 3), 1.1, np.float32)}, "FAIL"),
        ({"output_0": np.ones((3, 2), np.float32)}, "FAIL"),
        ({"another": np.ones((2, 3), np.float32)}, "FAIL"),
        ({"output_0": np.ones((2, 3)), "more": np.ones(1)}, "FAIL"),
        ({"output_0": np.full((2, 3), np.nan)}, "FAIL"),
    ],
)
def test_accuracy_is_the_distance_from_the_reference(store, tmp_path, reference, status):
    (tmp_path / "ref.npz").write_bytes(npz(**reference))
    row = stored(store, output=npz(output_0=np.ones((2, 3), np.float32)))

    found = verified(store, row, reference=tmp_path / "ref.npz")

    assert status == said(found)["accuracy"]


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ({"a": np.ones(2), "b": np.ones(1)}, {"a": np.ones(2)}),
        ({"a": np.ones(2)}, {"a": np.ones(2), "b": np.ones(1)}),
        ({"a": np.ones(2), "b": np.array(["yes"])}, {"a": np.ones(2), "b": np.ones(1)}),
    ],
    ids=["one more", "one less", "text instead"],
)
def test_every_output_is_held_against_one_of_the_reference(store, tmp_path, output, reference):
    """What one side alone has was never compared."""
    (tmp_path / "ref.npz").write_bytes(npz(**reference))

    found = verified(store, stored(store, output=npz(**output)), reference=tmp_path / "ref.npz")

    assert "FAIL" == said(found)["accuracy"]
    assert "output 'b' is not alike on both sides" == detail_of(found, "accuracy")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_token_that_is_another_fails_unless_somebody_allows_it(store, tmp_path, precision):
    (tmp_path / "ref.npz").write_bytes(npz(ids=np.array([[32000, 7]])))
    row = stored(store, output=npz(ids=[[32003, 7]]), asked=make.job(precision=precision))

    usual = verified(store, row, reference=tmp_path / "ref.npz")
    given = verified(store, row, reference=tmp_path / "ref.npz", atol=3.0)

    assert ("FAIL", 3.0, False) == (
        usual.status,
        usual.errors[0].max_abs,
        usual.errors[0].within,
    )
    assert detail_of(usual, "accuracy").endswith("at most 3, integers equal")
    assert "PASS" == given.status


def test_the_imaginary_part_of_an_output_is_held_against_its_reference(store, tmp_path):
    y = np.array([1 + 2j, 3.0], np.complex64)
    (tmp_path / "same.npz").write_bytes(npz(y=y))
    (tmp_path / "other.npz").write_bytes(npz(y=y.conj()))
    row = stored(store, output=npz(y=y))

    same, other = (
        verified(store, row, reference=tmp_path / f"{name}.npz") for name in ("same", "other")
    )

    assert ("PASS", "FAIL") == (said(same)["accuracy"], said(other)["accuracy"])
    assert 4.0 == other.errors[0].max_abs


def test_a_reference_of_another_byte_order_holds_the_same_numbers(store, tmp_path):
    y = np.arange(6, dtype=np.float32)
    (tmp_path / "ref.npz").write_bytes(npz(y=y.astype(">f4")))

    found = verified(store, stored(store, output=npz(y=y)), reference=tmp_path / "ref.npz")

    assert "PASS" == said(found)["accuracy"]


def test_an_output_that_is_damaged_in_the_store_is_bad(store, tmp_path):
    (tmp_path / "ref.npz").write_bytes(npz(y=np.ones(3)))
    row = stored(store, output=npz(y=np.array([{}], dtype=object)))

    with pytest.raises(Bad, match=r"array 'y' of 'blobs/.*' holds objects"):
        verify.verify(store, row, label="x", reference=tmp_path / "ref.npz")


def test_a_tolerance_follows_the_precision_unless_it_is_given(store, tmp_path):
    (tmp_path / "ref.npz").write_bytes(npz(output_0=np.full((2, 3), 1.05, np.float32)))
    wide = stored(store, output=npz(output_0=np.ones((2, 3))), asked=make.job(precision="bf16"))
    strict = {"reference": tmp_path / "ref.npz", "atol": 1e-3, "rtol": 0.0}

    assert "PASS" == said(verified(store, wide, reference=tmp_path / "ref.npz"))["accuracy"]
    assert "FAIL" == said(verified(store, wide, **strict))["accuracy"]


def test_the_answer_on_accuracy_says_how_near_it_is(store, tmp_path):
    """Distances, direction, and how often the largest number stands at the same place."""
    y = np.array([[1.0, 2.0], [4.0, 3.0]])
    (tmp_path / "ref.npz").write_bytes(npz(output_0=y))
    row = stored(store, output=npz(output_0=y[:, ::-1]))

    usual = verified(store, row, reference=tmp_path / "ref.npz")
    given = verified(store, row, reference=tmp_path / "ref.npz", atol=2.0)

    detail = {each.name: each.detail for each in usual.checks}["accuracy"]
    assert detail.startswith("rmse 1, cosine 0.933333, argmax 0 %, at most 1, ")
    assert detail.endswith(", atol 1e-06 of the largest, rtol 0.0001")
    assert "PASS" == said(given)["accuracy"]
    assert given.checks[2].detail.endswith(", atol 2, rtol 0.0001")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"share_pct": 90.0}, "a few slow iterations carry it"),
        ({"share_pct": 50.1, "reliable": False}, "shorter than ten steps of its clock"),
    ],
)
def test_a_table_whose_largest_row_is_not_reliable_is_unknown(store, changes, why):
    table = make.layer_table("first", "second")
    odd = msgspec.structs.replace(table.rows[1], **changes)
    row = stored(store, table=msgspec.structs.replace(table, rows=[table.rows[0], odd]))

    found = verified(store, row)

    assert "UNKNOWN" == said(found)["layers"]
    assert found.checks[-1].detail.endswith(f"; its largest row, second, is not reliable: {why}")


@pytest.mark.parametrize(
    ("warnings", "detail"),
    [
        ([], "the output was not kept: it failed, or is larger than 1 MiB"),
        (["it is hot", "the output was not kept: no room"], "the output was not kept: no room"),
    ],
)
def test_an_output_that_is_not_there_says_why_as_far_as_its_profile_does(
    store, tmp_path, warnings, detail
):
    (tmp_path / "ref.npz").write_bytes(npz(output_0=np.ones((2, 3), np.float32)))
    row = stored(store)
    row = row._replace(profile=msgspec.structs.replace(row.profile, warnings=warnings))

    found = verified(store, row, reference=tmp_path / "ref.npz")

    assert [("UNKNOWN", detail)] == [
        (each.status, each.detail) for each in found.checks if each.name == "accuracy"
    ]


def test_a_table_that_is_not_the_profiles_fails(store):
    row = stored(store, table=make.layer_table())
    wrong = msgspec.structs.replace(row.profile.layers, rows=7)
    told = msgspec.structs.replace(row.profile, layers=wrong)

    found = verified(store, row._replace(profile=told))

    assert "FAIL" == said(found)["layers"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is not an NPZ"),
        (b"no archive", "is not an NPZ"),
        (npz(x=np.array([{}], dtype=object)), "holds objects"),
        (npz(), "holds no array"),
        (npz(x=np.array(["yes"])), "array 'x' of '.*' holds no numbers: it is of type <U3"),
        (npz(x=np.zeros(2, "M8[s]")), "holds no numbers"),
        (npz(x=np.zeros(2, "V2")), "holds no numbers"),
    ],
)
def test_a_reference_that_is_no_npz_is_refused(store, tmp_path, data, what):
    (tmp_path / "ref.npz").write_bytes(data)

    with pytest.raises(Refused, match=what):
        verify.verify(store, stored(store), label="x", reference=tmp_path / "ref.npz")


def test_processes_that_differ_to_the_bit_are_told(store):
    """Sums in another order are no error, so this alone decides nothing."""
    row = stored(store)
    first, *rest = row.profile.repeats
    other = msgspec.structs.replace(first, output_digest="1" * 64)
    profile = msgspec.structs.replace(row.profile, repeats=[other, *rest])

    found = verified(store, row._replace(profile=profile))

    assert "UNKNOWN" == said(found)["repeatable"]


@pytest.mark.parametrize("digests", [(), ("1" * 32,), ("1" * 32, None), (None, None)])
def test_one_output_alone_repeats_nothing(store, digests):
    """Nor does a process that left none."""
    found = verified(store, with_digests(stored(store), *digests))

    assert ("UNKNOWN", "it needs two repeats' outputs") == (
        said(found)["repeatable"],
        detail_of(found, "repeatable"),
    )


def test_two_processes_with_one_output_are_enough(store):
    found = verified(store, with_digests(stored(store), "1" * 32, "1" * 32))

    assert "PASS" == said(found)["repeatable"]
