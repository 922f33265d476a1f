"""`farm profile compare` on traces: what it says of two, and of a trace and something else."""

import json
from collections.abc import Callable

import pytest
from msgspec import structs, to_builtins

from farm import interchange, schema
from farm.trace import blocks
from farm.trace.analysis.record import Analysis
from tests.cli.published import checked
from tests.farm.cli.profile.piped import through_a_pipe
from tests.farm.interchange import calls
from tests.farm.trace import g8
from tests.farm.trace.comparing.sides import made, side


@pytest.fixture
def keep(here) -> Callable[[str, Analysis], str]:
    """Keep an analysis in a file."""

    def kept(name: str, analysis: Analysis) -> str:
        nulls = schema.null_paths(to_builtins(analysis))
        reasons = {path: why for path, why in analysis.null_reasons.items() if path in nulls}
        (here / name).write_bytes(schema.encode(structs.replace(analysis, null_reasons=reasons)))
        return name

    return kept


@pytest.fixture
def repeats(keep) -> tuple[str, str]:
    """Three trials on both sides, the second 0.94 ms longer."""
    trials = [9.5, 10.0, 10.5]
    return (
        keep("old.json", side(trials, model="net", mode="training")),
        keep("new.json", side([each + 0.94 for each in trials], model="net", mode="training")),
    )


def lines(out: str) -> dict[str, str]:
    """What is said behind each name, on one line."""
    found: dict[str, str] = {}
    for line in out.split("\n\n")[0].splitlines():
        name = line[:9].strip() or [*found][-1]
        found[name] = f"{found.get(name, '')} {line[9:]}".strip()
    return found


@pytest.mark.seed("S4.88")
def test_the_rule_is_printed_with_its_numbers_and_our_leaning_on_the_next_line(farm, repeats):
    """0.94 apart, deviations of 0.5 and n 3 on both sides."""
    said = farm("profile", "compare", *repeats)

    assert (0, "") == (said.code, said.err)
    told = lines(said.out)
    assert ["rule", "verdict"] == [*told][-2:]
    rule = "step: |+0.94| ms > 2 SE = 0.8165 ms; equal sides exceed it in 11.6 % of comparisons"
    assert rule == told["rule"]
    assert told["verdict"].startswith(
        "inconclusive, not measured in turns; leaning: none, ratio 1.094, 95 % interval [0.981, "
    )
    assert ", p 0.08" in told["verdict"]


@pytest.mark.seed("S4.85")
def test_the_differences_are_in_one_table_and_both_bounds_above(farm, keep):
    before = keep("old.json", side([10.0], img_per_s=1000.0, peak_vram_mb=1048.576))
    after = keep("new.json", side([8.0], busy=0.9, img_per_s=1250.0, peak_vram_mb=524.288))

    out = farm("profile", "compare", before, after).out

    assert "host / launch → compute" == lines(out)["bound"]
    rows = {
        line.split("  ")[0]: line.split("  ", 1)[1].split()
        for line in out.splitlines()
        if "  " in line
    }
    assert ["1000", "1250", "+250", "+25.0"] == rows["throughput items/s"][:4]
    assert ["1.000", "0.8000", "−0.2000", "−20.0"] == rows["time per item ms"][:4]
    assert ["10.00", "8.000", "−2.000", "−20.0"] == rows["step ms"][:4]
    assert ["50.00", "90.00", "+40.00"] == rows["GPU utilisation %"][:3]
    assert ["5.000", "1.000", "−4.000", "−80.0"] == rows["host overhead ms"][:4]
    assert ["20", "20", "0", "0.0", "exact"] == rows["launches per step"]
    assert ["1000", "500.0", "−500.0", "−50.0"] == rows["peak memory MiB"][:4]


