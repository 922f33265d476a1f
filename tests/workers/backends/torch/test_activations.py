import torch
from torch import nn

from workers.backends.torch.activations import Lifetimes, cuda_peak
from workers.backends.torch.counting_calls import heard_by


def peak(call, mode=torch.inference_mode):
    lifetimes = Lifetimes()
    with mode(), heard_by(lifetimes):
        kept = call()
    del kept
    return lifetimes.peak_bytes


def test_the_peak_is_what_lives_at_once():
    """Two results of 4 KiB live together, a third one takes the place of the first."""
    x = torch.zeros(1024)

    assert 2 * 4096 == peak(lambda: ((x + 1) * 2) - 3)


def test_what_is_kept_counts_until_the_end():
    x = torch.zeros(1024)

    def call():
        first = x + 1
        return first, first * 2, first - 3

    assert 3 * 4096 == peak(call)


def test_weights_and_inputs_are_no_activations():
    layer, x = nn.Linear(256, 4), torch.zeros(2, 256)

    assert 2 * 4 * 4 == peak(lambda: layer(x))


def test_views_and_work_in_place_take_nothing():
    """Also of an input, which was there before."""
    x = torch.zeros(1024)

    assert 0 == peak(lambda: x.view(32, 32).t().add_(1))
    assert 4096 == peak(lambda: (x + 1).view(32, 32).relu_())


def test_a_cast_counts_at_its_own_size():
    x = torch.zeros(1024)

    assert 2048 == peak(lambda: x.to(torch.bfloat16))


def test_gradients_keep_what_inference_frees():
    """The same layers hold every activation while somebody may ask for the gradient."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Sigmoid()) for _ in range(4)))
    x = torch.zeros(16, 64)

    freed, kept = peak(lambda: model(x)), peak(lambda: model(x), torch.enable_grad)

    assert 3 * 16 * 64 * 4 == freed
    assert 5 * 16 * 64 * 4 == kept


def test_what_has_no_storage_of_its_own_leaves_the_peak_unknown():
    """A sparse tensor is several; part of a peak is no peak."""
    assert peak(lambda: torch.eye(3).to_sparse()) is None


def test_the_listener_keeps_nothing_alive():
    lifetimes = Lifetimes()
    with torch.no_grad(), heard_by(lifetimes):
        first = torch.zeros(1024)
        del first
        second = torch.zeros(1024)
        del second

    assert 4096 == lifetimes.peak_bytes


class Allocating:
    """An allocator of two devices: a call takes 100 and 7 bytes at most, and keeps some."""

    def __init__(self):
        self.now, self.peak, self.order = {0: 1000, 1: 50}, {0: 9999, 1: 9999}, []

    def run(self):
        self.order.append("run")
        self.peak = {at: self.now[at] + extra for at, extra in ((0, 100), (1, 7))}
        self.now[0] += 30

    def synchronize(self, device=None):
        self.order.append(f"wait {device}")

    def reset_peak_memory_stats(self, device=None):
        self.order.append(f"reset {device}")

    def memory_allocated(self, device=None):
        return self.now[device]

    def max_memory_allocated(self, device=None):
        return self.peak[device]


def test_the_peak_on_a_gpu_is_what_the_allocator_grew_by():
    """From peaks that were reset before the call, on every device, when its work has ended."""
    cuda = Allocating()

    assert 107 == cuda_peak(cuda.run, [0, 1], cuda=cuda)
    assert ["wait 0", "reset 0", "wait 1", "reset 1", "run", "wait 0", "wait 1"] == cuda.order
