"""The laws of a profile as a callable JSON: all samples, their units, real names or null."""

import msgspec
import numpy as np
import pytest

from farm import schema
from farm.errors import Bad
from farm.interchange import encode, of_profile
from farm.interchange.writing import system_of
from tests.farm import make
from tests.farm.interchange import calls

MIB = 1 << 20


@pytest.mark.seed("S1.26", "S1.22")
def test_every_measured_call_is_in_the_file_in_order():
    """And it says that all of them had one input."""
    samples = [3.0, 1.0, 2.0, 2.5]

    found = calls.document(samples, warmup=10, repeats=4)

    assert (samples, 4, 10) == (
        found.latency_samples_ms,
        found.measured_calls,
        found.warmup_calls,
    )
    assert "fixed input: 4 timed calls on one input, not on 4 inputs" == found.notes[0]


def test_a_file_says_that_the_loop_was_closed_and_what_is_no_part_of_its_memory():
    notes = " ".join(calls.document().notes)

    assert "closed loop: a call starts when the one before it has ended" in notes
    assert "whole-board GPU memory and allocations outside torch are not in" in notes


@pytest.mark.seed("S1.31")
def test_memory_of_the_whole_board_is_in_no_field_of_the_callable_file():
    """What the allocator did not give out is said to be missing, and is not added."""
    found = calls.document()

    assert {
        "cpu_process_lifetime_peak_mb",
        "cuda_peak_allocated_mb_by_visible_device",
    } == set(found.memory.__struct_fields__)
    assert any("whole-board GPU memory" in each for each in found.notes)


@pytest.mark.seed("S1.33")
@pytest.mark.parametrize(("unit", "said"), [("request", True), ("frame", False), ("clip", False)])
def test_what_the_time_of_a_remote_api_is_is_said_for_requests(unit, said):
    notes = calls.document(unit=unit).notes

    assert said == any("network plus server" in each and "the client" in each for each in notes)


@pytest.mark.seed("S1.1", "S1.23")
def test_the_unit_and_whatever_somebody_says_with_a_tag_are_recorded():
    """The shapes by themselves."""
    found = calls.document(unit="clip", tags={"frames": "16", "batch_size": "2"})

    assert ("clip", {"frames": "16", "batch_size": "2"}) == (found.unit, found.tags)
    assert [4, 6, 3] == found.inputs["rgb"].shape
    assert 2 == found.system_card.batch_size
    assert None is calls.document(tags={"batch_size": "two"}).system_card.batch_size


@pytest.mark.seed("S1.7")
def test_what_a_function_hides_is_null_and_does_not_apply():
    """Remote memory, parameters and FLOPs."""
    found = calls.document()

    assert (None, None) == (found.cost, found.memory.cuda_peak_allocated_mb_by_visible_device)
    assert found.null_reasons["cost"].startswith("not_applicable: ")
    why = found.null_reasons["memory.cuda_peak_allocated_mb_by_visible_device"]
    assert why.startswith("not_applicable: ")


@pytest.mark.seed("S1.29")
def test_host_memory_is_the_peak_since_the_process_began_in_mib():
    """Set-up included: not the peak of the last pass, and not what is resident at the end."""
    profile = make.profile(repeats=1)
    memory = msgspec.structs.replace(profile.memory, cpu_rss_peak_lifetime_bytes=954 * MIB)
    profile = msgspec.structs.replace(profile, memory=memory)

    assert 954.0 == calls.document(profile=profile).memory.cpu_process_lifetime_peak_mb


