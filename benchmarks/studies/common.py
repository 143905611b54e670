"""What all studies have in common."""

import datetime
import os
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_gdrn.commands import write_text
from keras_gdrn.models import Card, save_to_preset


def origin() -> dict[str, Any]:
    """The date and the environment of training and testing a network."""
    backend = keras.backend.backend()
    environment = {
        "keras": keras.__version__,
        "backend": backend,
        "cores": os.cpu_count(),
        # Keras lists none on PyTorch.
        "devices": keras.distribution.list_devices() if backend != "torch" else None,
    }
    today = datetime.date.today().isoformat()
    return {"date": today, "test_date": today, "environment": environment}


def save_preset(model: keras.Model, folder: Path, card: Card) -> None:
    """Saves a preset, without options that Keras 3.15 writes and Keras 3.13 refuses."""
    save_to_preset(model, folder, card)
    config = folder / "config.json"
    new = r', "(renorm\w*|input_axes|output_axes)": (null|false|0\.99)'
    write_text(config, re.sub(new, "", config.read_text(encoding="utf-8")))


def spread(values) -> str:
    """The mean and, of several, the standard deviation."""
    text = f"{np.mean(values):.1f}"
    return text if len(values) == 1 else f"{text} ± {np.std(values, ddof=1):.1f}"


def lit(image: np.ndarray) -> tuple[slice, slice]:
    """The rows and columns of the part that is not black."""
    ends = (np.flatnonzero(image.any(axes))[[0, -1]] for axes in ((1, 2), (0, 2)))
    rows, columns = (slice(first, last + 1) for first, last in ends)
    return rows, columns
