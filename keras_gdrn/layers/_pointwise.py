"""Which Keras layers and operations act on each position of a map separately."""

import numbers

import keras
from keras import layers


def acts_at_each_position(layer, args: tuple, rank: int, channel_axis: int) -> bool:
    """Whether a layer applies one function to each position separately.

    Only exact types count, since what a subclass does is not known. A custom layer can
    set the attribute `acts_at_each_position = True`.
    """
    if getattr(layer, "acts_at_each_position", False):
        return True
    if not isinstance(layer, layers.Layer):
        return _is_elementwise(layer, args)
    kind = type(layer)
    if kind in _OVER_CHANNELS:
        axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
        return {axis % rank for axis in axes} <= {channel_axis}
    if kind in _KERAS_CONVOLUTIONS:
        last = channel_axis == rank - 1
        data_format = "channels_last" if last else "channels_first"
        ones = {*layer.kernel_size, *layer.strides} == {1}
        return ones and layer.data_format == data_format
    if kind is layers.Dense:
        return channel_axis == rank - 1
    if kind in (layers.Dropout, layers.AlphaDropout):
        return layer.noise_shape is None
    if kind is layers.PReLU:
        positions = {*range(1, rank)} - {channel_axis}
        return positions <= {*(layer.shared_axes or ())}
    return kind in _POINTWISE


def _is_elementwise(operation, args: tuple) -> bool:
    """Whether it is a Keras operation on maps, and on numbers at most."""
    kind, has_array = type(operation), False
    for leaf in keras.tree.flatten(args):
        has_array |= hasattr(leaf, "shape") and not isinstance(leaf, numbers.Number)
    known = kind.__module__ in ("keras.src.ops.numpy", "keras.src.ops.nn")
    return known and not has_array and kind.__name__ in _ELEMENTWISE


_OVER_CHANNELS = {
    layers.BatchNormalization,
    layers.Concatenate,
    layers.LayerNormalization,
    layers.Normalization,
    layers.RMSNormalization,
    layers.Softmax,
    layers.UnitNormalization,
}
_KERAS_CONVOLUTIONS = {layers.Conv1D, layers.Conv2D, layers.Conv3D}
_POINTWISE = {
    layers.Activation,
    layers.ActivityRegularization,
    layers.Add,
    layers.Average,
    layers.ELU,
    layers.GaussianDropout,
    layers.GaussianNoise,
    layers.Identity,
    layers.LeakyReLU,
    layers.Maximum,
    layers.Minimum,
    layers.Multiply,
    layers.ReLU,
    layers.Rescaling,
    layers.Subtract,
}
_ELEMENTWISE = {
    *("Absolute", "Add", "Divide", "Exp", "Expm1", "Log", "Log1p", "Maximum"),
    *("Minimum", "Multiply", "Negative", "Power", "Sqrt", "Square", "Subtract"),
    *("Tanh", "TrueDivide"),
    *("Celu", "Elu", "Gelu", "HardSigmoid", "HardSilu", "HardTanh", "LeakyRelu"),
    *("LogSigmoid", "Mish", "Relu", "Relu6", "Selu", "Sigmoid", "Silu", "Softplus"),
    *("Softsign",),
}
