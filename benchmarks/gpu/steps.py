"""Precisions, steps compiled by XLA ahead of time, and rounding errors."""

import contextlib
import time
from collections.abc import Callable, Iterator

import jax
import keras
import numpy as np

# Keras' policy and JAX' precision of products. On a CPU, TF32 is float32.
PRECISIONS = {
    "float32": ("float32", "highest"),
    "TF32": ("float32", "tensorfloat32"),
    "bfloat16": ("mixed_bfloat16", "default"),
    "float16": ("mixed_float16", "default"),
}
PARTS = ("output", "gradient of the input", "gradient of the weights")
STEPS = 10  # in a timing: a single one may be too short


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Precision of the layers and functions made inside; also "float64"."""
    policy, products = PRECISIONS.get(name, ("float64", "highest"))
    double = policy == "float64"
    before = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64" if double else "float32")
    keras.config.set_dtype_policy(policy)
    try:
        with jax.default_matmul_precision(products), jax.enable_x64(double):
            yield
    finally:
        keras.config.set_floatx(before[1])
        keras.config.set_dtype_policy(before[0])


class Step:
    """Steps of Keras' own training or prediction, each from the result of the last.

    Attributes: `compiling`, seconds with tracing; `operations`, floating point ones of
    the program as it was traced; `memory`, bytes with its arguments.
    """

    def __init__(self, model: keras.Model, task: str, *data: np.ndarray):
        state = compiled_state(model)
        if task == "training":
            function = model.train_step
        else:
            state = state[:2]

            def function(state, data):
                return model.predict_step(state, data)[0], state

        self.data = tuple(map(jax.numpy.asarray, data))
        begin = time.perf_counter()
        # The state is donated: a step overwrites the one before.
        lowered = jax.jit(function, donate_argnums=0).lower(state, self.data)
        self.program = lowered.compile()
        self.compiling = time.perf_counter() - begin
        self.operations = (lowered.cost_analysis() or {}).get("flops", 0.0)
        sizes = self.program.memory_analysis()
        self.memory = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes
        self.memory += sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        self.state = jax.tree.map(jax.numpy.copy, state)

    def __call__(self) -> None:
        result = None
        for _ in range(STEPS):
            result, self.state = self.program(self.state, self.data)
        jax.block_until_ready((result, self.state))


def rounding_errors(build: Callable[[], keras.Model], batch: int) -> dict:
    """The root mean square errors of each part, for each precision.

    They are relative to float64, for random images and a random gradient of the output.
    The network is untrained and uses the statistics of the batch, as in the first step
    of training; without the loss scaling of float16 training.
    """
    keras.utils.set_random_seed(0)  # near a tie, rounding chooses another maximum
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


def compiled_state(model: keras.Model) -> tuple[list, ...]:
    """Compiles a model; what `train_step` takes: weights, optimizer and metrics."""
    model.compile("adamw", keras.losses.SparseCategoricalCrossentropy(True))
    model.optimizer.build(model.trainable_variables)
    kinds = model.optimizer.variables, model.metrics_variables
    return states(model) + tuple([v.value for v in kind] for kind in kinds)


def states(model: keras.Model) -> tuple[list, ...]:
    """The weights, trainable and others, as `stateless_call` takes them."""
    kinds = model.trainable_variables, model.non_trainable_variables
    return tuple([variable.value for variable in kind] for kind in kinds)
