"""Errors of rounding: layers and networks against themselves in float64."""

import dataclasses
from collections.abc import Callable

import contenders
import jax
import keras
import numpy as np
from precision import PRECISIONS, precision
from steps import states

from keras_gdrn import kernels
from keras_gdrn.layers import GaussDerConv
from keras_gdrn.models import gauss_der_resnet

LAYERS = {"GaussDerConv": GaussDerConv, "paper's scheme": contenders.PaperConv}


def layer_errors(name: str, sigma: float, size: int, width: int) -> dict:
    """Of the output, and of the gradients for input and kernel, at each precision.

    Under "truncation", for the package's layer: the error of the output in float64
    against the operators of `kernels`, which is that of `epsilon`.
    """
    random = np.random.default_rng(0)
    x, upstream = random.normal(size=(2, 2, size, size, width))
    kernel = random.normal(size=(len(contenders.INDICES), width, width))

    def responses(at: str) -> list[np.ndarray]:
        with precision(at):
            image = keras.Input(x.shape[1:])
            # A model, as a layer casts its inputs only where it is called by one.
            model = keras.Model(image, LAYERS[name](width, sigma)(image))

            def output(x, kernel):
                weights = [kernel, jax.numpy.zeros(width, kernel.dtype)]
                return model.stateless_call(weights, [], x)[0]

            y, back = jax.vjp(jax.jit(output), _as_variable(x), _as_variable(kernel))
            return _as_float64([y, *back(jax.numpy.asarray(upstream, y.dtype))])

    exact = responses("float64")
    names = ("output", "gradient of the input", "gradient of the kernel")
    errors = _errors(names, responses, exact)
    if name == "GaussDerConv":
        right = by_operators(x, kernel, sigma)
        errors["truncation"] = relative_error(exact[0], right)
    return errors


def by_operators(x: np.ndarray, kernel: np.ndarray, sigma: float) -> np.ndarray:
    """The layer by its definition: NumPy, in float64, the whole operator of an axis."""
    rows, columns = (
        [kernels.axis_operator(size, sigma, order, "zero") for order in range(3)]
        for size in x.shape[1:3]
    )
    y = 0.0
    for (down, right), mix in zip(contenders.INDICES, kernel, strict=True):
        response = np.einsum("yh,bhwc->bywc", rows[down], x, optimize=True)
        response = np.einsum("xw,bywc->byxc", columns[right], response, optimize=True)
        y = y + kernels.multinomial((down, right)) * (response @ mix)
    return y


def network_errors(settings, sigma0: tuple[float, ...], batch: int) -> dict:
    """Of the scores, and of the gradient for all weights, at each precision.

    Untrained, with the statistics of the batch, as in the first step of a training;
    without scaling of the loss, which float16 is trained with.
    """
    random = np.random.default_rng(0)
    images = random.random((batch, *settings.input_shape))
    labels = np.arange(batch) % settings.classes
    asked = dataclasses.replace(settings, sigma0=sigma0, scale_dropout=0.0)
    weights = _network(asked).get_weights()

    def responses(at: str) -> list[np.ndarray]:
        with precision(at):
            model = _network(asked)
            model.set_weights(weights)
            trainable, others = states(model)

            def objective(trainable):
                arguments = (trainable, others, _as_variable(images))
                scores, _ = model.stateless_call(*arguments, training=True)
                return _cross_entropy(labels, scores), scores

            differentiated = jax.value_and_grad(objective, has_aux=True)
            (_, scores), gradient = jax.jit(differentiated)(trainable)
            gradient = np.concatenate(list(map(np.ravel, _as_float64(gradient))))
            return [*_as_float64([scores]), gradient]

    return _errors(("scores", "gradient"), responses, responses("float64"))


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Root mean square of the difference, relative to that of the exact values."""
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


def _errors(names: tuple, responses: Callable, exact: list[np.ndarray]) -> dict:
    return {
        at: {
            name: relative_error(found, right)
            for name, found, right in zip(names, responses(at), exact, strict=True)
        }
        for at in PRECISIONS
    }


def _network(settings) -> keras.Model:
    keras.utils.set_random_seed(0)
    return gauss_der_resnet(**dataclasses.asdict(settings))


def _cross_entropy(labels: np.ndarray, scores) -> jax.Array:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, scores)


def _as_variable(array: np.ndarray) -> jax.Array:
    return jax.numpy.asarray(array, keras.config.floatx())


def _as_float64(arrays: list) -> list[np.ndarray]:
    return [np.asarray(array).astype("float64") for array in arrays]
