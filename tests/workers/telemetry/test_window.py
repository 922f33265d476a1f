"""What telemetry says about a pass, over scripted sensors sampled at 10 Hz (T11)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.fakes import Disturbance, FakeClock, FakeSensors
from workers.telemetry import Sample, Telemetry, take, window

MS, S = 1_000_000, 1_000_000_000
BEGIN, END = 2 * S, 14 * S
BASE = 1.59e9
ALONE = (False, False)


def sampled(
    script: Sequence[Disturbance] = (),
    *,
    missing: dict[str, str] | None = None,
    every_ms: int = 100,
    phase_ms: int = 0,
) -> list[Sample]:
    """The samples of 16 s, the first after `phase_ms`."""
    clock = FakeClock(phase_ms * MS)
    sensors = FakeSensors(clock, script, missing=missing)
    samples = []
    while clock.now_ns < 16 * S:
        samples.append(take(sensors, at_ns=clock.now_ns))
        clock.advance(every_ms * MS)
    return samples


def judged(
    script: Sequence[Disturbance] = (),
    *,
    base: float | None = BASE,
    foreign: tuple[bool | None, bool | None] = ALONE,
    missing: dict[str, str] | None = None,
    every_ms: int = 100,
    phase_ms: int = 0,
) -> Telemetry:
    samples = sampled(script, missing=missing, every_ms=every_ms, phase_ms=phase_ms)
    return window(samples, begin_ns=BEGIN, end_ns=END, base_clock_hz=base, foreign=foreign)


def test_a_quiet_pass_has_no_flag() -> None:
    """Clocks, temperatures and counters are there, and nothing is doubted (T11)."""
    found = judged()

    assert [] == found.flags
    assert {} == found.reasons
    assert (121, 1.98e9, 1.98e9) == (
        found.samples,
        found.sm_clock_median_hz,
        found.sm_clock_p5_hz,
    )
    assert (55.0, 55.0, 0.0, 0.0) == (
        found.temperature_start_c,
        found.temperature_max_c,
        found.power_capped_share,
        found.idle_share,
    )
    no_time = {"sw_power": 0.0, "sw_thermal": 0.0, "hw_thermal": 0.0, "power_brake": 0.0}
    assert no_time == found.throttle_ms


inside = st.tuples(st.integers(BEGIN, END - 200 * MS), st.integers(200 * MS, 8 * S)).map(
    lambda each: (each[0], min(END, each[0] + each[1]))
)


@given(
    when=inside,
    bits=st.sampled_from([0x8, 0x20, 0x40, 0x80, 0xE8, 0x28]),
    phase_ms=st.integers(0, 99),
    has_counters=st.booleans(),
)
def test_every_throttle_reason_of_200_ms_is_found(
    when: tuple[int, int], bits: int, phase_ms: int, has_counters: bool
) -> None:
    """Anywhere in the pass, at any phase of sampling, by counters or the mask alone (T11)."""
    lost = {} if has_counters else COUNTERS_MISSING
    script = [Disturbance(begin_ns=when[0], end_ns=when[1], events=bits)]

    found = judged(script, missing=lost, phase_ms=phase_ms)

    assert "throttled" in found.flags


@given(
    when=inside,
    factor=st.floats(0.3, 0.89),
    phase_ms=st.integers(0, 99),
)
def test_every_clock_dip_of_200_ms_is_found(
    when: tuple[int, int], factor: float, phase_ms: int
) -> None:
    """By over a tenth, without any reason in the mask: percentiles alone would miss a short one."""
    begin, end = when[0], min(when[1], when[0] + 11 * S)
    script = [Disturbance(begin_ns=begin, end_ns=end, sm_clock_hz=factor * 1.98e9)]

    found = judged(script, phase_ms=phase_ms)

    assert {"clock_unstable", "clock_low"} & set(found.flags)


@given(when=inside, bits=st.sampled_from([0x4, 0x1]), phase_ms=st.integers(0, 99))
def test_a_power_cap_and_idling_are_noted(when: tuple[int, int], bits: int, phase_ms: int) -> None:
    """Notes with their share of the samples; neither is a throttle."""
    script = [Disturbance(begin_ns=when[0], end_ns=when[1], events=bits)]

    found = judged(script, phase_ms=phase_ms)

    assert [{0x4: "power_capped", 0x1: "clock_idle"}[bits]] == found.flags
    share = found.power_capped_share if bits == 0x4 else found.idle_share
    assert share == pytest.approx((when[1] - when[0]) / (END - BEGIN), abs=2 / found.samples)


@given(
    begin=st.one_of(st.integers(0, BEGIN - 400 * MS), st.integers(END + 200 * MS, 15 * S)),
    bits=st.sampled_from([0x8, 0x20, 0x40, 0x80, 0x4, 0x1]),
)
def test_what_happens_outside_the_pass_is_none_of_its_business(begin: int, bits: int) -> None:
    """Before the sample that opens the counters' window, and after the one that closes it."""
    script = [Disturbance(begin_ns=begin, end_ns=begin + 200 * MS, events=bits, sm_clock_hz=0.5e9)]

    assert [] == judged(script).flags


def test_one_lone_slowdown_in_a_hundred_samples_is_a_blip() -> None:
    """A hardware slowdown may blip at a change of state: one sample in a hundred is a note."""
    lone = Disturbance(begin_ns=10 * S, end_ns=10 * S + 50 * MS, events=0x8)
    again = Disturbance(begin_ns=12 * S, end_ns=12 * S + 50 * MS, events=0x8)
    hot = Disturbance(begin_ns=10 * S, end_ns=10 * S + 50 * MS, events=0x48)

    short = window(
        sampled([lone]), begin_ns=8 * S, end_ns=12 * S, base_clock_hz=BASE, foreign=ALONE
    )

    assert ["clock_blip"] == judged([lone]).flags
    assert ["throttled"] == judged([lone, again]).flags
    assert ["throttled"] == judged([hot]).flags
    assert ["throttled"] == short.flags


