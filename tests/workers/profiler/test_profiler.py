import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.modules import module as registry

from farm.errors import Refused
from farm.hardware import GPUSpec
from farm.schema import NULL_CODES, PROTOCOL_VERSION, null_paths
from workers import profiler as library
from workers.profiler import Profiler, quick_profile, speedup


class Ticking:
    """A clock on which every call of the model takes as long as the list says, in ms."""

    def __init__(self, *calls_ms):
        self.now, self.calls, self.is_inside = 0, list(calls_ms), False

    def __call__(self):
        if self.is_inside:
            self.now += round(1e6 * (self.calls.pop(0) if self.calls else 1.0))
        self.is_inside = not self.is_inside
        return self.now


def steady(**options):
    return Profiler(clock=Ticking(), **options)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.2", "S2.18")
def test_a_linear_layer_has_8256_parameters_and_16384_flops():
    """Never 8,192, which is a multiply-accumulate taken for one operation."""
    layer = nn.Linear(128, 64)

    assert 8_256 == Profiler().count_parameters(layer)
    assert 16_384 == Profiler().count_flops(layer, (1, 128))


@pytest.mark.seed("S2.3")
@settings(max_examples=10)
@given(batch=st.integers(1, 9), wide=st.integers(1, 9), narrow=st.integers(1, 9))
def test_flops_are_those_of_one_item(batch, wide, narrow):
    found = steady().profile_forward_pass(nn.Linear(wide, narrow), (batch, wide))

    assert 2 * wide * narrow == found["flops"]
    assert 2 * wide * narrow * batch == found["batch_flops"]


def test_flops_that_nobody_knows_are_refused():
    """A number with a part missing would pass for the whole."""

    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x)

    with pytest.raises(Refused, match="not known") as caught:
        Profiler().count_flops(Spectrum(), (1, 8))
    assert "_fft_r2c" in caught.value.why


@pytest.mark.seed("S2.12")
def test_parameters_before_and_after_give_the_compression_ratio():
    before, after = nn.Linear(64, 64, bias=False), nn.Linear(64, 16, bias=False)

    count = Profiler().count_parameters

    assert 4.0 == count(before) / count(after)


# ── measuring ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("S2.4")
def test_latency_is_the_median_of_a_hundred_calls_after_ten():
    """One call in a thousand times as long, and a slow warm-up, change nothing."""
    slow_start, outlier = [500.0] * 10, [2000.0]
    clock = Ticking(*slow_start, *outlier, *[2.0] * 99)

    found = Profiler(clock=clock).measure_latency(nn.Linear(4, 4), (1, 4))

    assert (2.0, 100) == (found, len(found.samples_ms))
    assert max(found.samples_ms) == 2000.0


@pytest.mark.seed("S1.47")
def test_nothing_listens_while_calls_are_timed():
    """The FLOPs are counted afterwards."""
    seen = []

    class Watching(nn.Module):
        def forward(self, x):
            modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
            seen.append((len(modes), len(registry._global_forward_hooks)))
            return x

    Profiler().profile_forward_pass(Watching(), (1, 4))

    timed = 5 + 20
    assert [(0, 0)] * timed == seen[:timed]
    assert (1, 1) in seen[timed:]


@pytest.mark.seed("S2.23")
def test_activation_memory_is_measured_and_not_twice_the_input():
    """Two layers that widen hold far more than what they were given."""
    model = nn.Sequential(nn.Linear(16, 1024), nn.ReLU(), nn.Linear(1024, 16))

    found = Profiler().measure_memory(model, (4, 16))

    assert 2 * 4 * 1024 * 4 / 2**20 == found["activation_memory_mb"]
    weights = (2 * 16 * 1024 + 1024 + 16) * 4 / 2**20
    assert weights == found["parameter_memory_mb"]
    assert weights + found["activation_memory_mb"] == found["peak_memory_mb"]


