"""Accuracy as a function of the position of the object."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_gdrn._checks import check_number
from keras_gdrn.evaluation._scale_generalization import scale_generalization


def shift_accuracies(
    model: keras.Model,
    images: np.ndarray,
    labels: np.ndarray,
    shifts: Sequence[int] = (0, 4, 8, 12),
    *,
    batch_size: int = 64,
) -> dict[int, float]:
    """Accuracy of a classifier on images that are shifted along both axes.

    A network with central selection, trained on centered objects, does not recognize
    them elsewhere. This function tells how far from the center is too far.

    Args:
        model: Model from images `(batch, H, W, C)` to scores `(batch, class)`.
        images: `(N, H + 2s, W + 2s, C)`, with real surroundings on each side as wide as
            the largest shift `s`, so that no border needs to be made up.
        labels: As for `scale_generalization`.
        shifts: Pixels by which images are shifted down and to the right, >= 0.
        batch_size: Images in a batch.

    Returns:
        The share of correctly classified images for each shift.

    Raises:
        ValueError: If the images have another size, `shifts` is empty or holds a value
            other than an integer >= 0, or as `scale_generalization`.

    Example:

    >>> model = from_preset("digits", input_shape=(40, 40, 1))
    >>> images, labels = rescaled_arrays("digits", "test", canvas=64, limit=500)
    >>> found = shift_accuracies(model, images, labels)
    >>> {by: round(share, 2) for by, share in found.items()}
    {0: 1.0, 4: 0.06, 8: 0.1, 12: 0.13}
    """
    if not len(shifts):
        raise ValueError(f"`shifts` must not be empty. Received: shifts={shifts!r}")
    for shift in shifts:
        check_number("shifts", shift, whole=True)
    border, known = max(shifts), model.input_shape[1:3]
    sizes = [size - 2 * border for size in np.shape(images)[1:3]]
    height, width = wanted = [n or size for n, size in zip(known, sizes, strict=True)]
    if sizes != wanted or min(sizes) < 1:
        raise ValueError(
            f"`images` must have {border} more on each side, for shifts of 0 to "
            f"{border} pixels and a model of {known} pixels. "
            f"Received: images of shape {np.shape(images)}"
        )
    found = {}
    for shift in shifts:
        start = border - shift
        moved = images[:, start : start + height, start : start + width]
        result = scale_generalization(
            model, {1.0: (moved, labels)}, batch_size=batch_size
        )
        found[shift] = float(result.accuracies[0])
    return found
