"""`rescale` against `imresize` followed by padding or cropping."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_gdrn.data import SIZE_FACTORS, imresize, rescale
from tests._drawn import examples

EXTENSIONS = ("zero", "mirror")


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


@examples(150)
@given(
    st.one_of(st.sampled_from([*SIZE_FACTORS, 0.1]), st.floats(0.05, 5)),
    st.tuples(*[st.integers(1, 12)] * 2),
    st.tuples(*[st.integers(1, 40)] * 2),
    st.sampled_from(EXTENSIONS),
)
def test_equals_resizing_then_centering(factor, size, canvas, extension):
    image = np.random.default_rng(0).random(size)
    expected = centered(imresize(image, factor), canvas, extension)
    actual = rescale(image, factor, canvas, extension)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("line", "canvas", "extension", "expected"),
    [
        #    …2 2 1|1 2|2 1 1…   the original is at 5 and 6
        ([1, 2], 11, "mirror", [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2]),
        ([1, 2], 5, "zero", [0, 0, 1, 2, 0]),
        *(([0, 1, 2, 3, 4, 5], 2, extension, [2, 3]) for extension in EXTENSIONS),
        *(([0, 1, 2, 3, 4, 5], 3, extension, [1, 2, 3]) for extension in EXTENSIONS),
    ],
)
def test_lines_worked_out_by_hand(line, canvas, extension, expected):
    found = rescale(np.array([line], "float32"), 1, (1, canvas), extension)
    np.testing.assert_array_equal(found, [expected])


@pytest.mark.parametrize("extension", EXTENSIONS)
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
