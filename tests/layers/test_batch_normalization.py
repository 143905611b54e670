"""Batch normalization: Keras' own function, on TensorFlow by its fused operation."""

import keras
import numpy as np
import pytest

from keras_gdrn.layers._batch_normalization import normalized_jointly
from tests._cases import cases
from tests._gradients import gradients
from tests.layers._contract import assert_near, numpy

SHAPES = {"line": (4, 9, 5), "image": (4, 6, 7, 5), "volume": (3, 4, 5, 2, 5)}
ENDS = (0, 6), (6, 26), (26, 27)
ROLES = ("gamma", "beta", "moving_mean", "moving_variance")


def drawn(shape, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(3.0, 2.0, shape).astype("float32")


class Jointly(keras.layers.Layer):
    """`normalized_jointly` of a single map."""

    def __init__(self, normalization):
        super().__init__(dtype=normalization.dtype_policy)
        self.normalization = normalization

    def call(self, x, training=None):
        (y,) = normalized_jointly(self.normalization, [x], training)
        return y


def pair(shape, **options) -> tuple[keras.layers.Layer, ...]:
    """Two of Keras' layers with the same weights."""
    layers = []
    for _ in range(2):
        layer = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5, **options)
        layer.build((None,) * (len(shape) - 1) + shape[-1:])
        for seed, weight in enumerate(layer.weights):
            weight.assign(np.abs(drawn(weight.shape, seed)))
        layers.append(layer)
    return tuple(layers)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("image", "float32"),
        ("volume", "float32"),
        ("image", "mixed_bfloat16"),
        ("line", "mixed_float16"),
    ],
)
def test_training_step_is_that_of_keras(name, dtype):
    shape = SHAPES[name]
    ours, theirs = pair(shape, dtype=dtype)
    before = ours.moving_variance.numpy()
    x, upstream = drawn(shape), drawn(shape, seed=1)
    computed, expected = (
        [layer(x, training=True), *gradients(layer, x, upstream, training=True)]
        for layer in (Jointly(ours), theirs)
    )
    assert keras.backend.standardize_dtype(computed[0].dtype) == ours.compute_dtype
    for values in zip(computed, expected, strict=True):
        assert_near(*map(numpy, values), 1e-4 if dtype == "float32" else 1e-2)
    for role in ROLES:
        actual, desired = getattr(ours, role), getattr(theirs, role)
        np.testing.assert_allclose(actual, desired, rtol=1e-4, err_msg=role)
    assert not np.allclose(ours.moving_variance, before, rtol=1e-2)


class OfSeveralMaps(keras.layers.Layer):
    """Cuts a row of positions into maps of 2×3, 4×5 and 1×1, and normalizes them."""

    def __init__(self, normalization):
        super().__init__(dtype=normalization.dtype_policy)
        self.normalization = normalization

    def call(self, x, training=None):
        parts = [x[:, start:stop] for start, stop in ENDS]
        sizes = (2, 3), (4, 5), (1, 1)
        maps = [
            keras.ops.reshape(part, (-1, *size, x.shape[-1]))
            for part, size in zip(parts, sizes, strict=True)
        ]
        maps = normalized_jointly(self.normalization, maps, training)
        rows = [keras.ops.reshape(y, (-1, 1, 1, x.shape[-1])) for y in maps]
        return keras.ops.concatenate(rows)


@pytest.mark.parametrize("dtype", cases(["float32", "mixed_bfloat16"], ["float32"]))
def test_maps_of_different_sizes_are_normalized_together(dtype):
    ours, theirs = pair((3, 27, 1, 5), dtype=dtype)
    x, upstream = drawn((3, 27, 5)), drawn((81, 1, 1, 5), seed=1)
    cut = OfSeveralMaps(ours)
    computed = [
        cut(x, training=True),
        *gradients(cut, x, upstream, training=True),
    ]
    # The positions of all maps in the order of `OfSeveralMaps`.
    order = np.concatenate(
        [np.arange(81).reshape(3, 27)[:, a:b].ravel() for a, b in ENDS]
    )
    row = x.reshape(81, 1, 1, 5)[order]
    expected = [
        theirs(row, training=True),
        *gradients(theirs, row, upstream, training=True),
    ]
    expected[1] = expected[1][np.argsort(order)].reshape(x.shape)
    for values in zip(computed, expected, strict=True):
        assert_near(*map(numpy, values), 1e-4 if dtype == "float32" else 1e-2)
    for role in ROLES:
        actual, desired = getattr(ours, role), getattr(theirs, role)
        np.testing.assert_allclose(actual, desired, rtol=1e-4, err_msg=role)


def operations(layer, shape) -> list[str]:
    import tensorflow as tf

    step = tf.function(lambda x: layer(x, training=True))
    traced = step.get_concrete_function(tf.TensorSpec((None, *shape[1:])))
    return [operation.type for operation in traced.graph.get_operations()]


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="fused on TensorFlow only"
)
def test_is_one_operation_but_for_what_that_cannot_do():
    for shape in SHAPES.values():
        ours, theirs = pair(shape)
        assert operations(Jointly(ours), shape).count("FusedBatchNormV3") == 1
        assert "FusedBatchNormV3" not in operations(theirs, shape)
    refused = ("synchronized", True), ("scale", False), ("center", False), ("axis", 1)
    for name, value in (*refused, ("dtype", "bfloat16"), ("dtype", "float64")):
        ours = keras.layers.BatchNormalization(**{name: value})
        ours.build((None, 6, 7, 5))
        found = operations(Jointly(ours), (4, 6, 7, 5))
        assert "FusedBatchNormV3" not in found, (name, value)
