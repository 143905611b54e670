"""Labels of several kinds, as what the loss takes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def check_labels(spec: "tf.TensorSpec", classes: int) -> None:
    """Raises an error unless labels are of a known type and shape.

    Args:
        spec: of a batch of labels.
        classes: number of outputs of the model.
    """
    if spec.dtype == "string":
        raise ValueError(
            "Labels must be numbers of classes: number their names, for instance by "
            "`names, labels = np.unique(labels, return_inverse=True)`. "
            "Received: labels that are strings"
        )
    shape = tuple(spec.shape)
    if len(shape) != 1 and (len(shape) != 2 or shape[1] not in (1, classes)):
        raise ValueError(
            f"Labels must be integers (N,) or (N, 1), or one-hot (N, {classes}), as "
            f"the model has {classes} outputs. For other targets, compile the model "
            f"and use `model.fit`. Received: labels of shape {shape}"
        )


def as_targets(labels: "tf.Tensor", classes: int) -> "tf.Tensor":
    """Labels `(N,)`, `(N, 1)` or one-hot as float32: `(N, classes)`.

    Of a model with one output, `(N, 1)`: zeros and ones.
    """
    import tensorflow as tf

    if classes > 1 and labels.shape.rank == 2 and labels.shape[1] == classes:
        labels = tf.cast(labels, "float32")
        sums = tf.reduce_sum(labels, axis=1)
        fits = tf.reduce_all(labels >= 0) & tf.reduce_all(tf.abs(sums - 1) < 1e-3)
        return _asserted(
            fits, "One-hot labels must be shares that add up to 1.", labels
        )
    numbers = tf.reshape(tf.cast(labels, "int32"), [-1])
    whole = tf.reduce_all(tf.cast(numbers, labels.dtype) == tf.reshape(labels, [-1]))
    count = max(classes, 2)
    fits = whole & tf.reduce_all((numbers >= 0) & (numbers < count))
    message = f"Labels must number the {count} classes of the model from 0. Received:"
    numbers = _asserted(fits, message, numbers)
    if classes == 1:
        return tf.cast(numbers, "float32")[:, None]
    return tf.one_hot(numbers, classes)


def _asserted(fits: "tf.Tensor", message: str, tensor: "tf.Tensor") -> "tf.Tensor":
    import tensorflow as tf

    with tf.control_dependencies([tf.debugging.Assert(fits, [message, tensor])]):
        return tf.identity(tensor)
