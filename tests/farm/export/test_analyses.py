"""Every profile that kept a trace is a line with what that says; the others are counted."""

from pathlib import Path

import pytest

from farm import schema
from farm.errors import Bad, NoResult
from farm.store import LocalStore
from farm.trace.analysis.record import Analysis
from tests.farm import make
from tests.farm.export import kept
from tests.farm.profiles.kept import with_trace
from tests.farm.trace import g8


def test_a_profile_with_a_trace_is_a_line(store: LocalStore, tmp_path: Path) -> None:
    ids = make.put(
        store,
        with_trace(store, make.profile()),
        with_trace(store, make.profile(make.job(batch=8))),
        make.profile(make.job("cnn")),
    )

    data, made = kept.exported(store, tmp_path / "cache", "analysis")

    found = [schema.decode(each, Analysis) for each in data.splitlines()]
    assert (2, 1) == (made.rows, made.left_out)
    assert {*ids[:2]} == {each.trace for each in found}
    expected = g8.analysis(g8.events())
    assert [expected.metrics] * 2 == [each.metrics for each in found]
    assert [expected.timings] * 2 == [each.timings for each in found]


def test_a_trace_that_is_none_or_gone_names_its_profile(store: LocalStore, tmp_path: Path) -> None:
    profile = with_trace(store, make.profile(), b"no trace")
    (profile_id,) = make.put(store, profile)

    with pytest.raises(Bad, match=profile_id):
        kept.exported(store, tmp_path / "cache", "analysis")
    (tmp_path / "store" / profile.artifacts["trace"].key).unlink()
    with pytest.raises(NoResult, match="is not there"):
        kept.exported(store, tmp_path / "cache", "analysis")