@pytest.mark.seed("S4.89")
def test_a_single_run_cannot_support_the_call_and_that_is_no_failure(here, farm):
    """Neither that of two traces nor that of one beside many."""
    g8.file(here / "a.json.gz")
    g8.file(here / "b.json", g8.events(busy=0.9))

    said = farm("profile", "compare", "a.json.gz", "b.json")

    assert (0, "") == (said.code, said.err)
    assert "step: a single run cannot support the call" == lines(said.out)["rule"]
    assert "inconclusive" in lines(said.out)["verdict"]
    assert "single run: it cannot support the call" in said.out.splitlines()
    assert said.out.count("single run\n") == 4 + 4  # and four phases


def test_one_run_beside_three_is_still_a_single_one(farm, keep, repeats):
    one = keep("one.json", side([99.0]))

    assert (
        "cannot support the call" in lines(farm("profile", "compare", one, repeats[0]).out)["rule"]
    )


@pytest.mark.seed("S4.89")
@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("worse", 0), ("incomparable", 5)])
def test_it_ends_with_0_unless_asked_to_fail(farm, repeats, fail_on, code):
    """No pairs, so nothing is `worse`, however far it is."""
    said = farm("profile", "compare", *repeats, "--fail-on", fail_on)

    assert (code, True) == (said.code, "inconclusive" in said.out)
    assert ("the two were not measured in turns" in said.err) == (code == 5)


def test_what_is_incomparable_is_compared_all_the_same_and_says_why(farm, keep):
    trained = keep("train.json", side([10.0, 10.1], mode="training"))
    inferred = keep("infer.json", side([1.0, 1.1], mode="inference"))

    said = farm("profile", "compare", trained, inferred)
    asked = farm("profile", "compare", trained, inferred, "--fail-on", "incomparable")

    assert "incomparable: different modes: training and inference" == lines(said.out)["verdict"]
    assert (0, 5) == (said.code, asked.code)
    assert "incomparable: no verdict\n  different modes: training and inference" in asked.err
    assert ("better" in said.out, "worse" in said.out) == (False, False)


def test_a_trace_beside_a_plain_step_is_incomparable(here, farm, keep):
    g8.file(here / "trace.json")

    said = farm("profile", "compare", "trace.json", keep("profile.json", side([10.0])))

    expected = "incomparable: after is a plain step, and before one with the profiler beside it"
    assert expected == lines(said.out)["verdict"]


def test_several_settings_at_once_are_told_and_warned_of(farm, keep):
    before = keep("old.json", side([10.0], config={"precision": "fp32", "batch": 8}))
    after = keep("new.json", side([15.0], config={"precision": "bf16", "batch": 16}))

    said = farm("profile", "compare", before, after)
    as_json = farm("profile", "compare", before, after, "--json")

    warned = (
        "warning: batch and precision differ at once: no change can be put down to one of them\n"
        "warning: the batch is 8 before and 16 after: compare per item\n"
    )
    assert (0, warned, warned) == (said.code, said.err, as_json.err)
    assert (
        "batch: 8 before, 16 after precision: fp32 before, bf16 after" == lines(said.out)["differs"]
    )
    table = said.out.split("\n\n")[1].splitlines()
    assert table[1].startswith("time per item ms    1.250  0.9375  −0.3125  −25.0")


def test_which_kernels_came_and_went_is_told(here, farm):
    g8.file(here / "a.json", g8.events(names=("sgemm_128x64_nn", "goes")))
    g8.file(here / "b.json", g8.events(names=("sgemm_64x32_nn", "comes")))

    out = farm("profile", "compare", "a.json", "b.json").out

    table = [line.split() for line in out.split("kernels by change, per step\n")[1].splitlines()]
    assert ["+2.500", "0.000", "2.500", "0", "→", "10", "only", "after", "comes"] == table[1]
    assert ["−2.500", "2.500", "0.000", "10", "→", "0", "only", "before", "goes"] == table[2]
    assert "2 of 2 kernels that differ" in out
    assert "only before: 1 kernel, 2.500 ms" in out


def test_a_file_beside_itself_differs_in_nothing(here, farm):
    g8.file(here / "a.json")

    out = farm("profile", "compare", "a.json", "a.json").out

    assert "7 kernels, none differs" in out
    assert "the same" == lines(out)["bound"]


