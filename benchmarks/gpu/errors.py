"""Errors of rounding: layers and networks against themselves in float64."""

import dataclasses
from collections.abc import Callable

import contenders
import jax
import keras
import numpy as np
from steps import PRECISIONS, objective, precision, states

from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import gauss_der_resnet

LAYERS = {"GaussDerConv": GaussDerConv, "paper's scheme": contenders.PaperConv}


def layer_errors(name: str, sigma: float, size: int, width: int) -> dict:
    """Of the output, and of the gradients for input and kernel, at each precision."""
    random = np.random.default_rng(0)
    x, upstream = random.normal(size=(2, 2, size, size, width))
    kernel = random.normal(size=(len(contenders.INDICES), width, width))

    def responses() -> list:
        image = keras.Input(x.shape[1:])
        # A model, as a layer casts its inputs only where it is called by one.
        model = keras.Model(image, LAYERS[name](width, sigma)(image))

        def output(x, kernel):
            weights = [kernel, jax.numpy.zeros(width, kernel.dtype)]
            return model.stateless_call(weights, [], x)[0]

        y, back = jax.vjp(jax.jit(output), *map(_as_variable, (x, kernel)))
        return [y, *back(jax.numpy.asarray(upstream, y.dtype))]

    names = ("output", "gradient of the input", "gradient of the kernel")
    return _errors(names, responses)


def network_errors(settings, batch: int) -> dict:
    """Of the scores, and of the gradient for all weights, at each precision.

    Untrained, with the statistics of the batch, as in the first step of a training;
    without scaling of the loss, which float16 is trained with.
    """
    random = np.random.default_rng(0)
    images = random.random((batch, *settings.input_shape))
    labels = np.arange(batch) % settings.classes
    asked = {**dataclasses.asdict(settings), "scale_dropout": 0.0}
    weights = gauss_der_resnet(**asked).get_weights()

    def responses() -> list:
        model = gauss_der_resnet(**asked)
        model.set_weights(weights)
        differentiated = jax.jit(jax.value_and_grad(objective(model), has_aux=True))
        data = _as_variable(images), labels
        (_, (scores, _)), gradient = differentiated(*states(model), *data)
        return [scores, np.concatenate([np.ravel(part) for part in gradient])]

    return _errors(("scores", "gradient"), responses)


def _errors(names: tuple[str, ...], responses: Callable[[], list]) -> dict:
    """Root mean square differences from float64, relative to what that gives."""

    def computed(at: str) -> list[np.ndarray]:
        with precision(at):
            return [np.asarray(array).astype("float64") for array in responses()]

    exact = computed("float64")
    return {
        at: {
            name: float(np.sqrt(np.mean((found - right) ** 2) / np.mean(right**2)))
            for name, found, right in zip(names, computed(at), exact, strict=True)
        }
        for at in PRECISIONS
    }


def _as_variable(array: np.ndarray) -> jax.Array:
    return jax.numpy.asarray(array, keras.config.floatx())
