import time

import pytest

from workers import backends
from workers.backends import LayerAsk


def test_a_step_takes_at_least_its_time(assign, load):
    """Spinning and sleeping both last as long as was asked."""
    for mode in ("spin", "sleep"):
        step = load(assign(backend="fake", options={"duration_us": 2000, "mode": mode}))

        began = time.perf_counter_ns()
        step()

        assert time.perf_counter_ns() - began >= 2_000_000


def test_work_is_a_number_of_turns_and_not_a_time(assign, load):
    """With `work` the duration is ignored: a hundred turns end long before ten seconds."""
    step = load(assign(backend="fake", options={"duration_us": 10_000_000, "work": 100}))

    began = time.perf_counter_ns()
    step()

    assert time.perf_counter_ns() - began < 5_000_000_000


def test_loading_takes_the_time_it_is_told(assign):
    """`load_ms` lengthens loading, and it is counted there."""
    assignment = assign(backend="fake", options={"load_ms": 20})

    loaded = backends.load(assignment, clock=time.perf_counter_ns)

    assert loaded.load_s >= 0.02


def test_no_framework_is_needed(child):
    """The fake backend imports neither torch nor onnxruntime."""
    said = child(
        "import sys\nimport workers.backends.fake\n"
        "print(sorted({'torch', 'onnxruntime'} & set(sys.modules)))"
    )

    assert "[]\n" == said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"duration": 5}, "no option 'duration'"),
        ({"duration_us": "5"}, "duration_us: '5' is not of type"),
        ({"work": True}, "work: True is not of type"),
        ({"mode": "nap"}, "mode: 'nap' is none of spin, sleep"),
        ({"fail": "raise", "fail_at": "start"}, "fail_at: 'start' is none of load, first"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(assign, load, options, message):
    """A typo never passes for a healthy job."""
    with pytest.raises(backends.LoadFailed, match=message) as caught:
        load(assign(backend="fake", options=options))

    assert "model_error" == caught.value.kind


def test_a_failure_strikes_in_its_phase_and_in_no_other(assign, load):
    """What is scripted for the latency pass leaves the phases before it alone."""
    step = load(assign(backend="fake", options={"fail": "raise", "fail_at": "latency"}))
    step.enter("first")
    step.enter("warmup")

    with pytest.raises(RuntimeError, match="told to raise"):
        step.enter("latency")


@pytest.mark.parametrize("kind", ["oom", "environment", "precision_mismatch"])
def test_any_failure_kind_can_be_had(assign, load, kind):
    """A word that is no action is the kind to fail with."""
    with pytest.raises(backends.LoadFailed) as caught:
        load(assign(backend="fake", options={"fail": kind, "fail_at": "load"}))

    assert kind == caught.value.kind


def test_a_failure_may_strike_one_repeat_only(assign, load):
    """`fail_repeat` spares every other repeat."""
    options = {"fail": "oom", "fail_at": "load", "fail_repeat": 1}

    load(assign(backend="fake", options=options, index=0))

    with pytest.raises(backends.LoadFailed):
        load(assign(backend="fake", options=options, index=1))


def test_a_failure_may_strike_once(assign, load, tmp_path):
    """`fail_once` makes the second attempt healthy, whichever process it runs in."""
    options = {"fail": "oom", "fail_at": "load", "fail_once": str(tmp_path / "struck")}

    with pytest.raises(backends.LoadFailed):
        load(assign(backend="fake", options=options))

    assert 1.0 == load(assign(backend="fake", options=options))()


def test_an_output_that_is_no_number_is_a_failure(assign, load):
    """From the phase on, the output is NaN, and checking it says so."""
    step = load(assign(backend="fake", options={"fail": "nan", "fail_at": "first"}))
    assert [] == step.check_output(step())

    step.enter("first")

    with pytest.raises(backends.LoadFailed) as caught:
        step.check_output(step())
    assert "nonfinite" == caught.value.kind


def test_printing_is_survived(assign, load, capsys):
    """A model that floods its output goes on afterwards."""
    step = load(assign(backend="fake", options={"fail": "print", "fail_at": "first"}))

    step.enter("first")

    assert 100 << 20 == len(capsys.readouterr().out)
    assert 1.0 == step()


_STRIKE = (
    "import sys, time\nfrom types import SimpleNamespace as N\nfrom farm.schema import Protocol\n"
    "from workers import backends\n"
    "w = N(backend='fake', backend_options={'fail': sys.argv[1], 'fail_at': 'load'})\n"
    "job = N(workload=w, protocol=Protocol())\n"
    "backends.load(N(job=job, index=0), clock=time.perf_counter_ns)\n"
)


@pytest.mark.parametrize(("action", "code"), [("kill", -9), ("segv", -11), ("exit", 0)])
def test_a_process_dies_as_scripted(child, action, code):
    """Killed, crashed, or gone without a word: what the parent sees is what was asked."""
    died = child(f"{_STRIKE}print('survived')", action, expect=code)

    assert "" == died


def _asked(*, iterations: int, budget_ns: int | None, told: list[int]) -> LayerAsk:
    return LayerAsk(
        iterations=iterations,
        warmup=2,
        budget_ns=budget_ns,
        clock=time.perf_counter_ns,
        progress=lambda phase, done: told.append(done),
    )


def test_the_one_layer_is_timed_as_often_as_asked_beside_clean_iterations(load, assign):
    step = load(assign(backend="fake", options={"duration_us": 10}))
    told: list[int] = []

    found = step.layers(_asked(iterations=25, budget_ns=None, told=told))

    assert (25, 10) == (found.reading.iterations, found.reading.blocks)
    assert (1, 25) == found.layer_ns.shape
    assert 25 == found.clean_ns.size
    assert [3, 6, 9, 12, 15, 17, 19, 21, 23, 25] == told


def test_a_slow_layer_ends_with_the_budget_of_its_pass(load, assign):
    """100 iterations of each kind would take 0.4 s; no block begins once 20 ms are over."""
    step = load(assign(backend="fake", options={"duration_us": 2000}))
    told: list[int] = []

    found = step.layers(_asked(iterations=100, budget_ns=20_000_000, told=told))

    assert 1 <= found.reading.iterations <= 10
    assert found.reading.iterations == found.layer_ns.shape[1] == told[-1]
