import pytest

from workers.backends.torch.naming import printable


@pytest.mark.parametrize(
    ("name", "shown"),
    [("layers.0", "layers.0"), ("größe", "größe"), ("a\udcff", "a\\udcff"), ("", "")],
)
def test_what_utf_8_cannot_hold_is_escaped(name, shown):
    assert shown == printable(name)


def test_a_long_name_is_cut_and_stays_another_than_its_like():
    one, other = printable("a" * 200_000), printable("a" * 200_001)

    assert 10_000 == len(one) == len(other)
    assert one.startswith("aaa")
    assert "…" == one[-17]
    assert one != other
    assert "b" * 10_000 == printable("b" * 10_000)
