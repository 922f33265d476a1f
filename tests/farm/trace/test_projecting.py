"""A projection as one document: what is removed, the bounds, and that it proves nothing."""

from pathlib import Path

import pytest
from msgspec import UNSET, structs, to_builtins

from farm import schema
from farm.errors import Refused
from farm.trace import opening
from farm.trace.opening import Opened
from farm.trace.projecting import projected
from tests.farm.trace import g8


@pytest.fixture
def half(tmp_path: Path) -> Opened:
    """Ten steps of 10 ms, half busy: 5 ms of host overhead for 20 launches."""
    return opening.opened(g8.file(tmp_path / "half.json"))


@pytest.fixture
def busy(tmp_path: Path) -> Opened:
    return opening.opened(g8.file(tmp_path / "busy.json", g8.events(busy=0.9)))


@pytest.mark.seed("S4.91", "S4.93", "S4.96")
def test_fewer_launches_save_the_host_s_time_down_to_that_of_the_device(half: Opened) -> None:
    """250 µs each; never below the 5 ms for which kernels run."""
    ten = projected(half, category=None, launches=10)
    all_ = projected(half, category=None, launches=20)

    assert (10.0, 10.0) == (ten.removed.launches, pytest.approx(ten.step_ms.now))
    assert 7.5 == pytest.approx(ten.step_ms.projected)
    assert 5.0 == pytest.approx(all_.step_ms.projected)


@pytest.mark.seed("S4.90", "S4.94")
def test_less_work_saves_its_time_where_the_device_is_busy(busy: Opened) -> None:
    """Six of the twenty kernels of a step are GEMMs: 2.7 of its 9 ms."""
    found = projected(busy, category="gemm", launches=None)

    assert (2.7, 6.0) == (pytest.approx(found.removed.gpu_ms), found.removed.launches)
    assert 7.3 == pytest.approx(found.step_ms.projected)
    assert (7.0, 10.0) == (pytest.approx(found.step_ms.best), pytest.approx(found.step_ms.worst))


@pytest.mark.seed("S4.95")
def test_the_caveat_says_what_the_projection_is_worth(half: Opened) -> None:
    found = projected(half, category="gemm", launches=None)

    expected = "the cost of a launch is an approximation; only measuring again proves it"
    assert expected == found.caveat


@pytest.mark.seed("S4.98")
def test_more_launches_than_there_are_are_all_of_them_and_that_is_said(half: Opened) -> None:
    found = projected(half, category=None, launches=1000)

    assert (20.0, "there are only 20 launches in a step") == (found.removed.launches, found.note)
    assert "" == projected(half, category=None, launches=20).note


@pytest.mark.seed("S4.97")
def test_a_category_that_is_not_there_lists_those_that_are(half: Opened) -> None:
    for word in ("attention", "gemmm"):
        with pytest.raises(Refused) as caught:
            projected(half, category=word, launches=None)
        assert "here are elementwise, gemm, layout, norm, other" == caught.value.why


@pytest.mark.seed("S4.98")
def test_nothing_is_projected_without_kernels_or_launches(tmp_path: Path) -> None:
    """Of the original it was a step of 0 ms."""
    made = g8.events()
    without = {
        "kernels": g8.host(),
        "launches": [each for each in made if "Launch" not in each["name"]],
        "kernels.": [each for each in made if each["cat"] != "kernel"],
    }

    for name, events in without.items():
        found = opening.opened(g8.file(tmp_path / f"{name}json", events))
        if name == "launches":  # each kernel counts as its launch then
            assert 20 == found.analysis.launches_per_step
            continue
        with pytest.raises(Refused):
            projected(found, category=None, launches=1)


def test_an_analysis_without_its_events_asks_for_the_trace(half: Opened) -> None:
    """Fewer launches need none: they have no time on the device."""
    for timings in (UNSET, None):
        kept = Opened(half.name, structs.replace(half.analysis, timings=timings), None)
        with pytest.raises(Refused, match="no kernels are removed") as caught:
            projected(kept, category="gemm", launches=None)
        assert "name its trace" == caught.value.hint
        assert projected(half, category=None, launches=3) == projected(
            kept, category=None, launches=3
        )


def test_images_per_second_follow_the_step_and_are_null_with_a_reason(half: Opened) -> None:
    told = half._replace(analysis=structs.replace(half.analysis, img_per_s=300.0))

    known = projected(told, category=None, launches=10)
    unknown = projected(half, category=None, launches=10)

    assert known.img_per_s is not None
    assert (300.0, 400.0) == (known.img_per_s.now, pytest.approx(known.img_per_s.projected))
    for each in (known, unknown):
        plain = to_builtins(each)
        reasons = plain.pop("null_reasons")
        assert set(reasons) == set(schema.null_paths(plain))
