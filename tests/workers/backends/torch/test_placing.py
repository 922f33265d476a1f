"""Whether a child sees the GPU that is leased for it: looked at before a model is loaded."""

import pytest

from workers.backends import LoadFailed
from workers.backends.torch.cuda import VisibleDevice
from workers.backends.torch.placing import _identity

UUID = "5a1b2c3d-0000-1111-2222-333344445555"


def seen(*uuids):
    return [
        VisibleDevice(visible_index=at, setting="", name="X", memory_bytes=1, uuid=uuid)
        for at, uuid in enumerate(uuids)
    ]


@pytest.mark.parametrize("leased", [f"GPU-{UUID}", f"GPU-{UUID.upper()}", f"MIG-{UUID}"])
def test_the_leased_one_alone_is_verified(leased):
    """torch writes it without the word before it."""
    assert {"identity": "verified"} == _identity(leased, seen(UUID))


def test_where_torch_shows_no_uuid_it_is_only_the_one_that_is_visible():
    assert {"identity": "weak"} == _identity(f"GPU-{UUID}", seen(None))


def test_who_is_not_pinned_is_not_looked_at():
    """By hand a child sees the GPUs that its parent was given."""
    assert {} == _identity("", seen("a", "b"))


@pytest.mark.parametrize(
    ("uuids", "what"),
    [
        (["ffffffff-0000-1111-2222-333344445555"], "another GPU is visible"),
        ([UUID, UUID], "2 GPUs are visible"),
        ([], "0 GPUs are visible"),
        ([None, None], "2 GPUs are visible"),
    ],
)
def test_another_one_or_several_are_no_measurement(uuids, what):
    """A number of another device would stand under this one's name."""
    with pytest.raises(LoadFailed, match=what) as caught:
        _identity(f"GPU-{UUID}", seen(*uuids))

    assert "identity_mismatch" == caught.value.kind
