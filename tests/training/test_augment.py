"""The augmentation: each step against a transcription, and what is drawn."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data._source import generator
from keras_gdrn.training import RECIPES, Augmentation, augment
from keras_gdrn.training import _augment_steps as steps
from tests.training import _transcription as transcription

PAPER = Augmentation(flip=0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05)


def images(count=24, height=7, width=9, channels=3):
    return np.random.default_rng(0).random((count, height, width, channels), "float32")


@pytest.mark.parametrize("channels", [1, 3])
def test_jitter_in_every_order(channels):
    rng = np.random.default_rng(1)
    order = np.array(list(itertools.permutations(range(4))))
    factors = rng.uniform(0.5, 1.5, (24, 4)).astype("float32")
    factors[:, 3] = rng.uniform(-0.5, 0.5, 24)
    given = images(channels=channels)
    found = given.copy()
    for image, *how in zip(found, order, factors, strict=True):
        steps.jitter(image, *how)
    for image, result, turns, values in zip(given, found, order, factors, strict=True):
        expected = transcription.jitter(image.astype("float64"), turns, values)
        np.testing.assert_allclose(result, expected, atol=1e-5)
    assert np.std([np.mean(result) for result in found]) > 0.02  # it did something


@pytest.mark.parametrize("corner", [(0, 0), (3, 0), (2, 6), (6, 6), (29, 0)])
def test_crop_after_padding(corner):
    given, padding = images(count=2), max(3, *corner) // 2 + 2
    corners = np.array([corner, (padding, padding)], "int32")
    found = steps.crop(given, corners, padding)
    expected = transcription.crop(given[0], corner, padding)
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], given[1])


@pytest.mark.parametrize("side", [1, 4, 5, 30])
@pytest.mark.parametrize("center", [(0, 0), (3, 8), (6, 4)])
def test_cutout(center, side):
    (given,) = images(count=1)
    expected = transcription.cutout(given, center, side)
    steps.cutout(given, np.array(center, "int32"), side)
    np.testing.assert_array_equal(given, expected)
    assert expected[center].max() == 0


def test_flip_is_of_some_images():
    given = images(count=400)
    found = augment(given, (0, 1), Augmentation(flip=0.25))
    flipped = np.all(found == given[:, :, ::-1], axis=(1, 2, 3))
    kept = np.all(found == given, axis=(1, 2, 3))
    assert np.all(flipped ^ kept)
    assert abs(flipped.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 400)


def test_corners_are_uniform():
    given = np.zeros((4000, 5, 5, 1), "float32")
    given[:, 2, 2] = 1
    found = augment(given, (3, 4), Augmentation(padding=1))
    _, rows, columns, _ = np.nonzero(found)
    counts = np.histogram2d(rows, columns, bins=range(1, 5))[0]
    assert counts.sum() == 4000
    assert np.all(np.abs(counts - 4000 / 9) < 4 * np.sqrt(4000 / 9))


def test_cutouts_have_their_centers_anywhere():
    given = np.ones((3000, 3, 4, 1), "float32")
    found = augment(given, (5, 6), Augmentation(cutout=1))
    counts = (found == 0).sum(axis=(0, 3))
    assert counts.sum() == 3000
    assert np.all(np.abs(counts - 250) < 4 * np.sqrt(250))


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [("brightness", 0.7, 1.3), ("contrast", 0.7, 1.3), ("saturation", 0.7, 1.3)],
)
def test_factors_are_uniform_about_one(name, lowest, highest):
    image = np.tile([[[0.3, 0.4, 0.5]], [[0.6, 0.4, 0.5]]], (1, 1, 1))
    given = np.repeat(image[None].astype("float32"), 3000, axis=0)
    found = augment(given, (7, 8), Augmentation(**{name: 0.3}))
    reference = {
        "brightness": np.zeros_like(image),
        "contrast": np.full_like(image, transcription.gray(image).mean()),
        "saturation": transcription.gray(image)[..., None],
    }[name]
    spread = image - reference
    factors = ((found - reference) * spread).sum(axis=(1, 2, 3)) / (spread**2).sum()
    quantiles = np.quantile(factors, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(
        quantiles, np.linspace(lowest, highest, 5), atol=0.03, rtol=0
    )


def test_hue_is_turned_by_at_most_its_share():
    given = np.repeat(np.array([[[[1.0, 0.0, 0.0]]]], "float32"), 2000, axis=0)
    found = augment(given, (9, 10), Augmentation(hue=0.05))
    turned = [transcription.colorsys.rgb_to_hsv(*pixel)[0] for pixel in found[:, 0, 0]]
    turned = (np.array(turned) + 0.5) % 1 - 0.5
    quantiles = np.quantile(turned, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(quantiles, np.linspace(-0.05, 0.05, 5), atol=4e-3)


def test_order_of_the_jitter_is_uniform():
    drawn = steps.draw(generator((1, 2)), (6000, 1, 1, 3), PAPER)
    orders, counts = np.unique(drawn.order, axis=0, return_counts=True)
    assert sorted(map(tuple, orders)) == list(itertools.permutations(range(4)))
    assert np.all(np.abs(counts - 250) < 4.5 * np.sqrt(250))


def test_each_image_has_its_own_and_the_seed_decides():
    given = np.repeat(images(count=1), 8, axis=0)
    once = augment(given, (0, 1), PAPER)
    np.testing.assert_array_equal(once, augment(given, (0, 1), PAPER))
    assert len(np.unique(once.reshape(8, -1), axis=0)) == 8
    assert np.abs(once - augment(given, (0, 2), PAPER)).max() > 1e-3


def test_nothing_is_done_by_default():
    given = images()
    np.testing.assert_array_equal(augment(given, (0, 1), Augmentation()), given)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_same_in_a_pipeline(channels):
    given = images(channels=channels)
    everything = Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3)
    data = tf.data.Dataset.from_tensors(given)
    data = data.map(lambda batch: augment(batch, (0, 1), everything))
    (found,) = data.as_numpy_iterator()
    assert data.element_spec.shape == given.shape
    np.testing.assert_array_equal(found, augment(given, (0, 1), everything))
    assert found.dtype == "float32"
    assert found.min() >= 0
    assert found.max() <= 1


@pytest.mark.parametrize("channels", [1, 3])
def test_batches_of_unknown_size(channels):
    data = tf.data.Dataset.from_tensor_slices(images(channels=channels)).batch(10)
    everything = Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3)
    for augmentation in (RECIPES["stl10"].augmentation, PAPER, everything):
        found = data.map(lambda batch, by=augmentation: augment(batch, (0, 1), by))
        assert found.element_spec.shape.as_list() == [None, 7, 9, channels]
    assert [len(batch) for batch in found] == [10, 10, 4]


@pytest.mark.parametrize("count", [0, 5])
def test_sizes_that_a_graph_does_not_know(count):
    given = images(count=count)
    everything = Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3)
    graph = tf.function(
        lambda batch: augment(batch, (0, 1), everything),
        input_signature=[tf.TensorSpec((None, None, None, 3))],
    )
    found = augment(given, (0, 1), everything)
    assert isinstance(found, np.ndarray)
    assert found.shape == given.shape
    np.testing.assert_array_equal(graph(given), found)


def test_one_image():
    image = images(count=1)
    once = augment(image[0], (0, 1), PAPER)
    np.testing.assert_array_equal(once, augment(image, (0, 1), PAPER)[0])


@pytest.mark.parametrize("shape", [(5, 5), (2, 5, 5, 4), (1, 2, 5, 5, 3)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="`images` must have shape"):
        augment(np.zeros(shape, "float32"), (0, 1), PAPER)


@pytest.mark.parametrize("channels", [2, 4])
def test_channels_matter_to_the_jitter_alone(channels):
    given, moved = images(channels=channels), Augmentation(2, 0.5, cutout=3)
    found = augment(given, (0, 1), moved)
    for channel in range(channels):
        alone = augment(given[..., channel : channel + 1], (0, 1), moved)
        np.testing.assert_array_equal(found[..., channel : channel + 1], alone)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("padding", value) for value in (-1, 1.5, True)),
        *(("flip", value) for value in (-0.1, 1.1, "half")),
        *(("brightness", value) for value in (-0.1, float("nan"), float("inf"))),
        *(("hue", value) for value in (-0.1, 0.6)),
        ("cutout", 2.0),
    ],
)
def test_values_are_checked(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be .* {name}={value!r}"):
        Augmentation(**{name: value})


@pytest.mark.parametrize(
    "given", [(255 * images(2)).astype("uint8"), 255 * images(2)], ids=["bytes", "255"]
)
def test_images_that_are_not_in_0_to_1(given):
    message = r"divide images of 8 bits by 255 \(`.* / 255`\)"
    for one in (given, tf.constant(given), given[0]):
        with pytest.raises(ValueError, match=message):
            augment(one, (0, 1), PAPER)
    data = tf.data.Dataset.from_tensors(given)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        list(data.map(lambda batch: augment(batch, (0, 1), PAPER)))


def test_standardized_images_can_be_cropped_and_flipped():
    given = 5.5 * images() - 2.5
    found = augment(given, (0, 1), Augmentation(padding=1, flip=0.5))
    assert found.min() < -2.4
    assert found.max() > 2.9


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
def test_color_jitter_takes_no_standardized_images(name):
    jitter = Augmentation(**{name: 0.1})
    for given in (2 * images() - 1, images() + 0.5):
        for one in (given, tf.constant(given), given[0]):
            with pytest.raises(ValueError, match="color jitter clips them"):
                augment(one, (0, 1), jitter)
        data = tf.data.Dataset.from_tensors(given)
        data = data.map(lambda batch: augment(batch, (0, 1), jitter))
        with pytest.raises(tf.errors.InvalidArgumentError, match="color jitter clips"):
            list(data)
    augment(
        1.5 * images() - 0.25, (0, 1), jitter
    )  # as a cubic interpolation leaves them
