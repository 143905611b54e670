"""Errors of rounding: layers and networks against themselves in float64."""

from collections.abc import Callable

import jax
import keras
import numpy as np
from steps import PRECISIONS, precision, states

PARTS = ("output", "gradient of the input", "gradient of the weights")


def rounding_errors(build: Callable[[], keras.Model], batch: int) -> dict:
    """For each precision the root mean square errors of each of the parts.

    Relative to what float64 gives, of random images and a random gradient of the
    output. Untrained, with the statistics of the batch, as in the first step of a
    training; without scaling of the loss, which float16 is trained with.
    """
    model, random = build(), np.random.default_rng(0)
    images, upstream = (
        random.normal(size=(batch, *shape[1:]))
        for shape in (model.input_shape, model.output_shape)
    )

    def responses(at: str) -> list[np.ndarray]:
        with precision(at):
            same = build()
            same.set_weights(model.get_weights())
            trainable, others = states(same)

            def output(images, trainable):
                return same.stateless_call(trainable, others, images, training=True)[0]

            x = jax.numpy.asarray(images, keras.config.floatx())
            y, back = jax.vjp(jax.jit(output), x, trainable)
            slope, gradients = back(jax.numpy.asarray(upstream, y.dtype))
            parts = [y, slope, np.concatenate([np.ravel(part) for part in gradients])]
            return [np.asarray(part).astype("float64") for part in parts]

    exact = responses("float64")
    return {
        at: {
            part: float(np.sqrt(np.mean((found - right) ** 2) / np.mean(right**2)))
            for part, found, right in zip(PARTS, responses(at), exact, strict=True)
        }
        for at in PRECISIONS
    }
