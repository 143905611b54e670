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
        variant: What is different in training only: a key of `networks.VARIANTS`.
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


def _jointly(
    dataset: str, what: str, network: Architecture, recipe: Recipe, **options
) -> Experiment:
    """All scale channels from the beginning, unless `options` have other stages."""
    stages = (Stage("training", recipe, network.sigma0),)
    return Experiment(what, dataset, network, **{"stages": stages, **options})


def _pretrained(name: str, network: Architecture, **changes) -> tuple[Stage, ...]:
    """Appendix A.4: one scale channel at σ_0 = 1, then all of them."""
    return tuple(
        Stage(stage, replace(RECIPES[f"{name}_{stage}"], **changes), sigma0)
        for stage, sigma0 in (("first_stage", (1.0,)), ("second_stage", network.sigma0))
    )


def _of_each_pooling(dataset: str, pooling: str) -> dict[str, Experiment]:
    """What the paper did with each of the three poolings."""
    name = f"rescaled_{dataset}"
    recipe, other = _label_smoothing(dataset, pooling)
    kind = "with" if other.label_smoothing else "without"
    ablated = f"{name}_{kind}_label_smoothing"
    network, separable, ablated = (
        replace(ARCHITECTURES[key], scale_pooling=pooling)
        for key in (
            *(name, f"{name}_separable"),
            ablated if ablated in ARCHITECTURES else name,
        )
    )
    # As the network that they are compared with.
    stages = _pretrained(name, network, label_smoothing=recipe.label_smoothing)
    more = STL10_PRETRAINED_SIGMA0 if dataset == "stl10" else None
    published = PUBLISHED.get((dataset, pooling), "")
    add = partial(_jointly, dataset)
    found = {
        "": add("Sec. 6.2, scale generalization", network, recipe, published=published),
        "_separable": add(
            "A.2, depthwise-separable", separable, RECIPES[f"{name}_separable"]
        ),
        f"_{kind}_label_smoothing": add("A.3, label smoothing", ablated, other),
        "_pretrained": add(
            "A.4, pre-training", network, recipe, stages=stages, test_sigma0=more
        ),
        "_dense": add(
            "A.5, denser scale channels", network, recipe, test_sigma0=DENSE_SIGMA0
        ),
    }
    return {f"{dataset}_{pooling}{suffix}": found[suffix] for suffix in found}


def _label_smoothing(dataset: str, pooling: str) -> tuple[Recipe, Recipe]:
    """The recipe of the paper's main experiments, and that of the ablation."""
    name = f"rescaled_{dataset}"
    if dataset != "stl10":
        return RECIPES[name], RECIPES[f"{name}_without_label_smoothing"]
    # Sec. stl10-experiments: average pooling was trained without label smoothing.
    recipes = RECIPES[name], RECIPES[f"{name}_with_label_smoothing"]
    return recipes if pooling == "average" else recipes[::-1]


def _of_one_pooling(dataset: str) -> dict[str, Experiment]:
    """Ablations and controls, with the pooling of the preset."""
    name = f"rescaled_{dataset}"
    network = ARCHITECTURES[name]
    recipe, _ = _label_smoothing(dataset, network.scale_pooling)
    single = RECIPES[f"{name}_single"]
    zero = "without_zero_order" if network.zero_order else "zero_order"
    add = partial(_jointly, dataset)
    found = {
        zero: add(
            "Sec. 7.1, zero-order term",
            replace(network, zero_order=not network.zero_order),
            recipe,
        ),
        "single": add(
            "A.1, one scale channel", replace(network, sigma0=(1.0,)), single
        ),
        "without_residual": add(
            "beyond the paper: layers instead of residual blocks",
            replace(network, residual=False),
            recipe,
        ),
        "plain": add("control: plain residual network", network, single, plain=True),
    }
    return {f"{dataset}_{suffix}": found[suffix] for suffix in found}


def _stl10_original() -> dict[str, Experiment]:
    published = {"": "89.36", "_without_label_smoothing": "88.05"}
    return {
        f"stl10_single_scale{suffix}": _jointly(
            "stl10_original",
            "Sec. 6.1, regular STL-10",
            ARCHITECTURES["stl10"],
            RECIPES[f"stl10{suffix}"],
            factors=(1.0,),
            published=published[suffix],
        )
        for suffix in published
    }


def _mnist() -> dict[str, Experiment]:
    """The field's oldest scale benchmark, and its control."""
    network = replace(ARCHITECTURES["rescaled_fashion_mnist"], boundary="symmetric")
    none = Augmentation()
    stages = _pretrained("rescaled_fashion_mnist", network, augmentation=none)
    control = (replace(stages[0], name="training"),)
    return {
        "mnist": Experiment("beyond the paper: MNIST", "mnist", network, stages),
        "mnist_plain": Experiment(
            "control: plain residual network", "mnist", network, control, plain=True
        ),
    }


def _digits() -> dict[str, Experiment]:
    """What matters, asked of a network that two cores train in two minutes."""
    network = Architecture((40, 40, 1), (8, 12, 12, 16, 16), 1.25, scale_dropout=0.2)
    first = Stage("first_stage", Recipe(8, 32), (1.0,))
    second = Stage("second_stage", Recipe(1, 32, 0.005), network.sigma0)
    jointly = Stage("training", Recipe(8, 32), network.sigma0)
    what = "beyond the paper: what matters"
    standard = Experiment(what, "digits", network, (first, second))
    changes = {
        "max": {},
        "logsumexp": {"scale_pooling": "logsumexp"},
        "average": {"scale_pooling": "average"},
        "symmetric": {"boundary": "symmetric"},
        "epsilon_1e-2": {"epsilon": 1e-2},
        "zero_order": {"zero_order": True},
        "separable": {"separable_blocks": 2},
        "subpixel": {"subpixel": True},
        "without_scale_dropout": {"scale_dropout": 0.0},
        "without_residual": {"residual": False},
    }
    found = {
        name: replace(standard, network=replace(network, **of))
        for name, of in changes.items()
    }
    found |= {
        "separate_statistics": replace(standard, variant="separate statistics"),
        # Under max pooling, zeros never win: no score is negative.
        "dropout_to_zero": replace(found["logsumexp"], variant="dropout to zero"),
        "jointly": replace(standard, stages=(jointly,)),
    }
    return {f"digits_{name}": found[name] for name in found}


EXPERIMENTS: dict[str, Experiment] = _stl10_original()
for _dataset in RESCALED:
    for _pooling in POOLINGS:
        EXPERIMENTS |= _of_each_pooling(_dataset, _pooling)
    EXPERIMENTS |= _of_one_pooling(_dataset)
EXPERIMENTS |= _mnist() | _digits()
