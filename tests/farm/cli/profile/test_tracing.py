"""The verbs that read a trace: what they print, for people and programs, and how they end."""

import json
from pathlib import Path

import pytest

from farm import schema
from tests.farm.trace import g8

READING = (["summary"], ["get"], ["phases"], ["kernels"], ["ops"])


@pytest.fixture
def trace(here: Path) -> str:
    """Ten steps of 10 ms that are half busy."""
    g8.file(here / "trace.json.gz")
    return "trace.json.gz"


@pytest.fixture
def cpu(here: Path) -> str:
    g8.file(here / "cpu.json", g8.host())
    return "cpu.json"


# ── one document each ────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.7")
@pytest.mark.parametrize("verb", [*READING, ["what-if", "--remove-launches", "3"]])
def test_json_is_asked_for_and_is_one_document_with_a_reason_for_each_null(farm, trace, verb):
    plain, asked = farm("profile", *verb, trace), farm("profile", *verb, trace, "--json")

    assert (0, 0, "") == (plain.code, asked.code, asked.err)
    assert not plain.out.startswith("{")
    found = json.loads(asked.out)
    assert found.pop("schema").startswith("farm.")
    reasons = found.pop("null_reasons", {})
    assert set(reasons) == set(schema.null_paths(found))


def test_an_analysis_that_was_kept_answers_as_its_trace_does(here, farm, trace):
    (here / "profile.json").write_text(farm("profile", "summary", trace, "--json").out)

    for verb in READING:
        told = farm("profile", *verb, trace).out

        assert told.replace(trace, "profile.json") == farm("profile", *verb, "profile.json").out


def test_the_summary_ends_with_the_next_step_to_paste(here, farm, cpu):
    g8.file(here / "my trace.json")

    assert (
        "next: farm profile kernels 'my trace.json'\n"
        == farm("profile", "summary", "my trace.json").err
    )
    assert f"next: farm profile ops {cpu}\n" == farm("profile", "summary", cpu).err
    assert "" == farm("-q", "profile", "summary", cpu).err


# ── get ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.68")
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("bound", "host / launch"),
        ("launches_per_step", "20.0"),
        ("unique_kernels", "7"),
        ("memory_pressure", "false"),
    ],
)
def test_a_metric_is_the_only_thing_that_is_printed(farm, trace, field, expected):
    assert (0, f"{expected}\n", "") == farm("profile", "get", trace, field)


@pytest.mark.seed("S4.68")
def test_a_metric_that_the_trace_does_not_tell_is_null_and_no_mistake(farm, trace):
    """Why, is talk."""
    said = farm("profile", "get", trace, "img_per_s")

    assert (0, "null\n") == (said.code, said.out)
    assert said.err.startswith("img_per_s is null: not_probed: a trace does not tell")
    assert (0, "null\n", "") == farm("-q", "profile", "get", trace, "img_per_s")


def test_a_metric_as_json_says_why_it_is_null(farm, trace):
    found = json.loads(farm("profile", "get", trace, "img_per_s", "--json").out)

    assert ("farm.value/v1", "img_per_s", None) == (found["schema"], found["field"], found["value"])
    assert found["why"].startswith("not_probed: ")
    known = json.loads(farm("profile", "get", trace, "unique_kernels", "--json").out)
    assert (7, "") == (known["value"], known["why"])


@pytest.mark.seed("S4.69")
def test_without_a_field_every_metric_is_listed_with_its_unit(farm, trace):
    names = json.loads(farm("profile", "get", trace, "--json").out)["metrics"]
    lines = farm("profile", "get", trace).out.splitlines()

    assert ["metric", "value", "unit", "why", "not"] == lines[0].split()
    assert sorted(names) == [line.split()[0] for line in lines[1:]]
    assert ["step_ms", "10.00", "ms"] in [line.split() for line in lines]
    assert {"gpu_util", "host_overhead_ms", "forward_gpu_ms", "forward_kernels"} <= {*names}


@pytest.mark.seed("S4.70")
def test_an_unknown_metric_ends_with_2_and_points_to_the_listing(farm, trace):
    said = farm("profile", "get", trace, "gpu_utl")

    assert (2, "") == (said.code, said.out)
    assert "error: no metric 'gpu_utl'\n  without FIELD all of them are listed\n" in said.err
    assert "hint: did you mean `gpu_util`?" in said.err


# ── kernels and ops ──────────────────────────────────────────────────────────────────────────────


def rows(out: str) -> list[list[str]]:
    """The rows of a table that a pipe gets: between its header and its notes."""
    return [line.split() for line in out.splitlines()[2:] if line[:1] == " "]


@pytest.fixture
def many(here: Path) -> str:
    """30 kernels and 30 ops, the first the longest."""
    made = []
    for at in range(30):
        made.append(g8.launch(1000 * at, at + 1))
        made.append(g8.kernel(f"work_{at:02}", 1000 * at + 9, 100 + 10 * (30 - at), at + 1))
        made.append(g8.span(f"aten::op_{at:02}", 1000 * at, 100 + 10 * (30 - at), cat="cpu_op"))
    g8.file(here / "many.json", [g8.span("ProfilerStep#1", 0, 31_000), *made])
    return "many.json"


