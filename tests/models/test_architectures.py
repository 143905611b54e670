"""The presets against the paper's Tables 1 and 2, Sec. 6.1, A.2 and A.3."""

import dataclasses
import math

import pytest

from keras_gdrn.layers import GaussDerResidualBlock
from keras_gdrn.models import ARCHITECTURES, architecture

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
OUR_OWN = {"digits", "mnist", "cifar10"}
# Table 1: input, c (a line over a number there: twice; two lines: three times), r.
TABLE = {
    "rescaled_fashion_mnist": (
        (72, 72, 1),
        (48, 24, 32, 32, 48, 48, 64, 64, 128),
        1.13,
    ),
    "rescaled_cifar10": ((64, 64, 3), (48, 48, 64, 64, 64, 192, 192, 192, 256), 1.2),
    "rescaled_stl10": ((96, 96, 3), (48, 48, 64, 64, 128, 128, 192, 192, 256), 1.32),
    "stl10": ((96, 96, 3), (48, 48, 64, 64, 128, 128, 192, 192, 256), 1.5),
}
DROPOUT = {
    "rescaled_fashion_mnist": 0.2,
    "rescaled_cifar10": 0.3,
    "rescaled_stl10": 0.3,
    "stl10": 0.0,
}


@pytest.fixture(scope="module")
def models():
    """Each preset's network, built once."""
    # Zeros: random numbers of so many shapes take JAX a minute.
    return {name: architecture(name, kernel_initializer="zeros") for name in PARAMETERS}


@pytest.mark.parametrize("name", PARAMETERS)
def test_number_of_parameters_is_the_published_one(name, models):
    shapes = [weight.shape for weight in models[name].trainable_weights]
    assert sum(map(math.prod, shapes)) == PARAMETERS[name]
    # All that Keras counts are those: there are no statistics among the parameters.
    statistics = sum(math.prod(w.shape) for w in models[name].non_trainable_weights)
    assert models[name].count_params() == PARAMETERS[name] + statistics


@pytest.mark.parametrize("name", TABLE)
def test_values_are_those_of_the_tables(name):
    preset = ARCHITECTURES[name]
    assert (preset.input_shape, preset.widths, preset.ratio) == TABLE[name]
    assert preset.scale_dropout == DROPOUT[name]
    assert preset.classes == 10
    stl = "stl10" in name
    assert preset.spatial_selection == ("max" if stl else "center")
    assert preset.zero_order is stl
    assert preset.separable_blocks == 0


def test_scales_are_six_between_a_third_and_two():
    expected = [math.sqrt(2) ** k for k in range(-3, 3)]
    for name, preset in ARCHITECTURES.items():
        assert preset.sigma0 == pytest.approx([0.5] if name == "stl10" else expected)


def test_separable_presets_differ_only_where_the_paper_says():
    for name in TABLE:
        if name != "stl10":
            ratio = 1.22 if name == "rescaled_cifar10" else ARCHITECTURES[name].ratio
            expected = dataclasses.replace(
                ARCHITECTURES[name], separable_blocks=4, ratio=ratio
            )
            assert ARCHITECTURES[f"{name}_separable"] == expected
    without = "rescaled_fashion_mnist_without_label_smoothing"
    fashion = ARCHITECTURES["rescaled_fashion_mnist"]
    assert ARCHITECTURES[without] == dataclasses.replace(fashion, scale_dropout=0.1)
    assert set(ARCHITECTURES) == {*PARAMETERS, without, "stl10", *OUR_OWN}


def test_presets_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ARCHITECTURES["stl10"].ratio = 2.0


@pytest.mark.parametrize("name", PARAMETERS)
def test_eighteen_layers_at_the_scales_of_the_paper(name, models):
    model, preset = models[name], ARCHITECTURES[name]
    network = model.get_layer("scale_channels").network
    sigmas = [network.get_layer("stem_conv").sigma]
    for block in (x for x in network.layers if isinstance(x, GaussDerResidualBlock)):
        sigmas += [block.conv1.sigma, block.conv2.sigma]
    sigmas.append(network.get_layer("head").sigma)
    # Layer κ is at r**(k - 1), k = κ // 2 + 1.
    assert sigmas == pytest.approx([preset.ratio ** (k // 2) for k in range(1, 19)])


@pytest.mark.parametrize("name", ["rescaled_cifar10", "rescaled_stl10_separable"])
def test_network_has_the_presets_options(name, models):
    model, preset = models[name], ARCHITECTURES[name]
    network = model.get_layer("scale_channels").network
    blocks = [network.get_layer(f"block{k}") for k in range(1, 9)]
    separable = preset.separable_blocks
    assert [b.conv1.separable for b in blocks] == [False] * (8 - separable) + (
        [True] * separable
    )
    # The zero-order term is everywhere but in the first layer.
    assert {b.conv2.zero_order for b in blocks} == {preset.zero_order}
    assert network.get_layer("head").zero_order is preset.zero_order
    assert network.get_layer("stem_conv").zero_order is False
    assert network.get_layer("spatial_selection").mode == preset.spatial_selection
    assert model.get_layer("scale_channels").sigma0 == preset.sigma0
    assert model.get_layer("scale_pooling").dropout == preset.scale_dropout
    assert (model.name, model.input_shape[1:]) == (name, preset.input_shape)


def test_overrides_replace_and_extend_the_preset():
    model = architecture(
        "rescaled_cifar10",
        input_shape=(None, None, 1),
        widths=(4, 6),
        classes=3,
        sigma0=[0.5, 1.0],
        scale_pooling="average",
        boundary="symmetric",
    )
    assert (model.input_shape, model.output_shape) == ((None,) * 3 + (1,), (None, 3))
    network = model.get_layer("scale_channels").network
    assert network.get_layer("block1").conv1.boundary == "symmetric"
    assert network.get_layer("block1").sigma == 1.2
    assert model.get_layer("scale_pooling").mode == "average"


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"no architecture 'cifar'.*rescaled_cifar10"):
        architecture("cifar")


def test_unknown_override():
    with pytest.raises(ValueError, match=r"`architecture` has no .*'strides': 2"):
        architecture("rescaled_cifar10", strides=2)
    near = "`architecture` has no argument `num_classes`. Did you mean `classes`"
    with pytest.raises(ValueError, match=near):
        architecture("rescaled_cifar10", num_classes=5)
