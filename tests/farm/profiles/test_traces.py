"""A stored profile leads to the trace that it kept, or says why there is none."""

from pathlib import Path

import msgspec
import pytest

from farm import identity, schema
from farm.errors import Bad, NoResult, Refused
from farm.profiles import traces
from farm.schema import Artifact, Captured
from farm.store import LocalStore, blob_key
from tests.farm import make
from tests.farm.profiles.kept import with_trace
from tests.farm.trace import g8


def test_an_id_its_beginning_and_the_job_lead_to_the_profile(store: LocalStore) -> None:
    profile = with_trace(store, make.profile())
    (profile_id,) = make.put(store, profile)

    for word in (profile_id, profile_id[:8], profile.job_id, profile.job_id[:10]):
        assert profile_id == traces.traced(store, word).profile_id


def test_of_a_job_the_best_attempt_with_a_trace_is_meant(store: LocalStore) -> None:
    """The one that wins kept none; of the others the newest counts."""
    plain = make.profile(fence=3)
    old, new = (with_trace(store, make.profile(fence=fence)) for fence in (1, 2))
    ids = make.put(store, plain, old, new)

    found = traces.traced(store, plain.job_id)

    assert ids[2] == found.profile_id
    with pytest.raises(NoResult):
        traces.traced(store, ids[0])


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        ({}, "it was taken without `measure.trace: true`"),
        ({"trace": "not_requested"}, "it was taken without `measure.trace: true`"),
        ({"trace": "phase_failed: it ran out of disk"}, "it ran out of disk"),
    ],
)
def test_a_profile_without_a_trace_says_why(
    store: LocalStore, reasons: dict[str, str], why: str
) -> None:
    profile = make.profile()
    told = msgspec.structs.replace(profile, null_reasons=profile.null_reasons | reasons)

    found = traces.without(told, "a" * 64)

    assert ("profile aaaaaaaaaaaa has no trace", why, 3) == (found.what, found.why, found.exit_code)
    assert ("measure.trace" in found.hint) is ("measure.trace" in why)


def test_what_nothing_matches_names_the_nearest(store: LocalStore) -> None:
    (profile_id,) = make.put(store, with_trace(store, make.profile()))
    digit = "0" if profile_id[9] != "0" else "1"

    with pytest.raises(NoResult) as caught:
        traces.traced(store, profile_id[:9] + digit)

    assert f"did you mean `{profile_id[:10]}`?" == caught.value.hint
    with pytest.raises(Refused):
        traces.traced(store, "abc")


def test_the_analysis_is_that_of_the_trace_under_the_name_that_was_asked(store: LocalStore) -> None:
    profile = with_trace(store, make.profile())

    found = traces.opened(store, profile, name="3f9a61")

    expected = g8.analysis(g8.events())
    assert ("3f9a61", "3f9a61") == (found.name, found.analysis.trace)
    assert expected.metrics == found.analysis.metrics
    assert found.made is not None


def test_what_the_clean_passes_measured_stands_in_its_place(store: LocalStore) -> None:
    """The profiler slowed the step down from 8 to 10 ms."""
    (card_id,) = make.put(store, make.card())
    beside = Captured(
        plain_ns=[8_000_000] * 5,
        waits_ns=[],
        traced_ns=[10_000_000] * 5,
        stages_ns={},
        pipeline="plain",
        unused=[],
        notes=[],
    )
    data = schema.encode(beside)
    digest = identity.content_id(data)
    key = blob_key("captured", digest, "json")
    store.put_new(key, data)
    kept = Artifact(key=key, sha256=digest, bytes=len(data), media_type="application/json")
    profile = with_trace(store, msgspec.structs.replace(make.profile(), card_id=card_id))
    told = msgspec.structs.replace(profile, artifacts={**profile.artifacts, "captured": kept})

    found = traces.opened(store, told, name="a")

    assert (8.0, "mlp") == (found.analysis.step_ms, found.analysis.model)
    assert 1.25 == found.analysis.metrics["trace_overhead"]
    assert 3 == found.analysis.config["repeats"]
    lost = traces.opened(store, msgspec.structs.replace(told, card_id="f" * 64), name="a")
    assert (8.0, msgspec.UNSET) == (lost.analysis.step_ms, lost.analysis.card)


def test_a_trace_that_is_gone_or_damaged_is_told(store: LocalStore, tmp_path: Path) -> None:
    profile = with_trace(store, make.profile(), b"no trace")

    with pytest.raises(Bad, match="'a' cannot be analysed"):
        traces.opened(store, profile, name="a")
    (tmp_path / "store" / profile.artifacts["trace"].key).unlink()
    with pytest.raises(NoResult, match="is not there"):
        traces.opened(store, profile, name="a")
