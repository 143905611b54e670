"""The augmentation: each step against a transcription, and what is drawn."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.training import Augmentation, augment
from keras_gdrn.training import _augment as steps
from tests.training import _transcription as transcription

PAPER = Augmentation(flip=0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05)
EVERYTHING = Augmentation(2, 0.5, 0.2, 0.2, 0.2, 0.05, 3)
UNFIT = (ValueError, tf.errors.InvalidArgumentError)


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
    for image, result, turns, values in zip(given, found, order, factors, strict=True):
        steps.jitter(result, turns, values)
        expected = transcription.jitter(image.astype("float64"), turns, values)
        np.testing.assert_allclose(result, expected, atol=1e-5)
    assert np.std([np.mean(result) for result in found]) > 0.02  # it did something


@pytest.mark.parametrize("corner", [(0, 0), (3, 0), (2, 6), (6, 6), (29, 0)])
def test_crop_after_padding(corner):
    given, padding = images(count=1), max(3, *corner) // 2 + 2
    expected = transcription.crop(given[0].copy(), corner, padding)
    chances = np.full((1, steps.NUMBERS), 0.5)
    chances[0, :2] = (np.array(corner) + 0.5) / (2 * padding + 1)
    (found,) = steps.augmented(given, chances, Augmentation(padding=padding))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("side", [1, 4, 5, 30])
@pytest.mark.parametrize("center", [(0, 0), (3, 8), (6, 4)])
def test_cutout(center, side):
    given = images(count=1)
    expected = transcription.cutout(given[0].copy(), center, side)
    chances = np.full((1, steps.NUMBERS), 0.5)
    chances[0, -2:] = (np.array(center) + 0.5) / given.shape[1:3]
    (found,) = steps.augmented(given, chances, Augmentation(cutout=side))
    np.testing.assert_array_equal(found, expected)
    assert expected[center].max() == 0


def assert_uniform(counts: np.ndarray) -> None:
    """Each place has its share, but for four and a half standard deviations."""
    expected = np.sum(counts) / np.size(counts)
    assert np.all(np.abs(counts - expected) < 4.5 * np.sqrt(expected))


def test_places_are_uniform():
    given = np.zeros((4000, 5, 5, 1), "float32")
    given[:, 2, 2] = 1
    cropped = augment(given, (3, 4), Augmentation(padding=1)).sum(axis=(0, 3))
    assert cropped.sum() == cropped[1:4, 1:4].sum() == 4000
    assert_uniform(cropped[1:4, 1:4])
    cut = augment(np.ones((3000, 3, 4, 1), "float32"), (5, 6), Augmentation(cutout=1))
    assert np.all(np.sum(cut == 0, axis=(1, 2, 3)) == 1)
    assert_uniform((cut == 0).sum(axis=(0, 3)))
    with pytest.raises(AssertionError):
        assert_uniform(np.array([1000, 1500]))


def test_flip_is_of_some_images():
    given = images(count=400)
    found = augment(given, (0, 1), Augmentation(flip=0.25))
    flipped = np.all(found == given[:, :, ::-1], axis=(1, 2, 3))
    kept = np.all(found == given, axis=(1, 2, 3))
    assert np.all(flipped ^ kept)
    assert abs(flipped.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 400)


def assert_uniform_in(values: np.ndarray, lowest: float, highest: float) -> None:
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    expected = np.linspace(lowest, highest, 5)
    np.testing.assert_allclose(quantiles, expected, atol=0.05 * (highest - lowest))


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation"])
def test_factors_are_uniform_about_one(name):
    image = np.array([[[0.3, 0.4, 0.5]], [[0.6, 0.4, 0.5]]])
    given = np.repeat(image[None].astype("float32"), 2000, axis=0)
    found = augment(given, (7, 8), Augmentation(**{name: 0.3}))
    reference = {
        "brightness": np.zeros_like(image),
        "contrast": np.full_like(image, transcription.gray(image).mean()),
        "saturation": transcription.gray(image)[..., None],
    }[name]
    spread = image - reference
    factors = ((found - reference) * spread).sum(axis=(1, 2, 3)) / (spread**2).sum()
    assert_uniform_in(factors, 0.7, 1.3)


def test_hue_is_turned_by_at_most_its_share():
    given = np.repeat(np.array([[[[1.0, 0.0, 0.0]]]], "float32"), 2000, axis=0)
    found = augment(given, (9, 10), Augmentation(hue=0.05))
    turned = [transcription.colorsys.rgb_to_hsv(*pixel)[0] for pixel in found[:, 0, 0]]
    assert_uniform_in((np.array(turned) + 0.5) % 1 - 0.5, -0.05, 0.05)


def test_order_of_the_jitter_is_uniform(monkeypatch):
    orders = []
    monkeypatch.setattr(steps, "jitter", lambda image, order, _: orders.append(order))
    augment(np.zeros((6000, 1, 1, 3)), (1, 2), PAPER)
    found, counts = np.unique(orders, axis=0, return_counts=True)
    assert sorted(map(tuple, found)) == list(itertools.permutations(range(4)))
    assert_uniform(counts)


def test_each_image_has_its_own_and_the_seed_decides():
    given = np.repeat(images(count=1), 8, axis=0)
    once = augment(given, (0, 1), PAPER)
    np.testing.assert_array_equal(once, augment(given, (0, 1), PAPER))
    np.testing.assert_array_equal(once[0], augment(given[0], (0, 1), PAPER))
    np.testing.assert_array_equal(augment(given, (0, 1), Augmentation()), given)
    assert len(np.unique(once.reshape(8, -1), axis=0)) == 8
    assert np.abs(once - augment(given, (0, 2), PAPER)).max() > 1e-3


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_same_in_a_pipeline(count, channels, is_known):
    given = images(count, channels=channels)
    shape = given.shape if is_known else (None, None, None, channels)
    data = tf.data.Dataset.from_tensors(given).map(lambda x: tf.ensure_shape(x, shape))
    if not is_known:
        spec = tf.TensorSpec(shape, "float32")
        data = tf.data.Dataset.from_generator(lambda: [given], output_signature=spec)
    data = data.map(lambda batch: augment(batch, (0, 1), EVERYTHING))
    assert data.element_spec.shape.as_list() == list(shape)
    (found,) = data.as_numpy_iterator()
    expected = augment(given, (0, 1), EVERYTHING)
    assert isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == "float32"
    assert np.all((found >= 0) & (found <= 1))


@pytest.mark.parametrize("channels", [2, 4])
def test_channels_matter_to_the_jitter_alone(channels):
    given, moved = 5.5 * images(channels=channels) - 2.5, Augmentation(2, 0.5, cutout=3)
    found = augment(given, (0, 1), moved)  # of standardized images
    assert found.min() < -2.4
    assert found.max() > 2.9
    for channel in range(channels):
        alone = augment(given[..., channel : channel + 1], (0, 1), moved)
        np.testing.assert_array_equal(found[..., channel : channel + 1], alone)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((5, 5), "float32"), "`images` must have shape"),
        (np.zeros((1, 2, 5, 5, 3), "float32"), "`images` must have shape"),
        (images(channels=4), "1 or 3 channels .* color jitter"),
        ((255 * images(2)).astype("uint8"), r"divide .* by 255 \(`.* / 255`\).*uint8"),
        (255 * images(2), r"divide images of 8 bits by 255 \(`.* / 255`\)"),
        (2 * images() - 1, "color jitter clips them"),
        (images() + 0.5, "color jitter clips them"),
    ],
)
def test_unfit_images(given, message):
    with pytest.raises(ValueError, match=message):
        augment(given, (0, 1), PAPER)
    with pytest.raises(UNFIT, match=message):
        augment(tf.constant(given), (0, 1), PAPER)
    data = tf.data.Dataset.from_tensors(given)
    with pytest.raises(UNFIT, match=message):
        list(data.map(lambda batch: augment(batch, (0, 1), PAPER)))


def test_what_a_cubic_interpolation_leaves_is_fit():
    augment(1.5 * images() - 0.25, (0, 1), PAPER)


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "padding": (-1, 1.5, True),
        "flip": (-0.1, 1.1, "half"),
        "brightness": (-0.1, float("nan"), float("inf")),
        "hue": (-0.1, 0.6),
        "cutout": (2.0,),
    }.items(),
)
def test_values_are_checked(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"`{name}` must be .* {name}={value!r}"):
            Augmentation(**{name: value})