@pytest.mark.seed("S1.30")
def test_the_allocators_peak_is_told_for_every_visible_device_in_mib():
    """One that could not be read is null by itself, and a measured zero is zero."""
    profile = make.profile(repeats=1)
    peaks = {"0": 512 * MIB, "1": 0, "2": None}
    memory = msgspec.structs.replace(
        profile.memory, cuda_allocated_peak_bytes_by_visible_device=peaks
    )
    path = "memory.cuda_allocated_peak_bytes_by_visible_device.2"
    reasons = profile.null_reasons | {path: "gpu_lost"}
    profile = msgspec.structs.replace(profile, memory=memory, null_reasons=reasons)

    found = calls.document(profile=profile, device="cuda")

    theirs = "memory.cuda_peak_allocated_mb_by_visible_device"
    assert {"0": 512.0, "1": 0.0, "2": None} == (
        found.memory.cuda_peak_allocated_mb_by_visible_device
    )
    assert "gpu_lost" == found.null_reasons[f"{theirs}.2"]
    assert encode(found)
    assert None is calls.document(profile=profile).memory.cuda_peak_allocated_mb_by_visible_device


def test_memory_that_could_not_be_read_is_null_with_the_reason_of_the_profile():
    profile = make.profile(repeats=1)
    memory = msgspec.structs.replace(profile.memory, cpu_rss_peak_lifetime_bytes=None)
    reasons = profile.null_reasons | {"memory.cpu_rss_peak_lifetime_bytes": "not_supported"}
    profile = msgspec.structs.replace(profile, memory=memory, null_reasons=reasons)

    found = calls.document(profile=profile)

    assert None is found.memory.cpu_process_lifetime_peak_mb
    assert "not_supported" == found.null_reasons["memory.cpu_process_lifetime_peak_mb"]
    assert encode(found)


@pytest.mark.seed("S1.6", "S1.45")
def test_the_card_holds_real_names_or_null_and_no_gpu_that_did_not_work():
    """A driver that is loaded beside a run on the CPU is not what was measured."""
    card = make.card()
    drivers = schema.Drivers(nvidia="580.65")
    reasons = {k: v for k, v in card.null_reasons.items() if k != "stable.drivers.nvidia"}
    stable = msgspec.structs.replace(card.stable, drivers=drivers)
    card = msgspec.structs.replace(card, stable=stable, null_reasons=reasons)

    found = of_profile(
        make.profile(repeats=1),
        [np.array([1.0])],
        calls.request(precision="int8"),
        origin=calls.ORIGIN,
        card=card,
        profile_id=None,
    )

    system = found.system_card
    assert ("AMD EPYC 7B13", 8.0, "2.13.0", "3.11.7", "Debian 12, 6.1", "int8") == (
        system.cpu_name,
        system.ram_gb,
        system.pytorch_version,
        system.python_version,
        system.os,
        system.precision,
    )
    for name in ("gpu_name", "gpu_memory_gb", "gpu_count", "cuda_version", "driver_version"):
        assert None is getattr(system, name)
        assert "not_applicable: measured on a CPU" == found.null_reasons[f"system_card.{name}"]
    assert "580.65" == found.card.stable.drivers.nvidia
    assert encode(found)


def test_a_card_that_is_not_here_leaves_nulls_and_no_guesses():
    found = calls.document(card=False)

    assert (None, None, None) == (
        found.card,
        found.system_card.cpu_name,
        found.system_card.ram_gb,
    )
    assert encode(found)


@pytest.mark.seed("S1.13")
def test_a_first_call_that_is_a_sample_is_flagged():
    """No warm-up: what it loads is in the time, and the notes say so."""
    assert "first" in calls.document(warmup=0).flags
    assert "the first call" in " ".join(calls.document(warmup=0).notes)
    assert "first" not in calls.document(warmup=1).flags


@pytest.mark.seed("S1.24")
def test_the_doubts_of_the_profile_go_with_the_file():
    found = calls.document(flags=["contended"])

    assert (["contended"], "invalid") == (found.flags, found.latency_detail.validity)


