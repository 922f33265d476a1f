"""Profiles as callable JSONs: the calls of the process that counts, and nothing made up."""

import json

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import interchange, schema
from farm.errors import Bad, NoResult
from farm.export import callables
from farm.store import Corrupt, LocalStore
from tests.farm import make
from tests.farm.export import kept

COST = make.cost(
    buffers_bytes=12,
    flops_per_batch=131_072,
    flops_per_item=131_072,
    macs_per_item=65_536,
    flops_counter="a counter",
    flops_coverage=0.5,
    bytes_lower_bound_per_batch=40_000,
    activation_peak_bytes=4096,
)
NULLABLE = [
    *("params_total", "params_trainable", "params_unique_bytes", "buffers_bytes", "param_dtypes"),
    *("flops_per_batch", "flops_per_item", "macs_per_item", "flops_counter", "flops_coverage"),
    *("attention", "bytes_lower_bound_per_batch", "activation_peak_bytes"),
]


def ns(ms: float, n: int = 64) -> np.ndarray:
    return np.full(n, int(ms * 1e6))


def document(profile=None, *, card=True, series=None) -> interchange.CallableProfile:
    profile = profile or make.profile(repeats=1)
    given = series or [ns(each.p50_ms) for each in profile.repeats]
    found = callables.document(
        profile,
        {f"latency_ns_{at}": each for at, each in enumerate(given)},
        card=make.card() if card else None,
        profile_id="e" * 64,
    )
    interchange.encode(found)  # every null has its reason
    return found


def test_a_profile_is_a_line_that_other_verbs_read(store, tmp_path):
    """With its id, the samples of its last process, and the card that lies in the store."""
    (card_id,) = make.put(store, make.card())
    profile = msgspec.structs.replace(make.profile(repeats=2), card_id=card_id)
    profile_id = kept.put(store, profile, arrays=kept.samples(ns(1.0), [2e6, 3e6, 4e6]))

    data, made = kept.exported(store, tmp_path / "cache", "callable")

    (tmp_path / "one.json").write_bytes(data)
    found = interchange.read(tmp_path / "one.json")
    assert (1, 0, 1) == (made.rows, made.left_out, data.count(b"\n"))
    assert (profile_id, [2.0, 3.0, 4.0]) == (found.profile_id, found.latency_samples_ms)
    assert make.card().stable == found.card.stable
    assert "workers.models.mlp:build" == found.model_callable
    assert list(json.loads(data))[:2] == ["timing_scope", "device"]


@pytest.mark.parametrize(
    ("flags", "ms"),
    [([[], []], 2.0), ([[], ["contended"]], 1.0), ([["contended"], ["contended"]], 2.0)],
)
def test_samples_warm_up_and_doubts_are_of_one_process(flags, ms):
    profile = make.profile(repeats=2, repeat_flags=flags)
    repeats = [
        msgspec.structs.replace(each, warmup_iterations=10 * (at + 1))
        for at, each in enumerate(profile.repeats)
    ]

    found = document(msgspec.structs.replace(profile, repeats=repeats), series=[ns(1.0), ns(2.0)])

    assert ([ms] * 64, int(10 * ms)) == (found.latency_samples_ms, found.warmup_calls)
    assert flags[int(ms) - 1] == found.flags
    assert any(f"of repeat {int(ms) - 1} alone" in each for each in found.notes)


@pytest.mark.parametrize(
    ("flags", "validity"),
    [(["repeats_missing"], "degraded"), (["drifting"], "degraded"), (["contended"], "invalid")],
)
def test_a_verdict_is_never_better_than_that_of_the_profile(flags, validity):
    """Even where the process whose figures these are has no doubt of its own."""
    profile = make.profile(repeats=2, flags=flags, stability="noisy")

    found = document(profile, series=[ns(1.0), ns(2.0)])

    assert (flags, validity, "noisy") == (
        found.flags,
        found.latency_detail.validity,
        found.latency_detail.stability,
    )
    assert 2.0 == found.latency.p50_ms


def test_a_doubt_about_the_process_alone_stands_beside_those_of_the_profile():
    profile = make.profile(repeats=2, flags=["drifting"], repeat_flags=[[], ["bimodal"]])

    assert ["bimodal", "drifting"] == document(profile).flags


