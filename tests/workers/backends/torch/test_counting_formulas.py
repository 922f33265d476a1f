"""FLOPs of the closed set are exact, on tensors without numbers and in a real run alike."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from tests.workers.backends.torch.counted import both, by_torch
from workers.backends.torch import counting
from workers.backends.torch.counting_formulas import flops

few = settings(max_examples=25)
small = st.integers(1, 6)


@pytest.mark.seed("S2.2", "S2.18")
@pytest.mark.parametrize("batch", [1, 7])
def test_a_linear_layer_costs_two_for_each_pair_of_input_and_output(batch):
    """128 → 64 gives 16,384 an item at any batch, never 8,192; its bias is not counted."""
    for bias in (True, False):
        layer = nn.Linear(128, 64, bias=bias)

        assert 16_384 * batch == both(layer, torch.randn(batch, 128))


@few
@given(batch=small, rows=small, wide=small, narrow=small)
def test_a_linear_layer_over_several_axes_is_exact(batch, rows, wide, narrow):
    flops = both(nn.Linear(wide, narrow), torch.randn(batch, rows, wide))

    assert 2 * batch * rows * wide * narrow == flops


@pytest.mark.seed("S2.19")
@pytest.mark.parametrize(
    ("layer", "image", "flops"),
    [
        (nn.Conv2d(3, 16, 3), (3, 32, 32), 777_600),
        (nn.Conv2d(3, 16, 3, padding=1), (3, 32, 32), 884_736),
        (nn.Conv2d(3, 64, 7, stride=2), (3, 224, 224), 223_552_896),
        (nn.Conv2d(3, 64, 7, stride=2, padding=3), (3, 224, 224), 236_027_904),
        (nn.Conv2d(16, 32, 3, groups=4, dilation=2), (16, 20, 20), 589_824),
        (nn.ConvTranspose2d(8, 4, 3, stride=2), (8, 10, 10), 57_600),
    ],
)
def test_convolutions_match_the_golden_numbers(layer, image, flops):
    assert flops == both(layer, torch.randn(1, *image))


@pytest.mark.seed("S2.19")
@few
@given(data=st.data())
def test_a_convolution_is_exact_for_every_stride_padding_dilation_and_group(data):
    """2·n·out_h·out_w·k_h·k_w·(in/groups)·out, out = ⌊(n + 2p − d(k−1) − 1)/s⌋ + 1; tuples too."""
    groups, batch = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    channels, outputs = groups * data.draw(st.integers(1, 3)), groups * data.draw(st.integers(1, 3))
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = data.draw(pair), data.draw(pair), data.draw(pair)
    padding = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    size = (9, 11)
    layer = nn.Conv2d(channels, outputs, kernel, stride, padding, dilation, groups)

    found = both(layer, torch.randn(batch, channels, *size))

    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]
    expected = 2 * batch * out[0] * out[1] * kernel[0] * kernel[1] * channels // groups * outputs
    assert expected == found


@few
@given(batch=small, groups=st.integers(1, 3), a=small, b=small, kernel=small, stride=small)
def test_a_transposed_convolution_meets_the_whole_kernel_at_every_input(
    batch, groups, a, b, kernel, stride
):
    layer = nn.ConvTranspose1d(groups * a, groups * b, kernel, stride=stride, groups=groups)

    found = both(layer, torch.randn(batch, groups * a, 7))

    assert 2 * batch * 7 * groups * a * b * kernel == found


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, query, key, value):
        return F.scaled_dot_product_attention(query, key, value, **self.options)


@few
@given(batch=small, heads=small, queries=small, keys=small, width=small)
def test_attention_is_exact(batch, heads, queries, keys, width):
    shapes = (queries, keys, keys)
    found = both(Attention(), *(torch.randn(batch, heads, each, width) for each in shapes))

    assert 4 * batch * heads * queries * keys * width == found


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_causal_mask_is_not_halved(is_causal):
    """B2 H4 S64 D32 gives 4,194,304 either way."""
    three = [torch.randn(2, 4, 64, 32)] * 3

    assert 4_194_304 == both(Attention(is_causal=is_causal), *three)


def test_grouped_queries_count_every_head_that_asks():
    """Two heads of keys serve four of queries: the products are those of four."""
    inputs = torch.randn(1, 4, 8, 16), torch.randn(1, 2, 8, 16), torch.randn(1, 2, 8, 16)

    assert 4 * 4 * 8 * 8 * 16 == both(Attention(enable_gqa=True), *inputs)


def test_an_lstm_matches_the_golden_number():
    """LSTM(8, 16) over 5 steps: 15,360. Torch's own counter sees nothing of it on a CPU."""
    layer, steps = nn.LSTM(8, 16), torch.randn(5, 1, 8)

    assert 15_360 == both(layer, steps)
    assert 0 == by_torch(lambda: layer(steps)).get_total_flops()


