"""A stored job held against what one expects: each check passes, fails, or says why it cannot."""

import io

import msgspec
import numpy as np
import pytest

from farm import identity, schema, verify
from farm.errors import Refused
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
    ("more", "check"),
    [
        ({"flags": ["contended"]}, "outcome"),
        ({"status": "failed"}, "outcome"),
    ],
)
def test_a_job_that_is_not_to_be_believed_fails(store, more, check):
    found = verified(store, stored(store, **more))

    assert ("FAIL", "FAIL") == (found.status, said(found)[check])


def test_a_latency_over_the_limit_fails_and_an_invalid_one_says_nothing(store):
    slow = verified(store, stored(store), max_p50_ms=9)
    doubtful = verified(store, stored(store, flags=["contended"]), max_p50_ms=9)

    assert "FAIL" == said(slow)["latency"]
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
