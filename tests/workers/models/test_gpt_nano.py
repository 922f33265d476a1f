import torch

from workers.models import gpt_nano


def test_a_prompt_gives_scores_for_every_place():
    """One row of 1024 scores per token."""
    tokens = torch.randint(0, 1024, (2, 16))

    assert (2, 16, 1024) == tuple(gpt_nano.build()(tokens).shape)


def test_a_token_does_not_see_what_comes_after_it():
    """Changing the last token changes no score before it."""
    model, tokens = gpt_nano.build(), torch.randint(0, 1024, (1, 8))
    other = tokens.clone()
    other[0, -1] = (other[0, -1] + 1) % 1024

    with torch.no_grad():
        before, after = model(tokens), model(other)

    assert torch.allclose(before[:, :-1], after[:, :-1], atol=1e-6)
    assert not torch.allclose(before[:, -1], after[:, -1], atol=1e-6)


def test_the_operations_are_those_of_its_layers(flops):
    """Twelve width² per token and block, attention over all places unhalved, and the head."""
    tokens, width = 64, 128
    block = 2 * 12 * tokens * width**2 + 4 * tokens**2 * width

    expected = 3 * block + 2 * tokens * width * 1024
    assert expected == flops(gpt_nano.build(), 1, tokens, dtype=torch.int64)


def test_the_head_shares_the_embedding():
    """Also after a cast, so its bytes count once."""
    model = gpt_nano.build().to(torch.bfloat16)

    assert model.head.weight is model.token.weight
