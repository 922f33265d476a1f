"""The laws of the table of accelerators: whole names, dense peaks, and mistakes that are named."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from farm import hardware
from farm.errors import Refused
from farm.hardware.table import FORMATS, Row, lookup, named, normalise, read, table

SHARED = Path(__file__).parents[4] / "shared/data/gpu_specs.csv"
GIB = 1 << 30
ROWS: Mapping[str, Row] = table()
EVERY = pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))

MINE: dict[str, Any] = {
    "key": "MINE",
    "names": ["My GPU"],
    "peak_dense_tops": {"fp32": 1.5},
    "bandwidth_gb_per_s": 100,
}


def write(folder: Path, *devices: Any, schema: str = "farm.hardware/v1") -> Path:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({"schema": schema, "devices": list(devices)}))
    return path


# ── the shipped rows ─────────────────────────────────────────────────────────────────────────────


def test_there_are_35_devices_each_with_source_and_confidence() -> None:
    assert 35 == len(ROWS)
    for row in ROWS.values():
        assert row.source
        assert row.confidence in ("high", "medium-high", "medium")
        assert None not in (row.bandwidth_gb_per_s, row.memory_gb, row.sm_count)
        assert row.vendor
        assert row.clock_basis


@EVERY
def test_peaks_are_dense(row: Row) -> None:
    """tf32 is half of fp16, bf16 all, fp8 twice; int8 once, twice or four times: never sparse."""
    peaks = row.peak_dense_tops
    fp16 = peaks["fp16"]
    wanted = {"tf32": (0.5,), "bf16": (1,), "fp8": (2,), "int8": (1, 2, 4), "fp4": (4, 6, 8)}
    for word, shares in wanted.items():
        if word in peaks:
            assert any(abs(peaks[word] / fp16 / share - 1) <= 0.013 for share in shares), word
    assert 0.03 <= peaks["fp32"] / fp16 <= 0.51


@EVERY
def test_clock_times_units_gives_the_peaks(row: Row) -> None:
    """Within 1.5 %: fp16 by the tensor clock, fp32 by its own."""
    assert row.sm_count is not None
    for clock, word in (("tensor", "fp16"), ("fp32", "fp32")):
        per_s = row.sm_count * row.boost_mhz[clock] * 1e6 * row.flop_per_clock_per_sm[clock]
        assert abs(per_s / 1e12 / row.peak_dense_tops[word] - 1) <= 0.015


@pytest.mark.parametrize(
    ("key", "word", "peak"),
    [
        ("H100-SXM", "bf16", 989.4e12),  # 1979 is sparse
        ("L40S", "fp16", 362.05e12),  # 733 is sparse
        ("L4", "bf16", 121e12),  # 242 is sparse
        ("A10G", "fp16", 70e12),  # 125 is the A10's
        ("RTX-4090", "fp16", 165.2e12),  # 330 accumulates in fp16, 82.6 uses no tensor core
        ("A100-80GB-SXM", "fp32", 19.5e12),  # 156 is tf32
        ("MI250X-GCD", "fp16", 191.5e12),  # 383 is the package
    ],
)
def test_the_traps_of_other_tables_are_avoided(key: str, word: str, peak: float) -> None:
    assert peak == ROWS[key].spec.peak_flops_per_s[word]
    assert "datasheet" == ROWS[key].spec.source


def test_what_sources_contradict_or_a_device_lacks_has_no_peak() -> None:
    assert "int8" not in ROWS["B300-HGX"].peak_dense_tops
    assert "bf16" not in ROWS["T4"].peak_dense_tops
    assert ROWS["MI250X-GCD"].tdp_w is None


def test_the_table_says_what_its_source_says() -> None:
    """Every figure is that of the collected data, but for one row's confidence.

    MI355X: its name was never seen in a device report, so that it cannot be sure.
    """
    if not SHARED.exists():
        pytest.skip("the shared data are not here")
    with SHARED.open(newline="") as file:
        given_rows = {each["name"]: each for each in csv.DictReader(file)}

    assert list(given_rows) == list(ROWS)
    for key, theirs in given_rows.items():
        ours = ROWS[key]
        columns = {
            **{f"{word}_tflops_dense": word for word in FORMATS},
            **{"fp32_tflops": "fp32", "int8_tops_dense": "int8"},
        }
        for column, word in columns.items():
            if column in theirs:
                assert _number(theirs[column]) == ours.peak_dense_tops.get(word), (key, word)
        assert _number(theirs["mem_bw_gb_per_s"]) == ours.bandwidth_gb_per_s
        assert _number(theirs["mem_gb_nominal"]) == ours.memory_gb
        assert _number(theirs["tdp_w"]) == ours.tdp_w
        assert int(theirs["sm_or_cu"]) == ours.sm_count
        assert tuple(each.strip() for each in theirs["device_names"].split(";")) == ours.names
        seen = theirs["names_seen"] == "yes"
        assert (theirs["confidence"] if seen else "medium") == ours.confidence


def _number(text: str) -> float | None:
    return float(text) if text else None


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_each_listed_name_is_one_row_whatever_its_case_and_blanks(row: Row) -> None:
    for name in row.names:
        odd = f"  {name.upper().replace(' ', '   ')}\t"

        assert row is lookup(ROWS, name).row
        assert row is lookup(ROWS, odd).row


@pytest.mark.parametrize(
    "name",
    [
        *(
            "NVIDIA A1",
            "NVIDIA A100",
            "NVIDIA A10M",
            "A10",
            "NVIDIA L40G",
            "NVIDIA L",
            "NVIDIA H20",
        ),
        *("NVIDIA H200 NVL 2", "NVIDIA H100", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        *("NVIDIA GeForce RTX 4090 D", "Tesla V100S-PCIE-32GB", "NVIDIA GB300", "NVIDIA"),
        *("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA RTX 6000", "AMD Instinct MI250", "", "cpu"),
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    ],
)
def test_a_near_name_never_becomes_a_neighbour(name: str) -> None:
    found = lookup(ROWS, name)

    assert found.row is None
    assert found.reason.startswith("unknown_device: no row for ")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A100-SXM4-40GB", "A100-40GB-SXM"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H200", "H200-SXM"),
        ("NVIDIA H200 NVL", "H200-NVL"),
    ],
)
def test_names_that_begin_alike_are_told_apart(name: str, key: str) -> None:
    found = lookup(ROWS, name)

    assert found.row is not None
    assert (key, "") == (found.row.key, found.reason)


@given(st.sampled_from(list(ROWS)), st.text(min_size=1, max_size=4), st.booleans())
def test_no_part_of_a_name_is_a_name(key: str, more: str, in_front: bool) -> None:
    """Whatever is added to a listed name, the row is gone, unless that is another whole name."""
    name = ROWS[key].names[0]
    longer = more + name if in_front else name + more
    found = lookup(ROWS, longer)

    assert (found.row is not None) == any(
        normalise(longer) == normalise(each) for row in ROWS.values() for each in row.names
    )


# ── what else a device reports ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "mib", "sms", "watts"),
    [
        ("NVIDIA H200", 143_771, 132, 700.0),
        ("NVIDIA L4", 23_034, 58, 72.0),
        ("Tesla T4", 15_360, 40, 70.0),
        ("NVIDIA B300 SXM6 AC", 275_040, 148, 1100.0),
        ("NVIDIA A100-SXM4-80GB", 81_920, 108, None),
        ("NVIDIA GH200 480GB", 97_871, 132, 900.0),
    ],
)
def test_what_drivers_report_fits_the_row(
    name: str, mib: int, sms: int, watts: float | None
) -> None:
    """GiB against nominal GB, with what the driver keeps for itself."""
    found = lookup(ROWS, name, memory_bytes=mib << 20, sm_count=sms, power_limit_w=watts)

    assert found.row is not None
    assert () == found.remarks


@pytest.mark.parametrize(
    ("name", "facts", "why"),
    [
        ("NVIDIA GH200 480GB", {"memory_bytes": 141 * GIB}, "96 GB, this device 141.0 GiB"),
        ("NVIDIA A100-SXM4-80GB", {"memory_bytes": 40 * GIB}, "80 GB, this device 40.0 GiB"),
        ("NVIDIA H100 80GB HBM3", {"sm_count": 114}, "132 multiprocessors, this device 114"),
        ("NVIDIA L40S", {"power_limit_w": 72.0}, "350 W, this device 72 W"),
    ],
)
def test_a_device_that_contradicts_its_name_is_unknown(
    name: str, facts: dict[str, Any], why: str
) -> None:
    found = lookup(ROWS, name, **facts)

    assert found.row is None
    assert found.reason.startswith("unknown_device: ")
    assert found.reason.endswith(why)


def test_another_power_limit_is_remarked() -> None:
    """The 500 W variant of the A100 reports the same name and has the same peaks."""
    found = lookup(ROWS, "NVIDIA A100-SXM4-80GB", power_limit_w=500.0)

    assert found.row is not None
    assert ("power limit 500 W; the peaks are those at 400 W",) == found.remarks


def test_a_person_names_a_row_by_its_key_or_by_its_whole_name() -> None:
    assert ROWS["H100-SXM"] is named(ROWS, "h100-sxm")
    assert ROWS["H100-SXM"] is named(ROWS, "nvidia h100 80gb hbm3")
    with pytest.raises(Refused) as caught:
        named(ROWS, "h100-sxn")
    assert "did you mean `H100-SXM`?" == caught.value.hint


# ── a file of the user's ─────────────────────────────────────────────────────────────────────────


def test_a_row_of_the_user_replaces_the_one_with_its_key(tmp_path: Path) -> None:
    better = {
        **MINE,
        "key": "L4",
        "names": "NVIDIA L4",
        "peak_dense_tops": {"bf16": 100, "fp8": None},
    }

    rows = table(write(tmp_path, better, MINE))

    assert 36 == len(rows)
    spec = rows["L4"].spec
    assert ("user", {"bf16": 100e12}, 100e9) == (
        spec.source,
        spec.peak_flops_per_s,
        spec.peak_bytes_per_s,
    )
    assert "datasheet" == rows["L40"].spec.source
    assert rows["MINE"] is lookup(rows, "my  gpu").row
    assert hardware.table() is ROWS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": 7}, "devices[0].key: expected a key, got the number 7"),
        ({"names": []}, "devices[0].names: an empty list"),
        ({"names": ["a", 2]}, "devices[0].names[1]: expected a name, got the number 2"),
        ({"peak_dense_tops": {"fp31": 1}}, "devices[0].peak_dense_tops.fp31: unknown key 'fp31'"),
        (
            {"peak_dense_tops": {"fp32": 0}},
            "devices[0].peak_dense_tops.fp32: expected a number above",
        ),
        (
            {"peak_dense_tops": {"fp32": float("nan")}},
            "devices[0].peak_dense_tops.fp32: expected a",
        ),
        ({"peak_dense_tops": {"fp32": True}}, "devices[0].peak_dense_tops.fp32: expected a number"),
        ({"peak_dense_tops": 3}, "devices[0].peak_dense_tops: expected keys and values"),
        ({"bandwidth_gb_per_s": "100"}, "devices[0].bandwidth_gb_per_s: expected a number"),
        ({"bandwidth_gb_per_s": -1}, "devices[0].bandwidth_gb_per_s: expected a number above 0"),
        ({"require": {"sm_count": 1.5}}, "devices[0].require.sm_count: expected a whole number"),
        ({"require": {"memory": 1}}, "devices[0].require.memory: unknown key 'memory'"),
        ({"confidence": "certain"}, "devices[0].confidence: unknown confidence 'certain'"),
        ({"colour": "green"}, "devices[0].colour: unknown key 'colour'"),
        ({"note": ""}, "devices[0].note: expected text"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, MINE | change)

    with pytest.raises(Refused) as caught:
        read(path)

    place, _, what = message.partition(": ")
    assert f"{path}: {what}" in caught.value.what or what in caught.value.what
    assert f"at {place}" in caught.value.why


@pytest.mark.parametrize("name", ["key", "names", "peak_dense_tops", "bandwidth_gb_per_s"])
def test_what_a_row_needs_is_missed(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, {key: value for key, value in MINE.items() if key != name})

    with pytest.raises(Refused, match=f"'{name}' is missing"):
        read(path)


def test_two_rows_never_share_a_key_or_a_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the key 'MINE' is there twice"):
        read(write(tmp_path, MINE, MINE))
    with pytest.raises(Refused, match="OTHER and MINE are both called 'my gpu'"):
        read(write(tmp_path, MINE, {**MINE, "key": "OTHER"}))
    with pytest.raises(Refused, match="MINE and T4 are both called 'tesla t4'") as caught:
        table(write(tmp_path, {**MINE, "names": "Tesla T4"}))
    assert "use the key 'T4' to replace that row" == caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema: farm.hardware/v2\ndevices: []\n", "unknown schema 'farm.hardware/v2'"),
        ("devices: []\n", "expected a schema, got nothing"),
        ("schema: farm.hardware/v1\n", "expected a list, got nothing"),
        ("schema: farm.hardware/v1\ndevices: []\n", "an empty list"),
        ("schema: farm.hardware/v1\ndevices: [3]\n", "expected keys and values"),
        ("- 1\n", "expected keys and values"),
        ("schema: [\n", "not readable as YAML"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    with pytest.raises(Refused, match=message.replace("[", r"\[")):
        read(path)