@pytest.mark.seed("S2.11")
def test_a_layer_tells_what_to_quantise_and_by_which_rule():
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 2))

    found = steady().profile_layer(model, (8, 64))

    keys = {
        *("layer_type", "parameters", "flops", "latency_ms", "gflops_per_second"),
        *("parameter_memory_mb", "activation_memory_mb", "peak_memory_mb"),
    }
    assert keys <= set(found)
    assert "Sequential" == found["layer_type"]
    assert ["0", "2"] == found["quantisation"]["candidates"]
    assert found["quantisation"]["rule"].endswith("at least 5 % of the FLOPs")
    alone = steady().profile_layer(nn.Linear(4, 4), (1, 4))
    assert ["Linear"] == alone["quantisation"]["candidates"]
    assert [] == steady().profile_layer(nn.LayerNorm(4), (1, 4))["quantisation"]["candidates"]


@pytest.mark.seed("S2.15")
def test_modelled_and_actual_bytes_are_two_numbers():
    """A layer that keeps codes in floats holds four times what its codes would take."""
    found = steady().profile_layer(nn.Linear(8, 8), (1, 8))["quantisation"]

    assert (72, 288) == (found["modelled_int8_bytes"], found["actual_bytes"])


@pytest.mark.seed("S2.7", "S2.5", "S2.24")
def test_a_forward_pass_says_what_limits_it_by_the_old_rule():
    """MiB of memory over the time against 100 times GFLOP/s: no bandwidth, and named heuristic."""
    small, large = nn.Linear(64, 64), nn.Conv2d(8, 8, 3, padding=1)

    memory = steady().profile_forward_pass(small, (1, 64))
    compute = steady().profile_forward_pass(large, (1, 8, 64, 64))

    assert ("memory", "compute") == (memory["bottleneck"], compute["bottleneck"])
    for each in (memory, compute):
        assert each["bottleneck"] == each["heuristic_bound"]
        assert pytest.approx(each["peak_memory_mb"] * 1000) == each["memory_bandwidth_mbs"]
        expected = each["memory_bandwidth_mbs"] > 100 * each["gflops_per_second"]
        assert expected == (each["bottleneck"] == "memory")


@pytest.mark.seed("S2.20")
def test_efficiency_is_against_the_peak_of_the_device_or_unknown():
    """131,072 FLOPs in a millisecond are 0.131 GFLOP/s: half a per cent of 26.2."""
    spec = GPUSpec(
        name="here",
        peak_flops_per_s={"fp32": 26.2144e9},
        peak_bytes_per_s=None,
        source="measured",
    )

    known = steady(spec=spec).profile_forward_pass(nn.Linear(256, 256), (1, 256))
    unknown = steady().profile_forward_pass(nn.Linear(256, 256), (1, 256))

    assert pytest.approx(0.005) == known["compute_efficiency"]
    assert unknown["compute_efficiency"] is None


@pytest.mark.seed("S2.14")
def test_a_forward_pass_carries_the_card_and_the_protocol():
    found = steady().profile_forward_pass(nn.Linear(2, 2), (1, 2))

    assert torch.__version__ == found["card"]["stable"]["frameworks"]["torch"]
    assert found["card"]["system_id"]
    protocol = found["protocol"]
    assert (PROTOCOL_VERSION, 5, 20) == tuple(
        protocol[each] for each in ("version", "warmup", "iterations")
    )
    assert torch.get_num_threads() == protocol["threads"]["torch"]


@pytest.mark.seed("S2.21", "S2.22")
def test_a_backward_pass_is_an_estimate_and_says_so():
    """The same unit on both sides: a batch of eight takes no longer and does no less."""
    layer = nn.Linear(64, 64).requires_grad_(True)
    layer.bias.requires_grad_(False)

    found = steady().profile_backward_pass(layer, (8, 64))

    assert found["estimate"] is True
    assert "twice forward" in found["method"]
    assert (8_192, 16_384, 24_576) == tuple(
        found[f"{each}_flops"] for each in ("forward", "backward", "total")
    )
    assert 8 * 24_576 == found["batch_flops"]
    gradient = 64 * 64 * 4 / 2**20
    assert gradient == found["gradient_memory_mb"]
    expected = {"sgd": 0.0, "adam": 2 * gradient, "adamw": 2 * gradient}
    assert expected == found["optimizer_memory_estimates"]


