from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import torch
from torch import nn

from farm.schema import NULL_CODES
from workers.backends.torch import cost
from workers.backends.torch.calling import bind
from workers.models import resnet18, silero, vit_tiny

OPTIONAL = (
    *("params_total", "params_trainable", "params_unique_bytes", "buffers_bytes", "param_dtypes"),
    *("flops_per_batch", "flops_counter", "flops_coverage", "attention"),
    *("bytes_lower_bound_per_batch", "activation_peak_bytes"),
)


def read(module, mode=torch.inference_mode, **inputs):
    """Read what a module needs; whatever is None in it has a reason, and nothing else has."""
    with mode():
        found = cost.read(module, bind(module, inputs), inputs, batch=1)
    assert {name for name in OPTIONAL if getattr(found, name) is None} == set(found.reasons)
    assert {why.partition(":")[0] for why in found.reasons.values()} <= NULL_CODES
    return found


@pytest.mark.seed("S1.3", "S1.37", "S2.1")
def test_a_reading_holds_parameters_flops_bytes_and_activations():
    found = read(resnet18.build(classes=None), x=torch.randn(2, 3, 224, 224))

    assert (11_176_512, 4 * 11_176_512) == (found.params_total, found.params_unique_bytes)
    assert ("measured", 2 * 3_627_122_688, 1.0) == (
        found.flops_status,
        found.flops_per_batch,
        found.flops_coverage,
    )
    assert found.flops_counter == f"real run, torch {torch.__version__}"
    # the first convolution and its norm live at once
    assert 2 * 2 * 64 * 112 * 112 * 4 == found.activation_peak_bytes
    assert found.bytes_lower_bound_per_batch > found.params_unique_bytes
    assert sum(found.flops_by_layer.values()) == found.flops_per_batch


def test_the_reading_names_what_computed_attention():
    found = read(vit_tiny.build(image=32), x=torch.randn(1, 3, 32, 32))

    assert "scaled_dot_product_flash_attention_for_cpu" == found.attention


@pytest.mark.seed("S1.38")
def test_flops_depend_on_the_model_and_on_its_input():
    def flops(size):
        return read(resnet18.build(), x=torch.randn(1, 3, size, size)).flops_per_batch

    assert flops(32) < flops(64)


def test_a_fused_layer_has_its_flops_where_the_layer_table_has_its_time():
    """None of its parts is called."""
    layer = nn.TransformerEncoderLayer(32, 4, batch_first=True).eval()

    found = read(nn.Sequential(layer), input=torch.randn(1, 5, 32))

    assert {"0": found.flops_per_batch} == found.flops_by_layer


