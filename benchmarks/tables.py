"""What the benchmarks print: on what they ran, and Markdown tables row by row."""

import importlib
import os
import platform

import keras

BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "PyTorch"}


def machine() -> str:
    backend = keras.backend.backend()
    version = importlib.import_module(backend).__version__
    return (
        f"{platform.machine()}, {os.cpu_count()} cores; "
        f"{BACKENDS[backend]} {version}, Keras {keras.__version__}"
    )


def print_header(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*["---"] * len(cells))


def print_row(*cells: str) -> None:
    """At once, as the next row may take long."""
    print("| " + " | ".join(cells) + " |", flush=True)
