"""Scale channels and whole networks, as functional Keras models."""

import warnings
from collections.abc import Sequence

import keras
import numpy as np

from keras_gdrn._checks import (
    check_choice,
    check_input_shape,
    check_number,
    check_positive,
    check_positive_integer,
    takes_keywords_of,
)
from keras_gdrn.layers import (
    GaussDerConv,
    GaussDerResidualBlock,
    ScaleChannels,
    ScalePooling,
    SpatialSelection,
)
from keras_gdrn.layers._batch_normalization import batch_normalization
from keras_gdrn.layers.scale_pooling import MODES as SCALE_POOLINGS
from keras_gdrn.layers.spatial_selection import MODES as SPATIAL_SELECTIONS
from keras_gdrn.models._head import head_initializers

# Where `**convolution` of `scale_channel` goes, and keywords that it refuses.
TAKES_CONVOLUTION = (GaussDerConv.__init__, keras.layers.Layer.__init__)
DECIDED = ("activation", "data_format", "filters", "separable", "sigma")


@takes_keywords_of(*TAKES_CONVOLUTION, refused=DECIDED)
def scale_channel(
    input_shape: tuple,
    classes: int,
    widths: Sequence[int],
    ratio: float,
    *,
    order: int = 2,
    zero_order: bool = False,
    separable_blocks: int = 0,
    residual: bool = True,
    spatial_selection: str = "center",
    head_initializer: str = "positive",
    head_activation: str | None = "relu",
    name: str = "scale_channel",
    **convolution,
) -> keras.Model:
    """Builds a scale channel `Γ`, the network that `ScaleChannels` applies at each σ_0.

    A first Gaussian derivative layer with batch normalization and ReLU at σ = 1, one
    residual block for each further width at `σ = ratio**1, ratio**2, …`, a last layer
    with ReLU, and the spatial selection. All scales are relative to the initial scale
    σ_0. No layer subsamples, and there is no dense layer.

    Source: Perzanowski & Lindeberg, Eqs. def-gaussderresnet-layer-1 to
    def-gaussderresnet-layer-final and func-comp-gamma-expression-new. Departure: the
    last layer starts with small weights and positive biases, so that its ReLU silences
    no class at the start. This matters for one channel with central selection (see
    `head_initializers`). The paper's is `head_initializer="he_uniform"`.

    Args:
        input_shape: Shape of an image, `(*spatial, channels)`; sizes may be `None`.
        classes: Number of classes.
        widths: Output widths of the first layer and of each block.
        ratio: Ratio r > 0 between the scales of successive layers.
        order: Highest order of differentiation.
        zero_order: Whether every layer but the first has the zero-order term.
        separable_blocks: How many of the last blocks are depthwise-separable.
        residual: `False` replaces each block by one layer without skip connection.
        spatial_selection: `"center"` or `"max"`.
        head_initializer: Initialization of the last layer, as `head_initializers`:
            `"positive"` or `"he_uniform"`.
        head_activation: Activation of the last layer. The paper's ReLU suits one class
            out of several. `None` gives scores of any sign, for several labels per
            image, a single score or regression.
        **convolution: Further arguments of every `GaussDerConv`: `boundary`,
            `epsilon`, `trainable_sigma`, initializers (instead of those of
            `head_initializer` too), regularizers, constraints. A `dtype`, such as
            `"mixed_bfloat16"`, is that of all layers.

    Returns:
        Functional model from `(batch, *spatial, channels)` to `(batch, classes)`.

    Raises:
        ValueError: If an argument is unknown or out of its range.

    Warns:
        UserWarning: If `input_shape` may be that of an image without its channels
            (two numbers, more than 4 channels and at most 4 positions per channel),
            with the batch axis, or with its channels first.

    Example:

    >>> scale_channel((64, 64, 3), 10, widths=[16, 16, 32], ratio=1.2).output_shape
    (None, 10)
    """
    input_shape = check_input_shape(input_shape)
    _warn_of_unusual_shape(input_shape)
    widths = _checked_widths(widths)
    ratio = check_positive("ratio", ratio)
    blocks = len(widths) - 1
    check_number("separable_blocks", separable_blocks, whole=True, highest=blocks)
    # The input is (*spatial, channels), whatever Keras' own setting.
    common = {**convolution, "order": order, "data_format": "channels_last"}

    image = keras.Input(input_shape, name="image")
    x = _conv_bn_relu(image, "stem", widths[0], 1.0, common)
    build = _residual_block if residual else _conv_bn_relu
    check_choice("spatial_selection", spatial_selection, SPATIAL_SELECTIONS)
    for block, filters in enumerate(widths[1:], start=1):
        separable = block > blocks - separable_blocks
        options = {**common, "zero_order": zero_order, "separable": separable}
        x = build(x, f"block{block}", filters, ratio**block, options)
    x = GaussDerConv(
        check_positive_integer("classes", classes),
        ratio ** len(widths),
        zero_order=zero_order,
        activation=head_activation,
        name="head",
        **{**head_initializers(head_initializer, zero_order=zero_order), **common},
    )(x)
    scores = SpatialSelection(
        spatial_selection,
        data_format="channels_last",
        name="spatial_selection",
        dtype=convolution.get("dtype"),
    )(x)
    return keras.Model(image, scores, name=name)


