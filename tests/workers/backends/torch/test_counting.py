"""What a call costs: once over all modules, by module, with what nobody could count named."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.workers.backends.torch.counted import both, by_torch
from workers.backends.torch import counting
from workers.models import gpt_nano, lstm, mlp, resnet18, vit_tiny

# ── whole models ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("model", "shape", "flops"),
    [
        (mlp.build(), (64,), 17_664),
        (resnet18.build(classes=None), (3, 224, 224), 3_627_122_688),
        (resnet18.build(), (3, 96, 96), 667_230_208),
        (lstm.build(), (16, 64), 2 * 16 * 512 * (64 + 128 + 128 + 128) + 2 * 128 * 10),
        (vit_tiny.build(), (3, 224, 224), 2_507_056_128),
    ],
    ids=["mlp", "resnet18", "resnet18-96", "lstm", "vit_tiny"],
)
def test_the_zoo_matches_the_golden_numbers(model, shape, flops):
    assert flops == both(model, torch.randn(1, *shape))


@pytest.mark.seed("S2.3")
def test_flops_grow_with_the_batch_and_with_nothing_else():
    """So a batch of eight costs eight times one, and an item what it did."""
    model = resnet18.build(classes=None)

    assert 8 * 3_627_122_688 == both(model, torch.randn(8, 3, 224, 224))


def test_a_prompt_counts_its_shared_head_and_no_lookup():
    """Looking a token up multiplies nothing; the head that shares the table does."""
    tokens = torch.zeros(1, 16, dtype=torch.int64)
    blocks = 3 * (2 * 16 * 128 * 128 * 12 + 4 * 16 * 16 * 128)

    assert blocks + 2 * 16 * 128 * 1024 == both(gpt_nano.build(), tokens)


def test_attention_is_counted_whichever_kernel_runs():
    """The fused kernel of a CPU is missing in torch's own count: 0.357663744 GFLOP of ViT-tiny."""
    model, image = vit_tiny.build(), torch.randn(1, 3, 224, 224)
    kernels = torch.nn.attention.SDPBackend

    with torch.inference_mode():
        fused = counting.count(model, lambda: model(image))
        with torch.nn.attention.sdpa_kernel(kernels.MATH):
            plain = counting.count(model, lambda: model(image))

    assert [2_507_056_128] * 2 == [fused.flops, plain.flops]
    assert "scaled_dot_product_flash_attention_for_cpu" == fused.attention
    assert "scaled_dot_product_attention_math" == plain.attention
    assert 2_149_392_384 == by_torch(lambda: model(image)).get_total_flops()


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU()), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def test_nested_modules_count_once():
    """885,056; a sum over modules and their children comes to 4 to 5 times as much."""
    model, image = Nested(), torch.randn(1, 3, 32, 32)

    with torch.no_grad():
        found = counting.count(model, lambda: model(image))

    assert 885_056 == found.flops
    assert {"features.0.0": 884_736, "head": 320} == dict(found.by_layer)
    nested = by_torch(lambda: model(image)).get_flop_counts().values()
    assert 4 * 885_056 < sum(sum(each.values()) for each in nested)


# ── what is not known ────────────────────────────────────────────────────────────────────────────


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return torch.fft.rfft(self.layer(x))


def test_an_operator_without_a_formula_lowers_the_coverage():
    """A Fourier transform costs something, and nobody pretends that it does not."""
    model, x = Spectrum(), torch.randn(1, 8)

    with torch.inference_mode():
        found = counting.count(model, lambda: model(x))

    assert 128 == found.flops
    assert {"aten::_fft_r2c": 1} == dict(found.unknown)
    assert 0.5 == found.coverage


def test_nothing_that_could_cost_is_full_coverage():
    """A model of elementwise work costs a counted zero."""
    found = counting.count(nn.ReLU(), lambda: nn.ReLU()(torch.randn(3)))

    assert (0, 1.0) == (found.flops, found.coverage)


