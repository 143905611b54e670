"""The presets against the paper's Tables 1 and 2, Sec. 6.1, A.2 and A.3."""

import dataclasses
import math

import pytest

from keras_gdrn.layers import GaussDerResidualBlock
from keras_gdrn.models import ARCHITECTURES, architecture, count_parameters

pytestmark = pytest.mark.seen_on_tensorflow("what is built does not depend on it")

# 294 802 is published as 295k, 119 794 as 120k, and so on.
PARAMETERS = {
    "rescaled_fashion_mnist": 294_802,
    "rescaled_cifar10": 1_783_434,
    "rescaled_stl10": 2_072_586,
    "rescaled_fashion_mnist_separable": 119_794,
    "rescaled_cifar10_separable": 547_082,
    "rescaled_stl10_separable": 669_322,
}
# Table 1: input, c (a line over a number there: twice; two lines: three times), r;
# Sec. 5.2: scale dropout.
FASHION_MNIST = ((72, 72, 1), (48, 24, 32, 32, 48, 48, 64, 64, 128), 1.13, 0.2)
CIFAR10 = ((64, 64, 3), (48, 48, 64, 64, 64, 192, 192, 192, 256), 1.2, 0.3)
STL10 = ((96, 96, 3), (48, 48, 64, 64, 128, 128, 192, 192, 256), 1.32, 0.3)
TABLE = {
    "rescaled_fashion_mnist": FASHION_MNIST,
    "rescaled_cifar10": CIFAR10,
    "rescaled_stl10": STL10,
    "stl10": (*STL10[:2], 1.5, 0.0),
}


@pytest.mark.parametrize("name", TABLE)
def test_values_are_those_of_the_tables(name):
    preset, stl = ARCHITECTURES[name], "stl10" in name
    found = preset.input_shape, preset.widths, preset.ratio, preset.scale_dropout
    assert found == TABLE[name]
    assert (preset.classes, preset.separable_blocks) == (10, 0)
    assert preset.spatial_selection == ("max" if stl else "center")
    assert preset.zero_order is stl
    assert preset.head_initializer == "he_uniform"
    six = [math.sqrt(2) ** k for k in range(-3, 3)]
    assert preset.sigma0 == pytest.approx([0.5] if name == "stl10" else six)


def test_variants_differ_only_where_the_paper_says():
    variants = {
        "rescaled_fashion_mnist_separable": {"separable_blocks": 4},
        "rescaled_cifar10_separable": {"separable_blocks": 4, "ratio": 1.22},
        "rescaled_stl10_separable": {"separable_blocks": 4},
        "rescaled_fashion_mnist_without_label_smoothing": {"scale_dropout": 0.1},
    }
    for name, changes in variants.items():
        original = next(of for of in TABLE if name.startswith(of))
        expected = dataclasses.replace(ARCHITECTURES[original], **changes)
        assert ARCHITECTURES[name] == expected
    our_own = {"digits", "mnist", "cifar10"}
    assert set(ARCHITECTURES) == {*TABLE, *variants, *our_own}


@pytest.mark.parametrize("name", PARAMETERS)
def test_eighteen_layers_of_the_published_size_at_the_scales_of_the_paper(name):
    model, preset = architecture(name), ARCHITECTURES[name]
    assert count_parameters(model) == PARAMETERS[name]
    assert (model.name, model.input_shape[1:]) == (name, preset.input_shape)
    assert model.get_layer("scale_channels").sigma0 == preset.sigma0
    assert model.get_layer("scale_pooling").dropout == preset.scale_dropout
    network = model.get_layer("scale_channels").network
    assert network.get_layer("spatial_selection").mode == preset.spatial_selection
    blocks = [x for x in network.layers if isinstance(x, GaussDerResidualBlock)]
    inner = [conv for block in blocks for conv in (block.conv1, block.conv2)]
    stem, head = network.get_layer("stem_conv"), network.get_layer("head")
    # Layer κ is at r**(k - 1), k = κ // 2 + 1.
    sigmas = [layer.sigma for layer in (stem, *inner, head)]
    assert sigmas == pytest.approx([preset.ratio ** (k // 2) for k in range(1, 19)])
    separable = 2 * preset.separable_blocks
    assert [x.separable for x in inner] == [k >= 16 - separable for k in range(16)]
    # The zero-order term is everywhere but in the first layer.
    assert {x.zero_order for x in (*inner, head)} == {preset.zero_order}
    assert stem.zero_order is False


def test_overrides_replace_and_extend_the_preset():
    changes = {"input_shape": (None, None, 1), "widths": (4, 6), "order": 3}
    model = architecture("rescaled_cifar10", classes=3, sigma0=[0.5, 1.0], **changes)
    assert (model.input_shape, model.output_shape) == ((None,) * 3 + (1,), (None, 3))
    block = model.get_layer("scale_channels").network.get_layer("block1")
    assert (block.conv1.order, block.sigma) == (3, 1.2)
