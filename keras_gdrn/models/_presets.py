"""The paper's networks (Tables 2 and 3, Sec. 6.1 and Appendix A.2)."""

import dataclasses

import keras

from keras_gdrn._checks import check_keywords
from keras_gdrn.models._builders import (
    TAKES_CONVOLUTION,
    gauss_der_resnet,
    scale_channel,
)

# The initial scales of the paper's networks: 1/(2√2) to 2 in steps of √2.
SIX_SCALES: tuple[float, ...] = tuple(2.0 ** (i / 2) for i in range(-3, 3))


@dataclasses.dataclass(frozen=True)
class Preset:
    """Arguments of `gauss_der_resnet` for one of the paper's networks.

    `scale_pooling` is the paper's best for the dataset; all three are reported.
    `head_initializer` is by default `scale_channel`'s; the paper's networks have
    `"he_uniform"`. To train one of those with one scale channel and central selection,
    give `"positive"`: with He's weights it may lose classes (see `head_initializers`).
    """

    input_shape: tuple[int, int, int]
    widths: tuple[int, ...]
    ratio: float
    sigma0: tuple[float, ...] = SIX_SCALES
    classes: int = 10
    scale_pooling: str = "max"
    scale_dropout: float = 0.0
    spatial_selection: str = "center"
    head_initializer: str = "positive"
    zero_order: bool = False
    separable_blocks: int = 0
    residual: bool = True
    boundary: str = "zero"
    epsilon: float = 1e-3
    receptive_field: float | str | None = "auto"


_FASHION_MNIST = Preset(
    input_shape=(72, 72, 1),
    widths=(48, 24, 32, 32, 48, 48, 64, 64, 128),
    ratio=1.13,
    scale_dropout=0.2,
    head_initializer="he_uniform",
)
_CIFAR10 = Preset(
    input_shape=(64, 64, 3),
    widths=(48, 48, 64, 64, 64, 192, 192, 192, 256),
    ratio=1.2,
    scale_dropout=0.3,
    head_initializer="he_uniform",
)
_STL10 = Preset(
    input_shape=(96, 96, 3),
    widths=(48, 48, 64, 64, 128, 128, 192, 192, 256),
    ratio=1.32,
    scale_pooling="average",
    scale_dropout=0.3,
    spatial_selection="max",
    head_initializer="he_uniform",
    zero_order=True,
)

# The paper's networks, by name (see `from_preset`).
PRESETS = {
    "rescaled_fashion_mnist": _FASHION_MNIST,
    "rescaled_cifar10": _CIFAR10,
    "rescaled_stl10": _STL10,
    "stl10": dataclasses.replace(
        _STL10, ratio=1.5, sigma0=(0.5,), scale_pooling="max", scale_dropout=0.0
    ),
    "rescaled_fashion_mnist_separable": dataclasses.replace(
        _FASHION_MNIST, separable_blocks=4
    ),
    "rescaled_cifar10_separable": dataclasses.replace(
        _CIFAR10, ratio=1.22, separable_blocks=4
    ),
    "rescaled_stl10_separable": dataclasses.replace(_STL10, separable_blocks=4),
}


def from_preset(name: str, **overrides) -> keras.Model:
    """Builds one of the paper's networks, untrained.

    Args:
        name: A key of `PRESETS`.
        **overrides: Arguments of `gauss_der_resnet` that replace the preset's or go
            beyond it, such as `input_shape`, `widths` or `scale_pooling`.

    Raises:
        ValueError: If there is no such preset or argument.

    Example:

    >>> model = from_preset("rescaled_cifar10", scale_pooling="average")
    >>> sum(math.prod(weight.shape) for weight in model.trainable_weights)
    1783434
    """
    if name not in PRESETS:
        raise ValueError(
            f"There is no preset {name!r}. The presets are {sorted(PRESETS)}."
        )
    takes = (gauss_der_resnet, scale_channel, *TAKES_CONVOLUTION)
    check_keywords("from_preset", overrides, *takes)
    return gauss_der_resnet(
        **{**dataclasses.asdict(PRESETS[name]), "name": name, **overrides}
    )
