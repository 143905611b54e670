"""A residual block, on the pixels or on grids."""

from collections.abc import Callable

from keras import ops

from keras_gdrn.layers._backends import unfused
from keras_gdrn.layers._batch_normalization import normalized_jointly


def residual(
    block, maps, skip: list, first: Callable, second: Callable, training: bool | None
) -> list:
    """`M(x) = φ(skip(x) + BN(w_2 * φ(BN(w_1 * x))))`.

    `skip` are the inputs at the positions of the outputs. `first` and `second` apply
    the convolutions `w_1` and `w_2`, with their biases, to maps.
    """
    y = regularized(block.conv1, first(maps))
    y = normalized_jointly(block.bn1, y, training)
    y = [block.activation(of_grid) for of_grid in y]
    y = regularized(block.conv2, second(y))
    y = normalized_jointly(block.bn2, y, training)
    if block.projection is not None:
        skip = [unfused(block.projection(x)) for x in skip]
        skip = normalized_jointly(block.projection_bn, skip, training)
    return [block.activation(a + b) for a, b in zip(y, skip, strict=True)]


def regularized(layer, maps: list) -> list:
    """The outputs of a layer, after the loss that Keras adds where it calls a layer."""
    if layer.activity_regularizer is not None:
        for x in maps:
            loss = layer.activity_regularizer(x)
            count = ops.cast(ops.shape(x)[0], loss.dtype)
            layer.add_loss(ops.divide_no_nan(loss, count))
    return maps