COUNTERS_MISSING = dict.fromkeys(
    ("sw_power_ns", "sw_thermal_ns", "hw_thermal_ns", "power_brake_ns"), "not_supported"
)


@pytest.mark.parametrize(
    ("bit", "name"), [(0x20, "sw_thermal"), (0x40, "hw_thermal"), (0x80, "power_brake")]
)
def test_a_counter_finds_what_no_sample_saw(bit: int, name: str) -> None:
    """30 ms between two samples: the mask was clear each time, the counter grew."""
    script = [Disturbance(begin_ns=10 * S + 20 * MS, end_ns=10 * S + 50 * MS, events=bit)]

    found = judged(script)

    assert (["throttled"], []) == (found.flags, found.events)
    assert 30.0 == found.throttle_ms[name]


def test_a_clock_far_below_its_base_is_low() -> None:
    """The mean below 0.75 of the base clock, however steady."""
    script = [Disturbance(begin_ns=0, end_ns=16 * S, sm_clock_hz=0.74 * BASE)]

    assert ["clock_low"] == judged(script).flags


def test_a_restless_clock_is_unstable() -> None:
    """(p95 − p5)/median over 3 %, without any dip of a tenth."""
    script = [
        Disturbance(begin_ns=at * S, end_ns=at * S + S // 2, sm_clock_hz=0.96 * 1.98e9)
        for at in range(2, 14)
    ]

    assert ["clock_unstable"] == judged(script).flags


@pytest.mark.parametrize(
    ("foreign", "flags"),
    [
        ((True, False), ["foreign_gpu_process"]),
        ((False, True), ["foreign_gpu_process"]),
        ((None, True), ["foreign_gpu_process"]),
        ((None, False), ["sharing_unknown"]),
        ((False, None), ["sharing_unknown"]),
    ],
)
def test_other_processes_are_looked_for_before_and_after(
    foreign: tuple[bool | None, bool | None], flags: list[str]
) -> None:
    """One seen is enough; a list that could not be had is no empty list."""
    assert flags == judged(foreign=foreign).flags


@pytest.mark.parametrize(
    ("lost", "flag"),
    [("events", "throttle_unknown"), ("sm_clock_hz", "clock_unknown")],
)
@given(when=st.integers(BEGIN, END - 350 * MS))
def test_a_gap_that_could_hide_an_event_is_an_unknown(lost: str, flag: str, when: int) -> None:
    """A sensor that fails for over 200 ms, anywhere in the pass, never passes for a good one."""
    script = [Disturbance(begin_ns=when, end_ns=when + 350 * MS, lost=(lost,))]

    assert [flag] == judged(script).flags


def test_a_device_without_sensors_is_unknown_and_says_why() -> None:
    """Every figure null with the sensor's own code; nothing is quiet, and nothing is 0."""
    names = ("sm_clock_hz", "mem_clock_hz", "temperature_c", "events", *COUNTERS_MISSING)

    found = judged(missing=dict.fromkeys(names, "no_permission"))

    assert ["clock_unknown", "throttle_unknown"] == found.flags
    assert {"no_permission"} == set(found.reasons.values())
    figures = [
        *(getattr(found, name) for name in found.reasons if "." not in name),
        *found.throttle_ms.values(),
    ]
    assert 12 == len(figures)
    assert {None} == set(figures)


def test_a_pass_between_two_samples_is_unknown() -> None:
    """No sample in it: neither the one before nor the one after speaks for it."""
    found = window(
        sampled(),
        begin_ns=BEGIN + 10 * MS,
        end_ns=BEGIN + 90 * MS,
        base_clock_hz=BASE,
        foreign=ALONE,
    )

    assert 0 == found.samples
    assert ["clock_unknown", "throttle_unknown"] == found.flags
    assert "not_probed" == found.reasons["sm_clock_median_hz"].partition(":")[0]


def test_samples_that_stop_before_the_pass_ends_are_unknown() -> None:
    """A probe that died leaves no counters either."""
    samples = [each for each in sampled() if each.at_ns < 10 * S]

    found = window(samples, begin_ns=BEGIN, end_ns=END, base_clock_hz=BASE, foreign=ALONE)

    assert ["clock_unknown", "throttle_unknown"] == found.flags
    assert "not_probed" == found.reasons["throttle_ms.sw_thermal"].partition(":")[0]


def test_an_unknown_base_clock_is_an_unknown_clock() -> None:
    """Whether it ran low cannot be told."""
    assert ["clock_unknown"] == judged(base=None).flags


def test_a_counter_that_went_back_is_no_number() -> None:
    """`counter_reset`, and the mask decides alone."""
    samples = [
        Sample(
            at_ns=each.at_ns,
            sm_clock_hz=each.sm_clock_hz,
            mem_clock_hz=each.mem_clock_hz,
            temperature_c=each.temperature_c,
            power_w=300.0,
            events=0,
            sw_power_ns=0,
            sw_thermal_ns=900 if each.at_ns < 10 * S else 100,
            hw_thermal_ns=0,
            power_brake_ns=0,
        )
        for each in sampled()
    ]

    found = window(samples, begin_ns=BEGIN, end_ns=END, base_clock_hz=BASE, foreign=ALONE)

    assert {"throttle_ms.sw_thermal": "counter_reset"} == found.reasons
    assert found.throttle_ms["sw_thermal"] is None