def test_work_in_another_thread_is_not_taken_for_none():
    """Nobody hears its operators, so the count is told to be a part."""

    class Threaded(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self.layer, x).result()

    model = Threaded()

    found = counting.count(model, lambda: model(torch.ones(1, 4)))

    assert {"operators of another thread": 1} == dict(found.unknown)


@pytest.mark.parametrize("lives", [False, True])
def test_products_in_another_thread_are_told_although_no_module_ran_there(lives):
    class Mapped(nn.Module):
        def __init__(self, pool):
            super().__init__()
            self.layer, self.w = nn.Linear(4, 4), torch.ones(4, 4)
            self.pool = pool

        def forward(self, x):
            pool = self.pool or ThreadPoolExecutor(2)
            found = [self.layer(x), *pool.map(lambda each: each @ self.w, [x, x])]
            if not self.pool:
                pool.shutdown()
            return torch.cat(found, 1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(int, range(4)))
        model = Mapped(pool if lives else None)
        with torch.no_grad():
            found = counting.count(model, lambda: model(torch.ones(1, 4)))

    assert {"operators of another thread": 1} == dict(found.unknown)
    assert (32, 0.5, True) == (found.flops, found.coverage, found.is_elsewhere)


class ByHand(nn.Module):
    def forward(self, q, k, v):
        return F.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


def test_attention_by_matrix_products_is_told_from_none():
    q = torch.randn(2, 5, 8)

    with torch.inference_mode():
        by_hand = counting.count(ByHand(), lambda: ByHand()(q, q, q))
        none = counting.count(ByHand(), lambda: F.softmax(q @ q.transpose(-1, -2), dim=-1))

    assert ("matrix_products", "none") == (by_hand.attention, none.attention)


def test_compiled_parts_run_uncompiled_for_the_count():
    """Generated kernels are no operators, and would be missed."""
    model = torch.compile(mlp.build(), backend="eager")
    x = torch.randn(1, 64)
    with torch.inference_mode():
        model(x)

        found = counting.count(model._orig_mod, lambda: model(x))

    assert 17_664 == found.flops
    assert {"layers.0", "layers.2", "layers.4"} == set(found.by_layer)


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def moved(model, *inputs):
    with torch.inference_mode():
        return counting.count(model, lambda: model(*inputs)).moved_bytes


def test_a_leaf_moves_its_input_its_weights_and_its_output_once():
    """At the dtypes that they have."""
    layer = nn.Linear(8, 4)

    assert 4 * (3 * 8 + 8 * 4 + 4 + 3 * 4) == moved(layer, torch.randn(3, 8))
    assert 2 * (3 * 8 + 8 * 4 + 4 + 3 * 4) == moved(layer.bfloat16(), torch.randn(3, 8).bfloat16())


def test_leaves_add_up_and_what_touches_no_number_moves_nothing():
    """An identity, a flattening and dropout outside training only pass on what they got."""
    layers = nn.Linear(8, 8, bias=False), nn.ReLU()
    model = nn.Sequential(*layers, nn.Identity(), nn.Flatten(), nn.Dropout()).eval()

    assert 4 * (8 + 64 + 8) + 4 * (8 + 8) == moved(model, torch.randn(1, 8))


def test_work_in_place_counts_its_tensor_once():
    assert 4 * 8 == moved(nn.ReLU(inplace=True), torch.randn(8))


def test_a_table_is_read_by_rows():
    """Two rows of a thousand: nobody reads the others."""
    table = nn.Embedding(1000, 16)

    assert 2 * 8 + 4 * (2 * 16 + 2 * 16) == moved(table, torch.tensor([3, 5]))


def test_a_fused_layer_reads_the_weights_of_its_parts():
    """None of its parts is called on a CPU; a buffer that nobody used is not read."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 3, 8)

    weights = sum(each.numel() for each in layer.parameters())
    assert 4 * weights < moved(layer, x, x, x) <= 4 * (weights + 3 * 8 + 3 * 8 + 2 * 3 * 3)
