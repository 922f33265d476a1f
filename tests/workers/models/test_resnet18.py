import torch

from workers.models import resnet18


def test_the_body_takes_3627122688_flops_at_224(flops):
    """Per item, without the head; eight items take eight times that."""
    assert 3_627_122_688 == flops(resnet18.build(classes=None), 1, 3, 224, 224)
    assert 8 * 3_627_122_688 == flops(resnet18.build(classes=None), 8, 3, 224, 224)


def test_with_its_head_it_takes_667230208_flops_at_96(flops):
    """1000 classes at 96 pixels."""
    assert 667_230_208 == flops(resnet18.build(), 1, 3, 96, 96)


def test_an_image_gives_a_score_for_each_class():
    """Without a head the 512 features come out."""
    x = torch.randn(2, 3, 32, 32)

    assert (2, 1000) == tuple(resnet18.build()(x).shape)
    assert (2, 512) == tuple(resnet18.build(classes=None)(x).shape)


def test_it_has_the_parameters_of_its_kind():
    """11,689,512, as the layout has had since its paper."""
    assert 11_689_512 == sum(each.numel() for each in resnet18.build().parameters())
