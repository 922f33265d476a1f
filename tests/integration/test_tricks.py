"""Models that would make a wrong number look good: each is caught, named and told."""

import pytest

from tests.integration.farm_here import Place

pytestmark = pytest.mark.redis

SWEEP = """
name: trick
matrix: {model: "model.py:step", device: cpu}
inputs: {x: {shape: [4], dtype: float32}}
kind: step
measure: {repeats: 1, warmup: 3, iterations: 300, budget_ms: 1000}
"""
HEAD = "import numpy, os, sys, threading, time\ncalls = 0\n"


def step(name: str, body: str) -> str:
    """A function whose body knows how often it was called."""
    lines = "\n".join(f"    {line}" for line in ("global calls", "calls += 1", *body.split("\n")))
    return f"def {name}(x):\n{lines}\n"


def outcome(place: Place, body: str, *, code: int) -> dict:
    """Run a step whose body counts its calls, and return its profile."""
    place.write("model.py", HEAD + step("step", body))
    place.farm("run", place.write("trick.yaml", SWEEP), code=code)
    return place.profiles()[-1]


NOT_DONE = {
    "waits": ("async def a(): time.sleep(1)\nreturn a()", "a coroutine or future"),
    "generates": ("return (each for each in x)", "an iterator"),
    "maps": ("return {'y': [map(float, x)]}", "an iterator"),
    "interrupts": ("if calls > 5: raise KeyboardInterrupt\nreturn x", "KeyboardInterrupt"),
    "exits": ("if calls > 5: sys.exit(0)\nreturn x", "SystemExit"),
}


def test_work_that_is_not_done_is_no_measurement(place: Place) -> None:
    """What returns before its work, or ends the process, is a failure with its cause."""
    steps = [step(name, body) for name, (body, _) in NOT_DONE.items()]
    place.write("model.py", HEAD + "".join(steps))
    models = ", ".join(f'"model.py:{name}"' for name in NOT_DONE)
    sweep = place.write("trick.yaml", SWEEP.replace('"model.py:step"', f"[{models}]"))

    place.farm("run", sweep, code=1)

    found = {each["job"]["workload"]["model"]["name"]: each for each in place.profiles()}
    assert len(NOT_DONE) == len(found)
    for name, (_, words) in NOT_DONE.items():
        profile = found[f"model.py:{name}"]
        assert ("failed", "model_error") == (profile["status"], profile["failure"]["kind"])
        assert words in profile["failure"]["message"]


@pytest.mark.parametrize(
    ("body", "flag", "effects"),
    [
        ("os.sched_setaffinity(0, {0, 1})\nreturn x", "left_its_cores", {"invalid"}),
        (
            "return x if calls < 9 else x * numpy.nan",
            "nonfinite_output",
            {"degraded", "invalid"},
        ),
    ],
)
def test_what_goes_wrong_after_the_first_call_is_a_flag(
    place: Place, body: str, flag: str, effects: set[str]
) -> None:
    """Leaving the leased cores, an output that overflows later: each is told."""
    profile = outcome(place, body, code=0)

    assert flag in profile["quality"]["flags"]
    assert profile["quality"]["validity"] in effects  # a busy machine may add a worse doubt


def test_the_cause_of_a_failed_pass_is_kept(place: Place) -> None:
    """Only the figure of that pass is null; what was raised stands with the pass and in the log.

    Three calls are warm-up and 300 the latency pass, where a step is long enough to be timed by
    itself; so call 304 is the first of the throughput pass.
    """
    profile = outcome(
        place, "if calls == 304: raise ValueError('boom')\ntime.sleep(0.002)\nreturn x", code=0
    )

    assert "pass_failed" in profile["quality"]["flags"]
    assert profile["quality"]["validity"] in {"degraded", "invalid"}
    passes = {each["name"]: each for each in profile["repeats"][-1]["phases"]}
    assert ("failed", "ValueError: boom") == (
        passes["throughput"]["status"],
        passes["throughput"]["reason"],
    )
    assert profile["throughput"]["throughput_items_per_s"] is None
    assert "done" == passes["latency"]["status"]
    assert "boom" in place.told("profiles", "get", profile["job_id"], "log").out


def test_a_model_may_delete_its_home(place: Place) -> None:
    """What the farm keeps of a repeat does not lie where the model starts."""
    body = "import shutil\nshutil.rmtree(os.environ['HOME'], ignore_errors=True)\nreturn x"

    profile = outcome(place, body, code=0)

    assert ("ok", 1) == (profile["status"], profile["attempt"])


@pytest.mark.long
def test_a_copy_that_comes_back_has_nothing_to_say(place: Place) -> None:
    """A forked copy of the child neither reports progress nor writes a record."""
    body = "if calls == 20 and os.fork() == 0: raise ValueError('the copy')\nreturn x"

    profile = outcome(place, body, code=0)

    assert "ok" == profile["status"]
    assert profile["repeats"][-1]["n"] >= 300