@pytest.mark.seed("S1.16")
@pytest.mark.parametrize(
    ("declared", "output", "flagged"),
    [
        ("fp16", "fp32", True),
        ("fp16", "fp16", False),
        ("fp16", "fp16+fp32", False),
        ("fp16", "int64", False),
        ("fp16", "none", False),
        ("unspecified", "fp32", False),
        ("int8", "fp32", False),
    ],
)
def test_a_precision_is_noted_and_one_that_is_not_seen_is_a_flag(declared, output, flagged):
    """Nothing is cast and nothing fails."""
    profile = make.profile(repeats=1, precision_observed={"output": output})

    found = calls.document(profile=profile, precision=declared)

    assert flagged == ("precision_mismatch" in found.flags)
    assert declared == found.system_card.precision
    assert {"output": output} == found.provenance.precision_observed


def test_what_holds_for_functions_only_is_not_said_of_a_job():
    """That nothing was cast, that a remote API may be behind it, and what an output shows."""
    profile = make.profile(repeats=1, precision_observed={"output": "fp32"})
    function, job = (
        of_profile(
            profile,
            [np.array([1.0])],
            calls.request(precision="bf16", unit="request"),
            origin=calls.ORIGIN,
            card=None,
            profile_id=None,
            is_function=is_function,
        )
        for is_function in (True, False)
    )

    assert ["precision_mismatch"] == function.flags
    assert [] == job.flags
    for words in ("nothing was cast", "remote API"):
        assert words in " ".join(function.notes)
        assert words not in " ".join(job.notes)
    assert "as the job asked" in " ".join(job.notes)


@pytest.mark.seed("S1.20")
def test_the_visible_devices_are_recorded_where_a_gpu_worked():
    assert "0,1" == calls.document(device="cuda", visible="0,1").provenance.visible_devices
    assert "all" == calls.document(device="cuda:1").provenance.visible_devices
    assert None is calls.document(device="cpu", visible="0,1").provenance.visible_devices


def test_a_card_of_a_gpu_run_says_what_is_unknown():
    found = calls.document(device="cuda:0")

    assert "not_probed" == found.null_reasons["system_card.gpu_name"]
    assert "driver_not_loaded" == found.null_reasons["system_card.driver_version"]
    assert encode(found)


@pytest.mark.seed("S1.52")
def test_the_origin_of_the_code_and_the_load_of_the_host_are_recorded():
    found = calls.document().provenance

    assert ("c" * 40, False, None, 0.5) == (
        found.commit,
        found.dirty,
        found.container_image,
        found.host_load_1m,
    )
    profile = make.profile()
    assert profile.job.workload.model.digest == found.code_digest
    assert (make.STARTED, True) == (found.started_at, found.started_at.endswith("Z"))


def test_samples_of_several_calls_each_are_said_to_be_such():
    profile = make.profile(repeats=1)
    latency = msgspec.structs.replace(profile.latency, of_blocks=20)

    found = calls.document(profile=msgspec.structs.replace(profile, latency=latency))

    assert 20 == found.latency_detail.of_blocks
    assert any("the mean of 20 calls in a row" in each for each in found.notes)


def test_a_profile_without_a_latency_has_no_file():
    with pytest.raises(Bad, match="has no latency"):
        calls.document(profile=make.profile(status="failed"))


def test_every_null_has_its_reason_and_the_reasons_of_the_card_stand_in_the_one_map():
    found = calls.document([5.0])

    assert found.null_reasons["card.stable.cpu.governor"] == "not_supported"
    assert {} == found.card.null_reasons
    assert encode(found)


def test_a_number_that_a_child_told_and_nobody_can_have_is_null():
    """Thousands of digits are no count of devices."""
    told = {"cuda_device": "X", "cuda_devices": "9" * 5000, "cuda_memory_bytes": "9" * 5000}

    system, reasons = system_of(make.card(), precision="fp32", on_gpu=True, resolved=told)

    assert (None, None) == (system.gpu_count, system.gpu_memory_gb)
    assert {"gpu_count", "gpu_memory_gb"} <= set(reasons)