@few
@given(
    kind=st.sampled_from([(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)]),
    width=small,
    hidden=small,
    layers=st.integers(1, 3),
    both_ways=st.booleans(),
    batch=small,
    steps=small,
)
def test_recurrent_layers_are_exact(kind, width, hidden, layers, both_ways, batch, steps):
    """Every step multiplies by the input and the state matrix of each gate, layer, direction."""
    build, gates = kind
    ways = 2 if both_ways else 1
    layer = build(width, hidden, layers, batch_first=True, bidirectional=both_ways).eval()

    found = both(layer, torch.randn(batch, steps, width))

    given_widths = [width] + [ways * hidden] * (layers - 1)
    matrices = sum(ways * gates * hidden * (each + hidden) for each in given_widths)
    assert 2 * batch * steps * matrices == found


# ── what torch lacks ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (lambda: torch.mv(torch.randn(3, 5), torch.randn(5)), 30),
        (lambda: torch.addmv(torch.randn(3), torch.randn(3, 5), torch.randn(5)), 30),
        (lambda: torch.dot(torch.randn(7), torch.randn(7)), 14),
        (lambda: torch.addr(torch.randn(3, 4), torch.randn(3), torch.randn(4)), 24),
        (lambda: torch.addbmm(torch.randn(3, 4), torch.randn(2, 3, 5), torch.randn(2, 5, 4)), 240),
        (lambda: torch.baddbmm(*(torch.randn(2, 3, 3) for _ in range(3))), 108),
        (lambda: torch.randn(3, 3).addmm_(torch.randn(3, 2), torch.randn(2, 3)), 36),
        (lambda: torch.einsum("bi,oi->bo", torch.randn(2, 3), torch.randn(4, 3)), 48),
    ],
)
def test_products_of_every_form_are_counted(product, expected):
    class Product(nn.Module):
        def forward(self):
            return product()

    assert expected == counting.count(Product(), Product()).flops


def test_a_bilinear_layer_weighs_every_pair():
    """2·n·out·in1·in2."""
    layer = nn.Bilinear(4, 5, 6)

    assert 2 * 2 * 6 * 4 * 5 == both(layer, torch.randn(2, 4), torch.randn(2, 5))


def test_a_complex_product_is_four_real_ones():
    layer = nn.Linear(4, 3, bias=False, dtype=torch.complex64)

    assert 4 * 2 * 4 * 3 == both(layer, torch.randn(1, 4, dtype=torch.complex64))


@pytest.mark.parametrize("keys", [5, 7])
def test_fused_self_attention_counts_its_projections(keys):
    """One operator does all of it on a CPU; with keys of another length it is taken apart."""
    layer = nn.MultiheadAttention(32, 4, batch_first=True).eval()
    query, key = torch.randn(1, 5, 32), torch.randn(1, keys, 32)
    given = (query, query, query) if keys == 5 else (query, key, key)

    found = both(layer, *given)

    assert 2 * 32 * 32 * (2 * 5 + 2 * keys) + 4 * 5 * keys * 32 == found
    assert keys != 5 or 0 == by_torch(lambda: layer(*given)).get_total_flops()


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_fused_encoder_counts_what_its_layers_would(norm_first):
    layer = nn.TransformerEncoderLayer(
        32, 4, dim_feedforward=48, batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    found = both(model, torch.randn(3, 5, 32))

    one = 2 * 5 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 5 * 5 * 32
    assert 3 * 2 * one == found


def test_a_tensor_without_a_regular_shape_has_no_formula():
    """Nested and sparse products cost what nobody here knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls them a prototype
        nested = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
    sparse = torch.eye(3).to_sparse()
    dense = torch.eye(3)

    assert flops(torch.ops.aten.linear.default, (nested, dense), {}, nested) is None
    assert flops(torch.ops.aten.mm.default, (sparse, dense), {}, sparse) is None


def test_what_torch_alone_knows_is_taken_from_torch():
    """Scaled products of 8-bit floats, which no CPU here runs."""
    a = torch.empty(16, 32, device="meta").to(torch.float8_e4m3fn)
    b = torch.empty(32, 16, device="meta").to(torch.float8_e4m3fn)
    scale = torch.ones((), device="meta")

    found = flops(torch.ops.aten._scaled_mm.default, (a, b, scale, scale), {}, a[:, :16])

    assert 2 * 16 * 32 * 16 == found


def test_shapes_that_torch_did_not_expect_are_unknown_and_no_error():
    assert flops(torch.ops.aten._scaled_mm.default, (torch.ones(2),), {}, torch.ones(2)) is None
