"""Two layer tables side by side: what is matched, what stands alone, and what may be said."""

from pathlib import Path

import msgspec
import pytest

from farm import schema
from farm.trace import files, matching
from farm.trace.blocks import BlockRow
from farm.trace.files import Chosen
from tests.farm.trace.test_files import appended


def chosen(name: str, rows: dict[str, tuple[float, float | None]]) -> Chosen:
    """Return a table of layers with their share and median that nothing is known of."""
    made = [
        BlockRow(
            layer=layer, share_pct=share, average_ms=1.0, median_ms=ms, std_ms=None, total_ms=1.0
        )
        for layer, (share, ms) in rows.items()
    ]
    return Chosen(name, made, 1, 1, None, "nothing beside it")


@pytest.mark.seed("S0.39")
def test_rows_are_matched_by_name_and_the_rest_stands_alone_with_its_share() -> None:
    base = chosen("a.csv#1", {"conv": (60.0, 2.0), "relu": (10.0, 1.0), "fc": (30.0, 4.0)})
    head = chosen("a.csv#2", {"conv+relu": (50.0, 1.0), "fc": (50.0, 1.0)})

    found = matching.compare(base, head)

    assert ["fc"] == [each.layer for each in found.matched]
    assert (20.0, 0.25) == (found.matched[0].change_points, found.matched[0].median_ratio)
    assert [("conv", 60.0), ("relu", 10.0)] == [
        (each.layer, each.share_pct) for each in found.only_base
    ]
    assert [("conv+relu", 50.0)] == [(each.layer, each.share_pct) for each in found.only_head]
    assert (70.0, 50.0) == (found.only_base_share_pct, found.only_head_share_pct)


@pytest.mark.seed("S0.33")
def test_no_verdict_follows_and_only_shares_are_said_to_compare() -> None:
    found = matching.compare(chosen("a", {"x": (100.0, 1.0)}), chosen("b", {"x": (100.0, 9.0)}))

    assert ("inconclusive", "unpaired") == (found.verdict, found.reason)
    assert "only shares compare" in found.note


def test_a_median_that_a_file_lacks_and_one_of_zero_give_no_ratio() -> None:
    """Nor one that is so small that no number holds the ratio."""
    base = chosen(
        "a",
        {"none": (50.0, None), "zero": (50.0, 0.0), "tiny": (0.0, 1e-300), "gone": (0.0, None)},
    )
    head = chosen("b", {"none": (50.0, 1.0), "zero": (50.0, 1.0), "tiny": (0.0, 1e299)})

    found = matching.compare(base, head)

    assert [None, None, None] == [each.median_ratio for each in found.matched]
    assert found.null_reasons["matched.0.base_median_ms"].startswith("not_supported")
    for at in (1, 2):
        assert "below_resolution" == found.null_reasons[f"matched.{at}.median_ratio"]
    assert found.null_reasons["only_base.0.median_ms"].startswith("not_supported")
    schema.encode(found)


def test_a_name_that_stands_twice_in_another_tool_s_file_is_matched_in_order() -> None:
    rows = [
        BlockRow(
            layer="conv", share_pct=50.0, average_ms=ms, median_ms=ms, std_ms=None, total_ms=ms
        )
        for ms in (1.0, 2.0)
    ]
    side = Chosen("a", rows, 1, 1, None, "")

    found = matching.compare(side, side)

    assert [("conv", 1.0), ("conv#2", 1.0)] == [
        (each.layer, each.median_ratio) for each in found.matched
    ]


@pytest.mark.seed("S0.24", "S2.16")
def test_two_blocks_of_one_file_compare_with_what_is_known_of_them(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    for names in (("a", "b"), ("b", "a")):
        appended(path, *names)

    found = matching.compare(*(files.read(files.Address(path, number)) for number in (1, 2)))

    assert (f"{path}#1", f"{path}#2") == (found.base.name, found.head.name)
    assert ("mlp", "fp32", "cpu:0", 2) == (
        *(found.base.model, found.base.precision, found.base.device),
        found.base.iterations,
    )
    assert [31.2, -31.2] == pytest.approx([each.change_points for each in found.matched])
    schema.encode(found)


def test_blocks_of_another_batch_or_model_are_of_different_work(tmp_path: Path) -> None:
    """An imported table names its file and no model; of an unknown one nothing is said."""
    path = tmp_path / "f.csv"
    appended(path, "a")
    base = files.read(files.address(str(path)))
    assert base.about is not None

    def work(**more: object) -> str:
        about = msgspec.structs.replace(base.about, **more)
        return matching.other_work(base, base._replace(about=about))

    assert "" == work(precision="bf16", device="cuda:0")
    assert "batch 4 and 8" == work(batch=8)
    assert "model mlp and cnn, batch 4 and 1" == work(model="cnn", batch=1)
    assert "" == work(model="trt.json", method="imported", batch=None)
    assert "" == matching.other_work(base, base._replace(about=None))
    assert 4 == matching.compare(base, base).base.batch
