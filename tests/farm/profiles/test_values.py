"""One bare value of a profile: right, or null with its reason, or an error that helps."""

import gzip
from contextlib import suppress

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import identity, profiles, schema
from farm.errors import FarmError, NoResult, Refused
from farm.profiles.values import METRICS
from farm.schema import Artifact
from farm.store import NotFound, blob_key
from tests.farm import make


def text(store, field, document=None) -> str:
    return profiles.value(store, make.row(document), field).text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("latency.p50", "10.0"),
        ("latency.p50_ms", "10.0"),
        ("latency.p99", "11.200000000000001"),
        ("throughput", "100.0"),
        ("memory.host", str(300 << 20)),
        ("noise", "0.003"),
        ("latency.p50_reliable", "true"),
        ("status", "ok"),
        ("schema", "farm.profile/v1"),
        ("job.workload.model.name", "mlp"),
        ("job.workload.batch", "1"),
        ("repeats.1.p50_ms", "10.009999999999998"),
        ("repeats.2.phases.0.name", "latency"),
        ("quality.flags", "[]"),
        ("execution.device.cpus", "[0,1]"),
        ("execution.device.cpus.1", "1"),
        ("execution.tags.driver.version", "560.2"),
        ("execution.tags", '{"driver.version":"560.2","driver":"new"}'),
        ("execution.tags.driver", "new"),
    ],
)
def test_a_metric_or_a_dotted_path_gives_its_bare_value(store, field, value):
    """Text as it is, everything else as JSON; a key may hold dots of its own."""
    document = make.profile(tags={"driver.version": "560.2", "driver": "new"})

    assert f"{value}\n" == text(store, field, document)


def test_every_metric_is_a_value_of_a_good_profile(store):
    for name in METRICS:
        assert float(text(store, name)) > 0


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("noise", "single_repeat"),
        ("latency.p99_lo_ms", "below_resolution"),
        ("memory.cpu_pss_bytes", "no_permission"),
        ("latency.proc_cv", "single_repeat"),
    ],
)
def test_a_null_is_printed_as_null_with_its_reason(store, field, reason):
    """C11: `null`, exit 0, and the code of `null_reasons` beside it."""
    document = make.profile(repeats=1, n=64)

    found = profiles.value(store, make.row(document), field)

    assert ("null\n", None, reason) == found
    assert f"{reason}\n" == text(store, f"null_reasons.{METRICS.get(field, field)}", document)


# ── documents and artefacts ──────────────────────────────────────────────────────────────────────


def test_a_job_is_printed_as_it_can_be_run_again(store):
    document = make.profile()

    printed = text(store, "job", document)

    assert document.job == schema.decode(printed.encode(), schema.Job)


def test_a_card_is_printed_as_it_is_stored(store):
    (card_id,) = make.put(store, make.card())
    document = msgspec.structs.replace(make.profile(), card_id=card_id)

    assert store.get(f"cards/v1/{card_id}.json").decode() + "\n" == text(store, "card", document)


def test_a_card_that_is_not_there_is_no_result(store):
    """Neither where the store lacks it nor where the attempt never had one."""
    nothing_ran = msgspec.structs.replace(
        make.profile(status="infra", failure=make.fault("worker_lost")), card_id=""
    )

    with pytest.raises(NotFound):
        text(store, "card")
    with pytest.raises(NoResult, match="names no card"):
        text(store, "card", nothing_ran)


def with_artifact(store, kind, data) -> schema.Profile:
    digest = identity.content_id(data)
    ending = "txt.gz" if kind == "log" else "npz"
    found = Artifact(
        key=blob_key(kind, digest, ending), sha256=digest, bytes=len(data), media_type="x/y"
    )
    store.put_new(found.key, data)
    return msgspec.structs.replace(make.profile(), artifacts={kind: found})


def test_a_log_is_printed_as_text(store):
    """Whatever bytes a model wrote."""
    document = with_artifact(store, "log", gzip.compress(b"a\xff\x1b[31mb\n"))

    assert "a\ufffd\x1b[31mb\n" == text(store, "log", document)


def test_samples_are_named_and_not_printed(store):
    document = with_artifact(store, "samples", b"PK")

    found = profiles.value(store, make.row(document), "samples")

    assert document.artifacts["samples"].key in found.text
    assert document.artifacts["samples"].sha256 == found.data["sha256"]


# ── names that lead nowhere ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("latency.p50ms", "did you mean `latency.p50_ms`?"),
        ("latncy.p50", "did you mean `latency.p50`?"),
        ("stauts", "did you mean `status`?"),
        ("repeats.0.p50", "did you mean `repeats.0.p50_ms`?"),
        ("zzz", "`farm profiles get PROFILE` lists them"),
        ("", "`farm profiles get PROFILE` lists them"),
        (".", "`farm profiles get PROFILE` lists them"),
        ("latency.", None),
        ("repeats.3.p50_ms", None),
        ("repeats.-1.p50_ms", None),
        ("repeats.٣.p50_ms", None),
        ("repeats." + "9" * 5000, None),
        ("status.x", None),
        ("__class__", None),
        ("\x1b[31m", None),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest(store, field, hint):
    """S4.70: 2, and the way to the list."""
    with pytest.raises(Refused) as caught:
        text(store, field)

    assert hint in (None, caught.value.hint)


