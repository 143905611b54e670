"""The filters that a Gaussian derivative layer has learned, and their basis."""

import math
from typing import Any

import numpy as np
from keras import ops

from keras_gdrn import kernels
from keras_gdrn._checks import check_number, check_positive
from keras_gdrn.layers import GaussDerConv


def basis_kernels(
    sigma: float, order: int = 2, radius: int | None = None
) -> dict[tuple[int, ...], np.ndarray]:
    """Scale-normalized derivatives `σ^|α| δ^α T(·; σ)` of the discrete Gaussian.

    All with `|α| <= order`, as functions of the position: these are the kernels of a
    true convolution, which a layer's correlation applies reflected.

    Source: Perzanowski & Lindeberg, Eq. disc-gauss+central-diff.

    Args:
        sigma: Scale in pixels.
        order: Highest order of differentiation, 0 or more.
        radius: Radius of the kernels, in pixels; by default `4 sigma`, at least 5.

    Returns:
        For each multi-index (along y, along x) a float64 array
        `(2 radius + 1, 2 radius + 1)`, by order and from derivatives along x to those
        along y.

    Raises:
        ValueError: If `sigma` is not a positive number or `order` is negative.

    Example:

    >>> basis_kernels(1.0)[0, 2].shape
    (11, 11)
    """
    check_positive("sigma", sigma)
    check_number("order", order, whole=True)
    if radius is None:
        radius = max(5, math.ceil(4 * sigma))
    along = [
        kernels.gaussian_derivative(sigma, a, radius)[::-1] for a in range(order + 1)
    ]
    return {
        (y, total - y): np.outer(along[y], along[total - y])
        for total in range(order + 1)
        for y in range(total + 1)
    }


def effective_filters(layer: GaussDerConv, sigma0: float = 1.0) -> np.ndarray:
    """The filters `Σ_α m(α) C_α σ^|α| δ^α T(·; σ)` of a layer on images.

    They are functions of the position, the kernels of a true convolution: the layer's
    responses to single bright pixels, without bias and activation. For a separable
    layer they are those of its first stage, one for each channel.

    A network's layers are found by their names. `channel.get_layer("head")` is the last
    one of a `scale_channel`. `channel.get_layer("block1").conv1` and `.conv2` are those
    of a `GaussDerResidualBlock`. `channel` itself is the `network` of the layer
    `ScaleChannels`: `model.get_layer("scale_channels").network`.

    Source: Perzanowski & Lindeberg, Appendix "Visualisation of the learned receptive
    fields". Departure: cut off at the layer's own `epsilon`.

    Args:
        layer: Built `GaussDerConv` of two spatial dimensions.
        sigma0: Initial scale σ_0 of the scale channel; `σ` is `sigma0` times the
            layer's scale, the learned one where it is trained. Filters are those on the
            pixels, as in the paper.

    Returns:
        A float64 array `(size, size, channels, filters)`, or `(size, size, channels)`
        of a separable layer, with the center in the middle of the odd `size`.

    Raises:
        ValueError: If `layer` is of another kind or not built, or `sigma0` is not a
            finite, positive number.

    Guarantee: the layer's responses to within `2 epsilon` of the largest one. Responses
    that are cut off, at order 2 and less, are below `10 epsilon` of it.

    Example:

    >>> channel = scale_channel((64, 64, 3), 10, [16, 32], ratio=1.2)
    >>> effective_filters(channel.get_layer("block1").conv1).shape
    (13, 13, 16, 32)
    """
    if not isinstance(layer, GaussDerConv):
        raise ValueError(
            "`layer` must be a `GaussDerConv`, such as the `conv1` and `conv2` of a "
            f"`GaussDerResidualBlock`. Received: layer={layer!r}"
        )
    if not layer.built or layer.input_spec.ndim != 4:
        raise ValueError(
            "`layer` must be built for inputs of two spatial dimensions. "
            f"Received: layer={layer!r} with {layer.input_spec}"
        )
    base = math.exp(_float64(layer.log_sigma)) if layer.trainable_sigma else layer.sigma
    sigma = check_positive("sigma0", sigma0) * base
    # The differences reach beyond the truncated Gaussian.
    radius = kernels.truncation_radius(sigma, layer.epsilon, dimensions=2)
    basis = basis_kernels(sigma, layer.order, radius + math.ceil(layer.order / 2))
    scaled = [kernels.multinomial(alpha) * basis[alpha] for alpha in layer.indices]
    weights = layer.depthwise_kernel if layer.separable else layer.kernel
    return np.tensordot(np.stack(scaled), _float64(weights), axes=(0, 0))


def _float64(weight: Any) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(weight)).astype("float64")
