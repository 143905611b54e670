import keras
from keras import ops

from keras_gdrn._checks import check_choice
from keras_gdrn.layers._arguments import check_data_format, check_options, check_rank
from keras_gdrn.layers._backends import maximum

MODES = ("center", "max")


@keras.saving.register_keras_serializable(package="keras_gdrn")
class SpatialSelection(keras.layers.Layer):
    """Selects one value from each feature map.

    `"center"`: the value at the central pixel, `F(x_center)`; along an axis of even
    size the mean of the two central pixels, so the central 2×…×2 in all. `"max"`: the
    largest value, `max_x F(x)`, for objects that are not centered.

    Source: Perzanowski & Lindeberg, Eqs. central-pixel-extraction and
    spatial-maxpooling-expression.

    Args:
        mode: `"center"` or `"max"`.
        data_format: `"channels_last"`, `"channels_first"`, or `None` for Keras' own
            setting.

    Input shape:
        `(batch, *spatial, channels)` with one, two or three spatial dimensions, or
        `(batch, channels, *spatial)` for `"channels_first"`.

    Output shape:
        `(batch, channels)`.

    Raises:
        ValueError: If `mode` is unknown or the input has no spatial dimension.

    Example:

    >>> SpatialSelection("center")(keras.Input((64, 64, 10))).shape
    (None, 10)
    """

    def __init__(self, mode="center", data_format=None, **kwargs):
        check_options(self, SpatialSelection, kwargs)
        super().__init__(**kwargs)
        self.mode = check_choice("mode", mode, MODES)
        self.data_format = check_data_format(data_format)

    def build(self, input_shape):
        check_rank(type(self).__name__, input_shape)

    def call(self, inputs):
        x = ops.cast(inputs, self.compute_dtype)
        if self.data_format == "channels_first":
            x = ops.moveaxis(x, 1, -1)
        axes = range(1, len(x.shape) - 1)
        if self.mode == "max":
            return maximum(x, axis=tuple(axes))
        for axis in reversed(axes):
            x = _central_mean(x, axis)
        return x

    def compute_output_shape(self, input_shape):
        channel_axis = -1 if self.data_format == "channels_last" else 1
        return (input_shape[0], input_shape[channel_axis])

    def get_config(self):
        config = super().get_config()
        config.update(mode=self.mode, data_format=self.data_format)
        return config


def _central_mean(inputs, axis: int):
    size = ops.shape(inputs)[axis]
    # Twice the same pixel if the size is odd.
    low = ops.take(inputs, (size - 1) // 2, axis=axis)
    high = ops.take(inputs, size // 2, axis=axis)
    return low / 2 + high / 2  # their sum may overflow float16
