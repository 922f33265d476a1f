"""What instruments found, on the screen: shares, estimates and reasons, and no number made up."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import schema
from farm.profiles import instruments, screen
from farm.report.table import Table
from tests.farm import make
from tests.farm.profiles.instrumented import BLOCKS, BOUNDS, profile


def said(document: schema.Profile) -> list[str]:
    return instruments.lines(make.row(document))


def row_id() -> str:
    return make.row(profile()).profile_id[:12]


def told(document: schema.Profile) -> str:
    """The whole screen as text."""
    blocks = [
        [each] if isinstance(each, str) else [" ".join(c.text for c in row) for row in each.rows]
        for each in screen(make.row(document))
    ]
    return "\n".join(line for block in blocks for line in block)


def test_each_block_has_its_lines():
    assert [
        "layers   block.0 31 %, block.1 22 %, block.2 11 %, block.3 7.2 %, block.4 5.4 %, 37 more",
        "         shares of a profiled pass: wrapped, wall clock, 91 iterations, "
        "perturbation +5.0 %",
        f"trace    17 iterations, 22.4 MiB; read it: farm profile summary {row_id()}",
        "cost     11,689,512 parameters in 44.59 MiB; activations of 6.125 MiB per batch at most",
        "         3,628,146,688 FLOPs per item (partial, coverage 93.4 %); "
        "at least 47.25 MiB moved per batch",
        "limits   measured: compute, mfu 41 % of peak FLOP/s, mbu 12 % of peak bandwidth, "
        "45.30 GFLOP/s",
        "         not measured: 32.98 ms at the roofline, compute; measured peaks of EPYC, fp32",
        "         not measured: memory, by the old rule of thumb",
        "energy   0.6130 J per item; 91.40 ±4.60 J gross in 1.110 s; 61.30 J above idle",
        "         by counter, device, power was sampled a quarter of the time",
    ] == [each for each in said(profile()) if not each.startswith("without")]


def test_the_screen_shows_them_between_the_repeats_and_where_it_was_taken():
    text = told(profile())

    assert text.index("0.4 s, converged") < text.index("layers   ") < text.index("taken    ")


def test_a_name_of_a_layer_steers_no_terminal():
    hotspot = schema.Hotspot(layer="a\nb\x1b[2J", type="Linear", share_pct=31.2)
    document = profile(layers=msgspec.structs.replace(BLOCKS["layers"], hotspots=[hotspot]))

    assert r"layers   a\x0ab\x1b[2J 31 %, 41 more" == said(document)[0]


def test_one_screen_is_enough():
    """Of forty-five lines, a hundred columns wide where names are of a usual length."""
    blocks = screen(make.row(profile()))
    lines = [each for each in blocks if isinstance(each, str)]
    tables = [each for each in blocks if isinstance(each, Table)]

    assert 45 >= len(lines) + sum(len(each.rows) + 3 for each in tables)
    assert 100 >= max(map(len, said(profile())))


def test_a_table_that_was_kept_says_how_to_print_it():
    artifact = schema.Artifact(key="k", sha256="0" * 64, bytes=1, media_type="text/csv")
    document = msgspec.structs.replace(profile(), artifacts={"layers": artifact})
    row = make.row(document)

    assert f"         table: farm profiles get {row.profile_id[:12]} layers" in said(document)
    assert not any("table:" in each for each in said(profile()))


def test_a_profile_of_before_has_no_such_lines():
    """Absent blocks; nor has one that failed."""
    assert [] == said(make.profile())
    assert [] == said(make.profile(status="failed"))


def test_blocks_that_were_asked_for_and_are_not_there_say_why_once_for_each_reason():
    document = profile(
        nulls=["layers", "trace", "cost", "estimate", "bounds", "energy"],
        codes={"energy": "no_permission"},
    )

    assert [
        "without  layers, trace, cost, roofline, limits: error (fell over)",
        "without  energy: this user may not read it",
    ] == said(document)


def test_blocks_that_nobody_asked_for_are_not_mentioned():
    document = profile(nulls=BLOCKS, codes=dict.fromkeys(BLOCKS, "not_requested"))

    assert [] == said(document)


def test_a_cpu_has_no_device_time_to_miss():
    document = profile(nulls=["gpu_time"], codes={"gpu_time": "not_supported: no events"})
    on_cpu = msgspec.structs.replace(document, execution=make.execution())

    assert ["without  device time: this machine does not offer it (no events)"] == said(document)[
        -1:
    ]
    assert not any("device time" in each for each in said(on_cpu))


def test_a_step_quicker_than_its_roofs_says_that_something_is_wrong():
    document = profile(
        nulls=["bounds.mfu", "bounds.mbu", "bounds.measured_bound"],
        bounds=msgspec.structs.replace(BOUNDS, roof_violation=True),
    )

    lines = said(document)

    assert "limits   45.30 GFLOP/s" in lines
    assert "         quicker than its roofs: the peaks or the count of its work are wrong" in lines
    assert "without  measured bound, mfu, mbu: error (fell over)" in lines


def test_an_energy_without_its_uncertainty_is_marked():
    document = profile(
        nulls=["energy.energy_uncertainty_j"],
        codes={"energy.energy_uncertainty_j": "single_repeat"},
    )

    assert any("91.40~ J gross" in each for each in said(document))
    assert "without  its uncertainty: one repeat gives no interval" in said(document)


_NUMBERS = [
    f"{name}.{field}"
    for name, block in BLOCKS.items()
    for field in block.__struct_fields__
    if isinstance(getattr(block, field), int | float)
    and not isinstance(getattr(block, field), bool)
    and name != "trace"  # which is there with its numbers, or not at all
    and f"{name}.{field}" not in ("layers.rows", "layers.iterations", "gpu_time.n")
]
# Those that the screen shows; the rest is for `farm profiles get`.
_SHOWN = {
    *instruments.SHOWN,
    "gpu_time.p50_ms",
    "gpu_time.enqueue_p50_ms",
} - {*BLOCKS}


@given(st.sets(st.sampled_from(_NUMBERS)), st.sets(st.sampled_from(sorted(BLOCKS))))
def test_what_is_null_is_never_0_and_has_its_reason(fields, blocks):
    """Every number of the profile is far from 0, so a 0 would be made up."""
    fields = {path for path in fields if path.partition(".")[0] not in blocks}
    nulls = [*fields, *blocks]
    document = profile(nulls=nulls, codes={path: f"error: {path}" for path in nulls})

    text = told(document)
    ours = ("device", "enqueue", "allocated", "reserved")
    lines = [each for each in text.splitlines() if each.startswith(ours)] + said(document)
    zeros = [re.findall(r"(?<![\w.,:])0(?:\.0+)?(?![\w.,:])", each) for each in lines]
    assert [] == [each for each in zeros if each]
    assert "None" not in text
    for path in (fields & _SHOWN) | blocks:
        assert f"({path})" in text


@pytest.mark.parametrize("path", sorted(instruments.SHOWN.keys() - {*BLOCKS}))
def test_every_number_that_may_be_missed_is_a_field(path):
    name, field = path.split(".")

    assert field in BLOCKS[name].__struct_fields__
