"""Who watches a GPU: when it is fit, what a repeat left on it, and what its samples show."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from farm.gates import gates
from tests.workers import make
from tests.workers.posts import Post, S
from workers.gates import Unfit
from workers.gpu import Probe
from workers.host import Host
from workers.record import Edge, Record
from workers.sentry import Sentry, rows
from workers.telemetry import Sample


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


def verdicts(found: Any) -> set[str]:
    return {each.verdict for each in found}


def record(begin_s: float = 10.0, end_s: float = 12.0) -> Record:
    """The record of a child whose latency pass lay there."""
    first, last = make.edge(1), make.edge(2)
    edges = (_at(first, begin_s), _at(last, end_s))
    return make.record(latency_edges=edges, throughput_edges=None)


def _at(edge: Edge, seconds: float) -> Edge:
    return structs.replace(edge, at_ns=round(seconds * S))


def sampled(events: int = 0, *, at_s: float = 11.0) -> list[Sample]:
    """Samples of a pass from 9 to 13 s, one of them with these events."""
    return [
        Sample(
            at_ns=round(at * S / 10),
            sm_clock_hz=1.98e9,
            events=events if at == round(10 * at_s) else 0,
            sw_power_ns=0,
            sw_thermal_ns=0,
            hw_thermal_ns=0,
            power_brake_ns=0,
        )
        for at in range(90, 131)
    ]


# ── before a repeat ──────────────────────────────────────────────────────────────────────────────


def test_a_quiet_device_is_fit_and_every_gate_is_kept(post: Post) -> None:
    found = post.sentry.ready()

    assert {"ok"} == verdicts(found)
    kept = rows(found, repeat=2)
    assert {("before", 2, True), ("static", 2, True)} == {
        (each.phase, each.repeat, each.enforced) for each in kept
    }
    assert {"nvml", "xid", "contention", "temperature"} <= {each.id for each in kept}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ({"readings": {"ecc_uncorrected": 1}}, "ecc_uncorrected: 1 uncorrected"),
        (
            {"processes": [{"pid": 7, "kind": "compute", "used_bytes": 1}]},
            "contention: on it: pid 7",
        ),
        ({"readings": {"utilization_pct": 90}}, "device_idle: it is busy to 90 %"),
        ({"xids": [79]}, "xid: Xid 79"),
        ({"readings": {"compute_mode": 2}}, "mode: its compute mode is prohibited"),
    ],
)
def test_a_device_that_is_not_fit_is_not_measured_on_until_it_is(
    post: Post, script: dict[str, Any], why: str
) -> None:
    post.fault(**script)

    with pytest.raises(Unfit, match=why) as caught:
        post.sentry.ready()
    assert {"defer", "quarantine"} & verdicts(caught.value.findings)

    post.heal()
    if "quarantine" in verdicts(caught.value.findings):  # that stays until somebody clears it
        with pytest.raises(Unfit, match=why):
            post.sentry.ready()
        post.sentry.forgive()
    assert {"ok"} == verdicts(post.sentry.ready())


def test_on_hardware_that_nobody_has_verified_a_gate_only_says_what_it_saw(tmp_path: Path) -> None:
    post = Post(tmp_path, enforced=False)
    post.fault(readings={"ecc_uncorrected": 1})

    found = post.sentry.ready()

    assert "quarantine" in verdicts(found)
    assert not any(each.enforced for each in found)
    assert "not_quiet" not in post.sentry.closed(None).flags


def test_a_warm_device_is_waited_for_and_then_measured_with_a_doubt(post: Post) -> None:
    post.sentry.ready()
    post.fault(readings={"temperature_c": 60})

    for _ in range(2):
        with pytest.raises(Unfit, match="temperature: 60"):
            post.sentry.ready()
        post.clock.advance(30 * S)
    found = post.sentry.ready()

    assert "degraded" in verdicts(found)
    assert "not_quiet" in post.sentry.closed(None).flags


def test_a_driver_that_hangs_is_a_doubt_and_at_the_third_time_a_fault(post: Post) -> None:
    for post.probe.hung in (1, 2):
        assert "unknown" in verdicts(post.sentry.ready())
        assert "not_quiet" in post.sentry.closed(None).flags

    post.probe.hung = 3
    with pytest.raises(Unfit, match="hung 3 times"):
        post.sentry.ready()


def test_a_device_that_is_gone_is_out_at_once_and_so_is_the_repeat_on_it(post: Post) -> None:
    post.sentry.ready()
    post.fault(gone=True)

    assert ["device_fault", "not_quiet"] == post.sentry.closed(None).flags
    with pytest.raises(Unfit, match="nvml: it is not there any more"):
        post.sentry.ready()


def test_what_a_driver_always_uses_is_no_left_over_memory(post: Post) -> None:
    post.fault(readings={"memory_used_bytes": 250 << 20})
    post.sentry.ready()
    post.fault(readings={"memory_used_bytes": 300 << 20})

    assert {"ok"} == verdicts(post.sentry.ready())

    post.fault(readings={"memory_used_bytes": 320 << 20})
    with pytest.raises(Unfit, match="320 MiB are used"):
        post.sentry.ready()


def test_memory_that_a_job_left_is_waited_for_and_then_the_device_is_out(post: Post) -> None:
    """N12: dirty, then quarantine; let go in time, it is as good as ever."""
    post.sentry.ready()
    left = {"readings": {"memory_used_bytes": 2 << 30}}
    for heals in (True, False):
        post.fault(**left)
        for _ in range(3):
            with pytest.raises(Unfit, match="2048 MiB"):
                post.sentry.ready()
            assert post.sentry.fault is None
            post.clock.advance(20 * S)
        if heals:
            post.heal()
            assert {"ok"} == verdicts(post.sentry.ready())

    with pytest.raises(Unfit, match="2048 MiB are used, and no process has them, for 60 s"):
        post.sentry.ready()
    assert post.sentry.fault is not None
    assert ("device_memory", "soft") == (post.sentry.fault.id, post.sentry.fault.severity)


def test_a_suspect_serves_on_under_a_doubt_and_not_once_it_is_broken(post: Post) -> None:
    """What the farm cannot spare (`node.md` §9)."""
    post.sentry.ready()
    post.fault(readings={"pcie_replays": 1_000_000})
    post.sentry.closed(None)
    with pytest.raises(Unfit, match="pcie_replay"):
        post.sentry.ready()

    post.sentry.is_suspect = True
    post.sentry.ready()
    post.clock.advance(S)
    post.fault(xids=[79])

    with pytest.raises(Unfit, match="Xid 79"):
        post.sentry.ready()


def test_a_device_that_slows_down_job_after_job_is_out(post: Post) -> None:
    """Six repeats in ten minutes, of two jobs: one job alone may be what heats it."""
    post.probe.seen = sampled(0x40)
    for job in "aaaaaaa":
        post.sentry.ready()
        post.sentry.closed(record(), job=job)
    assert post.sentry.fault is None

    post.sentry.ready()
    found = post.sentry.closed(record(), job="b").findings

    assert "8 repeats slowed down in 10 min" in [each.reason for each in found]
    assert post.sentry.fault is not None
    assert ("throttle", "soft") == (post.sentry.fault.id, post.sentry.fault.severity)


def test_repeats_that_slowed_down_long_ago_are_no_habit(post: Post) -> None:
    post.probe.seen = sampled(0x40)
    for job in "abcdefgh":
        post.sentry.ready()
        post.sentry.closed(record(), job=job)
        post.clock.advance(121 * S)

    assert post.sentry.fault is None


# ── after it ─────────────────────────────────────────────────────────────────────────────────────


def test_a_repeat_that_nothing_disturbed_has_no_doubt(post: Post) -> None:
    post.sentry.ready()
    post.sentry.watch()
    post.probe.seen = sampled()

    found, flags, *_ = post.sentry.closed(record())

    assert {"ok"} == verdicts(found)
    assert [10.0, 0] == post.probe.rates  # and an idle device is left alone
    assert ["clock_unknown"] == flags  # its base clock is in no table


@pytest.mark.parametrize(
    ("script", "flag"),
    [
        ({"xids": [79]}, "device_fault"),
        ({"readings": {"ecc_uncorrected": 1}}, "device_fault"),
        ({"readings": {"recovery_action": 2}}, "device_fault"),
        (
            {"processes": [{"pid": 7, "kind": "compute", "used_bytes": 1}]},
            "foreign_gpu_process",
        ),
        ({"readings": {"nvlink_errors": 3}}, "not_quiet"),
        ({"processes": "no_permission"}, "not_quiet"),
        ({"xids": [31]}, "not_quiet"),  # an error of the job, and no fault of the device
    ],
)
def test_a_fault_meanwhile_is_a_doubt_of_the_repeat(
    post: Post, script: dict[str, Any], flag: str
) -> None:
    """No profile that was taken under one looks valid."""
    post.sentry.ready()
    post.fault(**script)
    post.probe.seen = sampled()

    flags = post.sentry.closed(record()).flags

    assert [flag] == [each for each in flags if each != "clock_unknown"]


def test_an_error_is_held_against_one_repeat_alone(post: Post) -> None:
    post.sentry.ready()
    post.fault(xids=[63])
    post.sentry.closed(record())

    assert {"ok"} == verdicts(post.sentry.ready())


def test_a_device_that_broke_in_a_repeat_gets_no_other(post: Post) -> None:
    """Also where its readings look sound again: somebody has to see to it."""
    post.sentry.ready()
    post.fault(xids=[79])
    post.sentry.closed(record())
    post.heal()

    with pytest.raises(Unfit, match="Xid 79"):
        post.sentry.ready()


@pytest.mark.parametrize(
    ("events", "at_s", "expected"),
    [(0x40, 11.0, "throttled"), (0x40, 9.5, ""), (0x40, 12.5, ""), (0x4, 11.0, "power_capped")],
)
def test_what_its_samples_show_within_a_pass_counts_and_no_other(
    post: Post, events: int, at_s: float, expected: str
) -> None:
    """N22: 200 ms of it, anywhere in the window."""
    post.sentry.ready()
    post.probe.seen = sampled(events, at_s=at_s)

    flags = post.sentry.closed(record()).flags

    assert [*filter(None, [expected])] == [each for each in flags if each != "clock_unknown"]


def test_what_a_device_did_in_a_pass_is_told_with_its_samples(post: Post) -> None:
    """Both passes, by their names, and the samples beside them."""
    post.sentry.ready()
    post.probe.seen = sampled(0x40)
    child = record()

    left = post.sentry.closed(structs.replace(child, index=2, throughput_edges=child.latency_edges))

    assert [(2, "latency"), (2, "throughput")] == [
        (each.seen.repeat, each.seen.name) for each in left.watched
    ]
    seen = left.watched[0].seen
    assert (21, 1.98e9, 0.0, ["hw_thermal"]) == (
        *(seen.samples, seen.sm_clock_median_hz, seen.throttle.hw_thermal_ms, seen.event_reasons),
    )
    assert "not_probed" == left.watched[0].reasons["power_mean_w"]
    assert len(post.probe.seen) == len(left.columns["at_ns"]) == len(left.columns["events"])
    assert {None} == set(left.columns["power_w"])


def test_a_pass_without_samples_is_not_taken_for_a_quiet_one(post: Post) -> None:
    post.sentry.ready()

    flags = post.sentry.closed(record()).flags

    assert "throttle_unknown" in flags


# ── with a probe of its own ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Sentry]:
    with Probe(fake="1xH100", faults=str(tmp_path / "faults.json")) as probe:
        board = probe.boards().boards[0]
        yield Sentry(probe, board, gates=gates(enforced=True), host=Host())


def test_it_works_through_a_real_probe(real: Sentry, tmp_path: Path) -> None:
    real.ready()
    real.watch()
    (tmp_path / "faults.json").write_text(json.dumps({"*": {"xids": [48]}}))

    flags = real.closed(None).flags

    assert ["device_fault"] == flags
