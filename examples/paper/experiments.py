"""The paper's experiments, and some beyond it, as data.

Each is a network, the stages in which it is trained, and how it is tested.
"""

from dataclasses import dataclass, replace

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


@dataclass(frozen=True)
class Stage(training.Stage):
    """A stage of training, on the first `limit` images."""

    limit: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A network, how it is trained and how it is tested."""

    what: str  # where it is in the paper
    dataset: str  # a key of `keras_gdrn.data.DATASETS`
    network: Architecture  # its `input_shape` is that of the training images
    stages: tuple[Stage, ...]  # each from the weights of the one before
    test_sigma0: tuple[float, ...] | None = None  # by default those of the last stage
    factors: tuple[float, ...] = SIZE_FACTORS  # size factors of the test images
    test_canvas: int | None = None  # pixels; by default the data set's
    test_limit: int | None = None  # test images of each size; by default all
    plain: bool = False  # a plain residual network of the same widths instead


EXPERIMENTS: dict[str, Experiment] = {}


def _add(
    name: str,
    what: str,
    dataset: str,
    network: Architecture,
    stages: Recipe | tuple[Stage, ...],
    **options,
) -> None:
    """Adds an experiment with stages, or with one recipe for all scale channels.

    One scale channel with central selection gets the package's own last layer: with
    the paper's weights, He's, it may lose classes.
    """
    if isinstance(stages, Recipe):
        stages = (Stage("training", stages, network.sigma0),)
    begins_with_one = len(stages[0].sigma0 or network.sigma0) == 1
    if begins_with_one and network.spatial_selection == "center":
        network = replace(network, head_initializer="positive")
    EXPERIMENTS[name] = Experiment(what, dataset, network, stages, **options)


def _pretrained(name: str, **changes) -> tuple[Stage, ...]:
    """Appendix A.4: one scale channel at σ_0 = 1, then all of them."""
    return tuple(
        Stage(stage, replace(RECIPES[f"{name}_{stage}"], **changes), sigma0)
        for stage, sigma0 in (("first_stage", (1.0,)), ("second_stage", SIX_SCALES))
    )


def _label_smoothing(dataset: str, pooling: str) -> tuple[Recipe, Recipe]:
    """The recipe of the paper's main experiments, and that of the ablation."""
    name = f"rescaled_{dataset}"
    if dataset != "stl10":
        return RECIPES[name], RECIPES[f"{name}_without_label_smoothing"]
    # Sec. stl10-experiments: average pooling was trained without label smoothing.
    recipes = RECIPES[name], RECIPES[f"{name}_with_label_smoothing"]
    return recipes if pooling == "average" else recipes[::-1]


def _add_pooling(dataset: str, pooling: str) -> None:
    """The paper's experiments with one of the three poolings."""
    preset = f"rescaled_{dataset}"
    recipe, other = _label_smoothing(dataset, pooling)
    kind = "with" if other.label_smoothing else "without"

    def add(suffix: str, what: str, network: Architecture, stages, **options) -> None:
        network = replace(network, scale_pooling=pooling)
        _add(f"{dataset}_{pooling}{suffix}", what, dataset, network, stages, **options)

    network, separable = ARCHITECTURES[preset], f"{preset}_separable"
    add("", "Sec. 6.2, scale generalization", network, recipe)
    blocks = ARCHITECTURES[separable], RECIPES[separable]
    add("_separable", "A.2, depthwise-separable", *blocks)
    suffix = f"_{kind}_label_smoothing"
    ablated = ARCHITECTURES.get(f"{preset}{suffix}", network)
    add(suffix, "A.3, label smoothing", ablated, other)
    # As in the network that they are compared with.
    stages = _pretrained(preset, label_smoothing=recipe.label_smoothing)
    more = STL10_PRETRAINED_SIGMA0 if dataset == "stl10" else None
    add("_pretrained", "A.4, pre-training", network, stages, test_sigma0=more)
    dense = {"test_sigma0": DENSE_SIGMA0}
    add("_dense", "A.5, denser scale channels", network, recipe, **dense)


def _add_dataset(dataset: str) -> None:
    """Ablations and controls, with the pooling of the preset."""
    network = ARCHITECTURES[f"rescaled_{dataset}"]
    recipe, _ = _label_smoothing(dataset, network.scale_pooling)
    single = RECIPES[f"rescaled_{dataset}_single"]

    def add(suffix: str, what: str, stages: Recipe, **of) -> None:
        changed = replace(network, **of)
        _add(f"{dataset}_{suffix}", what, dataset, changed, stages)

    zero = "without_zero_order" if network.zero_order else "zero_order"
    changed = not network.zero_order
    add(zero, "Sec. 7.1, zero-order term", recipe, zero_order=changed)
    add("single", "A.1, one scale channel", single, sigma0=(1.0,))
    what = "beyond the paper: layers instead of residual blocks"
    add("without_residual", what, recipe, residual=False)
    _control(dataset, network, single)


def _control(dataset: str, network: Architecture, stages) -> None:
    what = "control: plain residual network"
    _add(f"{dataset}_plain", what, dataset, network, stages, plain=True)


def _mnist() -> None:
    """The field's oldest scale benchmark, and its control."""
    network = replace(ARCHITECTURES["rescaled_fashion_mnist"], boundary="symmetric")
    stages = _pretrained("rescaled_fashion_mnist", augmentation=Augmentation())
    _add("mnist", "beyond the paper: MNIST", "mnist", network, stages)
    _control("mnist", network, (replace(stages[0], name="training"),))


def _digits() -> None:
    """Ablations of a network that two CPU cores train in two minutes."""
    first = Stage("first_stage", Recipe(8, 32), (1.0,))
    second = Stage("second_stage", Recipe(4, 32, 0.005), SIX_SCALES)
    trained = ARCHITECTURES["digits"]
    _add("digits", "beyond the paper: digits", "digits", trained, (first, second))
    network = replace(trained, scale_dropout=0.2)
    stages = first, replace(second, recipe=Recipe(1, 32, 0.005))

    def add(name: str, stages=stages, **of) -> None:
        what, changed = "beyond the paper: what matters", replace(network, **of)
        _add(f"digits_{name}", what, "digits", changed, stages)

    add("max")
    add("logsumexp", scale_pooling="logsumexp")
    add("average", scale_pooling="average")
    add("symmetric", boundary="symmetric")
    add("epsilon_1e-2", epsilon=1e-2)
    add("zero_order", zero_order=True)
    add("separable", separable_blocks=2)
    add("on_pixels", density=None)
    add("without_scale_dropout", scale_dropout=0.0)
    add("without_residual", residual=False)
    add("jointly", Recipe(8, 32))


for _end in ("", "_without_label_smoothing"):
    _original = "stl10_original", ARCHITECTURES["stl10"], RECIPES[f"stl10{_end}"]
    _what = "Sec. 6.1, regular STL-10"
    _add(f"stl10_single_scale{_end}", _what, *_original, factors=(1.0,))
for _dataset in RESCALED:
    for _pooling in POOLINGS:
        _add_pooling(_dataset, _pooling)
    _add_dataset(_dataset)
_mnist()
_digits()
