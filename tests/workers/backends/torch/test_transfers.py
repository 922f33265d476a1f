"""Steps that begin or end on the host; a CPU stands in for the device."""

import torch

from workers.backends.torch.transfers import downloading, on_host, uploading


def test_each_call_uploads_what_the_host_holds_then() -> None:
    """The copy is part of every iteration, into buffers that stay where they are."""
    buffer = torch.zeros(3)
    (host,) = on_host([torch.ones(3)], pinned=False)
    where = buffer.data_ptr()
    step = uploading(lambda: float(buffer.sum()), [(buffer, host)], pinned=False)

    first = step()
    host.fill_(5.0)

    assert (3.0, 15.0) == (first, step())
    assert where == buffer.data_ptr()


def test_the_copies_on_the_host_are_no_views() -> None:
    """Not even of tensors that lie there already."""
    given = torch.ones(2)

    (host,) = on_host([given], pinned=False)
    host.fill_(7.0)

    assert [1.0, 1.0] == given.tolist()


def test_a_downloaded_output_is_every_tensor_of_it() -> None:
    """However it is nested, in order."""
    step = downloading(lambda: {"a": torch.ones(2), "b": [torch.zeros(1), "word"]})

    found = step()

    assert isinstance(found, list)
    assert [[1.0, 1.0], [0.0]] == [each.tolist() for each in found]
    assert {"cpu"} == {each.device.type for each in found}
