"""Where a network sees: accuracies of a model that looks at one pixel."""

import keras
import numpy as np
import pytest

from keras_gdrn.evaluation import shift_accuracies


def at_one_pixel(row: int, column: int) -> keras.Model:
    """Of images of 5x7 pixels; scores of two classes, the dark one and the bright."""
    image = keras.Input((5, 7, 1))
    value = image[:, row, column]
    return keras.Model(image, keras.ops.concatenate([1 - value, value], axis=-1))


def test_the_object_is_seen_where_it_has_moved_to():
    """One bright pixel in the middle; the model looks two pixels off it."""
    images, labels = np.zeros((4, 5 + 6, 7 + 6, 1), "float32"), [1, 1, 1, 0]
    images[:3, 3 + 2, 3 + 3] = 1
    found = shift_accuracies(at_one_pixel(4, 5), images, labels, (0, 1, 2, 3))
    assert found == {0: 0.25, 1: 0.25, 2: 1.0, 3: 0.25}


@pytest.mark.parametrize(
    ("shape", "shifts"), [((1, 11, 13, 1), (0, 4)), ((1, 11, 13, 1), (-1, 3))]
)
def test_images_need_their_surroundings(shape, shifts):
    with pytest.raises(ValueError, match=r"`images` must be .*Received: shifts=.*11"):
        shift_accuracies(at_one_pixel(0, 0), np.zeros(shape), [0], shifts)
