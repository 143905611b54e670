"""The data of a search, and the objectives that follow from its validation data."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras


def training_and_tests(
    x: Any, y: Any, validation_data: Any, share: float
) -> tuple[Any, Mapping[float, Any]]:
    """Training data as `train_in_stages` takes them, and test data by size factor."""
    data = x if y is None else (x, y)
    if not share and validation_data is not None:
        is_by_factor = isinstance(validation_data, Mapping)
        return data, validation_data if is_by_factor else {1.0: validation_data}
    is_pair = isinstance(data, tuple) and len(data) == 2
    count = len(data[1]) if is_pair else 0
    kept = math.floor(count * (1 - share))
    if validation_data is not None or not 0 < kept < count:
        raise ValueError(
            "Either `validation_data` or `validation_split` must be given. A split of "
            "arrays (images, labels) must leave images to train and to validate on. "
            f"Received: validation_split={share!r} of "
            f"{f'{count} images' if is_pair else f'a {type(data).__name__}'} and "
            f"{'no' if validation_data is None else 'also'} validation_data"
        )
    images, labels = data
    return (images[:kept], labels[:kept]), {1.0: (images[kept:], labels[kept:])}


def at_size_1(tests: Mapping[float, Any]) -> Any:
    if 1.0 not in tests:
        raise ValueError(
            "`validation_data` must have images of size factor 1 for a callback that "
            'monitors "val_accuracy" or "val_loss". '
            f"Received: size factors {sorted(tests)}"
        )
    return tests[1.0]


def check_objective(
    callbacks: Sequence[keras.callbacks.Callback], tests: Mapping[float, Any]
) -> None:
    """Refuses an objective that no trial returns, before the first trial."""
    known = {"parameters", "val_mean_accuracy", "val_min_accuracy"}
    known |= {"val_accuracy"} if 1.0 in tests else set()
    for callback in callbacks:  # a callback of Keras Tuner has it
        objective = getattr(callback, "objective", None)
        for part in getattr(objective, "objectives", [objective]):
            name = getattr(part, "name", None)
            if name is not None and name not in known:
                raise ValueError(
                    f"`objective` must be one of {sorted(known)}, for validation at "
                    f"size factors {sorted(tests)}. Received: objective={name!r}"
                )
