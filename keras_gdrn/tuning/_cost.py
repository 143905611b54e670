"""What a search will cost, told before it starts."""

import time

import keras
import keras_tuner

from keras_gdrn.models import with_sigma0
from keras_gdrn.tuning._compute import multiply_adds
from keras_gdrn.tuning._hypermodel import GaussDerResNetHyperModel

_DRAWN = 3
_STEP = 3  # a training step takes about three forward passes
_SIDE = 1024


def search_cost(
    hypermodel: GaussDerResNetHyperModel,
    images: int,
    trials: int,
    epochs: int | None = None,
) -> str:
    """An estimate of what it takes to train the networks of a search, in a sentence.

    Three networks are drawn from the space and counted (see `multiply_adds`). The time
    is what this machine would need for their matrix products alone, at the speed of
    large ones: a search takes longer, often several times as long.

    Args:
        hypermodel: The hypermodel.
        images: Number of training images.
        trials: Number of trials.
        epochs: Epochs of a trial; by default those of its recipe.

    Returns:
        The sentence, such as `"20 trials of 8 epochs over 1,000 images: …"`.

    Example:

    >>> print(search_cost(hypermodel, len(images), trials=20))
    """
    epochs = epochs or hypermodel.base_recipe.epochs
    passes = sorted(_passes(hypermodel, epochs, seed) for seed in range(_DRAWN))
    total = _STEP * images * trials * sum(passes) / _DRAWN
    lowest, highest = (count / epochs / 1e6 for count in (passes[0], passes[-1]))
    hours = total / _speed() / 3600
    least = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
    return (
        f"{trials} trials of {epochs} epochs over {images:,} images: {lowest:,.0f} to "
        f"{highest:,.0f} million multiply-adds per image ({_DRAWN} networks drawn from "
        f"the space), {total:.1e} in all. Matrix products alone take {least} on this "
        "machine; expect several times as much."
    )


def _passes(hypermodel: GaussDerResNetHyperModel, epochs: int, seed: int) -> float:
    """Multiply-adds of the forward passes of an image, in all epochs of a trial."""
    hp = keras_tuner.HyperParameters()
    hypermodel.space.architecture(hp)
    for parameter in hp.space:
        hp.values[parameter.name] = parameter.random_sample(seed)
    model = hypermodel.build(hp)
    single = min(hypermodel.single_scale_epochs, epochs)
    passes = (epochs - single) * multiply_adds(model) if epochs > single else 0
    if single:
        passes += single * multiply_adds(with_sigma0(model, [1.0]))
    return passes


def _speed() -> float:
    """Multiply-adds per second of a large matrix product."""
    matrix = keras.random.uniform((_SIDE, _SIDE), seed=0)
    seconds = []
    for _ in range(3):  # the first one may compile
        begun = time.perf_counter()
        keras.ops.convert_to_numpy(keras.ops.matmul(matrix, matrix))
        seconds.append(time.perf_counter() - begun)
    return _SIDE**3 / min(seconds)
