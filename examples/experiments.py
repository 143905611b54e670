"""The paper's experiments, and some beyond it, as data.

Each is a network, the stages in which it is trained, and how it is tested. Published
numbers are those that the paper states as numbers; most of its results are figures.
"""

import dataclasses
from dataclasses import replace
from functools import partial

from keras_gdrn import training
from keras_gdrn.data import SIZE_FACTORS
from keras_gdrn.models import ARCHITECTURES, SIX_SCALES, Architecture
from keras_gdrn.training import RECIPES, Augmentation, Recipe

POOLINGS = ("max", "logsumexp", "average")
RESCALED = ("fashion_mnist", "cifar10", "stl10")
# Appendix A.5: 1/(2√2) to 2·2^(1/4) in steps of 2^(1/4).
DENSE_SIGMA0 = tuple(2.0 ** (i / 4) for i in range(-6, 6))

# Appendix A.4: the pre-trained networks of STL-10 are tested with one more.
STL10_PRETRAINED_SIGMA0 = (*SIX_SCALES, DENSE_SIGMA0[-1])

# Accuracies at size factor 1 in percent, where the paper states numbers: for three
# poolings together, or for the best of them (captions of the figures of Sec. 6.2).
PUBLISHED = {
    **{("fashion_mnist", pooling): "~94 (of all three)" for pooling in POOLINGS},
    **{("cifar10", pooling): "92.1–92.7 (of all three)" for pooling in POOLINGS},
    ("stl10", "average"): "91.2",
}


@dataclasses.dataclass(frozen=True)
class Stage(training.Stage):
    """A stage of training, on the first `limit` images."""

    limit: int | None = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A network, how it is trained and how it is tested.

    Args:
        what: Where it is in the paper.
        dataset: A key of `keras_gdrn.data.DATASETS`.
        network: Its architecture; `input_shape` is that of the training images.
        stages: Stages, one after the other, each from the weights of the one before.
        test_sigma0: Scale channels in the test; by default those of the last stage.
        factors: Size factors of the test images.
        test_canvas: Pixels of the test images' canvas; by default the data set's.
        test_limit: Test on only so many images of each size.
        plain: Train a plain residual network of the same widths instead.
        variant: What is different in training only: a key of `variants.VARIANTS`.
        published: Accuracy at size factor 1 as the paper states it, in percent.
    """

    what: str
    dataset: str
    network: Architecture
    stages: tuple[Stage, ...]
    test_sigma0: tuple[float, ...] | None = None
    factors: tuple[float, ...] = SIZE_FACTORS
    test_canvas: int | None = None
    test_limit: int | None = None
    plain: bool = False
    variant: str | None = None
    published: str = ""


def _joint(recipe: Recipe, network: Architecture) -> tuple[Stage, ...]:
    """All scale channels from the beginning."""
    return (Stage("training", recipe, network.sigma0),)


def _two_stages(
    name: str, network: Architecture, label_smoothing: float = 0.1
) -> tuple[Stage, ...]:
    """Appendix A.4: one scale channel at σ_0 = 1, then all of them."""
    sigma0 = {"first_stage": (1.0,), "second_stage": network.sigma0}
    return tuple(
        Stage(
            stage,
            replace(RECIPES[f"{name}_{stage}"], label_smoothing=label_smoothing),
            sigma0[stage],
        )
        for stage in sigma0
    )


def _experiment(
    dataset: str, what: str, network: Architecture, recipe: Recipe, **options
) -> Experiment:
    """All scale channels from the beginning, unless `options` have other stages."""
    options = {"stages": _joint(recipe, network), **options}
    return Experiment(what, dataset, network, **options)


def _of_pooling(dataset: str, pooling: str) -> dict[str, Experiment]:
    """What the paper did with each of the three poolings."""
    name = f"rescaled_{dataset}"
    network = replace(ARCHITECTURES[name], scale_pooling=pooling)
    separable = replace(ARCHITECTURES[f"{name}_separable"], scale_pooling=pooling)
    recipe, other = _label_smoothing(dataset, pooling)
    kind = "with" if other.label_smoothing else "without"
    ablated = ARCHITECTURES.get(f"{name}_{kind}_label_smoothing", network)
    ablated = replace(ablated, scale_pooling=pooling)
    published = PUBLISHED.get((dataset, pooling), "")
    # As the network that they are compared with.
    stages = _two_stages(name, network, recipe.label_smoothing)
    more = STL10_PRETRAINED_SIGMA0 if dataset == "stl10" else None
    add = partial(_experiment, dataset)
    return {
        f"{dataset}_{pooling}": add(
            "Sec. 6.2, scale generalization", network, recipe, published=published
        ),
        f"{dataset}_{pooling}_separable": add(
            "A.2, depthwise-separable", separable, RECIPES[f"{name}_separable"]
        ),
        f"{dataset}_{pooling}_{kind}_label_smoothing": add(
            "A.3, label smoothing", ablated, other
        ),
        f"{dataset}_{pooling}_pretrained": add(
            "A.4, pre-training", network, recipe, stages=stages, test_sigma0=more
        ),
        f"{dataset}_{pooling}_dense": add(
            "A.5, denser scale channels", network, recipe, test_sigma0=DENSE_SIGMA0
        ),
    }


def _label_smoothing(dataset: str, pooling: str) -> tuple[Recipe, Recipe]:
    """The recipe of the paper's main experiments, and that of the ablation."""
    name = f"rescaled_{dataset}"
    if dataset != "stl10":
        return RECIPES[name], RECIPES[f"{name}_without_label_smoothing"]
    # Sec. stl10-experiments: average pooling was trained without label smoothing.
    without, with_smoothing = RECIPES[name], RECIPES[f"{name}_with_label_smoothing"]
    if pooling == "average":
        return without, with_smoothing
    return with_smoothing, without


