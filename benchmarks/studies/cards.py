"""What the cards of all studies have in common."""

import datetime
import os
from typing import Any

import keras


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
