"""`imresize` and `rescale` against a transcription of the algorithm."""

import re
import tracemalloc
from math import ceil

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from keras_gdrn.data import SIZE_FACTORS, _separable, imresize, rescale
from tests._drawn import examples

EXTENSIONS = ("zero", "mirror")
FACTORS = st.one_of(st.sampled_from([*SIZE_FACTORS, 0.04, 2.5]), st.floats(0.05, 5))


def keys_cubic(x: np.ndarray) -> np.ndarray:
    """Eq. (15) of Keys (1981), a = -1/2."""
    x = abs(x)
    inner, outer = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.select([x <= 1, x <= 2], [inner, outer])


def resized(image: np.ndarray, factor: float) -> np.ndarray:
    """MATLAB's `imresize(image, factor)` of one channel: the rows, then the columns."""
    shrink = min(factor, 1)
    margin = ceil(3 / shrink) + 1
    for _ in "ab":
        # Places count from 1, as in MATLAB.
        places = np.arange(1, ceil(factor * len(image)) + 1)
        u = places / factor + 0.5 * (1 - 1 / factor)
        taps = np.arange(1 - margin, len(image) + margin + 1)
        weights = keys_cubic(shrink * (u[:, None] - taps))
        weights /= weights.sum(1, keepdims=True)
        image = np.pad(image, ((margin, margin), (0, 0)), mode="symmetric")
        image = (weights @ image).T
    return image


def centered(image: np.ndarray, canvas: tuple[int, int], extension: str) -> np.ndarray:
    """A single `(H, W)` on a canvas, by `numpy.pad` and a cut."""
    mode = {"zero": "constant", "mirror": "symmetric"}[extension]
    for side in canvas:
        # The pixel too many of an odd difference is above and to the left.
        before = ceil((side - len(image)) / 2)
        image = np.pad(image, ((max(before, 0), side), (0, 0)), mode=mode)
        image = image[max(-before, 0) :][:side].T
    return image


def assert_resizes_as_matlab(resize, factor: float, shape: tuple[int, int]) -> None:
    """Whether `resize(image, factor)` equals the transcription to 1e-5."""
    image = np.random.default_rng(0).random(shape)
    expected = resized(image, factor)
    actual = resize(image, factor)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@examples(150)
@given(
    FACTORS,
    st.tuples(*[st.integers(1, 12)] * 2),
    st.tuples(*[st.integers(1, 40)] * 2),
    st.sampled_from(EXTENSIONS),
)
def test_equal_the_transcription(factor, shape, canvas, extension):
    assert_resizes_as_matlab(imresize, factor, shape)
    image = np.random.default_rng(0).random(shape)
    expected = centered(imresize(image, factor), canvas, extension)
    actual = rescale(image, factor, canvas, extension)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def with_tensorflow(image, factor):
    size = [ceil(factor * n) for n in image.shape]
    method = tf.image.ResizeMethod.BICUBIC
    return tf.image.resize(image[..., None], size, method, antialias=True)[..., 0]


def with_pillow(image, factor):
    size = [ceil(factor * n) for n in reversed(image.shape)]
    picture = Image.fromarray(image.astype("float32"))
    return np.asarray(picture.resize(size, Image.Resampling.BICUBIC))


@pytest.mark.parametrize("resize", [with_tensorflow, with_pillow])
@pytest.mark.parametrize("factor", [0.5, 2**0.25, 2.0])
def test_stock_resizes_are_told_apart(resize, factor):
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_resizes_as_matlab(resize, factor, (12, 12))


SIX = [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("line", "factor", "canvas", "extension", "expected"),
    [
        # The kernel has the samples .43359375, .11328125, -.03515625, -.01171875 at
        # 1/2, 3/2, 5/2, 7/2 pixels on either side, of …3 1|3 1 4 1|1 4…
        ([3, 1, 4, 1], 0.5, 2, "zero", [153.5 / 64, 134.5 / 64]),
        #    …2 2 1|1 2|2 1 1…   the original is at 5 and 6
        ([1, 2], 1, 11, "mirror", [1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2]),
        ([1, 2], 1, 5, "zero", [0, 0, 1, 2, 0]),
        *((SIX, 1, 2, extension, [2, 3]) for extension in EXTENSIONS),
        *((SIX, 1, 3, extension, [1, 2, 3]) for extension in EXTENSIONS),
    ],
)
def test_lines_worked_out_by_hand(line, factor, canvas, extension, expected):
    found = rescale(np.array([line], "uint8"), factor, (1, canvas), extension)
    np.testing.assert_array_equal(found, np.float32([expected]))


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


def test_few_images_are_in_memory_as_float64():
    """Where they shrink, too."""
    images = np.zeros((200, 400, 400, 1), "uint8")  # 256 MB as float64
    tracemalloc.start()
    imresize(images, 1 / 16)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**26


@pytest.mark.parametrize(
    "function",
    [
        lambda images: imresize(images, 2**0.25),
        lambda images: rescale(images, 0.7, (16, 4), "zero"),
        lambda images: rescale(images, 0.7, (16, 4), "mirror"),
    ],
)
def test_ranks_chunks_and_tensors_agree(function, monkeypatch):
    images = np.random.default_rng(0).integers(0, 256, (5, 9, 6, 3), dtype="uint8")
    expected = function(images)
    monkeypatch.setattr(_separable, "CHUNK", 2 * expected[0].size)
    data = tf.data.Dataset.from_tensor_slices(images)
    batches = data.batch(2).map(function).unbatch()  # N unknown
    assert batches.element_spec.shape == expected.shape[1:]
    for found in (
        *(function(images), [function(image) for image in images]),
        *(function(tf.constant(images)), list(batches), list(data.map(function))),
    ):
        assert found[0].dtype == "float32"
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)
    for kind in (np.array, tf.constant):
        plane = function(kind(images[0, ..., 0]))
        np.testing.assert_allclose(plane, expected[0, ..., 0], rtol=1e-6, atol=1e-5)


IMAGE = np.zeros((4, 4, 4, 1))
UNKNOWN = [tf.TensorSpec(s) for s in (None, [None, None, 3], [2, 4, 4, None])]


@pytest.mark.parametrize(
    "images",
    [IMAGE[0, 0, 0], IMAGE[None], IMAGE[0, :0], IMAGE[:0], IMAGE + 1j, *UNKNOWN],
)
def test_what_are_no_images_or_of_sizes_unknown_to_the_graph(images):
    in_graph = tf.function(imresize, autograph=False).get_concrete_function
    resize = in_graph if isinstance(images, tf.TensorSpec) else imresize
    message = rf"`images` must be .*Received: .* {re.escape(str(images.shape))}"
    with pytest.raises(ValueError, match=message):
        resize(images, 2.0)
