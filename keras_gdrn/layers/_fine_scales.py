"""Fine scales: smoothing, and then one small convolution.

In the discrete theory a derivative is a difference of smoothed values. A jet of order
two takes them from 3×3 pixels, whatever the scale, so that

    y = (Σ_α C_α σ^|α| δ^α) * (T ⊗ T) x

is a stencil along each axis and one convolution, for which there is a fast routine: all
derivatives are taken and all channels mixed at once. (Where kernels are wide there are
few coefficients, which cost less to mix; see `_jets`.) Here values are rounded before
differences are taken, which magnifies that by up to 4 σ²: little, as long as σ is
(`AxisFactors.composed`); half precision is made single for it.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import keras
import numpy as np
from keras import ops

from keras_gdrn.kernels import AxisFactors, Differences, Stencil
from keras_gdrn.layers._grids import folded, later
from keras_gdrn.layers._precision import single_or_double
from keras_gdrn.layers._stencils import slid


def is_fine(axes: Sequence[AxisFactors], kernel) -> bool:
    """Whether one convolution is faster and as accurate."""
    return can_be_one(len(axes), len(kernel.shape) == 2) and all(
        axis.composed for axis in axes
    )


def can_be_one(dimensions: int, separable: bool) -> bool:
    """Whether a layer can be one convolution, if it is of a fine scale."""
    return dimensions <= 2 and not separable


def smoothed_and_mixed(x, kernel, axes: Sequence[AxisFactors], indices, sizes=None):
    """`Σ_α C_α (K_α1 ⊗ … ⊗ K_αD) x` of one scale, in single precision at least.

    Args:
        x: `(batch, *spatial, channels)`, or `(positions, batch, channels)`.
        kernel: `C_α` for each of `indices`, `(jet, channels, filters)`.
        sizes: The spatial ones, if positions come first.

    Returns:
        `(batch, *spatial, filters)`.
    """
    dtype, wide = x.dtype, single_or_double(x.dtype)
    x, kernel = ops.cast(x, wide), ops.cast(kernel, wide)
    composed = [axis.composed for axis in axes if axis.composed]
    # Σ_α C_α σ^|α| δ^α
    jet = ops.convert_to_tensor(_jet_of_differences(composed, indices), wide)

    def smoothed(x):
        maps = folded(x, 1, sizes) if sizes else x
        return _smoothed([axis.smoothing for axis in composed], maps)

    y = _convolved(x, smoothed, ops.tensordot(jet, kernel, 1))
    # Of no images, TensorFlow 2.21 gives as many channels as it was given.
    shape = (-1, *(sizes or ops.shape(x)[1:-1]), kernel.shape[-1])
    return ops.cast(ops.reshape(y, shape), dtype)


def _smoothed(smoothing: Sequence[Stencil], x):
    """`(T ⊗ T) x`, with a pixel more at each edge."""
    smooth = _along_all([_one_pixel_more(stencil) for stencil in smoothing], x)
    if not smoothing[0].mirrored:
        return smooth
    edges = [[0, 0], *[[1, 1]] * len(smoothing), [0, 0]]
    return ops.pad(smooth, edges, "symmetric")


def _one_pixel_more(smoothing: Stencil) -> Stencil:
    """With what differences at the edges see outside, where the image is zero there."""
    if smoothing.mirrored:  # the mirror image of what is inside
        return smoothing
    return dataclasses.replace(smoothing, pixels=smoothing.pixels + 2, entering=1)


def _along_all(stencils: list[Stencil], x):
    """Each along its axis of `(batch, *spatial, channels)`."""

    def product(stencils, x):
        for axis, stencil in enumerate(stencils, 1):
            x = slid(x, axis, stencil)
        return x

    @ops.custom_gradient
    def of_variable(x):
        def gradient(*args, upstream=None):
            y_bar = args[0] if upstream is None else upstream
            return product([stencil.T for stencil in stencils], y_bar)

        return product(stencils, x), gradient

    return of_variable(x)


def _convolved(x, smoothed: Callable, kernel):
    """The convolution of smoothed `x`, without what is outside."""
    if len(kernel.shape) == 4 and keras.backend.backend() == "tensorflow":
        return _convolved_by_tensorflow(x, smoothed, kernel)
    return ops.conv(smoothed(x), kernel, padding="valid", data_format="channels_last")


def _convolved_by_tensorflow(x, smoothed: Callable, kernel):
    """With a gradient of the input that takes a third of the time of TensorFlow's.

    That of the kernel smooths once more, rather than keep what has been smoothed.
    """
    import tensorflow as tf

    options = {"strides": [1] * 4, "padding": "VALID"}

    @tf.custom_gradient
    def of_variables(smooth, kernel):
        def gradient(y_bar):
            again = smoothed(later(x, y_bar))
            kernel_bar = tf.raw_ops.Conv2DBackpropFilter(
                input=again, filter_sizes=kernel.shape, out_backprop=y_bar, **options
            )
            margins = [[size - 1] * 2 for size in kernel.shape[:2]]
            wide = tf.pad(y_bar, [[0, 0], *margins, [0, 0]])
            adjoint = tf.transpose(kernel[::-1, ::-1], (0, 1, 3, 2))
            return tf.nn.conv2d(wide, adjoint, **options), kernel_bar

        return tf.nn.conv2d(smooth, kernel, **options), gradient

    return of_variables(smoothed(x), kernel)


def _jet_of_differences(axes: Sequence[Differences], indices) -> np.ndarray:
    """`σ^|α| δ^α` as `(*pixels, jet)`."""
    width = max(len(difference) for axis in axes for difference in axis.orders)
    jet = []
    for alpha in indices:
        along = [axis.orders[a] for axis, a in zip(axes, alpha, strict=True)]
        wide = [np.pad(one, (width - len(one)) // 2) for one in along]
        jet.append(functools.reduce(np.multiply.outer, wide))
    return np.stack(jet, axis=-1)
