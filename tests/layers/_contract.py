"""What every layer owes to Keras, as assertions shared by the tests of all layers."""

import dataclasses
import inspect
import json
import tempfile
from collections.abc import Callable

import keras
import numpy as np
import pytest

from tests._cases import cases


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer under the contract.

    Attributes:
        make: Makes a new layer from further arguments of `keras.layers.Layer`.
        shape: Input shape without the batch.
        parameters: Number of trainable scalars.
        unknown: `shape` with `None` for every size that may be unknown; by default all
            but the last.
        without_gradient: Trainable weights (the ends of their paths) that batch
            normalization makes irrelevant in training.
    """

    make: Callable[..., keras.layers.Layer]
    shape: tuple[int, ...]
    parameters: int = 0
    unknown: tuple[int | None, ...] | None = None
    without_gradient: tuple[str, ...] = ()

    def inputs(self, batch: int = 3) -> np.ndarray:
        return drawn(batch, *self.shape)


def each(every: dict[str, Case], on_jax: tuple[str, ...], checks=None):
    """Parametrizes a test by `case` and by `check`.

    Args:
        on_jax: The cases that run on JAX too (see `tests._cases`).
    """
    names = cases(every, on_jax)
    by_case = pytest.mark.parametrize("case", [every[n] for n in names], ids=names)
    by_check = pytest.mark.parametrize("check", checks or CONTRACT)
    return lambda test: by_check(by_case(test))


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def randomize(layer: keras.layers.Layer) -> None:
    """Gives every weight a value of its own, so that none can be lost unnoticed."""
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        value = rng.uniform(0.2, 0.8, weight.shape)
        if "kernel" in weight.path:
            value = rng.normal(0, 0.5, weight.shape)
        weight.assign(value)


def as_model(layer: keras.layers.Layer, shape: tuple) -> keras.Model:
    inputs = keras.Input(shape)
    return keras.Model(inputs, layer(inputs))


def numpy(tensor) -> np.ndarray:
    """In float32, as NumPy has no bfloat16, or float64."""
    array = keras.ops.convert_to_numpy(tensor)
    return array if array.dtype == "float64" else array.astype("float32")


def assert_near(actual, expected, tolerance: float) -> None:
    """Everywhere, to within a share of the largest value."""
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(numpy(actual), expected, rtol=0, atol=atol)


def assert_shapes(case: Case) -> None:
    """The shape of numbers, of no images, of symbols and of unknown sizes is the one
    announced."""
    layer, empty = case.make(), case.inputs(batch=0)
    if keras.backend.backend() == "jax":  # which knows all shapes before it computes
        empty = keras.KerasTensor(empty.shape)
    for x in (case.inputs(), empty):
        y = layer(x)
        assert tuple(y.shape) == tuple(layer.compute_output_shape(x.shape))
    unknown = case.unknown or (*[None] * (len(case.shape) - 1), case.shape[-1])
    for shape in (case.shape, unknown):
        symbol = layer(keras.Input(shape))
        assert tuple(symbol.shape) == tuple(layer.compute_output_shape((None, *shape)))
        assert symbol.dtype == keras.backend.standardize_dtype(y.dtype)


def assert_config_round_trip(case: Case) -> None:
    layer, x = case.make(), case.inputs()
    config = layer.get_config()
    for name, parameter in inspect.signature(type(layer)).parameters.items():
        assert parameter.kind is parameter.VAR_KEYWORD or name in config, name
    layer(x)
    randomize(layer)
    # Text, as a file keeps it; Keras takes a configuration apart as it reads it.
    text = json.dumps(config)
    copy = type(layer).from_config(json.loads(text))
    assert json.dumps(copy.get_config()) == text
    copy(x)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(numpy(copy(x)), numpy(layer(x)))


def assert_files(case: Case) -> None:
    """Of the model, and of its weights alone."""
    model, x = as_model(case.make(), case.shape), case.inputs()
    other = as_model(case.make(), case.shape)
    randomize(model)
    with tempfile.TemporaryDirectory() as folder:
        whole, weights = (f"{folder}/model{end}" for end in (".keras", ".weights.h5"))
        model.save(whole)
        model.save_weights(weights)
        other.load_weights(weights)
        loaded = keras.saving.load_model(whole)
    for copy in (loaded, other):
        np.testing.assert_array_equal(numpy(copy(x)), numpy(model(x)))


def assert_weights_made_in_build(case: Case) -> None:
    layer, x = case.make(), case.inputs()
    layer.build(x.shape)
    made = [weight.path for weight in layer.weights]
    layer(x)
    layer(x, training=True)
    assert [weight.path for weight in layer.weights] == made
    assert len(set(made)) == len(made)
    sizes = (np.prod(weight.shape, dtype=int) for weight in layer.trainable_weights)
    assert sum(sizes) == case.parameters


def assert_one_step_trains(case: Case) -> None:
    """One step of `fit` moves every weight that has a part in the loss."""
    model, x = as_model(case.make(), case.shape), case.inputs()
    randomize(model)
    before = model.get_weights()
    model.compile(keras.optimizers.SGD(0.5), loss="mse")
    target = np.random.default_rng(2).normal(size=model.compute_output_shape(x.shape))
    loss = model.train_on_batch(x, target)
    assert np.isfinite(loss)
    for weight, old in zip(model.weights, before, strict=True):
        moved = np.abs(weight.numpy() - old).max()
        if weight.path.endswith(case.without_gradient or ("-",)):
            assert moved < 5e-5, (weight.path, moved)
        else:
            assert moved > 2e-4, (weight.path, moved)


def assert_mixed_precision(case: Case) -> None:
    """Under a policy: its dtypes, and the float32 result up to rounding."""
    x, exact = case.inputs(), case.make()
    exact(x)
    randomize(exact)
    expected = numpy(exact(x))
    half = {"mixed_bfloat16": 4e-2, "mixed_float16": 5e-3}
    for policy in cases(half, ["mixed_float16"]):
        keras.config.set_dtype_policy(policy)
        layer = case.make()
        symbol = layer(keras.Input(case.shape))
        assert layer.dtype_policy.name == policy
        layer.set_weights(exact.get_weights())
        y = layer(x)
        assert keras.backend.standardize_dtype(y.dtype) == layer.compute_dtype
        assert symbol.dtype == layer.compute_dtype
        assert {w.dtype for w in layer.trainable_weights} <= {layer.variable_dtype}
        assert_near(y, expected, half[policy])


def assert_arguments_of_any_layer(case: Case) -> None:
    layer = case.make(name="given", trainable=False, dtype="mixed_float16")
    y = layer(case.inputs())
    assert (layer.name, layer.trainable_weights) == ("given", [])
    assert keras.backend.standardize_dtype(y.dtype) == "float16"
    parts = (p for p in vars(layer).values() if isinstance(p, keras.layers.Layer))
    for part in (layer, *parts):
        assert part.dtype_policy.name == "mixed_float16", part.name


def assert_integer_input(case: Case) -> None:
    """Pixels as they are stored: computed in the layer's dtype, without overflow."""
    layer = case.make()
    pixels = np.random.default_rng(3).integers(0, 256, (3, *case.shape), dtype="uint8")
    y = layer(pixels)
    assert keras.backend.standardize_dtype(y.dtype) == "float32"
    np.testing.assert_array_equal(numpy(y), numpy(layer(pixels.astype("float32"))))


WEIGHTLESS = (
    assert_shapes,
    assert_config_round_trip,
    assert_files,
    assert_weights_made_in_build,
    assert_mixed_precision,
    assert_arguments_of_any_layer,
    assert_integer_input,
)
CONTRACT = (*WEIGHTLESS, assert_one_step_trains)
