"""A layer pass: what is asked of the worker, refused before that, and kept after it."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from farm import schema
from farm.cli.profile import layer_pass, layer_views, layering
from farm.errors import Bad, NoResult, Refused
from farm.report.table import Table
from farm.trace import blocks, files
from tests.farm import make
from tests.farm.cli.profile.layer_worker import Worker, saved, taken, words


@pytest.mark.seed("S0.11")
def test_as_many_iterations_as_suit_the_engine_go_into_the_usual_file(here) -> None:
    """Without a budget, however slow they are; `words` asks for no number."""
    worker = Worker()

    found = taken(here, worker)

    (asked,) = worker.asked
    assert (words().iterations, 0) == (
        asked.effort.layer_iterations,
        asked.effort.layer_budget_ms,
    )
    assert ("profile_layers.csv", 1) == (found.file, found.block)
    assert blocks.HEADER == (here / "profile_layers.csv").read_text().splitlines()[0]
    defaults = {each.name: each.default for each in layering.layers.params}
    assert "profile_layers.csv" == defaults["profile_output"]


@pytest.mark.seed("S0.34", "S0.35")
def test_the_latency_is_a_pass_of_its_own_and_only_when_asked_for(here) -> None:
    """The instrument runs in another process than the clean pass, and is printed apart from it."""
    plain, both = Worker(), Worker()

    without, with_it = taken(here, plain), taken(here, both, words(benchmark=True))

    assert ((), ("latency",)) == (plain.asked[0].passes, both.asked[0].passes)
    assert {("layers", "flops")} == {plain.asked[0].instruments, both.asked[0].instruments}
    assert without.latency is msgspec.UNSET
    assert with_it.latency == make.profile(both.asked[0].job).latency
    shown = layer_views.measured(with_it)
    assert not any("latency" in str(each.header) for each in shown[0].columns)
    assert layer_views.latency(with_it.latency, []).startswith("latency    p50 10.00 ±0.04 ms")


@pytest.mark.seed("S0.33")
def test_no_total_of_a_profiled_pass_becomes_a_latency(here) -> None:
    """And whoever reads the totals is told so, when they are measured and out of the file."""
    found = taken(here, Worker())
    block = files.read(files.address("profile_layers.csv#1"))

    assert "latency" not in json.loads(schema.encode(found))
    for shown in (layer_views.measured(found)[0], layer_views.printed(block)[0]):
        assert isinstance(shown, Table)
        assert "total ms" in [each.header for each in shown.columns]
        told = "only shares mean something here: no total of a profiled pass is a latency"
        assert told in shown.notes


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S0.3")
def test_outputs_are_written_where_they_were_asked_for_and_only_then(here) -> None:
    taken(here, Worker())
    assert not list(here.glob("*.npz"))

    found = taken(here, Worker(), words(output=Path("new/out.npz")))

    assert "new/out.npz" == found.output
    with np.load("new/out.npz") as data:
        assert ["output_0"] == data.files


def test_an_output_that_was_not_kept_is_no_result_and_nothing_is_appended(here) -> None:
    """It was asked for: whoever reads the exit code knows that it is not there, and why."""
    with pytest.raises(NoResult, match="no output of 'mlp' to write") as caught:
        taken(here, Worker(keeps=False), words(output=Path("out.npz")))

    assert "the output was not kept: error: no room" == caught.value.why
    assert "--output" in caught.value.hint
    assert not [each.name for each in here.iterdir() if each.suffix in (".csv", ".json", ".npz")]


def test_a_former_output_is_replaced_only_by_force(here) -> None:
    (here / "out.npz").write_text("mine")
    worker = Worker()

    with pytest.raises(Refused, match="there already"):
        taken(here, worker, words(output=Path("out.npz")))
    assert ("mine", []) == ((here / "out.npz").read_text(), worker.asked)
    taken(here, worker, words(output=Path("out.npz"), force=True))
    with np.load("out.npz") as data:
        assert ["output_0"] == data.files


@pytest.mark.seed("S0.26", "S0.37")
def test_a_table_goes_into_the_file_that_was_named_from_the_current_folder(here) -> None:
    for name in ("a/one.csv", "two.csv"):
        taken(here, Worker(), words(csv=Path(name)))

    assert (here / "a/one.csv").exists()
    assert (here / "two.csv").exists()


@pytest.mark.seed("S0.25")
def test_the_block_is_known_by_its_job_beside_the_file(here) -> None:
    worker = Worker("a", "b", iterations=40)

    taken(here, worker, words(batch=4, precision="bf16"))

    about = files.read(files.address("profile_layers.csv")).about
    assert about is not None
    job = worker.asked[0].job
    assert (job.job_id, "mlp", 4, 5, 40) == (
        *(about.job_id, about.model, about.batch),
        *(about.warmup_iterations, about.iterations),
    )
    assert "bf16" == job.workload.precision


def test_a_file_that_is_no_layer_csv_is_refused_before_anything_runs(here) -> None:
    (here / "notes.csv").write_text("a,b\n")
    worker = Worker()

    with pytest.raises(Refused, match="no layer CSV"):
        taken(here, worker, words(csv=Path("notes.csv")))
    assert [] == worker.asked


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("not_applicable: a function has no layers", NoResult),
        ("phase_failed: RuntimeError: boom", Bad),
    ],
)
def test_a_pass_without_a_table_says_why_and_appends_nothing(here, why, kind) -> None:
    class Bare(Worker):
        def profile(self, asked):
            made = super().profile(asked)
            return msgspec.structs.replace(made, layers=None, null_reasons={"layers": why})

    with pytest.raises(kind) as caught:
        taken(here, Bare(table=False))

    assert why in caught.value.why
    assert not (here / "profile_layers.csv").exists()


@pytest.mark.seed("S2.16")
def test_the_next_step_closes_the_loop(here) -> None:
    """Confirm by the latency, change something, profile again, compare."""
    asked = words(given=saved("x.npz", x=np.zeros((1, 64), "float32")))
    first = taken(here, Worker(), asked)
    other = taken(here, Worker(), words("cnn"))
    again = taken(here, Worker(), words("cnn"))

    assert "farm profile layers mlp --input x.npz --benchmark" == layer_pass.next_step(first, asked)
    assert "farm profile layers cnn --precision bf16 --benchmark" == layer_pass.next_step(
        other, words("cnn", benchmark=True)
    )
    assert (
        "farm profile compare 'profile_layers.csv#2' 'profile_layers.csv#3'"
        == layer_pass.next_step(again, words("cnn"))
    )
