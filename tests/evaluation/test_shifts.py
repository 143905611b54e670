"""Where a network sees: accuracies of a model that looks at one pixel."""

import keras
import numpy as np
import pytest

from keras_gdrn.evaluation import shift_accuracies


def at_one_pixel(row: int, column: int, size=(5, 7)) -> keras.Model:
    """Of images of 5x7 pixels; scores of two classes, the dark one and the bright."""
    image = keras.Input((*size, 1))
    value = image[:, row, column]
    return keras.Model(image, keras.ops.concatenate([1 - value, value], axis=-1))


@pytest.mark.parametrize("size", [(5, 7), (None, None)])
def test_the_object_is_seen_where_it_has_moved_to(size):
    """One bright pixel in the middle; the model looks two pixels off it."""
    images, labels = np.zeros((4, 5 + 6, 7 + 6, 1), "float32"), [1, 1, 1, 0]
    images[:3, 3 + 2, 3 + 3] = 1
    model = at_one_pixel(4, 5, size)
    found = shift_accuracies(model, images, labels, (0, 1, 2, 3))
    assert found == {0: 0.25, 1: 0.25, 2: 1.0, 3: 0.25}


@pytest.mark.parametrize(
    ("size", "height", "shifts", "message"),
    [
        ((5, 7), 11, (0, 4), r"images of shape \(1, 11, 13, 1\)"),
        ((5, 7), 13, (0, 3), "`images` must have 3 more on each side"),
        ((None, None), 11, (0, 9), "`images` must have 9 more on each side"),
        ((5, 7), 11, (-1, 3), "shifts=-1"),
        ((5, 7), 11, (0.5, 3), "shifts=0.5"),
        ((5, 7), 11, (), r"shifts=\(\)"),
    ],
)
def test_images_need_their_surroundings(size, height, shifts, message):
    images = np.zeros((1, height, 13, 1))
    with pytest.raises(ValueError, match=message):
        shift_accuracies(at_one_pixel(0, 0, size), images, [0], shifts)
