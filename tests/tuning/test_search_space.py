"""The space: what it contains, what is active when, and the paper's values in it."""

import dataclasses
import re

import keras_tuner
import pytest

from keras_gdrn.models import ARCHITECTURES, count_parameters
from keras_gdrn.models._architectures import OF_THE_PAPER
from keras_gdrn.training import RECIPES
from keras_gdrn.tuning import (
    GaussDerResNetHyperModel,
    Range,
    SearchSpace,
)


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_every_set_is_a_hyperparameter_and_widths_are_of_blocks_that_exist(blocks):
    hp, space = keras_tuner.HyperParameters(), SearchSpace(blocks=(1, 2, 4))
    hp.values = {"blocks": blocks}
    architecture = space.architecture(hp)
    space.training(hp)
    expected, widths = dict(vars(space)), [f"width_{block}" for block in (1, 2, 3, 4)]
    del expected["sigma0_range"]
    expected |= dict.fromkeys(widths, expected.pop("width"))
    assert {p.name: tuple(p.values) for p in hp.space} == expected
    assert [hp.is_active(name) for name in widths] == [n < blocks for n in range(4)]
    assert len(architecture["widths"]) == 1 + blocks
    assert architecture["zero_order"] is False and architecture["density"] == 1.0


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_sets_contain_the_values_of_the_paper(name):
    preset, space = ARCHITECTURES[name], SearchSpace()
    stem, *widths = preset.widths
    assert len(widths) in space.blocks
    assert stem in space.stem_width
    assert set(widths) <= set(space.width)
    assert preset.separable_blocks / len(widths) in space.separable_share
    names = ("ratio", "scale_pooling", "spatial_selection", "zero_order")
    for name in (*names, "scale_dropout"):
        assert getattr(preset, name) in getattr(space, name)
    for recipe in RECIPES.values():
        for name in ("learning_rate", "weight_decay", "label_smoothing", "batch_size"):
            assert getattr(recipe, name) in getattr(space, name)


def test_defaults_are_the_network_for_cifar10():
    hypermodel = GaussDerResNetHyperModel((64, 64, 3), 10)
    hp = keras_tuner.HyperParameters()
    assert count_parameters(hypermodel.build(hp)) == 1_783_434
    preset = ARCHITECTURES["rescaled_cifar10"]
    architecture = hypermodel.space.architecture(hp)
    assert architecture.pop("sigma0") == pytest.approx(preset.sigma0)
    assert architecture.pop("widths") == list(preset.widths)
    assert architecture.items() <= {**vars(preset), "order": 2}.items()
    assert hypermodel.recipe(hp, 90) == RECIPES["rescaled_cifar10"]
    hp = keras_tuner.HyperParameters()
    hp.values = {"ratio": 1.22, "separable_share": 0.5}
    # The paper's, separable.
    assert count_parameters(hypermodel.build(hp)) == 547_082


def test_initial_scales_keep_to_their_range():
    space = SearchSpace(sigma0_spacing=(2.0,), sigma0_range=(0.5, 3.0))
    architecture = space.architecture(keras_tuner.HyperParameters())
    assert architecture["sigma0"] == pytest.approx([0.5, 1.0, 2.0])


def test_only_some_are_searched():
    space = SearchSpace(blocks=(2, 3, 4)).only("ratio", "scale_pooling")
    assert space.ratio == SearchSpace().ratio
    assert space.scale_pooling == SearchSpace().scale_pooling
    assert space.blocks == (3,)  # the middle one
    assert space.learning_rate == (0.01,)  # the paper's
    with pytest.raises(ValueError, match=r"must be in .*Received: \['ratoi'\]"):
        space.only("ratoi")


def test_a_stored_trial_of_another_space_is_refused():
    hp = keras_tuner.HyperParameters()
    hp.Choice("ratio", [1.2, 1.3])
    for ratio in ([1.4, 1.5], Range(1.3, 1.5)):
        with pytest.raises(ValueError, match=r"`ratio`=1\.2 of .* `project_name`"):
            SearchSpace(ratio=ratio).architecture(hp)
    hp = keras_tuner.HyperParameters()
    SearchSpace(width=[4]).architecture(hp)
    with pytest.raises(ValueError, match="`width_1`=4 of a stored trial"):
        SearchSpace(width=[8]).architecture(hp)


def test_sets_that_are_none():
    for name, value in (("ratio", ()), ("order", 2)):
        with pytest.raises(ValueError, match=rf"`{name}` must be a tuple or.*={value}"):
            SearchSpace(**{name: value})
    ranges = [("sigma0_range", ends) for ends in ((2.0, 1.0), (1.0,), ("a", "b"))]
    for name, value in (*ranges, ("sigma0_spacing", (1.0,))):
        with pytest.raises(ValueError, match=re.escape(f"{name}={value}")):
            SearchSpace(**{name: value})
    for name, value in (("spatial_selection", "centre"), ("blocks", -1)):
        with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}")):
            SearchSpace(**{name: (value,)})


@pytest.mark.parametrize("side", [8, 24, 28, 32, 64, 96])
def test_default_space_fits_the_image(side):
    space = GaussDerResNetHyperModel((side, side, 1), 4).space
    assert max(space.ratio) ** (max(space.blocks) + 1) <= side
    assert space.sigma0_range[1] <= max(side / 8, SearchSpace().sigma0_range[0])
    assert len(space.ratio) >= 5
    assert (space == SearchSpace()) == (side >= 39)
    assert GaussDerResNetHyperModel((4, side, 1), 4).space == space

    def of(ratio):
        own = dataclasses.replace(space, ratio=(ratio,))
        GaussDerResNetHyperModel((side, side, 1), 4, space=own)

    most = side ** (1 / 9)  # of the first layer and 8 blocks
    of(0.99 * most)
    with pytest.raises(ValueError, match=rf"`space` .* {side} pixels.* 8 blocks"):
        of(1.01 * most)


def test_a_range_is_searched_between_its_ends():
    space = SearchSpace(ratio=Range(1.1, 1.5), label_smoothing=Range(0.0, 0.2))
    hp = keras_tuner.HyperParameters()
    assert space.architecture(hp)["ratio"] == 1.2  # the paper's
    assert space.training(hp)["label_smoothing"] == 0.1
    by_name = {p.name: p for p in hp.space}
    ratio, smoothing = by_name["ratio"], by_name["label_smoothing"]
    assert (ratio.min_value, ratio.max_value, ratio.sampling) == (1.1, 1.5, "log")
    assert (smoothing.min_value, smoothing.sampling) == (0.0, "linear")
    assert space.only().ratio == (1.2,)
    GaussDerResNetHyperModel((64, 64, 3), 10, space=space).build(hp)


@pytest.mark.parametrize(
    "given",
    [
        {"ratio": Range(1.5, 1.1)},
        {"ratio": Range("1.1", "1.5")},
        {"blocks": Range(2, 8)},
        {"scale_pooling": Range(0, 1)},
    ],
)
def test_ranges_are_of_numbers_that_need_not_be_integers(given):
    with pytest.raises(ValueError, match=r"A `Range` must .*Received: \w+=Range"):
        SearchSpace(**given)