@pytest.mark.seed("S2.25")
def test_weights_are_described_by_percentiles_and_small_shares():
    model = nn.ParameterList([torch.linspace(-1.0, 1.0, 2001)])

    found = Profiler().analyze_weight_distribution(model)
    tails = Profiler().analyze_weight_distribution(model, percentiles=[5, 99.5])

    assert ["p10", "p25", "p50", "p75", "p90"] == list(found["percentiles"])
    assert pytest.approx(0.5, abs=0.001) == found["percentiles"]["p50"]
    assert pytest.approx(0.1, abs=0.001) == found["shares_below"]["0.1"]
    assert ["p5", "p99.5"] == list(tails["percentiles"])
    with pytest.raises(Refused, match="no floating-point weights"):
        Profiler().analyze_weight_distribution(nn.ReLU())


def test_a_quick_profile_holds_the_few_numbers_that_one_looks_at():
    found = quick_profile(nn.Linear(4, 4), torch.ones(2, 4), steady())

    assert (20, 32) == (found["parameters"], found["flops"])
    assert found["bottleneck"] in ("memory", "compute")


@pytest.mark.seed("S2.16")
def test_profile_change_profile_is_a_loop():
    """The second look sees the change, and the first one stays as it was."""
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)), torch.ones(1, 64)
    profiler = Profiler(clock=Ticking(*[4.0] * 110, *[2.0] * 110))

    before, taken = profiler.count_flops(model, x), profiler.measure_latency(model, x)
    del model[1]
    after, again = profiler.count_flops(model, x), profiler.measure_latency(model, x)

    assert 2 * after == before
    assert ("faster", 2.0) == (speedup(taken, again).said, speedup(taken, again).ratio)


# ── what is not known ─────────────────────────────────────────────────────────────────────────────


class Outside(nn.Module):
    """It computes past torch: nobody sees its FLOPs, its bytes or its activations."""

    def forward(self, x):
        return torch.from_numpy(x.numpy() + 1)


ASKED = [
    *(Profiler.measure_memory, Profiler.profile_layer, Profiler.profile_forward_pass),
    *(Profiler.profile_backward_pass, lambda profiler, *each: quick_profile(*each, profiler)),
]


@pytest.mark.parametrize("model", [Outside(), nn.Linear(4, 4)], ids=["outside", "torch"])
@pytest.mark.parametrize("asked", ASKED)
def test_every_null_has_its_reason_by_its_path(asked, model):
    found = asked(steady(), model, torch.ones(2, 4))

    reasons = found.pop("null_reasons")
    assert set(null_paths(found)) == set(reasons)
    assert {why.split(":")[0] for why in reasons.values()} <= NULL_CODES


def test_what_nobody_saw_is_null_and_says_so():
    """Neither a zero, nor a list without candidates, nor the bound of a number with a part missing.

    The parameters are known: there are none.
    """
    found = steady().profile_forward_pass(Outside(), torch.ones(2, 4))
    layer = steady().profile_layer(Outside(), torch.ones(2, 4))

    why, unseen = found["null_reasons"], "not_supported: no operator of torch ran"
    for name in ("flops", "peak_memory_mb", "bottleneck", "compute_efficiency"):
        assert (None, unseen) == (found[name], why[name])
    assert (0, 0.0) == (found["parameters"], found["parameter_memory_mb"])
    assert unseen == layer["null_reasons"]["quantisation.candidates"]
    assert layer["quantisation"]["candidates"] is None


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (len, (1, 2), "'len' is no torch module"),
        (nn.Linear(2, 2), "a picture", "is no input"),
        (nn.Linear(2, 2), (0, 2), "is no input"),
        (nn.Linear(2, 2), {}, "is no input"),
        (nn.Linear(2, 2), torch.zeros(0, 2), "the batch is empty"),
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        *(Profiler.measure_latency, Profiler.count_flops, Profiler.measure_memory),
        *(Profiler.profile_layer, Profiler.profile_forward_pass, Profiler.profile_backward_pass),
    ],
)
def test_what_cannot_be_profiled_is_refused_in_words(asked, model, given, words):
    with pytest.raises(Refused, match=words):
        asked(Profiler(), model, given)


@pytest.mark.parametrize(("warmup", "iterations"), [(-1, 1), (0, 0)])
def test_calls_that_cannot_be_made_are_refused(warmup, iterations):
    with pytest.raises(Refused, match="timed calls"):
        Profiler().measure_latency(nn.Linear(2, 2), (1, 2), warmup, iterations)


def test_the_library_offers_every_name_that_it_promises():
    assert all(getattr(library, name) is not None for name in library.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Profile'"):
        _ = library.Profile
