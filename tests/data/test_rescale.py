"""`rescale` against `imresize` followed by padding or cropping."""

import math
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from keras_gdrn.data import SIZE_FACTORS, imresize, rescale


def centered(image: np.ndarray, canvas: tuple[int, int], extension: str) -> np.ndarray:
    """A single `(H, W)` on a canvas, by `numpy.pad` and a cut."""
    mode = {"zero": "constant", "mirror": "symmetric"}[extension]
    for axis, side in enumerate(canvas):
        # The pixel too many of an odd difference is above and to the left.
        before = math.ceil((side - image.shape[axis]) / 2)
        widths = [(0, 0), (0, 0)]
        widths[axis] = (max(before, 0), side)
        image = np.pad(image, widths, mode=mode)
        start = max(-before, 0)
        image = image.take(range(start, start + side), axis)
    return image


@pytest.mark.parametrize("extension", ["zero", "mirror"])
@pytest.mark.parametrize("canvas", [(24, 24), (9, 8), (7, 40), (1, 2)])
@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_equals_resizing_then_centering(factor, canvas, extension):
    image = np.random.default_rng(0).random((10, 7))
    expected = centered(imresize(image, factor), canvas, extension)
    actual = rescale(image, factor, canvas, extension)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def test_mirror_repeats_on_a_wide_canvas():
    line = rescale(np.array([[1.0, 2.0]]), 1, (1, 11), "mirror")
    #                       …2 2 1|1 2|2 1 1…   the original is at 5 and 6
    np.testing.assert_array_equal(line, [[1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2]])


def test_zero_surrounds():
    line = rescale(np.array([[1.0, 2.0]]), 1, (3, 5), "zero")
    np.testing.assert_array_equal(line, [[0] * 5, [0, 0, 1, 2, 0], [0] * 5])


@pytest.mark.parametrize("extension", ["zero", "mirror"])
def test_crop_keeps_the_center(extension):
    line = np.arange(6.0)[None]
    np.testing.assert_array_equal(rescale(line, 1, (1, 2), extension), [[2, 3]])
    np.testing.assert_array_equal(rescale(line, 1, (1, 3), extension), [[1, 2, 3]])


@pytest.mark.parametrize("size", [20, 21])
@pytest.mark.parametrize("factor", SIZE_FACTORS)
def test_object_is_centered_to_half_a_pixel(factor, size):
    place = np.arange(size) - (size - 1) / 2
    blob = np.exp(-(place**2 + place[:, None] ** 2) / 18)
    image = rescale(blob, factor, 60, "zero")
    for axis in (0, 1):
        mean = np.average(np.arange(60), weights=image.sum(axis)) - 59 / 2
        assert abs(mean) <= 0.5 + 1e-3


@pytest.mark.parametrize("extension", ["zero", "mirror"])
def test_graph_and_eager_tensors_equal_arrays(extension):
    images = np.random.default_rng(0).random((3, 9, 6, 2)).astype("float32")
    expected = rescale(images, 0.7, (16, 4), extension)
    data = tf.data.Dataset.from_tensor_slices(images).batch(2)
    data = data.map(lambda batch: rescale(batch, 0.7, (16, 4), extension)).unbatch()
    assert data.element_spec.shape == (16, 4, 2)
    eager = rescale(tf.constant(images), 0.7, (16, 4), extension)
    for tensors in (eager, tf.stack(list(data))):
        np.testing.assert_allclose(tensors, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("canvas", "extension", "message"),
    [
        (0, "zero", "`canvas` .* canvas=0"),
        (8.0, "zero", r"`canvas` .* canvas=8\.0"),
        ((8, 8, 1), "zero", r"`canvas` .* canvas=\(8, 8, 1\)"),
        ((8, -1), "zero", r"`canvas` .* canvas=\(8, -1\)"),
        (True, "zero", "`canvas` .* canvas=True"),
        (8, "reflect", "`extension` .* extension='reflect'"),
    ],
)
def test_errors_name_the_argument_and_the_value(canvas, extension, message):
    with pytest.raises(ValueError, match=message):
        rescale(np.zeros((4, 4)), 1, canvas, extension)
    for factor in (float("nan"), 1e-3):
        with pytest.raises(ValueError, match=rf"`factor` .* factor={factor}"):
            rescale(np.zeros((4, 4)), factor, 8, "zero")


@pytest.mark.parametrize("extension", ["zero", "mirror"])
def test_only_what_is_on_the_canvas_is_computed(extension):
    image = np.random.default_rng(0).random((20000, 2))
    tracemalloc.start()
    found = rescale(image, 24, 64, extension)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e8  # all rows would be 480 000 x 20 000 weights
    # Around the center, far from where it was cut.
    expected = rescale(image[9900:10100], 24, 64, extension)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
