"""`imresize` against a transcription of the algorithm, pixel by pixel."""

from math import ceil, floor

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from keras_gdrn.data import SIZE_FACTORS, _separable, imresize, rescale
from tests._drawn import examples

# One row of four pixels at factor 1/2. The kernel has the samples .43359375,
# .11328125, -.03515625, -.01171875 at 1/2, 3/2, 5/2, 7/2 pixels on either side; the
# pixels 1 2 3 4 get those at their own places and at their mirror images …3 2 1|.
HALF = np.array([35.0, 25.5, 6.5, -3.0]) / 64


def keys_cubic(x: float) -> float:
    """Eq. (15) of Keys (1981), a = -1/2."""
    x = abs(x)
    if x <= 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    if x <= 2:
        return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return 0.0


def resized_pixel(line: list[float], place: int, factor: float) -> float:
    """Pixel `place` of a resized line; places count from 1, as in MATLAB."""
    u = place / factor + 0.5 * (1 - 1 / factor)
    width = 4 / factor if factor < 1 else 4
    total = weights = 0.0
    for tap in range(floor(u - width / 2), floor(u - width / 2) + ceil(width) + 2):
        weight = keys_cubic(min(factor, 1) * (u - tap))
        inside = tap
        while not 1 <= inside <= len(line):
            inside = 1 - inside if inside < 1 else 2 * len(line) + 1 - inside
        weights += weight
        total += weight * line[inside - 1]
    return total / weights


def resized_slowly(image: np.ndarray, factor: float) -> np.ndarray:
    """MATLAB's `imresize(image, factor)` of one channel: the rows, then the columns."""
    for _ in "ab":
        places = range(1, ceil(factor * len(image)) + 1)
        columns = [[resized_pixel(c, p, factor) for p in places] for c in image.T]
        image = np.array(columns)
    return image


def assert_resizes_as_matlab(resize, factor: float, shape: tuple[int, int]) -> None:
    """Whether `resize(image, factor)` equals the transcription to 1e-5."""
    image = np.random.default_rng(0).random(shape)
    expected = resized_slowly(image, factor)
    actual = resize(image, factor)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@examples(80)
@given(
    st.one_of(st.sampled_from([*SIZE_FACTORS, 0.04, 2.5]), st.floats(0.05, 5)),
    st.tuples(*[st.integers(1, 10)] * 2),
)
def test_equals_transcription(factor, shape):
    assert_resizes_as_matlab(imresize, factor, shape)


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


def test_weights_worked_out_by_hand_at_half():
    rows = imresize(np.eye(4), 0.5)
    np.testing.assert_allclose(
        rows, np.stack([HALF, HALF[::-1]]) @ np.stack([HALF, HALF[::-1]]).T, atol=1e-7
    )
    line = np.array([[3.0, 1.0, 4.0, 1.0]])  # one row: its own mirror image
    np.testing.assert_allclose(imresize(line, 0.5), [[153.5 / 64, 134.5 / 64]])


def test_factor_one_is_the_identity():
    image = np.random.default_rng(0).integers(0, 256, (2, 9, 7, 3), dtype="uint8")
    resized = imresize(image, 1)
    assert resized.dtype == "float32"
    np.testing.assert_array_equal(resized, image)


def test_ranks_and_chunks_agree(monkeypatch):
    monkeypatch.setattr(_separable, "CHUNK", 5000)
    images = np.random.default_rng(0).random((300, 6, 5, 2))
    resized = imresize(images, 1.4)
    assert resized.shape == (300, 9, 7, 2)
    assert resized.dtype == "float32"
    for n in (0, 299):
        np.testing.assert_array_equal(imresize(images[n], 1.4), resized[n])
        np.testing.assert_array_equal(
            imresize(images[n, ..., 1], 1.4), resized[n, ..., 1]
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda images: imresize(images, 2**0.25),
        lambda images: rescale(images, 0.7, (16, 4), "zero"),
        lambda images: rescale(images, 0.7, (16, 4), "mirror"),
    ],
)
def test_graph_and_eager_tensors_equal_arrays(function):
    images = np.random.default_rng(0).integers(0, 256, (5, 9, 6, 3), dtype="uint8")
    expected = function(images)
    data = tf.data.Dataset.from_tensor_slices(images).batch(2)  # N unknown
    graph = data.map(function).unbatch()
    assert graph.element_spec.shape == expected.shape[1:]
    single = data.unbatch().map(function)
    eager = function(tf.constant(images))
    for tensors in (eager, tf.stack(list(graph)), tf.stack(list(single))):
        assert tensors.dtype == "float32"
        np.testing.assert_allclose(tensors, expected, rtol=1e-6, atol=1e-5)
    plane = function(tf.constant(images[0, ..., 0]))
    np.testing.assert_allclose(plane, expected[0, ..., 0], rtol=1e-6, atol=1e-5)


IMAGE = np.zeros((4, 4))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (IMAGE[0], r"`images` .* of shape \(4,\)"),
        (IMAGE[None, None, None], r"`images` .*\(1, 1, 1, 4, 4\)"),
        (IMAGE[:0], r"`images` .*\(0, 4\)"),
        (IMAGE[None, :, :, None][:0], r"`images` .*\(0, 4, 4, 1\)"),
        (IMAGE.astype(complex), "`images` .*complex128"),
    ],
)
def test_what_are_no_images(images, message):
    with pytest.raises(ValueError, match=message):
        imresize(images, 2)


@pytest.mark.parametrize("shape", [None, [None, None, 3], [2, 4, 4, None]])
def test_sizes_unknown_to_the_graph_are_an_error(shape):
    graph = tf.function(
        lambda images: imresize(images, 2.0),
        input_signature=[tf.TensorSpec(shape)],
        autograph=False,
    )
    with pytest.raises(ValueError, match="`images` must be"):
        graph.get_concrete_function()
