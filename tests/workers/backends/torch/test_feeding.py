"""What an iteration starts from: the same inputs or others in turn, a cache that is warm or not."""

import pytest
import torch

from farm.schema import Protocol
from workers.backends import LoadFailed
from workers.backends.torch.feeding import check, feed
from workers.backends.torch.placing import Place

CACHE = 4096  # bytes


def _place(*, cache_bytes=CACHE):
    return Place(device="cpu", accelerator=None, cache_bytes=cache_bytes)


def _fed(protocol, *, place=None, inputs=None):
    """The call of an iteration, and the input tensors that it was called with."""
    seen = []

    def step(x):
        seen.append(x)
        return x.sum()

    given = {"x": torch.ones(256)} if inputs is None else inputs
    return feed(step, given, protocol, place or _place()), seen


def test_the_usual_is_one_set_of_inputs_and_nothing_before_an_iteration():
    fed, seen = _fed(Protocol())

    fed.run()
    fed.run()

    assert fed.prepare is None
    assert seen[0] is seen[1]


def test_inputs_in_turn_are_equal_and_outgrow_the_cache():
    """Twice the cache, as the page says; then they come again."""
    fed, seen = _fed(Protocol(input_policy="rotate"))

    for _ in range(9):
        fed.run()

    different = {each.data_ptr() for each in seen}
    assert 8 == len(different)
    assert 2 * CACHE == sum(seen[at].nbytes for at in range(8))
    assert seen[8] is seen[0]
    assert all(torch.equal(seen[0], each) for each in seen)


def test_a_flushed_cache_is_written_before_an_iteration_and_not_in_it():
    fed, seen = _fed(Protocol(l2="flushed"))

    assert fed.prepare is not None
    written = fed.prepare()
    fed.run()

    assert CACHE == written.nbytes
    assert 1 == len(seen)


@pytest.mark.parametrize("asked", [{"input_policy": "rotate"}, {"l2": "flushed"}])
def test_a_cache_of_unknown_size_is_neither_outgrown_nor_flushed(asked):
    with pytest.raises(LoadFailed, match="does not show its caches") as caught:
        _fed(Protocol(**asked), place=_place(cache_bytes=None))

    assert "unsupported" == caught.value.kind


@pytest.mark.parametrize("pageable", ["host_pageable", "host_pinned"])
def test_inputs_on_the_host_are_for_a_gpu(pageable):
    """A CPU has them there already: the same number under another name would be no answer."""
    protocol = Protocol(input_scope=pageable)

    check(protocol, on_gpu=True)
    with pytest.raises(LoadFailed, match="on the host already") as caught:
        check(protocol, on_gpu=False)

    assert "unsupported" == caught.value.kind


def test_outputs_on_the_host_are_for_a_gpu():
    check(Protocol(output_scope="host"), on_gpu=True)

    with pytest.raises(LoadFailed, match="on the host already"):
        check(Protocol(output_scope="host"), on_gpu=False)


@pytest.mark.parametrize("on_gpu", [True, False])
def test_nobody_locks_the_clocks_yet(on_gpu):
    with pytest.raises(LoadFailed, match="locked_base"):
        check(Protocol(clocks="locked_base"), on_gpu=on_gpu)


def test_an_iteration_on_the_host_s_inputs_uploads_what_is_there_then():
    """A CPU stands in for the device: the step sees the values that the host holds."""
    given = {"x": torch.ones(4)}
    fed, _ = _fed(Protocol(input_scope="host_pageable", output_scope="host"), inputs=given)

    first = fed.run()
    given["x"].zero_()  # the device's buffer: the next upload writes over it
    second = fed.run()

    assert [4.0] == [float(each) for each in first]
    assert [4.0] == [float(each) for each in second]
