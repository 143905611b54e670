"""What the benchmarks print: on what they ran, and Markdown tables row by row."""

import os
import platform

import keras
import tensorflow as tf


def machine() -> str:
    return (
        f"{platform.machine()}, {os.cpu_count()} cores; TensorFlow {tf.__version__}, "
        f"Keras {keras.__version__}"
    )


def print_header(*cells: str) -> None:
    print()
    print_row(*cells)
    print_row(*["---"] * len(cells))


def print_row(*cells: str) -> None:
    """At once, as the next row may take long."""
    print("| " + " | ".join(cells) + " |", flush=True)
