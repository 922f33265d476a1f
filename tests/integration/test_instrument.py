"""The instrument against work that is known, through the whole path, on real cores."""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from farm.schema import Effort, Protocol
from tests.integration.farm_here import Place
from tests.pressure import skip_under_pressure
from tests.workers.test_launch import job
from workers import figures
from workers.environment import child_environment
from workers.launch import Limits, launch
from workers.record import Assignment

pytestmark = [pytest.mark.redis, pytest.mark.timing]

STEP = """
name: step
matrix: {{model: mlp, backend: fake, device: cpu}}
measure: {{effort: quick, repeats: {repeats}}}
backend_options: {options}
"""


def measured(place: Place, options: str, *, repeats: int = 2) -> dict[str, Any]:
    place.farm("run", place.write("step.yaml", STEP.format(options=options, repeats=repeats)))
    found: dict[str, Any] = place.profiles()[-1]
    assert "ok" == found["status"], found.get("failure")
    return found


def test_known_time_lies_within_the_stated_interval(place: Place) -> None:
    """A step of exactly 5 ms is measured as 5 ms: never less, and no more than 1 % above."""
    skip_under_pressure()
    for _ in range(3):
        latency = measured(place, "{duration_us: 5000, mode: spin}", repeats=3)["latency"]
        assert latency["p50_ms"] >= 5.0
        lo, hi = latency["p50_lo_ms"], latency["p50_hi_ms"]
        known = lo is not None and hi is not None  # a disturbed series has no interval
        if known and latency["p50_ms"] <= 5.05 and lo <= 5.0 * 1.002 and hi >= 5.0:
            return
        (place.folder / "step.yaml").unlink()
        place.environ["FARM_STATE"] = str(place.folder / f".farm-{time.monotonic_ns()}")
    pytest.fail(f"5 ms was measured as {latency['p50_ms']} [{lo}, {hi}] three times")


@pytest.mark.long
def test_known_work_agrees_with_a_loop_by_hand(place: Place) -> None:
    """The same counting loop timed in a bare process takes the same, within what machines drift."""
    skip_under_pressure()
    core = max(os.sched_getaffinity(0))
    code = (
        "import os, time, statistics as s\n"
        f"os.sched_setaffinity(0, {{{core}}})\n"
        "def step():\n    for _ in range(200_000): pass\n"
        "t = []\n"
        "for _ in range(150):\n"
        "    a = time.perf_counter_ns(); step(); t.append(time.perf_counter_ns() - a)\n"
        "print(s.median(t) / 1e6)\n"
    )

    def bare() -> float:
        return float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)

    before = [bare() for _ in range(3)]
    latency = measured(place, "{work: 200000}", repeats=3)["latency"]
    by_hand = statistics.median([*before, *(bare() for _ in range(3))])

    assert 0.7 <= latency["p50_ms"] / by_hand <= 1.4


@pytest.mark.parametrize(
    "duration_us",
    [20, *(pytest.param(each, marks=pytest.mark.long) for each in (30_000, 100_000, 500_000))],
)
def test_the_quickest_and_the_slowest_step_end_stable_or_say_why(
    place: Place, duration_us: int
) -> None:
    """No rule makes a step unmeasurable (rule 6): `stable`, or the figures that say why not."""
    profile = measured(place, f"{{duration_us: {duration_us}, mode: spin}}")

    quality, latency = profile["quality"], profile["latency"]
    assert duration_us / 1000 <= latency["p50_ms"] <= 1.5 * duration_us / 1000
    assert all(each["n"] >= 6 for each in profile["repeats"])
    if "stable" != quality["stability"]:
        caused = 1 - latency["clean_share"]
        # a figure may be null on a busy machine, where a flag says why
        spread = ((latency["iqr_rel"], 0.02), (latency["proc_cv"], 0.01), (caused, 0.01))
        wide = any((figure or 0) > limit for figure, limit in spread)
        drift = max(abs(each["drift_rel"] or 0) for each in profile["repeats"]) > 0.01
        assert wide or drift or quality["flags"]


@pytest.mark.long
def test_a_quiet_machine_is_rarely_called_busy(tmp_path: Path) -> None:
    """Of 50 quiet repeats at most one is flagged `contended`."""
    skip_under_pressure()
    flagged = [index for index in range(50) if "contended" in flags_of(tmp_path / str(index))]

    assert len(flagged) <= 1


@pytest.mark.long
def test_a_busy_core_is_nearly_always_called_so(tmp_path: Path) -> None:
    """With a burner on the leased core at least 95 % of repeats are flagged (N15, T3)."""
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(burner.pid, {max(os.sched_getaffinity(0))})
    try:
        flagged = sum("contended" in flags_of(tmp_path / str(index)) for index in range(20))
    finally:
        burner.kill()
        burner.wait()

    assert flagged >= 19


def flags_of(folder: Path) -> list[str]:
    """Return the flags of one repeat of a known step, in a child of its own."""
    import msgspec
    import numpy as np

    folder.mkdir()
    asked = job(duration_us=2000)
    asked = msgspec.structs.replace(asked, protocol=Protocol(warmup=5, iterations=200))
    stop_r, stop_w = os.pipe()
    try:
        ended = launch(
            Assignment(
                job=asked,
                effort=Effort(budget_ms=1000),
                index=0,
                cores=[max(os.sched_getaffinity(0))],
                threads=1,
                folder=str(folder),
            ),
            environment=child_environment(os.environ, threads=1, folder=folder),
            leases=(),
            limits=Limits(job_s=60),
            stop_fd=stop_r,
            clock=time.monotonic,
            on_progress=lambda _phase, _n: None,
        )
    finally:
        os.close(stop_r)
        os.close(stop_w)
    assert ended.record is not None
    with (folder / "samples.npz").open("rb") as file, np.load(file) as data:
        arrays = {name: data[name] for name in data.files}
    return figures.taken(ended.record, arrays, batch=1, neighbours=()).repeat.flags
