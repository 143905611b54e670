"""Checks of arguments and input shapes that several layers share."""

import keras

SPATIAL_RANKS = (1, 2, 3)
_FORMATS = ("channels_last", "channels_first")


def check_data_format(data_format: str | None) -> str:
    if data_format is None:
        return keras.config.image_data_format()
    if data_format not in _FORMATS:
        raise ValueError(
            f"`data_format` must be one of {_FORMATS} or None. "
            f"Received: data_format={data_format!r}"
        )
    return data_format


def check_rank(layer: str, input_shape) -> None:
    if len(input_shape) - 2 not in SPATIAL_RANKS:
        raise ValueError(
            f"`{layer}` takes inputs (batch, *spatial, channels) with one, two or "
            f"three spatial dimensions. Received: input_shape={tuple(input_shape)}"
        )
