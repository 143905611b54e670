"""What is drawn of a trained network: which layers, and which images."""

import keras
import numpy as np
import pytest

from keras_gdrn.data import rescaled_arrays
from keras_gdrn.models import gauss_der_resnet, scale_channel


@pytest.fixture
def insight(examples):
    import insight

    return insight


@pytest.mark.parametrize(
    ("blocks", "residual", "numbers"),
    [
        (8, True, [2, 10, 11, 17]),  # the paper's
        (4, True, [2, 6, 7, 9]),
        (1, True, [2, 3]),
        (0, True, [1]),
        (4, False, [2, 4, 5]),
    ],
)
def test_layers_are_the_papers(blocks, residual, numbers, insight):
    widths = [1] * (blocks + 1)
    network = scale_channel((12, 12, 1), 2, widths, 1.05, residual=residual)
    found = insight.filters_of_some_layers(network)
    assert list(found) == [f"layer {n}" for n in numbers]


def test_both_layers_of_a_block_in_the_middle(insight):
    network = scale_channel((12, 12, 1), 2, [1] * 9, 1.05)
    layers = list(insight.convolutions(network))
    block = network.get_layer("block5")
    assert (layers[9], layers[10]) == (block.conv1, block.conv2)


@pytest.fixture
def model():
    """Says class 2 of dark images, class 0 of bright ones, and never 1."""
    image = keras.Input((4, 4, 1))
    brightness = keras.layers.GlobalAveragePooling2D()(image)
    scores = keras.layers.Dense(3, use_bias=True)(brightness)
    model = keras.Model(image, scores)
    model.set_weights([np.array([[2.0, 0.0, 0.0]]), np.array([0.0, -1.0, 1.0])])
    return model


def images_of(*levels):
    return np.stack([np.full((4, 4, 1), level, "float32") for level in levels])


def test_only_correctly_classified_images_are_drawn(insight, model):
    images, labels = images_of(1, 1, 0, 1, 0), np.array([2, 1, 2, 0, 0])
    names = ("bird", "other", "ship")
    # The first of class 2 is not recognized; "other" is no class of the paper's figure.
    assert insight.correct_images(model, images, labels, names) == [3, 2]
    assert insight.correct_images(model, images, labels, ("a", "b", "c")) == [3, 2]
    assert insight.correct_images(model, images[:2], labels[:2], names) == []


def test_no_picture_without_such_an_image(insight, tmp_path, capsys):
    model = gauss_der_resnet((8, 8, 1), 10, [2], 1.2, [1.0])
    images = np.random.default_rng(0).random((1, 8, 8, 1), "float32")
    label = np.array([np.asarray(model(images)).argmin()])
    insight.write_insight(tmp_path, model, images, label, "digits")
    assert [path.name for path in tmp_path.iterdir()] == ["effective_filters.png"]
    assert "No test image was classified correctly" in capsys.readouterr().out


def test_collage_has_training_images(examples, monkeypatch):
    import show_datasets

    drawn = []
    monkeypatch.setattr(show_datasets, "plot_image_grid", drawn.extend)
    show_datasets.collage("digits")
    training, twice, sizes = drawn
    expected, labels = rescaled_arrays("digits", "train", limit=200)
    for label, (name, image) in enumerate(training):
        assert name == str(label)
        np.testing.assert_array_equal(image, expected[np.argmax(labels == label)])
    assert len(twice) == 10 and len(sizes) == 9
