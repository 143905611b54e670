"""Gradients by automatic differentiation on every backend, and by differences."""

import keras
import numpy as np
import pytest

# On JAX, Keras has no float64, and on PyTorch its products of float64 are float32:
# larger steps there, and what they allow.
EXACT = keras.backend.backend() == "tensorflow"
DTYPE = "float64" if EXACT else "float32"
STEP, TOLERANCE = (1e-5, 1e-6) if EXACT else (1e-2, 2e-2)


def gradients(layer, x, upstream, training=False):
    """Gradients of `Σ upstream · layer(x)` in `x` and in every trainable weight."""
    x = keras.ops.convert_to_tensor(x, layer.compute_dtype)
    if not layer.built:
        layer.build(x.shape)
    values = [x, *(weight.value for weight in layer.trainable_weights)]
    computed = _differentiated(_total(layer, upstream, training), values)
    return [keras.ops.convert_to_numpy(gradient) for gradient in computed]


def assert_gradients_are_slopes(layer, x, idle=1e-6):
    """Along a random direction of `x` and of each weight, the gradient is the slope.

    Args:
        idle: Below this a gradient is as good as absent: none may be.
    """
    rng = np.random.default_rng(2)
    upstream = rng.normal(size=layer.compute_output_shape(x.shape))
    values = [x, *(weight.numpy() for weight in layer.trainable_weights)]
    computed, total = gradients(layer, x, upstream), _total(layer, upstream)
    for i, gradient in enumerate(computed):
        assert gradient.shape == values[i].shape
        assert np.abs(gradient).max() > idle
        direction = rng.normal(size=gradient.shape)
        ahead, back = (
            total(*_tensors([*values[:i], values[i] + step, *values[i + 1 :]]))
            for step in (STEP * direction, -STEP * direction)
        )
        slope = float(keras.ops.convert_to_numpy(ahead - back)) / (2 * STEP)
        # Relative to the strength of the gradient: its projection may be small.
        scale = np.linalg.norm(gradient)
        assert np.sum(gradient * direction) == pytest.approx(
            slope, rel=TOLERANCE, abs=float(TOLERANCE * scale + 1e-12)
        )


class InputGradient(keras.layers.Layer):
    """`∂/∂x Σ layer(x)²`, as a layer: differentiated, it gives second derivatives."""

    def __init__(self, layer):
        super().__init__(dtype=layer.dtype_policy)
        self.layer = layer

    def call(self, inputs):
        def energy(x):
            return keras.ops.sum(keras.ops.square(self.layer(x)))

        return _differentiated(energy, [inputs])[0]

    def compute_output_shape(self, input_shape):
        return input_shape


def _total(layer, upstream, training=False):
    """`Σ upstream · layer(x)` as a function of `x` and the trainable weights."""
    # Not every layer takes the argument.
    mode = {"training": True} if training else {}
    fixed = [v.value for v in layer.non_trainable_variables]

    def total(x, *weights):
        y, _ = layer.stateless_call(weights, fixed, x, **mode)
        return keras.ops.sum(y * keras.ops.convert_to_tensor(upstream, y.dtype))

    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(total)
    return total


def _tensors(values):
    return [keras.ops.convert_to_tensor(value, DTYPE) for value in values]


def _differentiated(function, values):
    """Gradients of a scalar in each of the values."""
    if keras.backend.backend() == "jax":
        import jax

        every = tuple(range(len(values)))
        return jax.jit(jax.grad(function, argnums=every))(*values)
    if keras.backend.backend() == "torch":
        import torch

        values = [value.requires_grad_() for value in values]
        return torch.autograd.grad(function(*values), values, create_graph=True)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(values)
        total = function(*values)
    return tape.gradient(total, values)
