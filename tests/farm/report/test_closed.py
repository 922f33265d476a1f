"""What a page is made of stays closed: scripts by their hash, data that ends no element."""

import json

import pytest

from farm.report import closed


def test_data_ends_no_script_and_is_what_it_was() -> None:
    content = {"</script>": ["<!--", "\u2028", "\u2029", "&", "é"]}
    block = closed.data_block(content)

    assert not any(each in block for each in ("<", "\u2028", "\u2029"))
    assert content == json.loads(block)


def test_data_can_be_kept_to_ascii() -> None:
    assert '"\\u00e9"' == closed.data_block("é", only_ascii=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_number_that_is_none_gets_into_a_page(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        closed.data_block([value])


def test_the_policy_lets_in_these_scripts_by_their_hash_alone() -> None:
    policy = closed.policy(["", "x"])

    assert "script-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_a_script_comes_without_what_a_debugger_would_fetch() -> None:
    assert "sourceMappingURL" not in closed.script("vega-embed.min.js")


def test_what_is_rendered_is_escaped() -> None:
    made = closed.environment().from_string("{{ name | visible }}").render(name="<b>\u202e&'")

    assert "&lt;b&gt;\\u202e&amp;&#39;" == made
