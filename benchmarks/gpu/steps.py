"""Steps compiled by XLA ahead of time, with what the compiler knows about them."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

# A sample of the time of a step is one of so many seconds, or of one step.
SAMPLE_SECONDS = 0.1


@dataclasses.dataclass
class Step:
    """A step that goes on from its own result.

    Attributes:
        function: Compiled function from the state and the data to the new state and a
            value.
        state, data: What it is called with next.
        tracing, compiling: Seconds that these took.
        operations: Floating point operations of the program, as it was traced.
        moved: Bytes that the compiled program reads and writes.
        memory: Bytes that it needs, its arguments included.
    """

    function: Callable
    state: Any
    data: tuple
    tracing: float
    compiling: float
    operations: float
    moved: float
    memory: int

    def run(self, times: int = 1) -> None:
        value = None
        for _ in range(times):
            self.state, value = self.function(self.state, *self.data)
        jax.block_until_ready((self.state, value))

    def times(self) -> int:
        """How many steps are a sample; two have been run then."""
        self.run()
        begin = time.perf_counter()
        self.run()
        return math.ceil(SAMPLE_SECONDS / (time.perf_counter() - begin))


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
        differentiated = jax.value_and_grad(objective, has_aux=True)
        (value, others), gradients = differentiated(trainable, others, images, labels)
        trainable, moments = optimizer.stateless_apply(moments, gradients, trainable)
        return (trainable, others, moments), value

    state = (*states(model), [variable.value for variable in optimizer.variables])
    return compiled(step, state, (images, labels))


def inference_step(model: keras.Model, images: np.ndarray) -> Step:
    def step(state, images):
        return state, model.stateless_call(*state, images, training=False)[0]

    return compiled(step, states(model), (images,))


def states(model: keras.layers.Layer) -> tuple[list, list]:
    """The weights, trainable and others, as `stateless_call` takes them."""
    kinds = model.trainable_variables, model.non_trainable_variables
    return tuple([variable.value for variable in kind] for kind in kinds)


def compiled(function: Callable, state: Any, data: tuple) -> Step:
    data = tuple(map(jax.numpy.asarray, data))
    begin = time.perf_counter()
    # Its state is its own from here on: a step overwrites the one before.
    lowered = jax.jit(function, donate_argnums=0).lower(state, *data)
    traced = time.perf_counter()
    program = lowered.compile()
    done = time.perf_counter()
    sizes = program.memory_analysis()
    return Step(
        program,
        jax.tree.map(jax.numpy.copy, state),
        data,
        tracing=traced - begin,
        compiling=done - traced,
        operations=_cost(lowered, "flops"),
        moved=_cost(program, "bytes accessed"),
        memory=sizes.argument_size_in_bytes
        + sizes.output_size_in_bytes
        - sizes.alias_size_in_bytes
        + sizes.temp_size_in_bytes,
    )


def _cost(program: Any, name: str) -> float:
    """Zero where the compiler does not tell."""
    return float((program.cost_analysis() or {}).get(name, 0.0))
