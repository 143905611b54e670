"""Gradients by automatic differentiation on every backend, and by differences."""

import keras
import numpy as np


def gradients(layer, x, upstream, training=False):
    """Gradients of `Σ upstream · layer(x)` in `x` and in every trainable weight."""
    x = keras.ops.convert_to_tensor(x)
    differentiate = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
    grads = differentiate[keras.backend.backend()](layer, x, upstream, training)
    return [keras.ops.convert_to_numpy(gradient) for gradient in grads]


class InputGradient(keras.layers.Layer):
    """`∂/∂x Σ layer(x)²`, as a layer: differentiated, it gives second derivatives."""

    def __init__(self, layer):
        super().__init__(dtype=layer.dtype_policy)
        self.layer = layer

    def call(self, inputs):
        def energy(x):
            return keras.ops.sum(keras.ops.square(self.layer(x)))

        if keras.backend.backend() == "jax":
            import jax

            return jax.grad(energy)(inputs)
        if keras.backend.backend() == "torch":
            import torch

            x = inputs.requires_grad_()
            return torch.autograd.grad(energy(x), x, create_graph=True)[0]
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = energy(inputs)
        return tape.gradient(total, inputs)

    def compute_output_shape(self, input_shape):
        return input_shape


def directional_differences(layer, x, upstream, step=1e-5, seed=0):
    """The same gradients along one random direction each, by central differences.

    Returns:
        `(directions, slopes)`: what the gradients' inner products with `directions`
        must be.
    """
    draw = np.random.default_rng(seed).normal
    values = [np.asarray(x), *(w.numpy() for w in layer.trainable_weights)]
    directions = [draw(size=value.shape) for value in values]
    slopes = []
    for i, direction in enumerate(directions):
        sums = []
        for sign in (1, -1):
            moved = list(values)
            moved[i] = values[i] + sign * step * direction
            sums.append(_weighted_sum(layer, moved, upstream))
        slopes.append((sums[0] - sums[1]) / (2 * step))
    _assign(layer, values[1:])
    return directions, slopes


def _weighted_sum(layer, values, upstream):
    _assign(layer, values[1:])
    return np.sum(upstream * keras.ops.convert_to_numpy(layer(values[0])))


def _assign(layer, values):
    for weight, value in zip(layer.trainable_weights, values, strict=True):
        weight.assign(value)


def _tensorflow(layer, x, upstream, training):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(layer(x, training=training) * upstream)
    return tape.gradient(total, [x, *(w.value for w in layer.trainable_weights)])


def _jax(layer, x, upstream, training):
    import jax

    fixed = [v.value for v in layer.non_trainable_variables]

    def total(x, trained):
        y, _ = layer.stateless_call(trained, fixed, x, training=training)
        return (y * upstream).sum()

    trained = [v.value for v in layer.trainable_variables]
    x_bar, weights_bar = jax.grad(total, argnums=(0, 1))(x, trained)
    return [x_bar, *weights_bar]


def _torch(layer, x, upstream, training):
    import torch

    x = x.detach().requires_grad_()
    total = (layer(x, training=training) * torch.as_tensor(upstream)).sum()
    return torch.autograd.grad(total, [x, *(w.value for w in layer.trainable_weights)])
