import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.backends import LoadFailed
from workers.backends.torch.fitting import MOST, SHARE, fitted

GB = 10**9


class Memory:
    """A device on which a step of a batch takes constant + item · batch, give or take some noise.

    Beyond its end nothing fits. A batch takes the same whenever it is tried.
    """

    def __init__(self, total, *, constant, item, noise=0.0, seed=0):
        self.total, self._constant, self._item = total, constant, item
        self._noise, self._seed, self.tried = noise, seed, []

    def peak(self, batch):
        swing = random.Random(f"{self._seed} {batch}").uniform(-1, 1) * self._noise
        return round(self._constant + self._item * (batch + swing))

    def peak_at(self, batch):
        self.tried.append(batch)
        return peak if (peak := self.peak(batch)) <= self.total else None

    def best(self):
        room = (SHARE * self.total - self._constant) / self._item
        return max(0, min(MOST, int(room)))


@pytest.mark.seed("S4.15")
@given(
    constant=st.floats(0, 0.69),
    best=st.floats(1.5, 3000),
    noise=st.floats(0, 0.3),
    seed=st.integers(0, 1000),
)
@settings(max_examples=200)
def test_the_batch_stays_within_the_share_and_is_close_to_the_largest(constant, best, noise, seed):
    """Whatever a step holds beside its items, and however its peaks waver: by measuring it."""
    room = (SHARE - constant) * GB
    device = Memory(GB, constant=constant * GB, item=room / best, noise=noise, seed=seed)

    found = fitted(device.peak_at, GB)

    assert device.peak(found) <= SHARE * GB
    assert found in device.tried
    assert 2 * found >= device.best()
    assert len(device.tried) <= 40


@pytest.mark.seed("S4.15")
@pytest.mark.parametrize(
    ("constant", "best"),
    [(0.0, 16), (0.0, 250), (0.35, 37), (0.6, 4), (0.69, 900), (0.0, 1), (0.4, 1), (0.4, 2)],
)
def test_without_noise_it_is_within_a_sixteenth(constant, best):
    room = (SHARE - constant) * GB
    device = Memory(GB, constant=constant * GB, item=room / (best + 0.5))

    found = fitted(device.peak_at, GB)

    assert best - best // 16 - 1 <= found <= best


def test_weights_that_take_most_of_the_room_leave_the_rest_to_the_batch():
    """A batch of 1 beyond half of the room says nothing about the next one."""
    device = Memory(GB, constant=0.5 * GB, item=0.002 * GB)

    assert fitted(device.peak_at, GB) > 90


@pytest.mark.parametrize("peak", [None, GB])
def test_one_item_that_does_not_fit_is_out_of_memory(peak):
    """It fits nowhere, or beyond the share."""
    with pytest.raises(LoadFailed, match="not even a batch of 1") as caught:
        fitted(lambda _batch: peak, GB)

    assert "oom" == caught.value.kind


@pytest.mark.parametrize("most", [1, 3, 100])
def test_no_batch_is_larger_than_there_may_be(most):
    """Nor is a larger one tried: the data would not fill it."""
    device = Memory(GB, constant=0, item=1)

    assert most == fitted(device.peak_at, GB, most=most)
    assert max(device.tried) == most


def test_memory_that_does_not_grow_ends_at_the_largest_batch():
    device = Memory(GB, constant=0.1 * GB, item=0)

    assert MOST == fitted(device.peak_at, GB)