@takes_keywords_of(scale_channel, *TAKES_CONVOLUTION, refused=DECIDED)
def gauss_der_resnet(
    input_shape: tuple,
    classes: int,
    widths: Sequence[int],
    ratio: float,
    sigma0: Sequence[float],
    scale_pooling: str = "max",
    scale_dropout: float = 0.0,
    density: float | None = 1.0,
    receptive_field: float | None = 1.5,
    name: str = "gauss_der_resnet",
    **channel,
) -> keras.Model:
    """Builds a scale-invariant network: scale channels with shared weights, pooled.

    `Prediction = ScaleSel({Γ_{σ_i,0}(f)})`.

    Source: Perzanowski & Lindeberg, Eq. complete-multi-net-definition.

    Args:
        input_shape: Shape of an image, `(*spatial, channels)`; sizes may be `None`.
        classes, widths, ratio: As `scale_channel`.
        sigma0: Initial scales σ_0 in pixels of the image.
        scale_pooling: `"max"`, `"logsumexp"` or `"average"`.
        scale_dropout: Probability that a scale channel is dropped from the pooling in
            training.
        density: Samples per σ of the grids on which maps are evaluated, as
            `ScaleChannels`; `None` for whole maps on the pixels, as in the paper.
        receptive_field: Half-width of the windows around the center, in standard
            deviations of the effective receptive field; `None` for whole maps.
        **channel: Further arguments of `scale_channel`.

    Returns:
        Functional model from `(batch, *spatial, channels)` to `(batch, classes)`
        scores in float32, also under a mixed precision policy.

    Raises:
        ValueError: If an argument is unknown or out of its range.

    Example:

    >>> model = gauss_der_resnet((64, 64, 3), 10, [16, 32], 1.2, sigma0=[0.5, 1, 2])
    >>> model.output_shape
    (None, 10)
    """
    check_choice("scale_pooling", scale_pooling, SCALE_POOLINGS)
    network = scale_channel(input_shape, classes, widths, ratio, **channel)
    image = keras.Input(input_shape, name="image")
    scores = ScaleChannels(
        network,
        sigma0,
        density,
        receptive_field,
        name="scale_channels",
        dtype=channel.get("dtype"),
    )(image)
    pooling = ScalePooling(
        scale_pooling, dropout=scale_dropout, name="scale_pooling", dtype="float32"
    )
    return keras.Model(image, pooling(scores), name=name)


def _residual_block(x, name, filters, sigma, options):
    return GaussDerResidualBlock(filters, sigma, name=name, **options)(x)


def _conv_bn_relu(x, name, filters, sigma, options):
    x = GaussDerConv(filters, sigma, name=f"{name}_conv", **options)(x)
    dtype = options.get("dtype")
    x = batch_normalization(f"{name}_bn", dtype)(x)
    return keras.layers.ReLU(name=f"{name}_relu", dtype=dtype)(x)


def _checked_widths(widths) -> list[int]:
    widths = widths.tolist() if isinstance(widths, np.ndarray) else widths
    if not isinstance(widths, Sequence) or isinstance(widths, str) or not widths:
        raise ValueError(
            "`widths` must be a non-empty sequence of integers. "
            f"Received: widths={widths!r}"
        )
    return [check_positive_integer("widths", width) for width in widths]


def _warn_of_unusual_shape(input_shape) -> None:
    """Warns of a shape without channels, with a batch axis, or with channels first."""
    match input_shape:
        case (int(length), int(channels)) if channels > 4 and length <= 4 * channels:
            meaning = "of two means signals, (positions, channels)"
        case (None, int(), int(), int()):
            meaning = "of four means volumes"
        case (int(height), int(), int(channels)) if height <= 4 < channels:
            meaning = "of three means (height, width, channels)"
        case _:
            return
    warnings.warn(
        f"An `input_shape` {meaning}. An image is (height, width, channels), without "
        f"the batch. Received: input_shape={input_shape}",
        stacklevel=4,
    )
