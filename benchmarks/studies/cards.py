"""What the cards of all studies have in common."""

import datetime
import os
from typing import Any

import keras


def origin() -> dict[str, Any]:
    """The date and the environment of training a network."""
    environment = {
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
        "cores": os.cpu_count(),
        "devices": keras.distribution.list_devices(),
    }
    return {"date": datetime.date.today().isoformat(), "environment": environment}