class Choosing(nn.Module):
    """What it does depends on numbers, so it cannot run without them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.layer(x) if x.sum().item() > 0 else x


def test_a_model_that_looks_at_its_numbers_is_counted_in_a_real_run():
    module = Choosing()

    taken, left = read(module, x=torch.ones(1, 4)), read(module, x=-torch.ones(1, 4))

    assert "real run" in taken.flops_counter
    assert (32, 0) == (taken.flops_per_batch, left.flops_per_batch)


@pytest.mark.seed("S1.48")
def test_a_script_is_counted_in_a_real_run():
    pytest.importorskip("silero_vad", reason="silero-vad is not installed")

    found = read(silero.build(), x=torch.randn(1, 512))

    assert ("measured", 1.0) == (found.flops_status, found.flops_coverage)
    assert "real run" in found.flops_counter
    # the spectrum: a window of 256 at each of 4 places, 258 numbers each; and much more
    assert found.flops_per_batch > 2 * 4 * 256 * 258


class Spectrum(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return torch.fft.rfft(self.layer(x))


@pytest.mark.seed("S1.48")
def test_what_has_no_formula_is_named_and_makes_the_count_partial():
    found = read(Spectrum(nn.Linear(8, 8)), x=torch.randn(1, 8))

    assert ("partial", ["aten::_fft_r2c"], 0.5) == (
        found.flops_status,
        found.uncounted_ops,
        found.flops_coverage,
    )
    assert 128 == found.flops_per_batch


@pytest.mark.seed("S1.48", "S1.6")
def test_a_count_of_nothing_but_unknown_operators_is_none_and_never_zero():
    found = read(Spectrum(nn.Identity()), x=torch.randn(1, 8))

    assert ("unsupported", None, 0.0) == (
        found.flops_status,
        found.flops_per_batch,
        found.flops_coverage,
    )
    assert "not_supported: no formula for aten::_fft_r2c" == found.reasons["flops_per_batch"]


class Elsewhere(nn.Module):
    def forward(self, x):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.mm, x, x).result()


def test_a_model_that_computes_in_another_thread_alone_has_no_count():
    found = read(Elsewhere(), x=torch.ones(2, 2))

    assert ("unsupported", None, 0.0) == (
        *(found.flops_status, found.flops_per_batch, found.flops_coverage),
    )
    assert "not_supported: operators of another thread" == found.reasons["flops_per_batch"]
    assert found.activation_peak_bytes is None


class Past(nn.Module):
    """Computes with numpy, of which torch hears nothing."""

    def forward(self, x):
        return torch.from_numpy(x.numpy() @ x.numpy())


def test_a_model_that_computes_past_torch_has_nulls_and_no_zero():
    found = read(Past(), torch.no_grad, x=torch.ones(2, 2))

    assert ("unsupported", None) == (found.flops_status, found.flops_per_batch)
    assert "not_supported: no operator of torch ran" == found.reasons["flops_per_batch"]
    assert found.bytes_lower_bound_per_batch is None


@pytest.mark.parametrize("module", [nn.Identity(), nn.Flatten(), nn.ReLU()])
def test_a_model_that_passes_on_or_only_compares_costs_zero(module):
    assert ("measured", 0) == (
        (found := read(module, input=torch.ones(2, 2))).flops_status,
        found.flops_per_batch,
    )


def test_names_and_errors_that_cannot_be_encoded_still_make_a_document():
    class Odd(nn.Module):
        def forward(self, x):
            raise ValueError("\udcff")

    model = nn.Sequential()
    model.add_module("\udcff", nn.Linear(2, 2))

    named, failed = read(model, input=torch.ones(1, 2)), read(Odd(), x=torch.ones(1))

    assert {"\\udcff": 8} == named.flops_by_layer
    assert "failed: ValueError: \\udcff" == failed.flops_status
    assert msgspec.json.encode([named, failed])


class Tired(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        raise RuntimeError("not\ntoday")


@pytest.mark.seed("S1.48")
def test_a_count_that_fails_says_why_and_the_parameters_stay():
    found = read(Tired(), x=torch.ones(1, 2))

    assert "failed: RuntimeError: not today" == found.flops_status
    assert 6 == found.params_total
    assert "error: RuntimeError: not today" == found.reasons["activation_peak_bytes"]


class DeviceBound(nn.Module):
    """Does more on a device without numbers than on a real one."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        return self.layer(self.layer(x)) if x.device.type == "meta" else self.layer(x)


def test_what_ran_is_what_is_counted():
    """A shadow that does something else is not asked where the run told everything."""
    found = read(DeviceBound(), x=torch.ones(1, 4))

    assert (32, "measured") == (found.flops_per_batch, found.flops_status)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_module_stays_as_it_was(mode):
    """Weights, gradients asked for, hooks and training: whoever comes next sees nothing of it."""
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.LSTM(4, 4)).eval()
    module[0].bias.requires_grad_(False)
    x = torch.randn(3, 4)
    before = {name: (id(each), each.clone()) for name, each in module.state_dict().items()}
    attributes = [set(vars(each)) for each in module.modules()]

    read(module, mode, input=x)

    after = module.state_dict()
    assert all(torch.equal(kept, after[name]) for name, (_, kept) in before.items())
    assert attributes == [set(vars(each)) for each in module.modules()]
    assert not module[0].bias.requires_grad
    assert module[0].weight.requires_grad
    assert not module.training


def test_a_compiled_module_is_read_by_the_names_of_what_it_holds():
    model = torch.compile(nn.Sequential(nn.Linear(4, 4)), backend="eager")

    found = read(model, input=torch.randn(1, 4))

    assert {"0": 32} == found.flops_by_layer


def test_a_reading_is_a_document():
    found = read(nn.Linear(2, 2), input=torch.ones(1, 2))

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=type(found))
