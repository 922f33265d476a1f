"""Whole files: the numbers of real traces, of made-up ones, and of damaged ones."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.errors import Bad
from farm.trace.analysis import timings, what_if
from farm.trace.analysis.analysing import Analysed, analysed
from tests.farm.trace.analysis.expected import ABSENT, DATA, files, is_near, listed, numbers
from tests.farm.trace.reading.told import opened

SHUFFLED = "15_mi250_minitoy.json.gz"


def read(path: Path) -> Analysed:
    return analysed(opened(path), name=path.name)


def wrong(expected: dict[str, Any], found: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what is not as expected: {name: (expected, found)}; within 0.1 % or 0.001."""
    return {
        name: (each, found[name])
        for name, each in expected.items()
        if name not in ("note", "what_if") and not _is_right(each, found[name])
    }


def _is_right(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict):
        return all(_is_right(each, found.get(name, 0.0)) for name, each in expected.items())
    tol = max(0.001, 0.001 * abs(expected)) if isinstance(expected, float) else 0.0
    return is_near(found, expected, tol)


def parts(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield what is expected of each number, and the number; of a table, part by part."""
    for name, each in expected.items():
        if {"value", "values"} & {*each}:
            yield each, found[name]
        else:
            yield from ((of, found[name].get(part, 0.0)) for part, of in each.items())


@pytest.mark.parametrize("name", files("traces"))
def test_a_real_trace_gives_the_numbers_that_it_should(name: str) -> None:
    """Those that independent programs agree on; and where they differ the first of two values, by
    the definitions, which has two digits after the point.
    """
    expected = listed()["traces"][name]
    found = numbers(read(DATA / name))

    agreed, open_ = list(parts(expected["numbers"], found)), list(parts(expected["open"], found))
    assert [] == [
        (each, value)
        for each, value in agreed
        if not is_near(value, each["value"], each.get("tol", 0.0))
    ]
    assert [] == [
        (each, value) for each, value in open_ if not is_near(value, each["values"][0], 0.0051)
    ]
    assert 25 <= len(agreed)


@pytest.mark.parametrize("name", files("synthetic"))
def test_a_made_up_trace_gives_the_numbers_that_it_was_made_of(name: str) -> None:
    expected = listed()["synthetic"]["files"][name]
    if "exit" in expected:
        with pytest.raises(Bad) as caught:
            read(DATA / "synthetic" / name)
        assert expected["exit"] == caught.value.exit_code
        return

    made = read(DATA / "synthetic" / name)
    basis = what_if.basis(made.analysis, timings.of_trace(made.found))

    assert {} == wrong(expected, numbers(made))
    for question, answer in expected.get("what_if", {}).items():
        _, what, which = question.split("_", 2)
        projection = (
            what_if.without_category(basis, which)
            if what == "category"
            else what_if.without_launches(basis, int(which))
        )
        told = {each: getattr(projection, each) for each in ("projected", "best", "worst")}
        assert {} == wrong(answer, told | {"model_below_bound": projection.below_bound}), question


@pytest.mark.parametrize("name", files("malformed"))
def test_a_damaged_trace_is_refused_or_cannot_be_analysed(name: str) -> None:
    """It holds one kernel at most: too little for any limit to be named."""
    expected = listed()["malformed"]["files"][name]
    if expected["exit"]:
        with pytest.raises(Bad) as caught:
            read(DATA / "malformed" / name)
        assert expected["exit"] == caught.value.exit_code
        return

    found = read(DATA / "malformed" / name)

    assert expected["bound"] == found.analysis.bound
    assert expected["kernels"] == found.analysis.counts["kernels"]
    assert expected.get("orphans", 0) == found.analysis.counts["orphans"]
    if "kernel_ms" in expected:
        assert expected["kernel_ms"] == pytest.approx(found.analysis.metrics["kernel_sum_ms"])


def test_the_order_of_a_real_trace_changes_nothing(tmp_path: Path, seed: int) -> None:
    if not (DATA / SHUFFLED).is_file():
        pytest.skip(ABSENT)
    whole = json.loads(gzip.decompress((DATA / SHUFFLED).read_bytes()))
    random.Random(seed).shuffle(whole["traceEvents"])
    (tmp_path / SHUFFLED).write_text(json.dumps(whole), "utf-8")

    found = read(tmp_path / SHUFFLED)

    assert read(DATA / SHUFFLED).analysis == found.analysis


def test_without_its_kernels_a_real_trace_names_no_limit(tmp_path: Path) -> None:
    name = "03_a100_ddp_resnet_host_bound_nccl.json.gz"
    if not (DATA / name).is_file():
        pytest.skip(ABSENT)
    whole = json.loads(gzip.decompress((DATA / name).read_bytes()))
    whole["traceEvents"] = [
        each for each in whole["traceEvents"] if each.get("cat") not in ("kernel", "gpu_memcpy")
    ]
    (tmp_path / "stripped.json").write_text(json.dumps(whole), "utf-8")

    found = read(tmp_path / "stripped.json").analysis

    assert "no-gpu-data" == found.bound
    assert found.gpu_util is None