@pytest.mark.seed("S4.73", "S4.82")
@pytest.mark.parametrize(("verb", "name"), [("kernels", "work_{:02}"), ("ops", "aten::op_{:02}")])
def test_the_first_twenty_are_shown_unless_another_number_is_asked_for(farm, many, verb, name):
    def shown(*flags: str) -> list[str]:
        return [each[-1] for each in rows(farm("profile", verb, many, *flags).out)]

    assert [name.format(at) for at in range(20)] == shown()
    assert [name.format(at) for at in range(3)] == shown("--top", "3")
    assert [name.format(at) for at in range(30)] == shown("--top", "1000000000000000000000")
    assert "20 of 30 " in farm("profile", verb, many).out
    assert "of 30" not in farm("profile", verb, many, "--top", "30").out
    found = json.loads(farm("profile", verb, many, "--top", "3", "--json").out)
    assert (30, 3) == (found["of"], len(found["rows"]))


@pytest.mark.seed("S4.77")
def test_kernels_are_sorted_as_asked_and_no_other_word_is_taken(farm, many):
    assert (
        farm("profile", "kernels", many).out
        == farm("profile", "kernels", many, "--sort", "time").out
    )
    by_name = rows(farm("profile", "kernels", many, "--sort", "name", "--top", "30").out)
    assert [f"work_{at:02}" for at in range(30)] == [each[-1] for each in by_name]
    said = farm("profile", "kernels", many, "--sort", "size")
    assert (2, True) == (said.code, "'size' is not one of 'time', 'count', 'name'" in said.err)


@pytest.mark.seed("S4.74", "S4.75", "S4.76")
def test_the_flags_filter_what_is_shown(farm, trace):
    def names(*flags: str) -> set[str]:
        found = json.loads(farm("profile", "kernels", trace, *flags, "--json").out)
        return {each["raw_name"] for each in found["rows"]}

    assert {g8.GEMM, g8.PLAIN_GEMM} == names("--category", "gem")
    assert {g8.NORM} == names("--grep", "bn_fw.*NCHW")
    assert {g8.GEMM} == names("--tensorcore")
    assert set() == names("--category", "attention")
    assert set(g8.NAMES) == names()


def test_a_category_without_kernels_is_an_empty_table(farm, trace):
    said = farm("profile", "kernels", trace, "--category", "attention")

    assert (0, "", []) == (said.code, said.err, rows(said.out))
    assert said.out.endswith("\nno kernel here\n")


@pytest.mark.seed("S4.78", "S4.79", "S4.83")
@pytest.mark.parametrize("verb", ["kernels", "ops"])
def test_a_phase_restricts_the_rows_and_another_is_refused(farm, trace, verb):
    found = json.loads(farm("profile", verb, trace, "--phase", "forward", "--json").out)
    said = farm("profile", verb, trace, "--phase", "evening")

    assert 5.0 == pytest.approx(sum(each["count_per_step"] for each in found["rows"]))
    assert (2, "") == (said.code, said.out)
    assert "  here are to_device, forward, backward, optimizer\n" in said.err


# ── what-if ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S4.92")
def test_one_of_the_two_options_is_required_and_only_one(farm, trace):
    none = farm("profile", "what-if", trace)
    both = farm("profile", "what-if", trace, "--remove-category", "gemm", "--remove-launches", "1")

    assert (2, True) == (none.code, none.err.startswith("error: nothing to remove\n"))
    assert (2, True) == (both.code, both.err.startswith("error: two things to remove\n"))


@pytest.mark.seed("S4.90", "S4.91", "S4.95")
def test_a_projection_is_printed_with_its_bounds_and_its_caveat(farm, trace):
    ten = farm("profile", "what-if", trace, "--remove-launches", "10").out
    gemm = json.loads(farm("profile", "what-if", trace, "--remove-category", "gemm", "--json").out)

    assert "step         10.00 ms now · 7.500 ms projected (−25.0 %)\n" in ten
    assert "\ncaveat       the cost of a launch is an approximation; only measuring again" in ten
    assert 8.5 == pytest.approx(gemm["step_ms"]["projected"])
    assert "only measuring again proves it" in gemm["caveat"]


@pytest.mark.seed("S4.97", "S4.98")
def test_what_nothing_can_be_projected_from_ends_with_2(farm, trace, cpu):
    absent = farm("profile", "what-if", trace, "--remove-category", "attention")
    none = farm("profile", "what-if", cpu, "--remove-launches", "1")
    limited = farm("profile", "what-if", trace, "--remove-launches", "99")

    assert (2, True) == (absent.code, "here are elementwise, gemm, layout, norm" in absent.err)
    assert (2, "") == (none.code, none.out)
    assert (0, True) == (limited.code, "there are only 20 launches in a step" in limited.out)
