import pytest
import torch

from workers.backends import LoadFailed
from workers.backends.torch import pools


@pytest.fixture(autouse=True)
def _pools_of_the_run():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)


@pytest.mark.parametrize("threads", [1, 2])
def test_pools_have_the_size_that_was_asked(threads):
    """Read back from torch itself; work between operators gets one thread."""
    pools.prepare_torch(threads, flush=False)

    found = pools.effective(torch_too=True)

    assert (threads, 1) == (found["torch"], found["torch_interop"])
    pools.check(threads, torch_too=True)


def test_a_pool_of_another_size_is_a_failure_of_the_node():
    """More threads than cores would time the contention, not the model."""
    pools.prepare_torch(1, flush=False)
    torch.set_num_threads(2)

    with pytest.raises(LoadFailed, match="thread pool torch has 2 threads, not 1") as caught:
        pools.check(1, torch_too=True)

    assert "environment" == caught.value.kind


def test_flushing_makes_subnormal_results_zero():
    """The mode is in force when the call returns, and leaves with the next one."""
    tiny = torch.tensor([2.0**-126])

    assert "flush" == pools.prepare_torch(1, flush=True)
    assert 0.0 == (tiny * 0.5).item()

    assert "as_is" == pools.prepare_torch(1, flush=False)
    assert 2.0**-127 == (tiny * 0.5).item()


def test_numpys_own_pool_is_sized_and_read_where_it_can_be():
    """Without the library of numpy's wheel there is no entry, and no guess."""
    pools.prepare_numpy(1)

    assert pools.effective(torch_too=False) in ({"openblas": 1}, {})
    pools.check(1, torch_too=False)


def test_a_machine_without_torch_says_what_to_install(child):
    """A missing framework is the environment's fault, and the hint is a command."""
    said = child(
        "import sys\nsys.modules['torch'] = None\n"
        "from workers import backends\nfrom workers.backends.torch import pools\n"
        "try:\n    pools.prepare_torch(1, flush=False)\n"
        "except backends.LoadFailed as e:\n    print(e.kind, e.hint)"
    )

    assert "environment pip install 'profiling-farm[worker]'\n" == said
