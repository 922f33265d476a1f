"""One job by hand: what is read, what is said, and the exit code that a profile earns."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from farm import schema
from farm.errors import NoResult, NoVerdict, Refused
from farm.store import LocalStore
from farm.store.s3 import S3Store
from tests.farm import make as farm_make
from tests.workers import make
from tests.workers.scripted import TRACED, Child, order
from workers import hand
from workers.host import Host
from workers.record import OUTPUT
from workers.station import Station


def test_a_job_becomes_an_order_of_the_asked_effort() -> None:
    job = make.job()

    found = hand.order(schema.encode(job), name="job.json", effort="quick")

    assert (job, "quick", 2, "base") == (
        found.job,
        found.effort.level,
        found.effort.repeats,
        found.repeat_set,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"schema": "farm.job/v2"}',
        b'{"schema": "farm.order/v1"}',
        b'{"schema": "farm.job/v1", "workload": 1}',
        schema.encode(make.job())[:-1] + b', "more": 1}',
        schema.encode(make.job()).replace(b'"fp32"', b'"fp61"'),
    ],
    ids=lambda data: repr(data[:30]),
)
def test_anything_else_is_refused_by_its_name(data: bytes) -> None:
    """An unknown field is a mistake: it might have changed what is measured."""
    with pytest.raises(Refused, match=r"'x\.json' is not a job"):
        hand.order(data, name="x.json", effort="quick")


def test_a_store_is_a_url_or_a_folder_that_is_there(tmp_path: Path) -> None:
    """The default folder need not exist: most jobs bring no files."""
    assert hand.store_of(str(tmp_path / "none")) is None
    assert isinstance(hand.store_of(str(tmp_path)), LocalStore)
    assert isinstance(hand.store_of(f"file://{tmp_path}"), LocalStore)
    assert isinstance(hand.store_of("s3://bucket"), S3Store)
    with pytest.raises(Refused):
        hand.store_of("ftp://host/store")


# ── measuring ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def station(tmp_path: Path) -> Station:
    (tmp_path / "locks").mkdir()
    return Station(
        node="n1",
        worker="n1/cpu:0#hand",
        device=make.device(),
        card=make.card(),
        environment="default",
        flags=(),
        cache=tmp_path / "cache",
        lock_dir=tmp_path / "locks",
        store=None,
        version="0.1.0",
        host=Host(),
    )


def measured(station: Station, child: Child, repeats: int) -> tuple[schema.Profile, list[str]]:
    said: list[str] = []
    made = Station(**{**station.__dict__, "start": child})
    folder = station.lock_dir.with_name("work")
    return hand.measure(made, order(repeats), say=said.append, folder=folder), said


def test_each_phase_of_each_repeat_is_said_once(station: Station) -> None:
    profile, said = measured(station, Child(), 2)

    assert "ok" == profile.status
    assert [f"repeat {n} of 2: {p}" for n in (1, 2) for p in ("load", "latency")] == said
    assert ("by-hand", None) == (profile.run_id, profile.execution.queue_s)


def test_a_repeat_that_replaces_another_says_so(station: Station) -> None:
    """Not `repeat 2 of 1`."""
    crash = Child("crashed")

    _, said = measured(station, crash, 1)

    assert "repeat 2, in place of a disturbed one: load" in said


# ── what `farm` asks for ─────────────────────────────────────────────────────────────────────────


def asked(folder: Path, **changes: Any) -> schema.Asked:
    folder.mkdir(exist_ok=True)
    fields = {
        "job": make.job(),
        "effort": schema.Effort(repeats=1),
        "folder": str(folder),
        "passes": ("latency",),
        "instruments": ("layers", "flops"),
    }
    return schema.Asked(**{**fields, **changes})


def test_what_was_asked_runs_and_its_files_lie_in_the_folder(
    station: Station, tmp_path: Path
) -> None:
    """Passes and instruments as asked, whatever the effort says; nothing else is left behind."""
    child, folder = Child(), tmp_path / "out"
    made = Station(**{**station.__dict__, "start": child})

    profile = hand.once(made, asked(folder), say=lambda _line: None)

    assert [("latency",), ()] == [each.passes for each in child.asked]
    assert [(), ("layers", "flops")] == [each.instruments for each in child.asked]
    assert isinstance(profile.layers, schema.Layers)
    assert {"card.json", "output.log", "samples.npz", "layers.csv", "layer_table.json"} == {
        each.name for each in folder.iterdir()
    }


@pytest.mark.seed("S4.46")
def test_a_capture_leaves_its_trace_and_what_is_beside_it(station: Station, tmp_path: Path) -> None:
    """Its pipeline reaches both children; without a trace what is beside it is left alone."""
    capture = schema.Capture(warmup=1, steps=2)
    for instruments, left in ((("trace",), {"trace.json", "captured.json"}), (("layers",), set())):
        child, folder = Child(), tmp_path / instruments[0]
        made = Station(**{**station.__dict__, "start": child})

        hand.once(
            made,
            asked(folder, instruments=instruments, capture=capture),
            say=lambda _line: None,
        )

        assert [capture, capture] == [each.capture for each in child.asked]
        names = {each.name for each in folder.iterdir()}
        assert left | {"captured.json"} == names & {"trace.json", "captured.json"}
    assert TRACED == (tmp_path / "trace/trace.json").read_bytes()
    beside = schema.decode((tmp_path / "trace/captured.json").read_bytes(), schema.Captured)
    assert ([10, 20], [30, 31, 32]) == (beside.plain_ns, beside.traced_ns)


def test_without_passes_the_instruments_are_all_there_is(station: Station, tmp_path: Path) -> None:
    """No clean child runs, and no figure of one is there."""
    child = Child()
    made = Station(**{**station.__dict__, "start": child})

    profile = hand.once(made, asked(tmp_path / "out", passes=()), say=lambda _line: None)

    assert [-1] == [each.index for each in child.asked]
    assert ("ok", msgspec.UNSET, []) == (profile.status, profile.latency, profile.repeats)
    assert isinstance(profile.cost, schema.Cost)


def test_the_output_is_left_where_it_was_asked_for_and_only_then(
    station: Station, tmp_path: Path
) -> None:
    """Of the repeat that ended well, also where the one before it had written one and died."""
    for wanted in (True, False):
        folder = tmp_path / f"out-{wanted}"

        def write(index: int, folder: Path = folder) -> None:
            (folder / f"work/repeat-{index}" / OUTPUT).write_text(f"output {index}")

        made = Station(**{**station.__dict__, "start": Child("crashed", during=write)})
        words = asked(folder, instruments=(), output=wanted)

        hand.once(made, words, say=lambda _line: None)

        assert wanted == (folder / OUTPUT).exists()
    assert "output 1" == (tmp_path / "out-True" / OUTPUT).read_text()


def test_a_device_that_is_not_here_is_no_result(station: Station, tmp_path: Path) -> None:
    """CUDA was asked for and the child found none: 3, and no profile of a CPU in its place."""
    child = Child("no_device")
    made = Station(**{**station.__dict__, "start": child})

    with pytest.raises(NoResult, match="told to fail with no_device"):
        hand.once(made, asked(tmp_path / "out", device="cuda:0"), say=lambda _line: None)

    assert "cuda:0" == child.asked[0].accelerator


def test_a_document_that_asks_for_nothing_is_refused() -> None:
    with pytest.raises(Refused, match="asks for nothing"):
        hand.asked(b'{"schema": "farm.job/v1"}', name="-")


# ── exit codes ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("made", "degraded", "code"),
    [
        ({}, True, 0),
        ({"flags": ["drifting"]}, False, 0),
        ({"flags": ["contended"]}, False, 0),
        ({"status": "failed", "failure": farm_make.fault("oom")}, True, 0),
        ({"status": "failed", "failure": farm_make.fault("host_oom")}, False, 0),
        ({"status": "failed", "failure": farm_make.fault("unsupported")}, False, 0),
        ({"status": "failed", "failure": farm_make.fault("crashed")}, False, 1),
        ({"status": "failed", "failure": farm_make.fault("timeout")}, False, 1),
        ({"status": "infra", "failure": farm_make.fault("environment")}, False, 1),
    ],
)
def test_a_profile_earns_its_exit_code(made: dict[str, Any], degraded: bool, code: int) -> None:
    """Rule 11: an answer such as `oom` fails nothing."""
    assert code == hand.judge(farm_make.profile(**made), degraded=degraded)


@pytest.mark.parametrize(("flag", "validity"), [("drifting", "degraded"), ("contended", "invalid")])
def test_a_doubtful_profile_is_no_verdict_where_that_was_asked(flag: str, validity: str) -> None:
    """5, and the doubts."""
    profile = farm_make.profile(flags=[flag])

    with pytest.raises(NoVerdict) as caught:
        hand.judge(profile, degraded=True)

    assert (5, f"the profile is {validity}", flag) == (
        caught.value.exit_code,
        caught.value.what,
        caught.value.why,
    )
    assert msgspec.structs.asdict(profile)