def _of_one_pooling(dataset: str) -> dict[str, Experiment]:
    """Ablations and controls, with the pooling of the preset."""
    name = f"rescaled_{dataset}"
    network = ARCHITECTURES[name]
    recipe, _ = _label_smoothing(dataset, network.scale_pooling)
    single = RECIPES[f"{name}_single"]
    zero = "without_zero_order" if network.zero_order else "zero_order"
    add = partial(_experiment, dataset)
    return {
        f"{dataset}_{zero}": add(
            "Sec. 7.1, zero-order term",
            replace(network, zero_order=not network.zero_order),
            recipe,
        ),
        f"{dataset}_single": add(
            "A.1, one scale channel", replace(network, sigma0=(1.0,)), single
        ),
        f"{dataset}_without_residual": add(
            "beyond the paper: layers instead of residual blocks",
            replace(network, residual=False),
            recipe,
        ),
        f"{dataset}_plain": add(
            "control: plain residual network", network, single, plain=True
        ),
    }


def _stl10_original(recipe: str) -> Experiment:
    network = ARCHITECTURES["stl10"]
    return Experiment(
        "Sec. 6.1, regular STL-10",
        "stl10_original",
        network,
        _joint(RECIPES[recipe], network),
        factors=(1.0,),
        published="88.05" if RECIPES[recipe].label_smoothing == 0 else "89.36",
    )


def _mnist() -> dict[str, Experiment]:
    """The field's oldest scale benchmark, and its control."""
    network = replace(ARCHITECTURES["rescaled_fashion_mnist"], boundary="symmetric")
    stages = tuple(
        replace(stage, recipe=replace(stage.recipe, augmentation=Augmentation()))
        for stage in _two_stages("rescaled_fashion_mnist", network)
    )
    mnist = Experiment("beyond the paper: MNIST", "mnist", network, stages)
    control = replace(
        mnist,
        what="control: plain residual network",
        stages=(replace(stages[0], name="training"),),
        plain=True,
    )
    return {"mnist": mnist, "mnist_plain": control}


def _digits() -> dict[str, Experiment]:
    """What matters, asked of a network that two cores train in two minutes."""
    network = Architecture((40, 40, 1), (8, 12, 12, 16, 16), 1.25, scale_dropout=0.2)
    variants = {
        "max": network,
        "logsumexp": replace(network, scale_pooling="logsumexp"),
        "average": replace(network, scale_pooling="average"),
        "symmetric": replace(network, boundary="symmetric"),
        "epsilon_1e-2": replace(network, epsilon=1e-2),
        "zero_order": replace(network, zero_order=True),
        "separable": replace(network, separable_blocks=2),
        "subpixel": replace(network, subpixel=True),
        "without_scale_dropout": replace(network, scale_dropout=0.0),
        "without_residual": replace(network, residual=False),
    }
    experiments = {name: _digits_experiment(which) for name, which in variants.items()}
    separate = replace(experiments["max"], variant="separate statistics")
    # Under max pooling, zeros never win: no score is negative.
    to_zero = replace(experiments["logsumexp"], variant="dropout to zero")
    experiments |= {"separate_statistics": separate, "dropout_to_zero": to_zero}
    jointly = (Stage("training", Recipe(8, 32), network.sigma0),)
    experiments["jointly"] = replace(experiments["max"], stages=jointly)
    return {f"digits_{name}": found for name, found in experiments.items()}


def _digits_experiment(network: Architecture) -> Experiment:
    stages = (
        Stage("first_stage", Recipe(8, 32), (1.0,)),
        Stage("second_stage", Recipe(1, 32, 0.005), network.sigma0),
    )
    return Experiment("beyond the paper: what matters", "digits", network, stages)


EXPERIMENTS: dict[str, Experiment] = {
    "stl10_single_scale": _stl10_original("stl10"),
    "stl10_single_scale_without_label_smoothing": _stl10_original(
        "stl10_without_label_smoothing"
    ),
}
for _dataset in RESCALED:
    for _pooling in POOLINGS:
        EXPERIMENTS.update(_of_pooling(_dataset, _pooling))
    EXPERIMENTS.update(_of_one_pooling(_dataset))
EXPERIMENTS.update(_mnist())
EXPERIMENTS.update(_digits())
