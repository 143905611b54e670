"""Precisions, and steps compiled by XLA ahead of time, with what it knows of them."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

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
# A sample of the time of a step is one of so many seconds, or of one step.
SAMPLE_SECONDS = 0.1


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    """Layers made and functions compiled inside compute so; or in "float64"."""
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
    """A step that goes on from its own result; a call is a sample of its time.

    Attributes: `compiling`, seconds with tracing; `operations`, floating point ones of
    the program as it was traced; `memory`, bytes with its arguments; `count`, steps of
    a call.
    """

    def __init__(self, function: Callable, state: Any, *data: np.ndarray):
        self.data = tuple(map(jax.numpy.asarray, data))
        begin = time.perf_counter()
        # Its state is its own: a step overwrites the one before.
        lowered = jax.jit(function, donate_argnums=0).lower(state, *self.data)
        self.program = lowered.compile()
        self.compiling = time.perf_counter() - begin
        self.operations = (lowered.cost_analysis() or {}).get("flops", 0.0)
        sizes = self.program.memory_analysis()
        self.memory = sizes.argument_size_in_bytes + sizes.temp_size_in_bytes
        self.memory += sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        self.state, self.count = jax.tree.map(jax.numpy.copy, state), 1
        self()
        begin = time.perf_counter()
        self()
        self.count = math.ceil(SAMPLE_SECONDS / (time.perf_counter() - begin))

    def __call__(self) -> None:
        value = None
        for _ in range(self.count):
            self.state, value = self.program(self.state, *self.data)
        jax.block_until_ready((self.state, value))


def training_step(model: keras.Model, images: np.ndarray, labels: np.ndarray) -> Step:
    """AdamW on the cross-entropy, as Keras' own step on JAX."""
    optimizer = keras.optimizers.AdamW()
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def objective(trainable, others, images, labels):
        scores, others = model.stateless_call(trainable, others, images, training=True)
        return loss(labels, scores), others

    def step(state, images, labels):
        trainable, others, moments = state
        slopes = jax.value_and_grad(objective, has_aux=True)
        (value, others), gradients = slopes(trainable, others, images, labels)
        trainable, moments = optimizer.stateless_apply(moments, gradients, trainable)
        return (trainable, others, moments), value

    state = (*states(model), [variable.value for variable in optimizer.variables])
    return Step(step, state, images, labels)


def inference_step(model: keras.Model, images: np.ndarray) -> Step:
    def step(state, images):
        return state, model.stateless_call(*state, images, training=False)[0]

    return Step(step, states(model), images)


def states(model: keras.Model) -> tuple[list, list]:
    """The weights, trainable and others, as `stateless_call` takes them."""
    kinds = model.trainable_variables, model.non_trainable_variables
    return tuple([variable.value for variable in kind] for kind in kinds)