def test_no_note_of_a_job_says_that_nothing_was_cast():
    """A worker casts a job; a function it leaves alone."""
    assert not any("cast" in each for each in document().notes)


def test_inputs_are_those_of_the_job_at_its_batch():
    """And the batch is known, where an axis has its name."""
    found = document(make.profile(make.job(batch=8), repeats=1))

    assert ([8, 64], "float32") == (found.inputs["x"].shape, found.inputs["x"].dtype)
    assert (8, {}) == (found.system_card.batch_size, found.tags)


def test_a_fixed_shape_leaves_the_batch_to_a_tag():
    job = _with_inputs(schema.Inputs(spec={"x": schema.Tensor(shape=(4, 64))}))

    assert None is document(make.profile(job, repeats=1)).system_card.batch_size
    tagged = make.profile(job, repeats=1, tags={"batch_size": "4"})
    assert 4 == document(tagged).system_card.batch_size


def test_inputs_of_a_file_have_its_digest_and_others_that_of_their_specification():
    """It differs with the seed and the batch, and the file says which of the two it is."""
    spec = {"x": schema.Tensor(shape=("batch", 64))}
    of_file = document(make.profile(_with_inputs(schema.Inputs(spec=spec, digest="ab" * 32))))
    drawn = [
        document(make.profile(_with_inputs(schema.Inputs(spec=spec, seed=seed), batch=batch)))
        for seed, batch in ((0, 1), (1, 1), (0, 8), (0, 1))
    ]

    assert "ab" * 32 == of_file.inputs_sha256
    assert "inputs_sha256 is that of the NPZ that held them" in of_file.notes
    digests = [each.inputs_sha256 for each in drawn]
    assert (3, digests[0], 64) == (len(set(digests)), digests[3], len(digests[0]))
    assert any("of specification, seed and batch" in each for each in drawn[0].notes)


def test_a_cost_that_is_known_is_told_and_one_that_is_not_says_why():
    """That nobody sees into a function is no reason of a model that was looked into."""
    profile = make.profile(repeats=1)
    reasons = profile.null_reasons
    cost = msgspec.structs.replace(COST, attention=None)
    known = msgspec.structs.replace(
        profile, cost=cost, null_reasons={**reasons, "cost.attention": "not_supported"}
    )
    failed = msgspec.structs.replace(
        profile, cost=None, null_reasons={**reasons, "cost": "phase_failed: oom in phase flops"}
    )

    assert (cost, "not_supported") == (
        document(known).cost,
        document(known).null_reasons["cost.attention"],
    )
    assert "phase_failed: oom in phase flops" == document(failed).null_reasons["cost"]
    assert "not_requested" == document(profile).null_reasons["cost"]


@pytest.mark.parametrize(("judged", "flags"), [([], []), (["precision_mismatch"],) * 2])
def test_the_precision_is_judged_by_the_worker_alone(judged, flags):
    """Under autocast a model may hand out another one, and is none the worse."""
    job = make.job(precision="bf16")
    profile = make.profile(job, repeats=1, flags=judged, precision_observed={"output": "fp32"})

    found = document(profile)

    assert flags == found.flags
    assert ("bf16", {"output": "fp32"}) == (
        found.system_card.precision,
        found.provenance.precision_observed,
    )


def test_what_no_profile_tells_is_null_with_its_reason():
    """Where the code came from; the GPU of a run on a CPU; a card that is not there."""
    found = document(card=False)

    told = ("commit", "dirty", "container_image", "host_load_1m", "visible_devices")
    assert {None} == {getattr(found.provenance, name) for name in told}
    assert ("cpu", None, None) == (found.device, found.system_card.gpu_name, found.card)
    assert all(found.null_reasons[f"provenance.{name}"] for name in told)


def test_a_run_on_a_gpu_says_which_one_it_was():
    resolved = {"cuda_device": "H200", "cuda_devices": "1", "cuda_visible_devices": "3"}

    found = document(make.profile(repeats=1, resolved=resolved))

    assert ("cuda", "H200", 1, "3") == (
        found.device,
        found.system_card.gpu_name,
        found.system_card.gpu_count,
        found.provenance.visible_devices,
    )


