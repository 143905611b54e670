"""The same experiments for less time: a few seconds, or hours on two cores."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import replace

from experiments import Experiment, Stage

from keras_gdrn.models import Preset

BUDGETS = ("smoke", "small", "medium", "large", "full")


@dataclasses.dataclass(frozen=True)
class Small:
    """What two processor cores can train.

    Args:
        widths, ratio: Those of the network. Half as many blocks have about the square
            of the ratio.
        canvas, test_canvas: Sides in pixels. What surrounds the image should be there
            in training: the symmetric boundary mirrors the maps of each layer, which is
            not the mirror image's maps (derivatives change their sign). A network that
            was trained on a canvas of 32 got 72 % of CIFAR-10 right on it, and 67 % on
            one of 64.
        epochs, limit: Those of one scale channel, or of a plain network.
        joint_epochs, joint_limit: Those of several scale channels.
        tuned_epochs, tuned_limit: Those of several scale channels that were trained as
            one before.
        test_limit: Images of each size.
        padding: That of the augmentation, if not the recipe's own.
        restart: Further epochs of one scale channel, before several are trained, or of
            a plain network.
        restart_rate, restart_padding: Learning rate that they begin with, and padding
            of their augmentation.
        scale_dropout: That of the pooling, if not the recipe's own.
    """

    widths: tuple[int, ...]
    ratio: float
    canvas: int
    test_canvas: int
    epochs: int = 6
    limit: int | None = None
    joint_epochs: int = 3
    joint_limit: int | None = 20000
    tuned_epochs: int = 1
    tuned_limit: int | None = 20000
    test_limit: int | None = 1000
    padding: int | None = None
    restart: int = 0
    restart_rate: float = 0.005
    restart_padding: int = 0
    scale_dropout: float | None = None


_MNIST = Small((12, 16, 16, 24, 24), 1.35, 36, 60, test_limit=2500)
SMALL = {
    "mnist": _MNIST,
    "fashion_mnist": replace(_MNIST, test_limit=1000),
    "cifar10": Small(
        (16, 24, 32, 48), 1.6, 48, 64, epochs=8, limit=20000, tuned_limit=10000
    ),
    "stl10": Small(
        (12, 16, 24, 32),
        1.9,
        96,
        192,
        epochs=12,
        joint_epochs=6,
        joint_limit=None,
        tuned_limit=None,
        test_limit=200,
    ),
    "stl10_original": Small((12, 16, 24, 32), 2.2, 96, 96, epochs=12, test_limit=None),
}
# The same networks on all images, and tested on all: some hours instead of one.
_ALL = {"limit": None, "joint_limit": None, "test_limit": None}
MEDIUM = {
    "mnist": replace(_MNIST, epochs=10, tuned_limit=None, **_ALL),
    "fashion_mnist": replace(_MNIST, epochs=10, tuned_limit=None, **_ALL),
    "cifar10": replace(SMALL["cifar10"], tuned_limit=None, **_ALL),
    "stl10": replace(SMALL["stl10"], epochs=30, **_ALL),
    "stl10_original": replace(SMALL["stl10_original"], epochs=30),
}

# More parameters and epochs, where they were the limit. What twelve epochs learned of
# images shifted by two pixels at most was 88 % of them, and 80 % of those of the test:
# hence eight more, shifted by four. Six channels learn less by heart: hence three of
# them. With scale dropout they were better at half and at twice the size.
LARGE = MEDIUM | {
    "cifar10": replace(
        MEDIUM["cifar10"],
        widths=(16, 32, 64, 128),
        ratio=1.5,
        epochs=12,
        padding=2,
        restart=8,
        restart_padding=4,
        tuned_epochs=3,
        scale_dropout=0.2,
    )
}


def within(experiment: Experiment, budget: str) -> Experiment:
    """The experiment for one of `BUDGETS`."""
    if budget == "full":
        return experiment
    if budget == "smoke":
        return _smoke(experiment)
    sizes = {"small": SMALL, "medium": MEDIUM, "large": LARGE}[budget]
    return _reduced(experiment, sizes)


def _reduced(full: Experiment, sizes: Mapping[str, Small]) -> Experiment:
    small = sizes.get(full.dataset)
    if small is None:  # the digits are small already
        return full
    channels = full.network.input_shape[-1]
    # A plain network averages over the canvas: on another one it would be lost.
    side = small.test_canvas if full.plain else small.canvas
    network = replace(
        full.network,
        input_shape=(side, side, channels),
        widths=small.widths,
        ratio=small.ratio,
        boundary="symmetric",
        head_initializer="positive",  # what is trained first is one channel
        separable_blocks=_share(full.network, small.widths),
    )
    if small.scale_dropout is not None:
        network = replace(network, scale_dropout=small.scale_dropout)
    stages = [_small_stage(stage, full, small) for stage in full.stages]
    if small.restart and (full.plain or len(stages[0].sigma0) == 1):
        stages.insert(1, _restarted(stages[0], small))
    return replace(
        full,
        network=network,
        stages=tuple(stages),
        test_canvas=small.test_canvas,
        test_limit=small.test_limit,
    )


def _small_stage(stage: Stage, full: Experiment, small: Small) -> Stage:
    if full.plain or len(stage.sigma0) == 1:
        epochs, limit, batch_size = small.epochs, small.limit, 64
    elif stage is full.stages[0]:
        epochs, limit, batch_size = small.joint_epochs, small.joint_limit, 32
    else:
        epochs, limit, batch_size = small.tuned_epochs, small.tuned_limit, 32
    share = stage.recipe.warmup_epochs / stage.recipe.epochs
    warmup = min(math.ceil(share * epochs), epochs - 1)
    augmentation = stage.recipe.augmentation
    if small.padding is not None:
        augmentation = replace(augmentation, padding=small.padding)
    recipe = replace(
        stage.recipe,
        epochs=epochs,
        batch_size=batch_size,
        warmup_epochs=warmup,
        augmentation=augmentation,
    )
    return replace(stage, recipe=recipe, limit=limit)


def _restarted(stage: Stage, small: Small) -> Stage:
    augmentation = replace(stage.recipe.augmentation, padding=small.restart_padding)
    recipe = replace(
        stage.recipe,
        epochs=small.restart,
        learning_rate=small.restart_rate,
        warmup_epochs=0,
        augmentation=augmentation,
    )
    return replace(stage, name="restart", recipe=recipe)


def _smoke(full: Experiment) -> Experiment:
    """To see that it runs: a tiny network, on a few of scikit-learn's digits."""
    sigma0 = full.network.sigma0[:2]
    network = replace(
        full.network,
        input_shape=(24, 24, 1),
        widths=(2, 3),
        sigma0=sigma0,
        separable_blocks=min(full.network.separable_blocks, 1),
    )
    stages = []
    for stage in full.stages:
        recipe = replace(stage.recipe, epochs=1, batch_size=10, warmup_epochs=0)
        stages.append(replace(stage, recipe=recipe, sigma0=stage.sigma0[:2], limit=20))
    return replace(
        full,
        dataset="digits",
        network=network,
        stages=tuple(stages),
        test_sigma0=full.test_sigma0 and full.test_sigma0[:3],
        factors=full.factors[:2],
        test_canvas=24,
        test_limit=10,
    )


def _share(network: Preset, widths: tuple[int, ...]) -> int:
    """As large a share of the blocks, rounded up."""
    blocks = len(network.widths) - 1
    return math.ceil(network.separable_blocks / blocks * (len(widths) - 1))
