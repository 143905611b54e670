"""What the cards of all studies say."""

import datetime
import os
from typing import Any

import keras


def origin() -> dict[str, Any]:
    """When and by what a network was trained."""
    environment = {
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
        "cores": os.cpu_count(),
        "devices": keras.distribution.list_devices(),
    }
    return {"date": datetime.date.today().isoformat(), "environment": environment}