def test_the_notes_say_what_was_timed():
    """Sets of inputs in turn, blocks of calls, and a first call that is a sample."""
    job = make.job()
    protocol = msgspec.structs.replace(job.protocol, input_policy="rotate")
    job = msgspec.structs.replace(job, protocol=protocol)
    profile = make.profile(job, repeats=1, resolved={"input_sets": "4"})
    latency = msgspec.structs.replace(profile.latency, of_blocks=16)
    repeat = msgspec.structs.replace(profile.repeats[0], warmup_iterations=0)
    profile = msgspec.structs.replace(profile, latency=latency, repeats=[repeat])

    found = document(profile)

    said = "\n".join(found.notes)
    assert "64 timed calls on 4 sets of inputs in turn" in said
    assert "each sample is the mean of 16 calls in a row" in said
    assert "no warm-up" in said
    assert ["first"] == found.flags
    assert "fixed input: 64 timed calls on one input, not on 64 inputs" in document().notes


@given(st.sets(st.sampled_from(NULLABLE)), st.booleans())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_null_is_null_with_its_reason_and_never_0(gone, remembered):
    profile = make.profile(repeats=1)
    memory = msgspec.structs.replace(
        profile.memory, cpu_rss_peak_lifetime_bytes=5 << 20 if remembered else None
    )
    profile = msgspec.structs.replace(
        profile,
        memory=memory,
        cost=msgspec.structs.replace(COST, **dict.fromkeys(gone)),
    )

    found = document(make.with_reasons(profile))

    plain = json.loads(interchange.encode(found))
    assert gone == {name for name, value in plain["cost"].items() if value is None}
    assert remembered == (plain["memory"]["cpu_process_lifetime_peak_mb"] == 5.0)
    assert 0 not in plain["cost"].values()
    told = {key: value for key, value in plain.items() if key != "null_reasons"}
    assert set(schema.null_paths(told)) == set(plain["null_reasons"])


def test_a_profile_without_a_latency_or_its_samples_is_counted(store, tmp_path):
    kept.put(store, make.profile(repeats=1), arrays=kept.samples(ns(1.0)))
    kept.put(store, make.profile(make.job(batch=8)))
    kept.put(store, make.profile(make.job("cnn"), status="failed"))

    data, made = kept.exported(store, tmp_path / "cache", "callable")

    assert (1, 2, 1) == (made.rows, made.left_out, data.count(b"\n"))


def test_damaged_samples_are_told_and_so_are_those_that_are_not_kept_any_more(store, tmp_path):
    kept.put(store, make.profile(repeats=1), arrays=kept.samples(ns(1.0)))
    (path,) = (store.root / "blobs/v1/samples").glob("*/*.npz")
    path.write_bytes(path.read_bytes()[:-1] + b" ")

    with pytest.raises(Corrupt):
        kept.exported(store, tmp_path / "cache", "callable")
    path.unlink()
    with pytest.raises(NoResult) as caught:
        kept.exported(store, tmp_path / "cache", "callable")
    assert "leave older ones out: --since 400d" == caught.value.hint


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (b"no archive", "holds no arrays"),
        (kept.samples(), "no sample is left"),
        (kept.samples([]), "profile"),
        (kept.samples(ns(1.0))[:-40], "holds no arrays"),
    ],
)
def test_samples_that_make_no_sense_are_told(store, tmp_path, arrays, said):
    """Whole by their digest: another writer put them so."""
    kept.put(store, make.profile(repeats=1), arrays=arrays)

    with pytest.raises(Bad, match=said):
        kept.exported(store, tmp_path / "cache", "callable")


def test_a_card_is_read_once_however_many_profiles_name_it(tmp_path):
    asked: list[str] = []

    class Counting(LocalStore):
        def get(self, key, **more):
            asked.append(key)
            return super().get(key, **more)

    store = Counting(tmp_path / "store", fsync=False)
    (card_id,) = make.put(store, make.card())
    for batch in (1, 2, 4):
        profile = make.profile(make.job(batch=batch), repeats=1)
        profile = msgspec.structs.replace(profile, card_id=card_id)
        kept.put(store, profile, arrays=kept.samples(ns(1.0)))

    kept.exported(store, tmp_path / "cache", "callable")

    assert 1 == sum(each.startswith("cards/") for each in asked)


def _with_inputs(inputs: schema.Inputs, *, batch: int = 1) -> schema.Job:
    job = make.job(batch=batch)
    return msgspec.structs.replace(
        job, workload=msgspec.structs.replace(job.workload, inputs=inputs)
    )