def test_a_comparison_of_traces_as_json_is_what_was_published(here, farm, repeats):
    g8.file(here / "a.json.gz")
    g8.file(here / "cpu.json", g8.host())

    for pair in (repeats, ("a.json.gz", "cpu.json")):
        said = farm("profile", "compare", *pair, "--json")

        (found,) = checked(said.out)
        assert (0, "", "farm.trace_compare/v1") == (said.code, said.err, found["schema"])
        reasons = found.pop("null_reasons")
        assert set(schema.null_paths(found)) == set(reasons)


@pytest.mark.parametrize(
    ("other", "said_of_it"),
    [
        ("layers.csv", "a layer CSV"),
        ("trt.json", "a layer profile of TensorRT"),
        ("one.json", "a callable JSON"),
        ("doc.json", "of schema 'farm.job/v1'"),
        ("notes.txt", "none"),
    ],
)
def test_a_trace_and_something_else_are_refused_saying_what_each_is(here, farm, other, said_of_it):
    g8.file(here / "trace.json.gz")
    (here / "layers.csv").write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")
    (here / "one.json").write_bytes(interchange.encode(calls.document([10.0])))
    (here / "doc.json").write_text('{"schema": "farm.job/v1"}')
    (here / "trt.json").write_text('[{"count": 100}]')
    (here / "notes.txt").write_text("hello")
    why = f"'trace.json.gz' is a trace, and '{other}' is {said_of_it}\n"

    for pair in (("trace.json.gz", other), (other, "trace.json.gz")):
        said = farm("profile", "compare", *pair)

        assert (2, "") == (said.code, said.out)
        assert f"error: these two cannot be compared\n  {why}" == said.err


def test_a_side_may_be_a_url_or_an_id(here, farm):
    g8.file(here / "a.json")

    found = farm("profile", "compare", f"file://{here}/a.json", "a.json")
    lost = farm("profile", "compare", "0123abcd", "a.json")

    assert (0, True) == (found.code, "none differs" in found.out), found.err
    assert (3, "") == (lost.code, lost.out)
    (here / "a.csv").write_text(f"{blocks.HEADER}\na,100.0,1,1,1,1\n")
    mixed = farm("profile", "compare", "a.csv", "0123abcd")
    assert (2, True) == (mixed.code, "'0123abcd' is a stored trace" in mixed.err), mixed.err


def test_a_trace_has_no_blocks(here, farm):
    g8.file(here / "a.json")

    said = farm("profile", "compare", "a.json#2", "a.json")

    assert (2, "error: 'a.json#2' names no block\n  a trace has none\n") == (said.code, said.err)


def test_a_trace_beside_what_cannot_be_read_says_so(here, farm):
    g8.file(here / "a.json")
    (here / "folder").mkdir()

    for other, expected in (
        ("folder", "'folder' is a folder"),
        ("gone.json", "no file 'gone.json'"),
    ):
        said = farm("profile", "compare", "a.json", other)

        assert (2, True) == (said.code, expected in said.err), said.err


def test_traces_come_through_pipes_too(here, farm):
    """Each gives its bytes once, also where it stands on both sides."""
    data = {"trace": g8.text(g8.events()), "analysis": schema.encode(made())}
    g8.file(here / "a.json")

    for each in data.values():
        for sides in (("63", "a.json"), ("a.json", "63"), ("63", "63")):
            said = through_a_pipe(
                here, each, lambda given=sides: farm("profile", "compare", *given)
            )
            assert (0, True) == (said.code, "none differs" in said.out), said.err


def test_a_kept_analysis_of_an_older_farm_lacks_what_a_capture_knows(here, farm, keep):
    """And is compared by what it has."""
    plain = json.loads(schema.encode(structs.replace(made(), config={})))
    del plain["config"]
    (here / "old.json").write_text(json.dumps(plain))

    assert 0 == farm("profile", "compare", "old.json", keep("new.json", made(0.9))).code
