"""The table of gates: what is shipped, and what an operator may say instead."""

from pathlib import Path

import pytest

from farm.errors import Refused
from farm.gates import gates


def own(tmp_path: Path, rows: str) -> Path:
    path = tmp_path / "gates.yaml"
    path.write_text(f"schema: farm.gates/v1\ngates:\n{rows}")
    return path


def test_every_gate_says_where_its_limits_come_from_and_how_sure_they_are() -> None:
    found = gates()

    assert 20 == len(found)
    assert all(each.source and each.phases and each.limits for each in found.values())
    assert {"low", "medium", "high"} >= {each.confidence for each in found.values()}


def test_a_gate_of_a_gpu_is_on_trial_until_hardware_has_verified_it() -> None:
    """Those of the host were run."""
    modes = {name.partition("_")[0] == "host": each.mode for name, each in gates().items()}

    assert {True: "enforce", False: "observe"} == modes
    assert {"enforce"} == {each.mode for each in gates(enforced=True).values()}


def test_an_operator_replaces_what_he_says_and_no_more(tmp_path: Path) -> None:
    file = own(tmp_path, "  - {id: temperature, mode: enforce, limits: {over_idle_c: 20.5}}\n")

    found, shipped = gates(file)["temperature"], gates()["temperature"]

    assert ("enforce", {"over_idle_c": 20.5, "wait_s": 60}) == (found.mode, found.limits)
    assert (shipped.phases, shipped.source) == (found.phases, found.source)
    assert gates(file)["xid"] == gates()["xid"]


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("  - {id: temprature}\n", "no gate is called 'temprature'"),
        ("  - {id: temperature, mode: on}\n", "unknown mode|expected a mode"),
        ("  - {id: temperature, limits: {over: 3}}\n", "unknown limit 'over'"),
        ("  - {id: temperature, limits: {over_idle_c: warm}}\n", "expected such as 15"),
        ("  - {id: temperature, limits: {over_idle_c: -1}}\n", "expected such as 15"),
        ("  - {id: temperature, limits: {over_idle_c: true}}\n", "expected such as 15"),
        ("  - {id: temperature, limits: {over_idle_c: .inf}}\n", "expected such as 15"),
        ("  - {id: temperature, limits: {over_idle_c: [1]}}\n", "expected such as 15"),
        ("  - {id: xid, limits: {job: 13}}\n", "expected such as"),
        ("  - {id: xid, limits: {job: [thirteen]}}\n", "expected such as"),
        ("  - {id: contention, limits: {display: [7]}}\n", "expected such as"),
        ("  - {id: temperature, phases: [never]}\n", "unknown phase 'never'"),
        ("  - {id: temperature, colour: red}\n", "unknown key 'colour'"),
        ("  - {mode: observe}\n", "expected text"),
        ("  []\n", "an empty list"),
    ],
)
def test_a_row_without_sense_is_refused_with_its_place(
    tmp_path: Path, rows: str, what: str
) -> None:
    with pytest.raises(Refused, match=what) as caught:
        gates(own(tmp_path, rows))

    assert "gates.yaml" in caught.value.what


def test_a_file_of_another_kind_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("schema: farm.hardware/v1\ngates: [{id: xid}]")

    with pytest.raises(Refused, match=r"expected farm\.gates/v1"):
        gates(path)
