"""The paper's networks (Tables 1 and 2, Sec. 6.1, A.2 and A.3), and small ones."""

import dataclasses
from typing import Any

import keras

from keras_gdrn._checks import check_choice, takes_keywords_of
from keras_gdrn.models._builders import (
    DECIDED,
    TAKES_CONVOLUTION,
    gauss_der_resnet,
    scale_channel,
)

# The initial scales of the paper's networks: 1/(2√2) to 2 in steps of √2.
SIX_SCALES: tuple[float, ...] = tuple(2.0 ** (i / 2) for i in range(-3, 3))


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Arguments of `gauss_der_resnet` for a network.

    The paper's networks have the best of the three `scale_pooling` that the paper
    reports for the dataset, and the `head_initializer` `"he_uniform"`. To train one of
    them with one scale channel and central selection, pass `"positive"`: with He's
    weights it may lose classes (see `head_initializers`).

    Args:
        input_shape: Shape of an image, `(height, width, channels)`.
        widths, ratio, sigma0, classes, scale_pooling, scale_dropout: As
            `gauss_der_resnet`.
        spatial_selection, zero_order, separable_blocks, residual: As `scale_channel`.
        head_initializer, head_activation: As `scale_channel`.
        boundary, epsilon: As `GaussDerConv`.
        density, receptive_field: As `ScaleChannels`.
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
    head_activation: str | None = "relu"
    zero_order: bool = False
    separable_blocks: int = 0
    residual: bool = True
    boundary: str = "zero"
    epsilon: float = 1e-3
    density: float | None = 1.0
    receptive_field: float | None = 1.5


_FASHION_MNIST = Architecture(
    input_shape=(72, 72, 1),
    widths=(48, 24, 32, 32, 48, 48, 64, 64, 128),
    ratio=1.13,
    scale_dropout=0.2,
    head_initializer="he_uniform",
)
_CIFAR10 = Architecture(
    input_shape=(64, 64, 3),
    widths=(48, 48, 64, 64, 64, 192, 192, 192, 256),
    ratio=1.2,
    scale_dropout=0.3,
    head_initializer="he_uniform",
)
_STL10 = Architecture(
    input_shape=(96, 96, 3),
    widths=(48, 48, 64, 64, 128, 128, 192, 192, 256),
    ratio=1.32,
    scale_pooling="average",
    scale_dropout=0.3,
    spatial_selection="max",
    head_initializer="he_uniform",
    zero_order=True,
)

OF_THE_PAPER = {
    "rescaled_fashion_mnist": _FASHION_MNIST,
    "rescaled_cifar10": _CIFAR10,
    "rescaled_stl10": _STL10,
    "stl10": dataclasses.replace(
        _STL10, ratio=1.5, sigma0=(0.5,), scale_pooling="max", scale_dropout=0.0
    ),
    # Appendix A.3: with less scale dropout.
    "rescaled_fashion_mnist_without_label_smoothing": dataclasses.replace(
        _FASHION_MNIST, scale_dropout=0.1
    ),
    "rescaled_fashion_mnist_separable": dataclasses.replace(
        _FASHION_MNIST, separable_blocks=4
    ),
    "rescaled_cifar10_separable": dataclasses.replace(
        _CIFAR10, ratio=1.22, separable_blocks=4
    ),
    "rescaled_stl10_separable": dataclasses.replace(_STL10, separable_blocks=4),
}
# Of the trained networks: their windows are wider than the default.
SMALL = {
    "digits": Architecture((40, 40, 1), (8, 12, 12, 16, 16), 1.25, receptive_field=2.5),
    "mnist": Architecture(
        (36, 36, 1),
        (16, 24, 24, 32, 32),
        1.35,
        scale_dropout=0.2,
        boundary="symmetric",
        receptive_field=2.5,
    ),
    "cifar10": Architecture(
        (48, 48, 3),
        (32, 64, 96, 128),
        1.5,
        scale_dropout=0.2,
        boundary="symmetric",
        receptive_field=2.5,
    ),
}
# The networks by name (see `architecture`).
ARCHITECTURES = OF_THE_PAPER | SMALL


@takes_keywords_of(gauss_der_resnet, scale_channel, *TAKES_CONVOLUTION, refused=DECIDED)
def architecture(name: str, **overrides: Any) -> keras.Model:
    """Builds an untrained network by name; `from_preset` loads trained ones.

    Args:
        name: A key of `ARCHITECTURES`: the paper's networks, and small ones.
        **overrides: Arguments of `gauss_der_resnet` that replace or extend those of
            the architecture, such as `input_shape`, `widths` or `scale_pooling`. The
            model's `name` is that of the architecture.

    Returns:
        Functional model, as `gauss_der_resnet` builds it.

    Raises:
        ValueError: If there is no such architecture or argument.

    Example:

    >>> model = architecture("rescaled_cifar10", scale_pooling="average")
    >>> sum(math.prod(weight.shape) for weight in model.trainable_weights)
    1783434
    """
    check_choice("name", name, sorted(ARCHITECTURES))
    settings = {**dataclasses.asdict(ARCHITECTURES[name]), "name": name, **overrides}
    return gauss_der_resnet(**settings)
