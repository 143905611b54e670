"""The augmentation: what numbers do to an image, and which numbers are drawn."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.training import Augmentation, augment
from keras_gdrn.training import _augment as steps
from tests._drawn import examples
from tests.training import _transcription as transcription

PAPER = Augmentation(flip=0.5, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05)
EVERYTHING = Augmentation(2, 0.5, 1.5, 0.2, 0.2, 0.2, 0.05, 1.5, 3)
UNFIT = (ValueError, tf.errors.InvalidArgumentError)


def images(count=24, height=7, width=9, channels=3):
    return np.random.default_rng(0).random((count, height, width, channels), "float32")


AUGMENTATIONS = st.builds(
    Augmentation,
    *(st.integers(0, 9), st.floats(0, 1), st.sampled_from([0.0, 0.7, 4.0])),
    *[st.floats(0, 1.5)] * 3,
    *(st.floats(0, 0.5), st.floats(0, 3), st.integers(0, 30)),
)


@pytest.mark.slow
@examples(100)
@given(AUGMENTATIONS, st.integers(1, 4), st.integers(0, 10**6))
def test_what_numbers_do_to_an_image(augmentation, channels, seed):
    """Each step, each order of the jitter, and each place."""
    chances = np.random.default_rng(seed).random((4, steps.NUMBERS))
    before = images(4, channels=channels)
    if channels in (2, 4):  # which matter to the jitter alone, as the range does
        augmentation = dataclasses.replace(
            augmentation, brightness=0, contrast=0, saturation=0, hue=0
        )
        before = 5.5 * before - 2.5
    after = steps.augmented(before, chances, augmentation)
    for image, numbers, found in zip(before, chances, after, strict=True):
        expected = transcription.augmented(image, numbers, augmentation)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_bending_moves_points_together_and_no_farther_than_said():
    """Columns and rows of numbers tell where each pixel was seen."""
    numbers = np.indices((20, 30)).transpose(1, 2, 0)
    seen = augment(
        np.tile(numbers / 30, (64, 1, 1, 1)), (0, 1), Augmentation(elastic=2)
    )
    moved = (30 * seen - numbers)[:, 3:-3, 3:-3]  # where no mirror image is seen
    assert np.abs(moved).max() <= 2 and 0.4 < moved.std() < 0.7
    assert abs(moved.mean()) < 0.05
    assert abs(np.corrcoef(moved.reshape(-1, 2).T)[0, 1]) < 0.05
    for axis, length in ((1, 20), (2, 30)):
        between = (steps.COEFFICIENTS - 3) / (length - 1)
        # A spline is no steeper than its coefficients, which differ by up to 4.
        assert 0.4 * between < np.abs(np.diff(moved, axis=axis)).max() < 4 * between


def test_how_many_are_changed_at_a_time_does_not_matter(monkeypatch):
    """Of seven images with numbers of their own, two and two, the last alone."""
    before = images(7)
    chances = np.random.default_rng(1).random((7, steps.NUMBERS))
    at_once = steps.augmented(before, chances, EVERYTHING)
    monkeypatch.setattr(steps, "CACHED", 2 * before[0].size + 1)
    np.testing.assert_array_equal(steps.augmented(before, chances, EVERYTHING), at_once)


def test_numbers_are_uniform_and_of_no_influence_on_one_another(monkeypatch):
    drawn = []
    monkeypatch.setattr(steps, "augmented", lambda *given: drawn.append(given[1]))
    augment(np.zeros((4000, 1, 1, 3)), (3, 4), PAPER)
    (numbers,) = drawn
    quantiles, expected = np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1], axis=0), 0.25
    np.testing.assert_allclose(np.diff(quantiles, axis=0), expected, atol=0.04)
    assert numbers.min() >= 0 and numbers.max() < 1
    related = np.corrcoef([*numbers[1:].T, *numbers[:-1].T])
    np.testing.assert_allclose(related, np.eye(2 * steps.NUMBERS), atol=0.08)


def test_each_image_has_its_own_and_the_seed_decides():
    given = np.repeat(images(count=1), 8, axis=0)
    once = augment(given, (0, 1), PAPER)
    np.testing.assert_array_equal(once, augment(given, (0, 1), PAPER))
    np.testing.assert_array_equal(once[0], augment(given[0], (0, 1), PAPER))
    np.testing.assert_array_equal(augment(given, (0, 1), Augmentation()), given)
    assert len(np.unique(once.reshape(8, -1), axis=0)) == 8
    assert np.abs(once - augment(given, (0, 2), PAPER)).max() > 1e-3


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize("is_known", [True, False])
def test_the_same_in_a_pipeline(count, is_known):
    given = images(count)
    shape = given.shape if is_known else (None, None, None, 3)
    spec = tf.TensorSpec(shape, "float32")
    data = tf.data.Dataset.from_generator(lambda: [given], output_signature=spec)
    data = data.map(lambda batch: augment(batch, (0, 1), EVERYTHING))
    assert data.element_spec.shape.as_list() == list(shape)
    (found,) = data.as_numpy_iterator()
    expected = augment(given, (0, 1), EVERYTHING)
    assert isinstance(expected, np.ndarray)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == "float32"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((5, 5), "float32"), r"`images` must have shape .*shape=\(5, 5\)"),
        (images(channels=4), "color jitter, .* 1 or 3 channels"),
        ((255 * images(2)).astype("uint8"), r"divide .* by 255 \(`.* / 255`\).*uint8"),
        (255 * images(2), r"divide 8-bit images by 255 \(`.* / 255`\)"),
        (2 * images() - 1, "color jitter, .* which it clips"),
        (images() + 0.5, "color jitter, .* which it clips"),
    ],
)
def test_unfit_images(given, message):
    data = tf.data.Dataset.from_tensors(given)
    for augmented in (
        lambda: augment(given, (0, 1), PAPER),
        lambda: augment(tf.constant(given), (0, 1), PAPER),
        lambda: list(data.map(lambda batch: augment(batch, (0, 1), PAPER))),
    ):
        with pytest.raises(UNFIT, match=message):
            augmented()


def test_what_a_cubic_interpolation_leaves_and_standardized_images_are_fit():
    augment(1.5 * images() - 0.25, (0, 1), PAPER)
    augment(5.5 * images(channels=2) - 2.5, (0, 1), Augmentation(2, 0.5, cutout=3))