@pytest.mark.parametrize(
    "field", ["latency.p50", "throughput", "quality.validity", "log", "memory"]
)
def test_what_this_profile_has_not_is_no_result(store, field):
    """The name is right; this attempt failed before there was a figure."""
    failed = make.profile(status="failed", failure=make.fault("oom"))

    with pytest.raises(NoResult) as caught:
        text(store, field, failed)

    assert "it ended as oom" == caught.value.why


def test_a_good_profile_has_no_failure(store):
    with pytest.raises(NoResult, match="has no failure"):
        text(store, "failure.kind")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40))
def test_no_field_ends_in_anything_but_a_value_or_one_of_our_errors(store, field):
    with suppress(FarmError):
        assert text(store, field)


# ── the order of a list ──────────────────────────────────────────────────────────────────────────


def _rows():
    """Three medians, the last one without an interval, and an attempt without a figure."""
    failed = make.row(make.profile(make.job("cnn"), status="failed"))
    fast, slow = (make.row(make.profile(p50_ms=each, fence=1)) for each in (2.0, 30.0))
    lone = make.row(make.profile(p50_ms=10.0, repeats=1, n=64))
    return {"failed": failed, "slow": slow, "fast": fast, "lone": lone}


@pytest.mark.parametrize(
    ("field", "order"),
    [
        ("latency.p50", ["fast", "lone", "slow", "failed"]),
        ("latency.p50_ms", ["fast", "lone", "slow", "failed"]),
        ("throughput", ["slow", "lone", "fast", "failed"]),
        ("noise", ["slow", "fast", "failed", "lone"]),
        ("latency.n", ["lone", "slow", "fast", "failed"]),
        ("repeats.1.p50_ms", ["fast", "slow", "failed", "lone"]),
        ("memory.cpu_pss_bytes", ["failed", "slow", "fast", "lone"]),
    ],
)
def test_rows_stand_smallest_first_and_those_without_the_number_last(field, order):
    """Equal ones keep their order; a null is no number, and neither is a field that is absent."""
    made = _rows()

    found = profiles.by(list(made.values()), field)

    assert order == [next(name for name in made if made[name] is each) for each in found]


@pytest.mark.parametrize(
    ("field", "words", "hint"),
    [
        ("latncy.p50", "a profile has no number 'latncy.p50'", "did you mean `latency.p50`?"),
        ("failure.phse", "a profile has no number 'failure.phse'", "did you mean `failure.phase`?"),
        ("zzz", "a profile has no number 'zzz'", ""),
        ("", "a profile has no number ''", ""),
        ("status", "'status' is not a number", "`farm profiles get PROFILE` lists the fields"),
        ("latency.p50_reliable", "'latency.p50_reliable' is not a number", None),
        ("latency", "'latency' is not a number", None),
        ("repeats", "'repeats' is not a number", None),
    ],
)
def test_what_is_no_number_of_any_profile_is_no_order(field, words, hint):
    with pytest.raises(Refused) as caught:
        profiles.by(list(_rows().values()), field)

    assert words == caught.value.what
    assert hint in (None, caught.value.hint)


def test_a_metric_that_no_profile_has_changes_nothing():
    """All of them failed: the name is right, and there is nothing to sort by."""
    rows = [make.row(make.profile(status="failed", fence=each)) for each in (1, 2)]

    assert rows == profiles.by(rows, "latency.p50")
    assert rows == profiles.by(rows, "latency.p50_ms")
    assert [] == profiles.by([], "zzz")


# ── the list of fields ───────────────────────────────────────────────────────────────────────────


def test_every_listed_field_has_a_value(store):
    """What the list names, `get` prints."""
    (card_id,) = make.put(store, make.card())
    document = with_artifact(store, "log", gzip.compress(b"x"))
    document = msgspec.structs.replace(document, card_id=card_id)
    names = profiles.fields(make.row(document))

    assert len(names) == len(set(names))
    assert {"latency.p50", "job", "card", "log", "latency.p50_ms", "repeats"} <= set(names)
    for each in names:
        assert profiles.value(store, make.row(document), each).text


def test_the_list_is_short_enough_to_read():
    """Lists and the job count as one field; the reasons of nulls are told with the values."""
    names = profiles.fields(make.row(make.profile(repeats=5)))

    assert not [each for each in names if each.startswith(("null_reasons", "repeats.", "job."))]
    assert len(names) < 115


def test_a_failed_profile_lists_no_metric_it_has_not():
    names = profiles.fields(make.row(make.profile(status="failed")))

    assert {"failure.kind", "failure.message"} <= set(names)
    assert not METRICS.keys() & set(names)
